//! Search for curve tasks: the loss of a leaf needs its rows in the order of time.
//!
//! [`rows`] holds a node's rows, [`kernel`] evaluates all its splits in one pass, [`node`] tells
//! the branch and bound of them. This file begins a search: first trees, then all depths. See
//! docs/maths/brier.md.

pub mod kernel;
mod neighbours;
mod node;
pub mod rows;

pub use neighbours::{alternatives, near_optimal};

use super::branch::{Branch, MemoOf};
use super::certificate::MEET;
use super::nodes::Nodes;
use super::root::{Scale, Search};
use super::{Checked, Measured, Monitor, Settings, Solution, Stop};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::task::curve::ScalarCurveTask;
use crate::tree::Tree;
use kernel::Kernel;
use node::{CurveNodes, Node, greedy};
use rows::Tables;

/// Shallower searches, from depth 2 on, stop before this depth.
const DEEPENING: usize = 6;

/// Levels at the bottom of the second greedy tree that are searched exactly.
const EXACT_LEVELS: usize = 2;

/// Least slack: above the rounding of sums over rows, far below what is certified.
const SLACK: f64 = 1e-13;

/// The best tree for `task`, or on a limit the best found and a bound.
pub fn solve(
    task: &dyn ScalarCurveTask,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Solution, Error> {
    Ok(Prepared::new(task, features, settings)?.solve(settings, monitor, None)?.0)
}

/// The best tree with at most k leaves for k = 1, 2, …, each with its own bound and status.
///
/// The numbers of leaves end at `settings.limits.max_leaves`, at what the depth allows, or at the
/// number of distinct rows.
pub fn solve_path(
    task: &dyn ScalarCurveTask,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Vec<Solution>, Error> {
    let prepared = Prepared::new(task, features, settings)?;
    let most = settings.limits.most_leaves().min(prepared.tables.n_groups).max(1);
    let mut path: Vec<Solution> = Vec::new();
    for k in 1..=most {
        let settings = settings.with_limits(|s| s.max_leaves = Some(k));
        path.push(prepared.solve(&settings, monitor, path.last())?.0);
    }
    Ok(path)
}

/// Data in the form that searches share.
pub(super) struct Prepared<'a> {
    task: &'a dyn ScalarCurveTask,
    features: &'a BinaryMatrix,
    /// All rows.
    pub root: Node,
    pub tables: Tables,
    memo: Option<MemoOf<CurveNodes<'a>>>,
    kernel: Kernel,
    /// Costs closer than this are taken as equal.
    slack: f64,
}

impl Scale<f64> for Prepared<'_> {
    fn least(&self) -> f64 {
        0.0
    }

    fn objective(&self, _cost: f64, tree: &Tree) -> Measured {
        Measured::plain(self.task.objective(&tree.partition(self.features), tree.n_leaves()))
    }

    fn bound(&self, lower: f64) -> f64 {
        (lower - 2.0 * self.task.error().max(self.slack)).max(0.0)
    }

    /// Up to the rounding of sums over rows, for which there is no bound yet that is of any use.
    fn is_exact(&self) -> bool {
        true
    }
}

impl<'a> Prepared<'a> {
    pub fn new(
        task: &'a dyn ScalarCurveTask,
        features: &'a BinaryMatrix,
        settings: &Checked,
    ) -> Result<Self, Error> {
        let backend = settings.backend();
        let kernel =
            Kernel { backend, curve: task.curve(), min_leaf: settings.limits.least_rows() };
        let (rows, tables) =
            Tables::new(task, features, settings.switches.equivalent_points, task.reference())?;
        let memo = settings.switches.cache.then(|| MemoOf::<CurveNodes>::new(settings.bytes()));
        let root = Node { rows, leaf: kernel.leaf(&tables) };
        let slack = task.slack().max(SLACK);
        Ok(Prepared { task, features, root, tables, memo, kernel, slack })
    }

    /// A search over the nodes of these data.
    pub fn branch<'b>(
        &'b self,
        settings: &'b Settings,
        monitor: &'b Monitor<'b>,
    ) -> Branch<'b, CurveNodes<'b>> {
        let Prepared { tables, kernel, task, memo, .. } = self;
        let costs = (task.leaf_penalty(), self.slack);
        let nodes = CurveNodes::new(tables, settings, monitor, *kernel, costs);
        Branch { nodes, memo: memo.as_ref(), monitor }
    }

    /// The best tree with its certificate, and its cost; `smaller` is known.
    fn solve(
        &self,
        settings: &Settings,
        monitor: &Monitor,
        smaller: Option<&Solution>,
    ) -> Result<(Solution, f64), Error> {
        let best = (self.root.leaf + self.task.leaf_penalty(), Tree::leaf());
        let mut search = Search::new(self, settings, monitor, best, 0.0)
            .with_slack(self.slack)
            .trusting_reference(self.task.reference().is_some());
        if let Some(smaller) = smaller {
            search.offer(smaller.objective, smaller.tree.clone());
        }
        let stop = self.run(&mut search, settings, monitor).err();
        let cost = search.best.0;
        let (tree, verdict) = search.finish(stop);
        let off = (verdict.objective - cost).abs();
        if self.task.reference().is_none() && off > MEET * verdict.objective.max(1.0) {
            let reason = format!("span too wide a range: sums over them are off by {off:.1e}");
            return Err(Error::invalid("sample_weight", reason));
        }
        let solution = Solution {
            tree,
            objective: verdict.objective,
            lower_bound: verdict.lower_bound,
            status: verdict.status,
            nodes: monitor.nodes(),
            n_distinct_rows: self.tables.about.len(),
            n_columns: self.tables.columns.len(),
            trace: verdict.trace,
            kernel: format!("{}-double", self.kernel.backend.name()),
        };
        Ok((solution, cost))
    }

    /// Greedy trees first, then all depths.
    fn run(
        &self,
        search: &mut Search<f64>,
        settings: &Settings,
        monitor: &Monitor,
    ) -> Result<(), Stop> {
        let (root, proves) = (&self.root, self.task.reference().is_none());
        let mut branch = self.branch(settings, monitor);
        let allowed = branch.nodes.useful(root, settings.limits.allowed());
        let free = branch.nodes.bound_of(root.leaf, self.tables.free_floor, root.rows.count);
        search.lower = free.min(search.best.0);
        search.record();
        if allowed.leaves == 1 {
            if proves {
                search.close();
            }
            return Ok(());
        }
        for exact in [0, EXACT_LEVELS].into_iter().filter(|&exact| exact < allowed.depth) {
            // The first tree is worth having whatever the limit.
            if exact > 0 {
                monitor.check()?;
            }
            let (value, tree) = greedy(&mut branch, root, allowed, exact);
            search.offer(value, tree);
        }
        // Shallower trees cost little, and the best of them rules out much that is deeper.
        for depth in 2..allowed.depth.min(DEEPENING) {
            let allowed = allowed.at_most(depth, usize::MAX);
            search.at_root(&mut branch, root, allowed, false)?;
        }
        // Bounds that rest on the reference model are not bounds on the optimum.
        search.at_root(&mut branch, root, allowed, proves)
    }
}
