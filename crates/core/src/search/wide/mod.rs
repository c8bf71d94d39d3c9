//! Search with costs of 128 bits, for data whose best tree 64-bit sums do not resolve.
//!
//! It starts with a tree from another search, and has no lattices, so it is slower and only used
//! for data of wide range. The branch and bound is the same as in other searches.

mod nodes;

use nodes::WideNode;
pub use nodes::{WideNodes, WideSplit};

use super::branch::{Branch, MemoOf};
use super::certificate::EVALUATED;
use super::nodes::{Cost, cost_of_tree};
use super::root::{About, Scale, Search};
use super::{Checked, Measured, Monitor, Settings, Solution, Status};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::task::ScalarTask;
use crate::task::digits::MOST_ROWS;
use crate::task::wide::Wide;
use crate::tree::Tree;

/// Objective of a tree.
type Objective<'a> = dyn Fn(&Tree) -> Measured + Sync + 'a;

/// Converts costs to objectives.
struct WideScale<'a> {
    task: &'a dyn Wide,
    objective: &'a Objective<'a>,
    /// The most that rounding down takes from the cost of any tree.
    lost: i128,
}

impl Scale<i128> for WideScale<'_> {
    fn objective(&self, _cost: i128, tree: &Tree) -> Measured {
        (self.objective)(tree)
    }

    /// Costs are rounded down, so the objective of a tree is at least that of its cost.
    fn bound(&self, lower: i128) -> f64 {
        let value = self.task.objective_of_cost(lower.saturating_sub(self.lost).max(0));
        value - EVALUATED * self.task.addends(value)
    }
}

/// The distinct rows with the digits of the task.
///
/// # Errors
///
/// If digits cannot be summed over this many rows.
pub fn sample(task: &dyn Wide, features: &BinaryMatrix) -> Result<Sample, Error> {
    check_rows(features)?;
    let (statistics, channels) = (task.statistics(), task.channels());
    Ok(Sample::with_kinds(features, statistics, channels, &task.kinds(), &[]))
}

/// Checks that sums over this many rows fit.
///
/// # Errors
///
/// If they do not.
pub fn check_rows(features: &BinaryMatrix) -> Result<(), Error> {
    if features.n_rows() >= MOST_ROWS {
        return Err(Error::invalid("X", "too many rows for values of so wide a range"));
    }
    Ok(())
}

/// Runs a search over the nodes of these rows, and returns its result.
pub fn with_branch<R>(
    task: &dyn Wide,
    sample: Sample,
    settings: &Settings,
    monitor: &Monitor,
    search: impl FnOnce(&mut Branch<WideNodes>, &WideNode) -> R,
) -> R {
    let memo = settings.switches.cache.then(|| MemoOf::<WideNodes>::new(settings.bytes()));
    let nodes = WideNodes::new(task, &sample, settings, monitor);
    let root = nodes.node(sample);
    search(&mut Branch { nodes, memo: memo.as_ref(), monitor }, &root)
}

/// A solution whose objective and bound meet, if the task has such costs, unless a limit was
/// reached.
pub fn resolved(
    task: &impl ScalarTask,
    objective: &Objective,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
    mut found: Solution,
) -> Result<Solution, Error> {
    let mut before = f64::INFINITY;
    while found.status == Status::Unresolved && found.objective < before {
        // The known tree determines the unit; a better tree may need a smaller one.
        before = found.objective;
        let Some(wide) = task.wide(before) else { break };
        found = solve(&*wide, objective, features, settings, monitor, found)?;
    }
    Ok(found)
}

/// The best tree, given the tree that a search of lower resolution found.
fn solve(
    task: &dyn Wide,
    objective: &Objective,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
    known: Solution,
) -> Result<Solution, Error> {
    let sample = sample(task, features)?;
    let allowed = settings.limits.allowed();
    let leaves = allowed.leaves.min(sample.n_rows());
    // A tree with the same cost may be better by a unit per leaf and price.
    let scale = WideScale { task, objective, lost: 3 * leaves as i128 };
    let best = (cost(task, features, &known.tree), known.tree.clone());
    let mut search = Search::new(&scale, settings, monitor, best, 0).after(&known);
    let stop = with_branch(task, sample, settings, monitor, |branch, root| {
        search.at_root(branch, root, allowed, true).err()
    });
    let Solution { n_distinct_rows, n_columns, .. } = known;
    Ok(search.finish(stop, About { n_distinct_rows, n_columns, kernel: "wide".into() }))
}

/// Cost of a tree.
pub fn cost(task: &dyn Wide, features: &BinaryMatrix, tree: &Tree) -> i128 {
    cost_of_tree(task, features, tree, |feature, tested, sums| match feature {
        None => task.leaf_cost(sums),
        Some(feature) => task.split_price().plus(task.feature_price(feature, tested, sums)),
    })
}

/// Largest cost of trees within `slack` of an objective, given the cost of its tree.
pub fn within(task: &dyn Wide, cost: i128, slack: f64, leaves: usize) -> i128 {
    let units = slack / task.value_of_cost(1 << 64) * (1i128 << 64) as f64 * (1.0 + 1e-9);
    cost.plus(units as i128).plus(3 * leaves as i128)
}
