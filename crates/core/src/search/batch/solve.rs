//! The entry point: from rows and a task to a certified tree.

use super::nodes::{BatchNodes, Node};
use super::{BatchTask, Found, Problem, Statistics};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::search::branch::Branch;
use crate::search::memo::Memo;
use crate::search::root::{About, Scale, Search};
use crate::search::{Checked, Measured, Monitor, Settings, Solution, Status, Stop};
use crate::tree::Tree;
use std::sync::atomic::{AtomicBool, Ordering};

/// Costs that are apart by this share of that of all rows as a leaf, or less, are ties: rounding of
/// the same sums in another order is less.
const TIES: f64 = 1e-13;

/// The best tree for `task` over `features`, or on a limit the best found and a bound.
///
/// The objective is (leaf costs + split costs) / `weight` + `leaf_penalty` · leaves, from
/// sums of the integer `statistics`; +∞ when no tree was found that may have all its leaves.
///
/// # Errors
/// Where costs are too large beside the objective for a certificate.
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
    let mut found = solve_once(of, TIES, settings, monitor, None)?;
    if found.status == Status::Unresolved {
        // Ties told apart by rounding only cost some time.
        found = solve_once(of, 0.0, settings, monitor, Some(found))?;
    }
    if found.status == Status::Unresolved {
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

/// One search, in which costs that differ by no more than this share of a single leaf's are ties.
fn solve_once(
    (task, features, statistics, weight, leaf_penalty): Of,
    ties: f64,
    settings: &Checked,
    monitor: &Monitor,
    known: Option<Solution>,
) -> Result<Solution, Error> {
    let sample = Sample::new(features, &statistics.values, statistics.channels);
    let (n_distinct_rows, n_columns) = (sample.n_rows(), sample.n_columns());
    let problem = Problem {
        task,
        statistics,
        weight,
        penalty: leaf_penalty * weight,
        min_leaf: settings.limits.min_leaf as i64,
        memo: settings.switches.cache.then(|| Memo::new(settings.memo_bytes())),
        differs: AtomicBool::new(false),
    };
    let mut nodes = BatchNodes::new(&problem, settings, monitor);
    let root = nodes.node(sample);
    let prior = root.as_ref().map_or(f64::NEG_INFINITY, |root| root.prior.lower);
    let leaf = root.as_ref().map_or(f64::INFINITY, |root| root.prior.leaf);
    if leaf < f64::INFINITY {
        nodes.slack = ties * (leaf + problem.penalty).abs();
    }
    let allowed = settings.limits.allowed();
    let leaves = allowed.leaves.min(n_distinct_rows) as f64;
    // Every split may take a tree that is a tie with the best one; where costs may cancel, sums
    // round by a share of all that is added, otherwise by one of the sum itself.
    let cancel = if prior >= 0.0 || leaf == f64::INFINITY { 0.0 } else { leaf.abs() };
    // A tree of k leaves is 2k − 1 costs and prices, each of which rounds a sum once, and its
    // bound as many.
    let rounded = 4.0 * leaves * f64::EPSILON;
    let off = leaves * nodes.slack + rounded * (cancel + problem.penalty);
    let scale = BatchScale { problem: &problem, prior, off, cancel, rounded };
    let mut search =
        Search::new(&scale, settings, monitor, (leaf, Tree::leaf()), prior).with_slack(nodes.slack);
    if let Some(known) = known {
        search = search.after(&known);
        search.offer(known.objective * weight - problem.penalty, known.tree);
    }
    let mut branch = Branch { nodes, memo: problem.memo.as_ref(), monitor };
    let stop = root.and_then(|root| run(&mut search, &mut branch, &root, settings)).err();
    if problem.differs.load(Ordering::Relaxed) {
        return Err(Error::invalid("task", "leaf_cost differs between equal sums"));
    }
    let kernel = format!("{}-batch", settings.backend().name()).to_lowercase();
    Ok(search.finish(stop, About { n_distinct_rows, n_columns, kernel }))
}

/// Shallow trees and a greedy dive first, then the search; an error leaves the best tree and
/// bound so far.
fn run(
    search: &mut Search<f64>,
    branch: &mut Branch<BatchNodes>,
    root: &Node,
    settings: &Settings,
) -> Result<(), Stop> {
    search.record();
    let allowed = settings.limits.allowed();
    if allowed.depth > 1 {
        let Found { cost, tree } = branch.nodes.greedy(root, allowed)?;
        search.offer(cost, tree);
    }
    if settings.switches.trivial_bound {
        for depth in [2, 3].into_iter().filter(|&d| d < allowed.depth) {
            if allowed.depth > depth + 1 && allowed.is_full() {
                let Found { cost, tree } = branch.nodes.dive(root, allowed.depth, depth)?;
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

/// Costs as objectives.
struct BatchScale<'a> {
    problem: &'a Problem<'a>,
    /// The bound before any search, the task's own.
    prior: f64,
    /// What ties and additions can be off by.
    off: f64,
    /// Size of the terms where costs may cancel, as far as it is known: that of a single leaf.
    cancel: f64,
    /// Share by which sums of as many costs as trees have may be off.
    rounded: f64,
}

impl Scale<f64> for BatchScale<'_> {
    fn objective(&self, cost: f64, _tree: &Tree) -> Measured {
        let objective = (cost + self.problem.penalty) / self.problem.weight;
        Measured { objective, magnitude: objective.abs() + self.cancel / self.problem.weight }
    }

    /// A bound that was added up is rounded down by more than that is off.
    fn bound(&self, lower: f64) -> f64 {
        let off = if lower > self.prior { self.off + self.rounded * lower.abs() } else { 0.0 };
        (lower - off + self.problem.penalty) / self.problem.weight
    }
}
