//! Which threads a search runs: each asks whether to stop when it has taken some work.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

/// Turns that are given away: on a busy machine each takes long.
const TURNS: usize = 100;

/// The threads that asked, and how often they did.
#[derive(Default)]
pub struct Watch(Mutex<(HashSet<ThreadId>, usize)>);

impl Watch {
    /// For a monitor: never stops, but lets other threads go first.
    pub fn look(&self) -> bool {
        let mut seen = self.0.lock().expect("no panic while locked");
        seen.0.insert(thread::current().id());
        seen.1 += 1;
        let give_way = seen.1 <= TURNS;
        drop(seen);
        if give_way {
            thread::yield_now();
        }
        false
    }

    /// How many threads did some of the work.
    pub fn threads(self) -> usize {
        self.0.into_inner().expect("no panic while locked").0.len()
    }
}
