//! The entry point: from rows and a task to a certified tree.

use super::branch::Branch;
use super::{BatchTask, Found, Problem, Statistics};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::search::certificate::{Certificate, Verdict};
use crate::search::{Monitor, Settings, Solution, Stop};
use crate::tree::Tree;

/// Objective and bound differ by no more than this share of max(1, |objective|) when a
/// tree is called optimal.
const CERTIFICATE: f64 = 1e-9;

/// The best tree for `task` over `features`, or on a limit the best found and a bound.
///
/// The objective is (leaf costs + split costs) / `weight` + `leaf_penalty` · leaves, from
/// sums of the integer `statistics`; +∞ when no tree was found that may have all its leaves.
pub fn solve(
    task: &dyn BatchTask,
    features: &BinaryMatrix,
    statistics: &Statistics,
    weight: f64,
    leaf_penalty: f64,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Solution, Error> {
    settings.check(features.n_rows(), &[])?;
    let sample = Sample::new(features, &statistics.values, statistics.channels);
    let problem = Problem {
        task,
        statistics,
        penalty: leaf_penalty * weight,
        min_leaf: settings.min_leaf as i64,
    };
    let best = Found { cost: f64::INFINITY, tree: Tree::leaf() };
    let lower = f64::NEG_INFINITY;
    let certificate = Certificate::new(monitor, settings, lower);
    let mut search =
        Search { problem: &problem, weight, monitor, certificate, best, lower, prior: lower };
    let stop = search.run(&sample, settings).err();
    let objective = search.objective(search.best.cost);
    let gap = objective - search.objective(search.lower);
    let proven = search.lower >= search.best.cost
        || objective.is_finite() && gap <= CERTIFICATE * objective.abs().max(1.0);
    if !proven && stop.is_none() {
        return Err(Error::invalid("task", "leaf_cost differs between equal sums"));
    }
    search.certificate.improve(objective);
    if proven {
        search.certificate.close();
    } else {
        search.certificate.raise(search.bound());
    }
    let Verdict { objective, lower_bound, status, trace } = search.certificate.finish(stop);
    let backend = settings.backend();
    Ok(Solution {
        tree: search.best.tree,
        objective,
        lower_bound,
        status,
        nodes: monitor.nodes(),
        n_distinct_rows: sample.n_rows(),
        n_columns: sample.n_columns(),
        trace,
        kernel: format!("{}-batch", backend.name()).to_lowercase(),
    })
}

struct Search<'a> {
    problem: &'a Problem<'a>,
    weight: f64,
    monitor: &'a Monitor<'a>,
    certificate: Certificate<'a>,
    best: Found,
    /// Proven lower bound on the cost.
    lower: f64,
    /// The bound before any search, the task's own.
    prior: f64,
}

impl Search<'_> {
    /// Shallow trees and a greedy dive first, then the search; an error leaves the best
    /// tree and bound so far.
    fn run(&mut self, sample: &Sample, settings: &Settings) -> Result<(), Stop> {
        let mut branch = Branch::new(self.problem, settings, self.monitor);
        let prior = branch.prior(sample)?;
        (self.lower, self.prior) = (prior.lower, prior.lower);
        self.best.cost = prior.leaf;
        self.record();
        let full = |depth: usize| 1usize.checked_shl(depth as u32).unwrap_or(usize::MAX);
        let most = settings.max_leaves.unwrap_or(usize::MAX);
        let budget = |depth| if most < full(depth) { most } else { usize::MAX };
        let max_depth = settings.max_depth.min(most - 1);
        if max_depth > 1 {
            let tree = branch.greedy(sample, prior, max_depth, most)?;
            self.offer(tree);
        }
        if settings.trivial_bound {
            for depth in [2, 3].into_iter().filter(|&d| d < max_depth) {
                if max_depth > depth + 1 && budget(max_depth) == usize::MAX {
                    let tree = branch.dive(sample, max_depth, depth)?;
                    self.offer(tree);
                }
                let nothing = &mut |_: &Found, _: f64, _: f64| {};
                let mut answer =
                    branch.solve(sample, prior, depth, &[budget(depth)], None, nothing);
                self.offer(answer.found.remove(0));
                if self.lower >= self.best.cost {
                    return Ok(());
                }
                answer.stop.map_or(Ok(()), Err)?;
            }
        }
        let (budgets, start) = ([budget(max_depth)], Some(self.best.clone()));
        let improved = &mut |tree: &Found, lower: f64, share: f64| {
            self.monitor.advance(share);
            let better = tree.cost < self.best.cost;
            if better {
                self.best = tree.clone();
            }
            if better || lower > self.lower {
                self.lower = self.lower.max(lower);
                self.record();
            }
        };
        let mut answer = branch.solve(sample, prior, max_depth, &budgets, start, improved);
        self.offer(answer.found.remove(0));
        self.lower = self.lower.max(answer.lower[0]);
        answer.stop.map_or(Ok(()), Err)
    }

    fn offer(&mut self, tree: Found) {
        if tree.cost < self.best.cost {
            self.best = tree;
            self.record();
        }
    }

    fn record(&mut self) {
        self.certificate.improve(self.objective(self.best.cost));
        self.certificate.raise(self.bound());
        self.certificate.record();
    }

    /// The objective of a cost.
    fn objective(&self, cost: f64) -> f64 {
        (cost + self.problem.penalty) / self.weight
    }

    /// The proven bound; one that was added up is rounded down by more than that is off.
    fn bound(&self) -> f64 {
        let value = self.objective(self.lower);
        let off = if self.lower > self.prior { CERTIFICATE * value.abs().max(1.0) } else { 0.0 };
        (value - off).min(self.objective(self.best.cost))
    }
}
