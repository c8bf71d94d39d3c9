//! The entry point: turns rows and a task into a tree with a certificate.

use super::nodes::{BatchNode, BatchNodes};
use super::start::BatchGrower;
use super::{BatchTask, Problem, Seen, Statistics};
use crate::data::{BinaryMatrix, Sample, add};
use crate::error::Error;
use crate::search::branch::Branch;
use crate::search::grow::{self, Shape};
use crate::search::lattice::Pool;
use crate::search::memo::Memo;
use crate::search::nodes::Found;
use crate::search::root::{About, Scale, Search};
use crate::search::{Checked, Measured, Monitor, Settings, Solution, Status, Stop};
use crate::tree::Tree;

/// Costs are ties if they differ by at most this share of the cost of all rows as a leaf. The
/// rounding of equal sums in another order is smaller.
const TIES: f64 = 1e-13;

/// The best tree for `task` over `features`, or, after a limit, the best tree found and a bound.
///
/// The objective is (leaf costs + split costs) / `weight` + `leaf_penalty` · leaves, from sums of
/// the integer `statistics`. It is +∞ if no tree was found whose leaves are all allowed.
///
/// # Errors
///
/// If costs are too large relative to the objective for a certificate.
#[allow(clippy::too_many_arguments, reason = "those of the entry point, and the ties")]
pub fn solve(
    task: &dyn BatchTask,
    features: &BinaryMatrix,
    statistics: &Statistics,
    weight: f64,
    leaf_penalty: f64,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Solution, Error> {
    let of = (task, features, statistics, weight, leaf_penalty);
    let (mut found, mut differs) = solve_once(of, TIES, settings, monitor, None)?;
    if found.status == Status::Unresolved {
        // Distinguishing ties that only rounding creates just costs some time.
        (found, differs) = solve_once(of, 0.0, settings, monitor, Some(found))?;
    }
    if found.status == Status::Unresolved {
        if differs {
            return Err(Error::invalid("task", "leaf_cost differs between equal sums"));
        }
        let gap = found.objective - found.lower_bound;
        let reason = format!(
            "its costs are too large beside the objective {:e}, which is certain to {gap:.1e} only",
            found.objective
        );
        return Err(Error::invalid("task", reason));
    }
    Ok(found)
}

/// Task, features, statistics, weight and penalty of a problem.
type Of<'a> = (&'a dyn BatchTask, &'a BinaryMatrix, &'a Statistics, f64, f64);

/// One search, in which costs are ties if they differ by no more than this share of a single leaf's
/// cost. Also returns whether nothing more was proven because costs differ between equal sums.
fn solve_once(
    (task, features, statistics, weight, leaf_penalty): Of,
    ties: f64,
    settings: &Checked,
    monitor: &Monitor,
    known: Option<Solution>,
) -> Result<(Solution, bool), Error> {
    let sample = Sample::new(features, &statistics.values, statistics.channels);
    let (n_distinct_rows, n_columns) = (sample.n_rows(), sample.n_columns());
    let problem = Problem {
        task,
        statistics,
        weight,
        penalty: leaf_penalty * weight,
        min_leaf: settings.limits.min_leaf as i64,
        memo: settings.switches.cache.then(|| Memo::new(settings.memo_bytes())),
        tables: Pool::new(settings.bytes()),
        seen: Seen::default(),
    };
    let mut nodes = BatchNodes::new(&problem, settings, monitor);
    let root = nodes.node(sample);
    let prior = root.as_ref().map_or(f64::NEG_INFINITY, |root| root.prior.lower);
    let leaf = root.as_ref().map_or(f64::INFINITY, |root| root.prior.leaf);
    if leaf < f64::INFINITY {
        nodes.slack = ties * (leaf + problem.penalty).abs();
    }
    let allowed = settings.limits.allowed();
    let leaves = if has_split(&root, settings) { allowed.leaves.min(n_distinct_rows) } else { 1 };
    let depth = allowed.depth.min(leaves) as f64;
    let scale = BatchScale {
        problem: &problem,
        features,
        prior,
        leaves: leaves as f64,
        slack: nodes.slack,
        rounded: 16.0 * (depth + 1.0) * f64::EPSILON,
    };
    let mut search =
        Search::new(&scale, settings, monitor, (leaf, Tree::leaf()), prior).with_slack(nodes.slack);
    if let Some(known) = known {
        search = search.after(&known);
        search.offer(known.objective * weight - problem.penalty, known.tree);
    }
    let mut branch = Branch { nodes, memo: problem.memo.as_ref(), monitor };
    let stop = root.and_then(|root| run(&mut search, &mut branch, &root, settings)).err();
    let kernel = format!("{}-batch", settings.backend().name()).to_lowercase();
    let found = search.finish(stop, About { n_distinct_rows, n_columns, kernel });
    let differs = scale.differences() > scale.off(found.objective * weight) - scale.differences();
    Ok((found, differs))
}

