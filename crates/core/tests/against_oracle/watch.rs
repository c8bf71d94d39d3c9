//! Finds which threads of a search work: each asks whether to stop once it has some work.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// How many calls wait for other threads, which would start too late in a small search, and how
/// often each of them checks for them.
const LOOKS: usize = 12;
const WAITS: usize = 4;

/// The threads that asked whether to stop, and how often.
#[derive(Default)]
pub struct Watch {
    seen: Mutex<(HashSet<ThreadId>, usize)>,
    /// Number of threads to wait for.
    n_threads: usize,
}

impl Watch {
    /// Watches a search on this many threads.
    pub fn on(n_threads: usize) -> Watch {
        Watch { n_threads, ..Watch::default() }
    }

    /// The callback of a monitor, which waits for other threads and never stops the search.
    pub fn look(&self) -> bool {
        let all_are_here = |looks: usize| {
            let mut seen = self.seen.lock().expect("no panic while locked");
            seen.0.insert(thread::current().id());
            seen.1 += looks;
            seen.0.len() >= self.n_threads || seen.1 > LOOKS
        };
        let mut waits = if all_are_here(1) { 0 } else { WAITS };
        while waits > 0 {
            thread::sleep(Duration::from_micros(1));
            waits = if all_are_here(0) { 0 } else { waits - 1 };
        }
        false
    }

    /// The number of threads that worked.
    pub fn threads(self) -> usize {
        self.seen.into_inner().expect("no panic while locked").0.len()
    }
}
