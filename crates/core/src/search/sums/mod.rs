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
    /// The most that tie prices may add to the cost of a tree that may be optimal.
    ties: i64,
    /// Whether prices that order trees exactly are rounded, by up to half a unit each.
    rounds_prices: bool,
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
        // Most splits of a tree that may be optimal.
        let by_price = match task.split_price() {
            ..=0 => i64::MAX,
            price => task.leaf_cost(total) / price,
        };
        let by_leaves = i64::try_from(allowed.leaves).unwrap_or(i64::MAX) - 1;
        // Tasks that charge more than the price promise trees with few leaves.
        let splits = by_price.min(by_leaves);
        let resolution = task.resolution(allowed);
        let rounds_prices = resolution == 0.0 && task.split_price() > 0;
        let rounded = if rounds_prices { splits / 2 + 1 } else { 0 };
        let ties = match task.tie_price() {
            ..=0 => rounded,
            tie => (tie * splits).saturating_add(rounded),
        };
        let at_no_cost = task.objective_of_cost(0);
        SumScale { task, measure, ties, rounds_prices, resolution, allowed, at_no_cost }
    }
}

impl<T: LaneTask> SumScale<'_, T> {
    /// A lower bound on the objective of trees that cost at least `lower`.
    fn lowered(&self, lower: i64, resolution: f64) -> f64 {
        let value = self.task.objective_of_cost(lower.saturating_sub(self.ties));
        let evaluated = EVALUATED * self.task.addends(value, self.at_no_cost);
        (value - resolution - evaluated).max(self.task.least_objective(1))
    }
}

impl<T: LaneTask> Scale<i64> for SumScale<'_, T> {
    fn least(&self) -> f64 {
        self.task.least_objective(1)
    }

    fn objective(&self, _cost: i64, tree: &Tree) -> Measured {
        (self.measure)(tree)
    }

    fn at_most(&self, cost: i64, tree: &Tree) -> Option<f64> {
        let splits = tree.n_leaves() as i64 - 1;
        let rounded = if self.rounds_prices { splits / 2 + 1 } else { 0 };
        let ties = self.task.ties(tree.n_leaves());
        let value = self.task.objective_of_cost(cost.saturating_sub(ties).saturating_add(rounded));
        let evaluated = EVALUATED * self.task.addends(value, self.at_no_cost);
        let most = value + self.resolution + evaluated;
        most.is_finite().then_some(most)
    }

    fn bound(&self, lower: i64) -> f64 {
        self.lowered(lower, self.resolution)
    }

    fn bound_below(&self, lower: i64, known: f64) -> f64 {
        self.lowered(lower, self.task.resolution_below(self.allowed, known))
    }

    fn is_exact(&self) -> bool {
        self.resolution == 0.0
    }
}