/// Whether any column leaves enough rows on both sides.
fn has_split(root: &Result<BatchNode, Stop>, settings: &Checked) -> bool {
    let Ok(BatchNode { sample, .. }) = root else { return true };
    let (min_leaf, all) = (settings.limits.min_leaf as i64, sample.total_size());
    (0..sample.n_columns()).any(|c| {
        let rows = (0..sample.n_rows()).filter(|&r| sample.get(r, c));
        let size: i64 = rows.map(|r| sample.size(r)).sum();
        size.min(all - size) >= min_leaf
    })
}

/// Searches shallow trees and a greedy tree first, then all trees. After an error, the best tree
/// and bound so far remain.
fn run(
    search: &mut Search<f64>,
    branch: &mut Branch<BatchNodes>,
    root: &BatchNode,
    settings: &Settings,
) -> Result<(), Stop> {
    search.record();
    let allowed = settings.limits.allowed();
    let greedy = |nodes: &BatchNodes, levels| {
        let (depth, leaves) = (allowed.depth, allowed.budget());
        let shape = Shape { depth, leaves, exact: levels, ahead: levels };
        let mut grower = BatchGrower(nodes);
        let first = grower.root(root);
        grow::greedy(&mut grower, first, shape, branch.monitor)
    };
    if allowed.depth > 1 {
        let Found { cost, tree } = greedy(&branch.nodes, 0);
        search.offer(cost, tree);
    }
    if settings.switches.trivial_bound {
        for depth in [2, 3].into_iter().filter(|&d| d < allowed.depth) {
            if allowed.depth > depth + 1 {
                let Found { cost, tree } = greedy(&branch.nodes, depth);
                search.offer(cost, tree);
            }
            let shallower = allowed.at_most(depth, usize::MAX);
            search.at_root(branch, root, shallower, false)?;
            if search.is_closed() {
                return Ok(());
            }
        }
    }
    search.at_root(branch, root, allowed, true)
}

/// Converts costs to objectives.
struct BatchScale<'a> {
    problem: &'a Problem<'a>,
    features: &'a BinaryMatrix,
    /// The bound before any search, from the task.
    prior: f64,
    /// Most leaves of a tree.
    leaves: f64,
    /// Costs that differ by no more than this are ties.
    slack: f64,
    /// Relative error of costs, with respect to the terms of a tree, that are summed along its
    /// levels.
    rounded: f64,
}

impl BatchScale<'_> {
    /// Largest excess of the cost of a returned tree over the cost that the search had found.
    fn differences(&self) -> f64 {
        self.leaves * self.problem.seen.differs.get()
    }

    /// Largest error, from ties and additions, in the cost of a tree that costs at most `cost`. See
    /// docs/maths/batch.md.
    fn off(&self, cost: f64) -> f64 {
        if self.leaves == 1.0 {
            return 0.0;
        }
        let Problem { seen, penalty, .. } = self.problem;
        let terms = cost.abs() + penalty + 2.0 * self.leaves * seen.lowest.get();
        2.0 * self.leaves * self.slack + self.differences() + self.rounded * terms
    }

    /// Absolute costs of the leaves of a tree minus the costs themselves; 0 if the task stops.
    fn cancelled(&self, leaf_of: &[usize], n_leaves: usize) -> f64 {
        let Problem { statistics, .. } = self.problem;
        let (channels, stride) = (statistics.channels, statistics.channels + 1);
        let mut records = vec![0; n_leaves * stride];
        let rows = statistics.values.chunks_exact(channels);
        for (row, &leaf) in rows.zip(leaf_of) {
            let record = &mut records[leaf * stride..][..stride];
            add(record, row);
            record[channels] += 1;
        }
        let costs = self.problem.leaf_costs(&records).unwrap_or_default();
        costs.into_iter().filter(|cost| cost.is_finite()).map(|cost| cost.abs() - cost).sum()
    }
}

impl Scale<f64> for BatchScale<'_> {
    fn objective(&self, cost: f64, tree: &Tree) -> Measured {
        let objective = (cost + self.problem.penalty) / self.problem.weight;
        if self.problem.seen.lowest.get() == 0.0 {
            return Measured::plain(objective);
        }
        let leaf_of = tree.partition(self.features);
        let share = |sum: f64| sum / self.problem.weight;
        let terms = objective + share(self.cancelled(&leaf_of, tree.n_leaves()));
        Measured { objective, magnitude: objective.abs().max(terms) }
    }

    /// A summed bound is lowered by more than its possible error.
    fn bound(&self, lower: f64) -> f64 {
        let off = if lower > self.prior { self.off(lower) } else { 0.0 };
        (lower - off + self.problem.penalty) / self.problem.weight
    }
}
