//! What other questions would do in the place of those of a tree.

use super::Prepared;
use super::node::{Allowed, Candidate, Nodes};
use super::rows::Rows;
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::search::{Alternative, Monitor, Settings, Stop};
use crate::task::brier::Brier;
use crate::tree::{LEAF, Tree};

/// As [`alternatives`](crate::search::alternatives()), by Brier score.
pub fn alternatives_brier(
    task: &Brier,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
    tree: &Tree,
) -> Result<(Vec<Alternative>, Option<Stop>), Error> {
    tree.check(features.n_features())?;
    let prepared = Prepared::new(task, features, settings)?;
    let Prepared { root, tables, memo, kernel, .. } = &prepared;
    let nodes = Nodes::new(tables, settings, monitor, memo, *kernel, task.leaf_penalty);
    let objective = |tree: &Tree| task.objective(&tree.partition(features), tree.n_leaves());
    let mut walk = Walk { nodes, tree, found: Vec::new(), objective };
    let leaves = settings.max_leaves.unwrap_or(usize::MAX);
    let allowed = Allowed { depth: settings.max_depth, leaves };
    match walk.from(0, root, allowed) {
        Ok(()) => Ok((walk.found, None)),
        Err(End::Stop(stop)) => Ok((walk.found, Some(stop))),
        Err(End::Error(error)) => Err(error),
    }
}

/// Why the walk ended.
enum End {
    Stop(Stop),
    Error(Error),
}

struct Walk<'a, F> {
    nodes: Nodes<'a>,
    tree: &'a Tree,
    found: Vec<Alternative>,
    objective: F,
}

impl<F: Fn(&Tree) -> f64> Walk<'_, F> {
    /// Alternatives of a node and of those below it, in preorder; `allowed` is what its own
    /// subtree may have.
    fn from(&mut self, node: usize, rows: &Rows, allowed: Allowed) -> Result<(), End> {
        let feature = self.tree.feature[node];
        if feature == LEAF {
            return Ok(());
        }
        let splits = self.nodes.splits(rows, None, true);
        let mut candidates = self.nodes.candidates(rows, &splits);
        self.nodes.drop_splits(splits);
        candidates.sort_by_key(|c| c.column);
        for split in &candidates {
            self.try_split(node, rows, split, allowed)?;
        }
        let feature_of = |c: &&Candidate| self.nodes.tables.columns[c.column].feature as i64;
        let Some(own) = candidates.iter().find(|c| feature_of(c) == feature).copied() else {
            let message = format!("node {node} is no split of these rows that the limits allow");
            return Err(End::Error(Error::invalid("tree", message)));
        };
        let flipped = self.nodes.tables.columns[own.column].flipped;
        let sides = self.nodes.sides(rows, &own);
        let mut children = [self.tree.left[node] as usize, self.tree.right[node] as usize];
        if flipped {
            children.swap(0, 1);
        }
        let sizes = children.map(|child| self.tree.leaves_below(child));
        for k in if flipped { [1, 0] } else { [0, 1] } {
            let leaves = allowed.leaves.saturating_sub(sizes[1 - k]);
            let allowed = Allowed { depth: allowed.depth - 1, leaves };
            self.from(children[k], &sides[k], allowed)?;
        }
        self.nodes.drop_rows(sides);
        Ok(())
    }

    fn try_split(
        &mut self,
        node: usize,
        rows: &Rows,
        split: &Candidate,
        allowed: Allowed,
    ) -> Result<(), End> {
        let splits = self.nodes.splits(rows, None, true);
        let known = self.nodes.below(rows, &splits, split, allowed, f64::INFINITY);
        self.nodes.drop_splits(splits);
        let value = known.map_err(End::Stop)?.value;
        let below = self.nodes.tree_with_root(rows, split.column, allowed, value);
        let whole = self.tree.with_subtree(node, &below.map_err(End::Stop)?);
        self.found.push(Alternative {
            node,
            feature: self.nodes.tables.columns[split.column].feature,
            objective: (self.objective)(&whole),
            n_leaves: whole.n_leaves(),
        });
        Ok(())
    }
}
