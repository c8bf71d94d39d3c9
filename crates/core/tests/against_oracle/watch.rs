//! Which threads a search runs: each asks whether to stop when it has taken some work.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Looks at which a thread waits for the others, which would come too late for a small search, and
/// how often it looks for them.
const LOOKS: usize = 12;
const WAITS: usize = 4;

/// The threads that asked, and how often they did.
#[derive(Default)]
pub struct Watch {
    seen: Mutex<(HashSet<ThreadId>, usize)>,
    /// Threads that are waited for.
    n_threads: usize,
}

impl Watch {
    /// Of a search on so many threads.
    pub fn on(n_threads: usize) -> Watch {
        Watch { n_threads, ..Watch::default() }
    }

    /// For a monitor: never stops, but waits for other threads.
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

    /// How many threads did some of the work.
    pub fn threads(self) -> usize {
        self.seen.into_inner().expect("no panic while locked").0.len()
    }
}
