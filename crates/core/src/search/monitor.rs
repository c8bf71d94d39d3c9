//! Deadlines and interrupts, looked at from inside the search.

use super::TracePoint;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Why a search was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The deadline passed.
    Time,
    /// The tables would not fit the memory limit.
    Memory,
    /// The caller's interrupt was raised.
    Interrupt,
}

/// Watches the clock and the caller's interrupt; shared by all threads.
pub struct Monitor<'a> {
    start: Instant,
    deadline: Option<Instant>,
    interrupted: &'a (dyn Fn() -> bool + Sync),
    progress: Option<&'a (dyn Fn(&TracePoint) + Sync)>,
    state: AtomicU8,
    nodes: AtomicU64,
}

impl<'a> Monitor<'a> {
    /// Starts the clock. `interrupted` is called often and from any thread; it must be cheap.
    pub fn new(time_limit: Option<Duration>, interrupted: &'a (dyn Fn() -> bool + Sync)) -> Self {
        let start = Instant::now();
        Monitor {
            start,
            deadline: time_limit.and_then(|limit| start.checked_add(limit)),
            interrupted,
            progress: None,
            state: AtomicU8::new(0),
            nodes: AtomicU64::new(0),
        }
    }

    /// Calls `progress` whenever the incumbent or the bound may have improved.
    pub fn with_progress(self, progress: &'a (dyn Fn(&TracePoint) + Sync)) -> Self {
        Monitor { progress: Some(progress), ..self }
    }

    /// Tells the caller how far the search is.
    pub fn report(&self, point: &TracePoint) {
        if let Some(progress) = self.progress {
            progress(&TracePoint { seconds: self.seconds(), nodes: self.nodes(), ..*point });
        }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Counts evaluated leaves.
    pub fn count(&self, nodes: u64) {
        self.nodes.fetch_add(nodes, Ordering::Relaxed);
    }

    /// Leaves evaluated so far.
    pub fn nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    /// `Err` once the search must end; the first reason stays.
    pub fn check(&self) -> Result<(), Stop> {
        let mut reason = self.state.load(Ordering::Relaxed);
        if reason == 0 {
            let seen = if (self.interrupted)() {
                2
            } else if self.deadline.is_some_and(|d| Instant::now() >= d) {
                1
            } else {
                return Ok(());
            };
            let order = Ordering::Relaxed;
            reason = match self.state.compare_exchange(0, seen, order, order) {
                Ok(_) => seen,
                Err(first) => first,
            };
        }
        Err(if reason == 1 { Stop::Time } else { Stop::Interrupt })
    }
}
