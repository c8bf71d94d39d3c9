//! Search for curve tasks: the loss of a leaf needs its rows in the order of time.
//!
//! [`rows`] holds a node's rows, [`kernel`] evaluates all its splits in one pass, [`node`] is
//! the branch and bound over them with a [`memo`] of nodes met. This file is the root: first
//! trees, threads, limits and the certificate. See docs/maths/brier.md.

mod alternatives;
pub mod kernel;
pub mod memo;
mod near;
pub mod node;
pub mod rows;

pub use alternatives::alternatives_brier;
pub use near::near_optimal_brier;

use super::certificate::{Certificate, Verdict};
use super::{Monitor, Settings, Solution, Stop};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::task::brier::Brier;
use crate::tree::Tree;
use kernel::Kernel;
use memo::Memo;
use node::{Allowed, Nodes};
use rows::{Rows, Tables};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Shallower searches, from depth 2 on, stop before this depth.
const DEEPENING: usize = 6;

/// Levels at the bottom of the second greedy tree that are searched exactly.
const EXACT_LEVELS: usize = 2;

/// An objective and a bound that are closer meet.
const CERTIFIED: f64 = 1e-9;

/// A bound is reported lower by this at least, which is above the rounding of sums over rows.
const ROUNDING: f64 = 1e-11;

/// The best tree for `task`, or on a limit the best found and a bound.
pub fn solve_brier(
    task: &Brier,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Solution, Error> {
    let prepared = Prepared::new(task, features, settings)?;
    let mut search = Search::new(&prepared, settings, monitor);
    let stop = search.run();
    search.finish(stop)
}

/// The best tree with at most k leaves for k = 1, 2, …, each with its own bound and status.
///
/// The numbers of leaves end at `settings.max_leaves`, at what the depth allows, or at the
/// number of distinct rows.
pub fn path_brier(
    task: &Brier,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Vec<Solution>, Error> {
    let prepared = Prepared::new(task, features, settings)?;
    let most = settings.most_leaves().min(prepared.tables.n_groups).max(1);
    let mut path: Vec<Solution> = Vec::new();
    for k in 1..=most {
        let settings = Settings { max_leaves: Some(k), ..settings.clone() };
        let mut search = Search::new(&prepared, &settings, monitor);
        if let Some(smaller) = path.last() {
            search.offer(smaller.objective, smaller.tree.clone());
        }
        let stop = search.run();
        path.push(search.finish(stop)?);
    }
    Ok(path)
}

/// Data in the form that searches share.
struct Prepared<'a> {
    task: &'a Brier,
    features: &'a BinaryMatrix,
    root: Rows,
    tables: Tables,
    memo: Memo,
    kernel: Kernel,
    /// Loss of a single leaf.
    leaf: f64,
}

impl<'a> Prepared<'a> {
    fn new(
        task: &'a Brier,
        features: &'a BinaryMatrix,
        settings: &Settings,
    ) -> Result<Self, Error> {
        settings.check(features.n_rows(), &task.event)?;
        if task.n_rows() != features.n_rows() {
            return Err(Error::invalid("y", "does not have a row for every row of X"));
        }
        let backend = settings.backend();
        let kernel = Kernel { backend, curve: task.curve, min_leaf: settings.least_rows() };
        let (root, tables) = Tables::new(task, features, settings.equivalent_points)?;
        let memo = Memo::new(settings.bytes());
        let leaf = kernel.leaf(&tables);
        Ok(Prepared { task, features, root, tables, memo, kernel, leaf })
    }
}

/// The search of one problem.
struct Search<'a> {
    prepared: &'a Prepared<'a>,
    settings: &'a Settings,
    monitor: &'a Monitor<'a>,
    certificate: Certificate<'a>,
    best: (f64, Tree),
    /// No allowed tree costs less.
    lower: f64,
}

/// What the threads at the root share.
struct Shared {
    /// Cost, tree and place in the order of its root of the best tree.
    best: (f64, Tree, usize),
    /// Lower bound for each candidate.
    bounds: Vec<f64>,
    stop: Option<Stop>,
}

