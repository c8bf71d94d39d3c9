//! Tasks of several costs, which fronts are made of.

use super::Task;
use super::curve::CurveStatistics;
use crate::search::{Allowed, Measured};

/// No limit on a component of a cost.
pub const ANY: (i64, i64) = (i64::MIN / 4, i64::MAX / 4);

/// Labels and leaves that a tree gives to the rows.
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

/// A task whose costs are K integers that add up over the leaves: a tuple of separable
/// tasks (STreeD, prop. A.4). Component 0 is what constraints are traded against; a limited
/// component must end within its window for the whole tree.
///
/// Candidate k of a leaf predicts label k.
pub trait FrontTask<const K: usize>: Task<Cost = [i64; K]> {
    /// Added to component 0 by every split, as [`Task::combine`] does.
    fn price(&self) -> i64;

    /// Least and largest total allowed of every component, [`ANY`] where free.
    fn window(&self) -> [(i64, i64); K];

    /// Whether component `k` is neither better when smaller nor when larger, so that only
    /// equal ones compare.
    fn exact(&self, k: usize) -> bool;

    /// Interval that the component totals of any tree over rows with these sums lie in,
    /// prices left out; nothing follows from statistics that are a curve's.
    fn reach(&self, sums: &[i64]) -> [(i64, i64); K];

    /// Units of every component per unit of what users see.
    fn units(&self) -> [f64; K];

    /// Totals as users see them that differ by no more than this may be equal in truth, for what
    /// rows count is rounded.
    fn rounding(&self) -> f64 {
        0.0
    }

    /// Excess of a leaf over the price of a split, in units of the objective: more than the
    /// price changes no order.
    fn excess(&self) -> f64 {
        0.0
    }

    /// The objective of a total component 0 with the penalty of every leaf.
    fn objective_of(&self, cost: i64, leaves: u32) -> f64 {
        (cost + self.price()) as f64 / self.units()[0] + self.excess() * f64::from(leaves)
    }

    /// The total component 0 of a tree of one leaf with this objective.
    fn cost_of(&self, objective: f64) -> f64 {
        (objective - self.objective_of(0, 1)) * self.units()[0]
    }

    /// Lower bound of every tree's objective, whatever the data.
    fn least_objective(&self) -> f64 {
        self.objective_of(0, 1)
    }

    /// If refining a leaf never raises component 0, prices left out: the units that rounding
    /// may add per leaf.
    fn refinement(&self) -> Option<i64> {
        None
    }

    /// The weighted cost of every label as a linear form: a factor per channel. `None`, whatever
    /// the weights, when candidates are not linear in the sums; a leaf has one label then.
    fn linear(&self, _weights: &[f64; K]) -> Option<Vec<Vec<f64>>> {
        None
    }

    /// Source of a leaf's first two statistics if they are no sums.
    fn curve_statistics(&self) -> Option<&dyn CurveStatistics> {
        None
    }

    /// Least difference between two totals of component 0.
    fn grain(&self) -> i64 {
        1
    }

    /// How far the objective of a tree may be from that of its component 0, because statistics
    /// and costs are rounded.
    fn resolution(&self, _allowed: Allowed) -> f64 {
        0.0
    }

    /// By how much the objective of a component 0 may differ from that of its tree, because splits
    /// are charged more or less than their price for the sake of ties.
    fn ties(&self) -> f64 {
        0.0
    }

    /// Objective of a tree from the rows themselves; `None` where that of the total is all there
    /// is.
    fn measured(&self, _said: &Said) -> Option<Measured> {
        None
    }

    /// Components of the cost of a tree from the rows themselves; `None` where these are only
    /// known as rounded.
    fn exact_costs(&self, _said: &Said) -> Option<[f64; K]> {
        None
    }

    /// Whether a tree whose components are within the windows keeps the limits, by the rows
    /// themselves. Windows have room for what is rounded, so that every tree that keeps the limits
    /// is within them.
    fn admits(&self, _said: &Said) -> bool {
        true
    }

    /// As [`ScalarTask::widest`].
    fn widest(&self) -> (&'static str, String) {
        ("sample_weight", "the weights".into())
    }
}
