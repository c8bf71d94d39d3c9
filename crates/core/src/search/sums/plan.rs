//! Plans a search: which steps to run before it, and how to use a limited time.

use super::groups;
use crate::data::Sample;
use crate::search::forecast::Work;
use crate::search::{Monitor, Settings};
use crate::task::LaneTask;

/// Searches that take fewer seconds than this are not waited for.
const SHORT: f64 = 0.3;

/// Searches that take fewer seconds than this are hardly ever stopped.
const INSTANT: f64 = 0.1;

/// Searches that take more seconds than this are likely to be watched and stopped.
const LONG: f64 = 10.0;

/// Seconds per row and group that the bound by groups takes, and the share of the search that it
/// may use.
const BOUND: (f64, f64) = (3e-7, 0.01);

/// Share of the search that may be spent on shallower trees first.
const SHARE: f64 = 0.02;

/// Share of a time limit that may be spent on a first tree, or on a depth whose benefit is unknown.
const START: f64 = 0.2;

/// Numbers of columns per node that dives compare.
const WIDTHS: [usize; 4] = [1, 4, 16, 64];

/// Compares the forecasts of a search with its limits.
pub struct Plan<'a, T> {
    work: Work<'a, T>,
    monitor: &'a Monitor<'a>,
    max_depth: usize,
    /// Seconds for a search to the full depth on one thread, without pruning. Because it ignores
    /// the number of threads, the steps before a search, and therefore the tree, do not depend on
    /// threads.
    seconds: f64,
    /// Whether prices prune more than a forecast can predict.
    priced: bool,
}

impl<'a, T: LaneTask> Plan<'a, T> {
    /// A plan for trees up to `max_depth`.
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

    /// Whether the search ends before anything but a limit could stop it.
    pub fn is_instant(&self) -> bool {
        self.seconds < INSTANT && !self.is_pressed()
    }

    /// Whether the search is likely to be watched: a limit is near, or it takes long.
    pub fn is_watched(&self) -> bool {
        self.is_pressed() || self.seconds > LONG
    }

    /// Whether to compute a bound before the search.
    pub fn affords_bound(&self) -> bool {
        let (each, share) = BOUND;
        let n_rows = self.work.n_rows().min(groups::MOST_ROWS);
        let n_groups = 1 << self.max_depth.min(groups::MOST_GROUPS.ilog2() as usize);
        let seconds = each * (n_rows * n_groups) as f64;
        seconds < share * self.seconds.min(20.0 * self.monitor.remaining())
    }

    /// Whether to search all trees of this depth before those of the full depth.
    pub fn affords(&self, depth: usize) -> bool {
        let seconds = self.work.on_threads(depth, 1).seconds;
        match (self.is_pressed(), self.priced) {
            (true, true) => seconds < START * self.monitor.remaining(),
            (true, false) => seconds < 0.9 * self.monitor.remaining(),
            (false, true) => false,
            (false, false) => {
                self.seconds > LONG || self.seconds > SHORT && seconds < SHARE * self.seconds
            }
        }
    }

    /// Number of levels at the bottom of a greedy tree that may be searched exactly; 0 for none.
    pub fn exact_levels(&self) -> usize {
        self.deepest(|depth| if depth < self.max_depth { 1 } else { usize::MAX })
    }

    /// Number of levels that a dive looks ahead, which leaves most of the time to the search; 0 for
    /// no dive.
    pub fn look_ahead(&self) -> usize {
        self.deepest(|depth| match self.max_depth {
            most if depth + 1 < most => most - depth + 1,
            _ => usize::MAX,
        })
    }

    /// Numbers of columns per node for the dives that the time allows, in their order.
    pub fn widths(&self, levels: usize) -> impl Iterator<Item = usize> + use<T> {
        let below = self.max_depth - levels;
        let dives = (below * (below + 1)) as f64;
        let left = (START * self.monitor.remaining()).min(SHARE * self.seconds);
        let most = left / (dives * self.work.on_threads(levels, 1).seconds);
        WIDTHS.into_iter().take_while(move |&width| width == 1 || width as f64 <= most)
    }

    /// Three or two levels, if this many lattices of them are a small part of the search.
    fn deepest(&self, lattices: impl Fn(usize) -> usize) -> usize {
        let affords = |depth: &usize| {
            let seconds = lattices(*depth) as f64 * self.work.on_threads(*depth, 1).seconds;
            seconds < START * self.monitor.remaining() && seconds < SHARE * self.seconds
        };
        [3, 2].into_iter().find(affords).unwrap_or(0)
    }

    /// Settings of the search. If one lattice would not finish in time, its first questions are
    /// searched one by one, so that what is proven about them counts.
    pub fn settings(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        settings.switches.relax_leaves |= !self.priced && self.is_watched();
        if self.max_depth >= 3 && self.seconds > 1.2 * self.monitor.remaining() {
            settings.switches.lattice_depth =
                settings.switches.lattice_depth.min(self.max_depth - 1);
        }
        settings
    }

    /// Passes the forecast on to the monitor.
    pub fn announce(&self) {
        let work = self.work.to_depth(self.max_depth);
        self.monitor.expect(work.seconds, work.cells);
    }
}