impl<'a> Search<'a> {
    fn new(prepared: &'a Prepared, settings: &'a Settings, monitor: &'a Monitor<'a>) -> Self {
        let best = (prepared.leaf + prepared.task.leaf_penalty, Tree::leaf());
        let certificate = Certificate::new(monitor, settings, 0.0)
            .trusting_reference(prepared.task.reference.is_some());
        Search { prepared, settings, monitor, certificate, best, lower: 0.0 }
    }

    fn nodes(&self) -> Nodes<'a> {
        let Prepared { tables, memo, kernel, task, .. } = self.prepared;
        Nodes::new(tables, self.settings, self.monitor, memo, *kernel, task.leaf_penalty)
    }

    fn run(&mut self) -> Option<Stop> {
        let prepared = self.prepared;
        let Prepared { root, leaf, .. } = prepared;
        let mut nodes = self.nodes();
        let allowed = Allowed {
            depth: self.settings.max_depth,
            leaves: self.settings.max_leaves.unwrap_or(usize::MAX),
        };
        let allowed = nodes.useful(*leaf, root.floor, root.count, allowed);
        self.lower = nodes.bound(*leaf, prepared.tables.free_floor, root.count).min(self.best.0);
        self.record();
        if allowed.leaves == 1 {
            if prepared.task.reference.is_none() {
                self.lower = self.best.0;
            }
            return None;
        }
        for exact in [0, EXACT_LEVELS].into_iter().filter(|&exact| exact < allowed.depth) {
            let (value, tree) = nodes.greedy(root, *leaf, allowed, exact);
            self.offer(value, tree);
        }
        // Shallower trees cost little, and the best of them rules out much that is deeper.
        for depth in 2..allowed.depth.min(DEEPENING) {
            if let Some(stop) = self.at_depth(&mut nodes, Allowed { depth, ..allowed }, false) {
                return Some(stop);
            }
        }
        self.at_depth(&mut nodes, allowed, true)
    }

    /// All columns at the root, on all threads; `last` when no deeper search follows.
    fn at_depth(&mut self, nodes: &mut Nodes, allowed: Allowed, last: bool) -> Option<Stop> {
        let prepared = self.prepared;
        let Prepared { root, leaf, .. } = prepared;
        let allowed = nodes.useful(*leaf, root.floor, root.count, allowed);
        let splits = nodes.splits(root, None, true);
        let candidates = nodes.candidates(root, &splits);
        let single_leaf = leaf + prepared.task.leaf_penalty;
        let slack = prepared.tables.slack;
        // Bounds that rest on the reference model are not bounds on the optimum.
        let last = last && prepared.task.reference.is_none();
        let n_threads = self.settings.threads();
        let shared = Mutex::new(Shared {
            best: (self.best.0, self.best.1.clone(), usize::MAX),
            bounds: candidates.iter().map(|c| c.bound).collect(),
            stop: None,
        });
        let search = Mutex::new(&mut *self);
        let next = AtomicUsize::new(0);
        let work = |nodes: &mut Nodes| {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(candidate) = candidates.get(at) else { return };
                let cut = {
                    let shared = shared.lock().expect("no panic while locked");
                    if shared.stop.is_some() {
                        return;
                    }
                    // Ties with a root that comes later in the order are still looked at, so
                    // that the tree does not depend on which thread was first.
                    let (best, _, place) = &shared.best;
                    if *place > at && *place != usize::MAX { best + 2.0 * slack } else { *best }
                };
                if candidate.bound >= cut - slack {
                    continue;
                }
                let found = nodes.below(root, &splits, candidate, allowed, cut);
                let found = found.and_then(|known| {
                    let better = known.exact() && known.value < cut - slack;
                    let column = candidate.column;
                    let tree =
                        better.then(|| nodes.tree_with_root(root, column, allowed, known.value));
                    Ok((known, tree.transpose()?))
                });
                let mut shared = shared.lock().expect("no panic while locked");
                match found {
                    Err(stop) => shared.stop = shared.stop.or(Some(stop)),
                    Ok((known, tree)) => {
                        shared.bounds[at] = shared.bounds[at].max(known.value);
                        let (best, _, place) = &shared.best;
                        let tie = (known.value - best).abs() <= 2.0 * slack;
                        if let Some(tree) = tree
                            && (known.value < best - 2.0 * slack || tie && at < *place)
                        {
                            shared.best = (known.value, tree, at);
                        }
                        let bound = shared.bounds.iter().copied().fold(single_leaf, f64::min);
                        let mut search = search.lock().expect("no panic while locked");
                        search.progress(&shared.best, if last { bound } else { 0.0 });
                    }
                }
            }
        };
        let n_threads = n_threads.min(candidates.len());
        if n_threads <= 1 {
            work(nodes);
        } else {
            let others: Vec<Nodes> = (0..n_threads).map(|_| nodes.another()).collect();
            std::thread::scope(|scope| {
                for mut nodes in others {
                    let work = &work;
                    scope.spawn(move || work(&mut nodes));
                }
            });
        }
        nodes.drop_splits(splits);
        let Shared { best, bounds, stop } = shared.into_inner().expect("no panic while locked");
        self.best = (best.0, best.1);
        if last {
            let bound = bounds.into_iter().fold(single_leaf, f64::min);
            let bound = if stop.is_none() { best.0 } else { bound };
            self.lower = self.lower.max(bound.min(best.0));
        }
        stop
    }

    /// Takes a tree if it is better.
    fn offer(&mut self, value: f64, tree: Tree) {
        if value < self.best.0 - self.prepared.tables.slack {
            self.best = (value, tree);
            self.record();
        }
    }

    /// Takes over what the threads know.
    fn progress(&mut self, best: &(f64, Tree, usize), bound: f64) {
        let better = best.0 < self.best.0 || best.1 != self.best.1;
        if better {
            self.best = (best.0, best.1.clone());
        }
        let bound = bound.min(self.best.0);
        if better || bound > self.lower {
            self.lower = self.lower.max(bound);
            self.record();
        }
    }

    fn record(&mut self) {
        let objective = self.objective(&self.best.1);
        self.certificate.settle(objective);
        self.certificate.raise(self.bound(objective));
        self.certificate.record();
    }

    /// The lower bound, below the objective of a tree and what rounding may have added.
    fn bound(&self, objective: f64) -> f64 {
        let rounding = ROUNDING.max(2.0 * self.prepared.task.error());
        (self.lower - rounding).clamp(0.0, objective)
    }

    /// The solution with its certificate.
    fn finish(mut self, stop: Option<Stop>) -> Result<Solution, Error> {
        let Prepared { task, tables, kernel, .. } = self.prepared;
        let objective = self.objective(&self.best.1);
        let off = (objective - self.best.0).abs();
        if task.reference.is_none() && off > CERTIFIED * objective.max(1.0) {
            let reason = format!("span too wide a range: sums over them are off by {off:.1e}");
            return Err(Error::invalid("sample_weight", reason));
        }
        self.certificate.settle(objective);
        self.certificate.raise(self.bound(objective));
        if stop.is_none() && task.reference.is_none() {
            self.certificate.close();
        }
        let Verdict { objective, lower_bound, status, trace } = self.certificate.finish(stop);
        Ok(Solution {
            tree: self.best.1,
            objective,
            lower_bound,
            status,
            nodes: self.monitor.nodes(),
            n_distinct_rows: tables.about.len(),
            n_columns: tables.columns.len(),
            trace,
            kernel: format!("{}-double", kernel.backend.name()),
        })
    }

    /// The objective of a tree, from the rows.
    fn objective(&self, tree: &Tree) -> f64 {
        let Prepared { task, features, .. } = self.prepared;
        task.objective(&tree.partition(features), tree.n_leaves())
    }
}
