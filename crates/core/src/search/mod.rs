//! Search for the best tree: limits, results, and the entry point.

mod alternatives;
pub mod batch;
mod bounds;
mod branch;
mod certificate;
pub mod curve;
mod forecast;
pub mod fronts;
mod groups;
mod lattice;
mod monitor;
mod near;
mod plan;
mod solve;
mod start;
mod subsets;

pub use alternatives::Alternative;
pub(crate) use alternatives::alternatives;
pub(crate) use curve::{alternatives_brier, near_optimal_brier, path_brier, solve_brier};
pub use forecast::Forecast;
pub(crate) use forecast::forecast;
pub use monitor::{Monitor, Stop};
pub use near::Near;
pub(crate) use near::near_optimal;
pub(crate) use solve::{solve, solve_path};
pub(crate) use start::PATIENCE;

use crate::data::Smallest;
use crate::simd::Backend;
use crate::tree::Tree;
use std::num::NonZero;
use std::sync::LazyLock;

/// Bytes of tables and memos without a memory limit.
pub const DEFAULT_BYTES: usize = 600 << 20;

/// Which trees are allowed, and how to search. Checked by [`Settings::check`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest path in splits; a single leaf has depth 0.
    pub max_depth: usize,
    /// Most leaves; `None` for as many as the depth allows.
    pub max_leaves: Option<usize>,
    /// Fewest rows per leaf (rows of the caller, not weight).
    pub min_leaf: usize,
    /// Fewest rows with an event per leaf, for tasks that have events.
    pub min_events: usize,
    /// Threads to use.
    pub n_threads: usize,
    /// Bytes the search's tables may take.
    pub memory_limit: Option<usize>,
    /// Instruction set; `None` for the fastest of this machine.
    pub backend: Option<Backend>,
    /// Lane width; `None` chooses by the task's error bound.
    pub precision: Option<Precision>,
    /// Try the objective's trivial bound on shallow trees before building deep lattices.
    pub trivial_bound: bool,
    /// Bound nodes by the finest partition of their rows (equivalent points, look-ahead).
    pub equivalent_points: bool,
    /// Deepest lattice to use; nodes with more depth left are branched on.
    pub lattice_depth: usize,
    /// Bound sides by trees whose leaves may be of any size, too: such bounds hold for other
    /// sides, at twice the work.
    pub relax_leaves: bool,
    /// Charge a split the price of two leaves before looking below it (curve tasks).
    pub look_ahead: bool,
    /// Remember solved nodes above the lattice.
    pub cache: bool,
    /// For tests of threads: cells of a lattice that are worth one of their own (2^20 where
    /// `None`). Where it is set, as many threads run as are asked for, whatever the machine has.
    pub cells_per_thread: Option<usize>,
    /// Debug mode: objective of a known tree. The search panics when a bound excludes it.
    pub planted: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            max_depth: 3,
            max_leaves: None,
            min_leaf: 1,
            min_events: 0,
            n_threads: 1,
            memory_limit: None,
            backend: None,
            precision: None,
            trivial_bound: true,
            equivalent_points: true,
            lattice_depth: lattice::MAX_DEPTH,
            relax_leaves: false,
            look_ahead: true,
            cache: true,
            cells_per_thread: None,
            planted: None,
        }
    }
}

impl Settings {
    /// Smallest leaf.
    pub fn smallest(&self) -> Smallest {
        let whole = |least: usize| i64::try_from(least).unwrap_or(i64::MAX);
        Smallest { rows: whole(self.min_leaf), events: whole(self.min_events) }
    }

    /// Rows that every leaf has: those asked for, and no fewer than events.
    pub fn least_rows(&self) -> usize {
        self.min_leaf.max(self.min_events)
    }

    /// Whether any rows may be a leaf.
    pub fn any_leaves(&self) -> bool {
        self.min_leaf <= 1 && self.min_events == 0
    }

