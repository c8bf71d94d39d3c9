//! Trees near the best one, and alternatives to the questions of a tree.

use super::Prepared;
use super::node::{Candidate, CurveNode, CurveNodes, with_root};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::search::branch::Branch;
use crate::search::certificate::MEET;
use crate::search::near::{self, Near, Nearness};
use crate::search::nodes::{Allowed, Listed, Nodes};
use crate::search::{Alternative, Checked, Monitor, Status, Stop};
use crate::task::curve::ScalarCurveTask;
use crate::tree::{LEAF, Tree};
use rustc_hash::FxHashSet;

/// At most `limit` trees whose objective is within `slack` (and 1e-9) of the best one's, by leaves.
///
/// Columns that split a node's rows in the same way count once, as the first of them. If a limit
/// ends the search or the enumeration, only the best tree is returned.
pub fn near_optimal(
    task: &dyn ScalarCurveTask,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
    (slack, limit): (f64, usize),
) -> Result<Near, Error> {
    let mut prepared = Prepared::new(task, features, settings)?;
    let first = prepared.solve(settings, monitor, None)?;
    if !matches!(first.status, Status::Optimal | Status::ReferenceOptimal) {
        let status = first.status;
        return Ok(Near::stopped(first, status));
    }
    let worst = first.objective + slack + MEET * first.objective;
    let (cut, n_rows) = (prepared.cost_above(worst), features.n_rows());
    let nearness = Nearness { cut, worst, limit, n_rows };
    let mut branch = prepared.branch(settings, monitor);
    let objective = |tree: &Tree| prepared.objective(tree);
    let (root, allowed) = (&prepared.root, settings.limits.allowed());
    Ok(near::near_optimal(&mut branch, root, allowed, first, &nearness, objective))
}

/// As [`alternatives`](crate::search::alternatives()), by the loss of curves.
pub fn alternatives(
    task: &dyn ScalarCurveTask,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
    tree: &Tree,
) -> Result<(Vec<Alternative>, Option<Stop>), Error> {
    tree.check(features.n_features())?;
    let prepared = Prepared::new(task, features, settings)?.seeing(tree, settings)?;
    let branch = prepared.branch(settings, monitor);
    let objective = |tree: &Tree| prepared.objective(tree);
    let mut walk = Walk { branch, tree, found: Vec::new(), objective };
    match walk.from(0, &prepared.root, settings.limits.allowed()) {
        Ok(()) => Ok((walk.found, None)),
        Err(End::Stop(stop)) => Ok((walk.found, Some(stop))),
        Err(End::Error(error)) => Err(error),
    }
}

/// Reason why the walk ended.
enum End {
    Stop(Stop),
    Error(Error),
}

impl From<Stop> for End {
    fn from(stop: Stop) -> Self {
        End::Stop(stop)
    }
}

struct Walk<'a, F> {
    branch: Branch<'a, CurveNodes<'a>>,
    tree: &'a Tree,
    found: Vec<Alternative>,
    objective: F,
}

impl<F: Fn(&Tree) -> f64> Walk<'_, F> {
    /// Alternatives at a node and the nodes below it, in preorder; `allowed` is the allowance of
    /// its subtree.
    fn from(&mut self, at: usize, node: &CurveNode, allowed: Allowed) -> Result<(), End> {
        let feature = self.tree.feature[at];
        if feature == LEAF {
            return Ok(());
        }
        if allowed.depth == 0 || allowed.leaves < 2 {
            let message = format!("is larger than the limits allow, at node {at}");
            return Err(End::Error(Error::invalid("tree", message)));
        }
        let (open, candidates) = self.branch.nodes.questions(node, None)?;
        let mut seen = FxHashSet::default();
        for split in &candidates {
            // Only the first of the columns that split the rows in the same way counts.
            let sides = self.branch.nodes.sides(node, &open, split)?;
            let rows = [0, 1].map(|side| self.branch.nodes.key(&sides[side]));
            self.branch.nodes.give_back(sides);
            if !seen.insert(rows[0].min(rows[1])) {
                continue;
            }
            let below = self.branch.below(node, &open, split, allowed, f64::INFINITY)?;
            self.take(at, node, split, allowed, below.known.value)?;
        }
        let columns = &self.branch.nodes.tables.columns;
        let own = candidates.iter().find(|c| columns[c.column].feature as i64 == feature);
        let Some(own) = own else {
            let message = format!("node {at} is no split of these rows that the limits allow");
            return Err(End::Error(Error::invalid("tree", message)));
        };
        let [right, left] = columns[own.column].turned([0, 1]);
        let sides = self.branch.nodes.sides(node, &open, own)?;
        self.branch.nodes.close(open);
        // In preorder: rows that have the feature come first.
        let children = [self.tree.left[at] as usize, self.tree.right[at] as usize];
        let sizes = children.map(|child| self.tree.leaves_below(child));
        for (k, side) in [left, right].into_iter().enumerate() {
            let leaves = allowed.leaves.saturating_sub(sizes[1 - k]);
            let allowed = Allowed { depth: allowed.depth - 1, leaves };
            self.from(children[k], &sides[side], allowed)?;
        }
        self.branch.nodes.give_back(sides);
        Ok(())
    }

    fn take(
        &mut self,
        at: usize,
        node: &CurveNode,
        split: &Candidate,
        allowed: Allowed,
        value: f64,
    ) -> Result<(), End> {
        let below = with_root(&mut self.branch, node, allowed, split.column, value)?;
        let whole = self.tree.with_subtree(at, &below);
        self.found.push(Alternative {
            node: at,
            feature: self.branch.nodes.tables.columns[split.column].feature,
            objective: (self.objective)(&whole),
            n_leaves: whole.n_leaves(),
        });
        Ok(())
    }
}
