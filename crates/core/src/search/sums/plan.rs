//! Plan of a search: what it can afford before it begins, and how it uses its time.

use super::groups;
use crate::data::Sample;
use crate::search::forecast::Work;
use crate::search::{Monitor, Settings};
use crate::task::LaneTask;

/// Seconds below which nobody waits for a search.
const SHORT: f64 = 0.3;

/// Seconds below which a search is hardly ever stopped.
const INSTANT: f64 = 0.1;

/// Seconds from which a search is likely to be watched and stopped.
const LONG: f64 = 10.0;

/// Seconds that the bound by groups takes per row and group, and the share of the search it is
/// worth.
const BOUND: (f64, f64) = (3e-7, 0.01);

/// Share of the search that looking at shallower trees first may take.
const SHARE: f64 = 0.02;

/// Share of a time limit that a first tree may take.
const START: f64 = 0.2;

/// Share of a time limit that may go into a depth of unknown use.
const UNKNOWN: f64 = 0.02;

/// Forecasts of one search, set against its limits.
pub struct Plan<'a, T> {
    work: Work<'a, T>,
    monitor: &'a Monitor<'a>,
    max_depth: usize,
    /// Seconds to search to the full depth on one thread if nothing can be left out: what is
    /// tried before a search, and with it the tree, does not depend on threads.
    seconds: f64,
    /// Whether prices leave out more than a forecast can know.
    priced: bool,
}

impl<'a, T: LaneTask> Plan<'a, T> {
    /// For trees up to `max_depth`.
    pub fn new(
        task: &'a T,
        sample: &'a Sample,
        settings: &'a Settings,
        max_depth: usize,
        monitor: &'a Monitor<'a>,
    ) -> Self {
        let work = Work::new(task, sample, settings);
        let seconds = work.on_threads(max_depth, 1).seconds;
        let priced = task.split_price() > task.tie_price() || T::PRICED;
        Plan { work, monitor, max_depth, seconds, priced }
    }

    /// Whether the time limit is likely to end the search.
    fn is_pressed(&self) -> bool {
        self.seconds > 0.5 * self.monitor.remaining()
    }

    /// Whether the search is over before anything but a limit could stop it.
    pub fn is_instant(&self) -> bool {
        self.seconds < INSTANT && !self.is_pressed()
    }

    /// Whether the search will be watched: a limit presses, or it is long.
    fn is_long(&self) -> bool {
        !self.priced && (self.is_pressed() || self.seconds > LONG)
    }

    /// Whether to bound the search before it begins.
    pub fn affords_bound(&self) -> bool {
        let (each, share) = BOUND;
        let n_rows = self.work.n_rows().min(groups::MOST_ROWS);
        let n_groups = 1 << self.max_depth.min(groups::MOST_GROUPS.ilog2() as usize);
        let seconds = each * (n_rows * n_groups) as f64;
        seconds < share * self.seconds.min(20.0 * self.monitor.remaining())
    }

    /// Whether to look at all trees of this depth before the search to the full one.
    pub fn affords(&self, depth: usize) -> bool {
        let seconds = self.work.on_threads(depth, 1).seconds;
        match (self.is_pressed(), self.priced) {
            (true, true) => seconds < UNKNOWN * self.monitor.remaining(),
            (true, false) => seconds < 0.9 * self.monitor.remaining(),
            (false, true) => false,
            (false, false) => {
                self.seconds > LONG || self.seconds > SHORT && seconds < SHARE * self.seconds
            }
        }
    }

    /// Levels at the bottom of a greedy tree that may be searched exactly; 0 for none.
    pub fn exact_levels(&self) -> usize {
        self.deepest(|depth| if depth < self.max_depth { 1 } else { usize::MAX })
    }

    /// Look-ahead of a dive that leaves most of the time to the search; 0 for no dive.
    pub fn look_ahead(&self) -> usize {
        self.deepest(|depth| match self.max_depth {
            most if depth + 1 < most => most - depth + 1,
            _ => usize::MAX,
        })
    }

    /// Three or two levels, where so many lattices of them are a small part of the search.
    fn deepest(&self, lattices: impl Fn(usize) -> usize) -> usize {
        let affords = |depth: &usize| {
            let seconds = lattices(*depth) as f64 * self.work.on_threads(*depth, 1).seconds;
            seconds < START * self.monitor.remaining() && seconds < SHARE * self.seconds
        };
        [3, 2].into_iter().find(affords).unwrap_or(0)
    }

    /// Settings of the search: where one lattice would not end in time, its first questions are
    /// taken one by one, so that what is proven of them counts.
    pub fn settings(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        settings.switches.relax_leaves |= self.is_long();
        if self.max_depth >= 3 && self.seconds > 1.2 * self.monitor.remaining() {
            settings.switches.lattice_depth =
                settings.switches.lattice_depth.min(self.max_depth - 1);
        }
        settings
    }

    /// Reports to the monitor what to expect.
    pub fn announce(&self) {
        let work = self.work.to_depth(self.max_depth);
        self.monitor.expect(work.seconds, work.cells);
    }
}