    /// Bytes that tables and memos of a search may take together, whatever the engine.
    pub fn bytes(&self) -> usize {
        self.memory_limit.unwrap_or(DEFAULT_BYTES)
    }

    /// Names of the switches that are not as they are by default.
    pub fn switched(&self) -> impl Iterator<Item = &'static str> {
        let default = Settings::default();
        let all = [
            ("backend", self.backend.is_some()),
            ("precision", self.precision.is_some()),
            ("trivial_bound", self.trivial_bound != default.trivial_bound),
            ("equivalent_points", self.equivalent_points != default.equivalent_points),
            ("lattice_depth", self.lattice_depth != default.lattice_depth),
            ("relax_leaves", self.relax_leaves != default.relax_leaves),
            ("look_ahead", self.look_ahead != default.look_ahead),
            ("cache", self.cache != default.cache),
            ("cells_per_thread", self.cells_per_thread.is_some()),
            ("planted", self.planted.is_some()),
        ];
        all.into_iter().filter(|&(_, switched)| switched).map(|(name, _)| name)
    }

    /// Instruction set to use.
    pub fn backend(&self) -> Backend {
        self.backend.unwrap_or_else(Backend::best)
    }

    /// Threads to run: those asked for, but no more than the machine has.
    pub fn threads(&self) -> usize {
        // Asking takes as long as a small lattice.
        static CORES: LazyLock<usize> =
            LazyLock::new(|| std::thread::available_parallelism().map_or(1, NonZero::get));
        let most = if self.cells_per_thread.is_some() { usize::MAX } else { *CORES };
        self.n_threads.clamp(1, most)
    }
}

/// Element width of the lattice kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// i32 sums and f32 losses, refined in exact arithmetic.
    Single,
    /// i64 sums and f64 losses, refined in exact arithmetic.
    Double,
}

/// Why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The tree is proven best: lower bound and objective meet.
    Optimal,
    /// The tree is best if no subtree can lose less than the reference model.
    ReferenceOptimal,
    /// The time ran out first.
    TimeLimit,
    /// The memory limit left no way to go on.
    MemoryLimit,
    /// The caller asked to stop.
    Interrupted,
    /// No allowed tree satisfies the constraints.
    Infeasible,
}

impl From<Stop> for Status {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Time => Status::TimeLimit,
            Stop::Memory => Status::MemoryLimit,
            Stop::Interrupt => Status::Interrupted,
        }
    }
}

impl Status {
    /// Name as users see it.
    pub fn name(self) -> &'static str {
        match self {
            Status::Optimal => "optimal",
            Status::ReferenceOptimal => "reference_optimal",
            Status::TimeLimit => "time_limit",
            Status::MemoryLimit => "memory_limit",
            Status::Interrupted => "interrupted",
            Status::Infeasible => "infeasible",
        }
    }
}

/// An improvement of the incumbent or the bound.
#[derive(Clone, Copy, Debug)]
pub struct TracePoint {
    /// Seconds since the start.
    pub seconds: f64,
    /// Objective of the best tree so far.
    pub objective: f64,
    /// Valid lower bound so far.
    pub lower_bound: f64,
    /// Leaves evaluated so far.
    pub nodes: u64,
}

/// The best tree found and the evidence for it.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The tree, over the caller's features.
    pub tree: Tree,
    /// Its objective, recomputed in f64 from the rows.
    pub objective: f64,
    /// No allowed tree has a smaller objective than this.
    pub lower_bound: f64,
    /// Why the search ended.
    pub status: Status,
    /// Leaves and subproblems evaluated.
    pub nodes: u64,
    /// Rows after merging.
    pub n_distinct_rows: usize,
    /// Columns after dropping constants, duplicates and complements.
    pub n_columns: usize,
    /// Improvements over time.
    pub trace: Vec<TracePoint>,
    /// Backend and precision used, for reports.
    pub kernel: String,
}
