//! Search for the best tree: limits, results, and the entry point.

pub mod batch;
mod branch;
mod certificate;
pub mod curve;
mod forecast;
pub mod fronts;
mod grow;
mod lattice;
mod memo;
mod monitor;
mod near;
mod nodes;
pub mod partial;
pub(crate) mod prune;
mod ranks;
mod resolve;
mod root;
mod settings;
mod sums;
mod threads;
mod wide;

pub use certificate::Measured;
pub(crate) use certificate::{EVALUATED, too_wide};
pub use forecast::Forecast;
pub(crate) use forecast::forecast;
pub(crate) use grow::PATIENCE;
pub use monitor::{Monitor, Stop};
pub use near::Near;
pub use nodes::Allowed;
pub(crate) use ranks::over_thresholds;
pub use settings::{Checked, DEFAULT_BYTES, Limits, Precision, Resources, Settings, Switches};
pub(crate) use sums::{alternatives, distinct_rows, near_optimal, solve, solve_path};
pub use threads::Team;

use crate::tree::Tree;

/// Why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The tree is proven optimal: lower bound and objective meet.
    Optimal,
    /// The tree is optimal if no subtree can lose less than the reference model.
    ReferenceOptimal,
    /// The time limit was reached.
    TimeLimit,
    /// The search could not continue within the memory limit.
    MemoryLimit,
    /// The caller asked to stop.
    Interrupted,
    /// No allowed tree satisfies the constraints.
    Infeasible,
    /// The search ended, but its numbers are too coarse for objective and bound to meet. It is
    /// repeated with finer numbers, or the caller gets an error.
    Unresolved,
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
    /// Name that users see.
    pub fn name(self) -> &'static str {
        match self {
            Status::Optimal => "optimal",
            Status::ReferenceOptimal => "reference_optimal",
            Status::TimeLimit => "time_limit",
            Status::MemoryLimit => "memory_limit",
            Status::Interrupted => "interrupted",
            Status::Infeasible => "infeasible",
            Status::Unresolved => "unresolved",
        }
    }
}

/// The best tree with another question at one node of a given tree, and with the best subtrees
/// below it.
#[derive(Clone, Copy, Debug)]
pub struct Alternative {
    /// The node.
    pub node: usize,
    /// The question; the first of those that split the node's rows in the same way.
    pub feature: usize,
    /// Objective of the whole tree.
    pub objective: f64,
    /// Number of its leaves.
    pub n_leaves: usize,
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
    /// A lower bound on the objective of every allowed tree.
    pub lower_bound: f64,
    /// Why the search ended.
    pub status: Status,
    /// Leaves and subproblems evaluated.
    pub nodes: u64,
    /// Rows after merging.
    pub n_distinct_rows: usize,
    /// Columns without constants, duplicates and complements.
    pub n_columns: usize,
    /// Improvements over time.
    pub trace: Vec<TracePoint>,
    /// Backend and precision, for reports.
    pub kernel: String,
}
