//! Search for tasks whose leaf costs are functions of sums over the rows.
//!
//! [`nodes`] provides the nodes of the branch and bound, with bounds from single rows ([`bounds`]),
//! from groups of rows ([`groups`]) and, from the sides of one question, for those of others
//! ([`subsets`]). [`start`] and [`dive`] grow first trees, [`plan`] compares forecasts with limits,
//! and [`solve`](mod@solve) runs all steps. See docs/maths/branch.md.

mod bounds;
mod dive;
mod groups;
mod neighbours;
mod nodes;
mod plan;
mod probe;
mod solve;
mod start;
mod subsets;
mod tables;

pub use neighbours::{alternatives, near_optimal};
pub use solve::{solve, solve_path};

use super::branch::Branch;
use super::certificate::EVALUATED;
use super::lattice;
use super::memo::Memo;
use super::root::Scale;
use super::{Allowed, Measured, Monitor, Settings};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::task::LaneTask;
use crate::tree::Tree;
use bounds::RowBounds;
use nodes::SumNodes;
use std::sync::Arc;

/// Data in the form that all searches share.
pub struct Problem<'a, T> {
    task: &'a T,
    monitor: &'a Monitor<'a>,
    bounds: RowBounds<'a, T>,
    memo: Option<Memo<i64, Arc<Tree>>>,
    tables: lattice::Pool,
}

impl<'a, T: LaneTask> Problem<'a, T> {
    /// Prepares for nodes whose rows come from `sample`.
    fn new(task: &'a T, sample: &Sample, settings: &Settings, monitor: &'a Monitor<'a>) -> Self {
        let bounds = RowBounds::new(task, sample, settings);
        let memo = settings.switches.cache.then(|| Memo::new(settings.memo_bytes()));
        let tables = lattice::Pool::new(settings.bytes());
        Problem { task, monitor, bounds, memo, tables }
    }

    /// A branch and bound over the nodes of these data.
    fn branch(&self, settings: &Settings) -> Branch<'_, SumNodes<'_, T>> {
        let nodes = SumNodes::new(self, settings);
        Branch { nodes, memo: self.memo.as_ref(), monitor: self.monitor }
    }
}

/// The rows of a search.
///
/// # Errors
///
/// If a lattice does not support this number of channels.
fn sample<T: LaneTask>(task: &T, features: &BinaryMatrix) -> Result<Sample, Error> {
    if !lattice::fits_channels(task.loss_channels()) {
        return Err(Error::invalid("y", "too many classes for this search (32 at most)"));
    }
    Ok(distinct_rows(task, features))
}

/// The distinct rows with the task's statistics.
pub(crate) fn distinct_rows<T: LaneTask>(task: &T, features: &BinaryMatrix) -> Sample {
    let (statistics, channels) = (task.statistics(), task.channels());
    Sample::with_kinds(features, statistics, channels, &task.kinds(), task.events())
}

/// Converts costs to objectives.
pub(super) struct SumScale<'a, T> {
    task: &'a T,
    /// Objective of a tree, computed from the rows.
    measure: &'a (dyn Fn(&Tree) -> Measured + Sync),
    /// Offset from which costs are counted.
    floor: i64,
    /// The part of the price of a split that only orders trees of equal cost.
    tie: i64,
    /// Most splits of a tree that may be optimal.
    splits: i64,
    /// See [`ScalarTask::resolution`](crate::task::ScalarTask::resolution).
    resolution: f64,
    allowed: Allowed,
    /// Objective of a cost of 0, which is computed once, and the objective of one unit of cost.
    at_no_cost: f64,
}

impl<'a, T: LaneTask> SumScale<'a, T> {
    /// `total` contains the sums of the statistics over all rows.
    pub fn new(
        task: &'a T,
        measure: &'a (dyn Fn(&Tree) -> Measured + Sync),
        total: &[i64],
        allowed: Allowed,
    ) -> Self {
        let by_price = match task.split_price() {
            ..=0 => i64::MAX,
            price => task.leaf_cost(total) / price,
        };
        let by_leaves = i64::try_from(allowed.leaves).unwrap_or(i64::MAX) - 1;
        let splits = by_price.min(by_leaves);
        SumScale::with_ties(task, measure, allowed, 0, (task.tie_price(), splits))
    }

    /// For costs that are counted from `floor` and contain the tie price for every split; the
    /// second number is the most splits of a tree that may be optimal.
    pub fn with_ties(
        task: &'a T,
        measure: &'a (dyn Fn(&Tree) -> Measured + Sync),
        allowed: Allowed,
        floor: i64,
        (tie, splits): (i64, i64),
    ) -> Self {
        let (resolution, at_no_cost) = (task.resolution(allowed), task.objective_of_cost(0));
        SumScale { task, measure, floor, tie, splits, resolution, allowed, at_no_cost }
    }

    /// The most by which prices that order trees exactly, but are rounded by up to half a unit each,
    /// change the cost of a tree with this number of splits.
    fn rounded(&self, splits: i64) -> i64 {
        let rounds_prices = self.resolution == 0.0 && self.task.split_price() > 0;
        if rounds_prices { splits / 2 + 1 } else { 0 }
    }

    /// Objective of a cost after a change of the cost, and the error of evaluating it.
    fn value(&self, cost: i64, change: i64) -> [f64; 2] {
        let cost = cost.saturating_add(self.floor).saturating_add(change);
        let value = self.task.objective_of_cost(cost);
        [value, EVALUATED * self.task.addends(value, self.at_no_cost)]
    }

    /// A lower bound on the objective of trees that cost at least `lower`.
    fn lowered(&self, lower: i64, resolution: f64) -> f64 {
        // Tasks that charge more than the price promise trees with few leaves.
        let ties = (self.tie.max(0) * self.splits).saturating_add(self.rounded(self.splits));
        let [value, evaluated] = self.value(lower, -ties);
        (value - resolution - evaluated).max(self.task.least_objective(1))
    }

    /// Whether a smaller cost always means a smaller objective: the search charges no ties of its
    /// own.
    pub fn is_exact(&self) -> bool {
        self.resolution == 0.0 && self.tie == self.task.tie_price()
    }
}

impl<T: LaneTask, C: Into<i64>> Scale<C> for SumScale<'_, T> {
    fn least(&self) -> f64 {
        self.task.least_objective(1)
    }

    fn objective(&self, _cost: C, tree: &Tree) -> Measured {
        (self.measure)(tree)
    }

    fn at_most(&self, cost: C, tree: &Tree) -> Option<f64> {
        let splits = tree.n_leaves() as i64 - 1;
        let change = self.rounded(splits).saturating_sub(self.tie.saturating_mul(splits));
        let [value, evaluated] = self.value(cost.into(), change);
        let most = value + self.resolution + evaluated;
        most.is_finite().then_some(most)
    }

    fn bound(&self, lower: C) -> f64 {
        self.lowered(lower.into(), self.resolution)
    }

    fn bound_below(&self, lower: C, known: f64) -> f64 {
        self.lowered(lower.into(), self.task.resolution_below(self.allowed, known))
    }

    fn is_exact(&self) -> bool {
        self.is_exact()
    }
}
