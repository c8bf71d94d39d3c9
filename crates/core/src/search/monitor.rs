//! Deadlines and interrupts, which searches check regularly.

use super::TracePoint;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Why a search was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The deadline passed.
    Time,
    /// The tables would exceed the memory limit.
    Memory,
    /// The caller's interrupt was raised.
    Interrupt,
}

/// How far the first trees may exceed the time limit.
const GRACE: Duration = Duration::from_millis(100);

/// A value on a cache line of its own, because threads write it all the time and would slow down
/// reads of its neighbours.
#[repr(align(128))]
struct Apart(AtomicU64);

/// Watches the clock and the caller's interrupt; shared by all threads.
pub struct Monitor<'a> {
    start: Instant,
    deadline: Option<Instant>,
    interrupted: &'a (dyn Fn() -> bool + Sync),
    progress: Option<&'a (dyn Fn(&TracePoint) + Sync)>,
    state: AtomicU8,
    nodes: Apart,
    /// Forecast of the search as bits: seconds and nodes; NaN if there is none.
    expected: [AtomicU64; 2],
    /// Finished share of the search as bits, if the search reports it.
    done: AtomicU64,
}

impl<'a> Monitor<'a> {
    /// Starts the clock. `interrupted` must be cheap, because it is called often and from any
    /// thread.
    pub fn new(time_limit: Option<Duration>, interrupted: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Monitor::since(Instant::now(), time_limit, interrupted)
    }

    /// As [`Monitor::new`], for a search whose preparation began at `start`.
    pub fn since(
        start: Instant,
        time_limit: Option<Duration>,
        interrupted: &'a (dyn Fn() -> bool + Sync),
    ) -> Self {
        Monitor {
            start,
            deadline: time_limit.and_then(|limit| start.checked_add(limit)),
            interrupted,
            progress: None,
            state: AtomicU8::new(0),
            nodes: Apart(AtomicU64::new(0)),
            expected: [const { AtomicU64::new(f64::NAN.to_bits()) }; 2],
            done: AtomicU64::new(0),
        }
    }

    /// Calls `progress` whenever the incumbent or the bound may have improved.
    pub fn with_progress(self, progress: &'a (dyn Fn(&TracePoint) + Sync)) -> Self {
        Monitor { progress: Some(progress), ..self }
    }

    /// A monitor for a search within this one; it has the remaining time.
    pub fn within<'b>(&self, stopped: &'b (dyn Fn() -> bool + Sync)) -> Monitor<'b> {
        Monitor { deadline: self.deadline, ..Monitor::new(None, stopped) }
    }

    /// The same, with this share of the remaining time.
    pub fn for_share(self, share: f64) -> Self {
        let until = |_| Instant::now() + Duration::from_secs_f64(share * self.remaining());
        Monitor { deadline: self.deadline.map(until), ..self }
    }

    /// Reports the progress of the search to the caller.
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
        self.nodes.0.fetch_add(nodes, Ordering::Relaxed);
    }

    /// Leaves evaluated so far.
    pub fn nodes(&self) -> u64 {
        self.nodes.0.load(Ordering::Relaxed)
    }

    /// Seconds until the deadline; infinite without one.
    pub fn remaining(&self) -> f64 {
        self.deadline
            .map_or(f64::INFINITY, |d| d.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// Sets the forecast for the rest of the search.
    pub fn expect(&self, seconds: f64, nodes: f64) {
        let whole = [self.seconds() + seconds, self.nodes() as f64 + nodes];
        for (to, value) in self.expected.iter().zip(whole) {
            to.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    /// Reports the finished share of the search.
    pub fn advance(&self, share: f64) {
        self.done.store(share.to_bits(), Ordering::Relaxed);
    }

    /// Finished share of the search and its remaining seconds, if there is a forecast.
    pub fn outlook(&self) -> Option<(f64, f64)> {
        let read = |x: &AtomicU64| f64::from_bits(x.load(Ordering::Relaxed));
        let [seconds, nodes] = [read(&self.expected[0]), read(&self.expected[1])];
        if seconds.is_nan() {
            return None;
        }
        let share = read(&self.done).max(self.nodes() as f64 / nodes.max(1.0)).clamp(0.0, 0.99);
        let so_far = self.seconds();
        // Early on, the counts are less reliable than the forecast.
        let by_share = so_far * (1.0 - share) / share.max(1e-9);
        let left = if share < 0.05 { (seconds - so_far).max(0.0) } else { by_share };
        Some((share, left))
    }

    /// As [`Monitor::check`], but the deadline may have passed by [`GRACE`]. For cheap work that
    /// makes a stopped search useful.
    pub fn check_with_grace(&self) -> Result<(), Stop> {
        if self.deadline.is_some_and(|d| Instant::now() < d + GRACE) && !(self.interrupted)() {
            return Ok(());
        }
        self.check()
    }

    /// Returns an error once the search must end; the first reason is kept.
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
