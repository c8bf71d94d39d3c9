//! Tasks with several costs, which are searched for Pareto fronts.

use super::Task;
use super::curve::CurveStatistics;
use crate::search::{Allowed, Measured};

/// No limit on a component of a cost.
pub const ANY: (i64, i64) = (i64::MIN / 4, i64::MAX / 4);

/// Leaves of the rows and labels of the leaves, as a tree assigns them.
pub struct Said<'a> {
    /// Leaf of every row.
    pub leaf_of: &'a [usize],
    /// Label of every leaf.
    pub labels: &'a [i64],
}

impl Said<'_> {
    /// Label of every row.
    pub fn of_rows(&self) -> impl Iterator<Item = i64> + Clone {
        self.leaf_of.iter().map(|&leaf| self.labels[leaf])
    }
}

/// A task whose cost is a tuple of K integers that add up over the leaves: a tuple of separable
/// tasks (STreeD, prop. A.4). Component 0 is the objective that is traded against constraints. A
/// limited component must lie within its window for the whole tree.
///
/// Candidate k of a leaf predicts label k.
pub trait FrontTask<const K: usize>: Task<Cost = [i64; K]> {
    /// Amount that every split adds to component 0, as [`Task::combine`] does.
    fn price(&self) -> i64;

    /// Smallest and largest allowed total of every component; [`ANY`] if it is not limited.
    fn window(&self) -> [(i64, i64); K];

    /// Whether only equal values of component `k` are comparable, because it is better neither when
    /// smaller nor when larger.
    fn exact(&self, k: usize) -> bool;

    /// Interval that contains the component totals of every tree over rows with these sums, without
    /// prices. Statistics of curves imply no interval.
    fn reach(&self, sums: &[i64]) -> [(i64, i64); K];

    /// Units of every component per unit that users see.
    fn units(&self) -> [f64; K];

    /// Two totals, in the unit that users see, may be equal in truth if they differ by no more than
    /// this, because the values of the rows were rounded.
    fn rounding(&self) -> f64 {
        0.0
    }

    /// Penalty of a leaf beyond the price of a split, in units of the objective. A larger price
    /// would not change the order of trees.
    fn excess(&self) -> f64 {
        0.0
    }

    /// The objective for a total of component 0, including the penalty of every leaf.
    fn objective_of(&self, cost: i64, leaves: u32) -> f64 {
        (cost + self.price()) as f64 / self.units()[0] + self.excess() * f64::from(leaves)
    }

    /// The total of component 0 for a tree with one leaf and this objective.
    fn cost_of(&self, objective: f64) -> f64 {
        (objective - self.objective_of(0, 1)) * self.units()[0]
    }

    /// A lower bound on the objective of every tree, for any data.
    fn least_objective(&self) -> f64 {
        self.objective_of(0, 1)
    }

    /// The number of units that rounding may add per leaf, if refining a leaf otherwise never
    /// increases component 0 (without prices).
    fn refinement(&self) -> Option<i64> {
        None
    }

    /// The weighted cost of every label as a linear form: a factor per channel. `None`, for all
    /// weights, if candidates are not linear in the sums; a leaf then has one label.
    fn linear(&self, _weights: &[f64; K]) -> Option<Vec<Vec<f64>>> {
        None
    }

    /// Source of a leaf's first two statistics if they are not sums.
    fn curve_statistics(&self) -> Option<&dyn CurveStatistics> {
        None
    }

    /// Smallest positive difference between two totals of component 0.
    fn grain(&self) -> i64 {
        1
    }

    /// Largest difference between the objective of a tree and that of its component 0, due to the
    /// rounding of statistics and costs.
    fn resolution(&self, _allowed: Allowed) -> f64 {
        0.0
    }

    /// Largest difference between the objective of a component 0 and that of its tree that is due
    /// to ties: splits may be charged more or less than their price to break ties.
    fn ties(&self) -> f64 {
        0.0
    }

    /// Objective of a tree, computed from the rows; `None` if only the total is known.
    fn measured(&self, _said: &Said) -> Option<Measured> {
        None
    }

    /// Components of the cost of a tree, computed from the rows; `None` if only the rounded
    /// components are known.
    fn exact_costs(&self, _said: &Said) -> Option<[f64; K]> {
        None
    }

    /// Whether a tree whose components are within the windows satisfies the limits, judged by the
    /// rows. Windows allow for rounding, so they contain every tree that satisfies the limits.
    fn admits(&self, _said: &Said) -> bool {
        true
    }

    /// As [`ScalarTask::widest`](super::ScalarTask::widest).
    fn widest(&self) -> (&'static str, String) {
        ("sample_weight", "the weights".into())
    }
}
