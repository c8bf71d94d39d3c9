//! Binary trees over binary features, as parallel arrays in preorder.

use crate::data::{BinaryMatrix, Column};
use crate::error::Error;

/// Marks a leaf in [`Tree::feature`].
pub const LEAF: i64 = -2;

/// A tree. Node 0 is the root, a left child directly follows its parent, and rows where the feature
/// is true go left.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tree {
    /// Feature tested at each node, [`LEAF`] at leaves.
    pub feature: Vec<i64>,
    /// Node of the rows where the feature is true; −1 at leaves.
    pub left: Vec<i64>,
    /// Node of the rows where the feature is false; −1 at leaves.
    pub right: Vec<i64>,
}

/// A node and where it is in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the node.
    pub node: usize,
    /// Splits above it.
    pub depth: usize,
    /// Leaves below it.
    pub n_leaves: usize,
}

impl Tree {
    /// A single leaf.
    pub fn leaf() -> Self {
        Tree { feature: vec![LEAF], left: vec![-1], right: vec![-1] }
    }

    /// A split on `feature` above two trees.
    pub fn split(feature: usize, when_true: &Tree, when_false: &Tree) -> Self {
        let mut tree = Tree {
            feature: vec![feature as i64],
            left: vec![1],
            right: vec![1 + when_true.n_nodes() as i64],
        };
        for child in [when_true, when_false] {
            let shift = tree.n_nodes() as i64;
            let moved = |v: &i64| if *v < 0 { *v } else { *v + shift };
            tree.feature.extend_from_slice(&child.feature);
            tree.left.extend(child.left.iter().map(moved));
            tree.right.extend(child.right.iter().map(moved));
        }
        tree
    }

    /// A split on a column, with the trees of its false and its true side.
    pub fn on(column: Column, sides: [&Tree; 2]) -> Self {
        let [no, yes] = column.turned(sides);
        Tree::split(column.feature, yes, no)
    }

    /// Rejects arrays that are not a tree in preorder over `n_features` features.
    pub fn check(&self, n_features: usize) -> Result<(), Error> {
        let invalid =
            || Err(Error::invalid("tree", "is not a tree in preorder over these features"));
        let n = self.n_nodes();
        if n == 0 || self.left.len() != n || self.right.len() != n {
            return invalid();
        }
        let mut seen = vec![false; n];
        seen[0] = true;
        for node in 0..n {
            let (feature, children) = (self.feature[node], [self.left[node], self.right[node]]);
            if feature == LEAF && children == [-1, -1] {
                continue;
            }
            let known = usize::try_from(feature).is_ok_and(|f| f < n_features);
            if !known || children[0] != node as i64 + 1 {
                return invalid();
            }
            for child in children {
                let Some(seen) = usize::try_from(child).ok().and_then(|c| seen.get_mut(c)) else {
                    return invalid();
                };
                if *seen || child <= node as i64 {
                    return invalid();
                }
                *seen = true;
            }
        }
        if seen.iter().all(|&s| s) { Ok(()) } else { invalid() }
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.feature.len()
    }

    /// Number of leaves.
    pub fn n_leaves(&self) -> usize {
        self.feature.iter().filter(|&&f| f == LEAF).count()
    }

    /// Longest path from the root, in splits.
    pub fn depth(&self) -> usize {
        let mut depth = vec![0; self.n_nodes()];
        for node in 0..self.n_nodes() {
            if self.feature[node] != LEAF {
                depth[self.left[node] as usize] = depth[node] + 1;
                depth[self.right[node] as usize] = depth[node] + 1;
            }
        }
        depth.into_iter().max().unwrap_or(0)
    }

    /// Every split, in preorder.
    pub fn splits(&self) -> Vec<Place> {
        let mut places: Vec<Place> =
            (0..self.n_nodes()).map(|node| Place { node, depth: 0, n_leaves: 1 }).collect();
        let inner = |&node: &usize| self.feature[node] != LEAF;
        let children = |node: usize| [self.left[node], self.right[node]].map(|c| c as usize);
        for node in (0..self.n_nodes()).filter(inner) {
            for child in children(node) {
                places[child].depth = places[node].depth + 1;
            }
        }
        for node in (0..self.n_nodes()).filter(inner).rev() {
            places[node].n_leaves = children(node).map(|c| places[c].n_leaves).iter().sum();
        }
        places.retain(|place| self.feature[place.node] != LEAF);
        places
    }

    /// Leaves at or below a node.
    pub fn leaves_below(&self, node: usize) -> usize {
        match self.feature[node] {
            LEAF => 1,
            _ => [self.left[node], self.right[node]]
                .map(|c| self.leaves_below(c as usize))
                .iter()
                .sum(),
        }
    }

    /// The tree with `other` in the place of a node and everything below it.
    pub fn with_subtree(&self, node: usize, other: &Tree) -> Tree {
        self.rebuilt(0, node, other)
    }

    fn rebuilt(&self, at: usize, node: usize, other: &Tree) -> Tree {
        if at == node {
            return other.clone();
        }
        match self.feature[at] {
            LEAF => Tree::leaf(),
            feature => {
                let [yes, no] = [self.left[at], self.right[at]]
                    .map(|child| self.rebuilt(child as usize, node, other));
                Tree::split(feature as usize, &yes, &no)
            }
        }
    }

    /// Whether row `r` passes through a node.
    pub fn passes(&self, features: &BinaryMatrix, r: usize, node: usize) -> bool {
        // Nodes come in preorder, so no node after the requested one leads to it.
        self.path(features, r).find(|&at| at >= node) == Some(node)
    }

    /// Number of the leaf of every row, counted in preorder.
    pub fn partition(&self, features: &BinaryMatrix) -> Vec<usize> {
        self.partition_by(features.n_rows(), |r, feature| features.get(r, feature))
    }

    /// As [`partition`](Self::partition), for any source of features: `holds` returns whether a
    /// feature is true in a row.
    pub fn partition_by(&self, n_rows: usize, holds: impl Fn(usize, usize) -> bool) -> Vec<usize> {
        let mut number = vec![usize::MAX; self.n_nodes()];
        let leaves = (0..self.n_nodes()).filter(|&node| self.feature[node] == LEAF);
        leaves.enumerate().for_each(|(leaf, node)| number[node] = leaf);
        // Leaves lead to themselves, so every row takes the same number of steps and no branch has
        // to be predicted.
        let step = |node: usize| match self.feature[node] {
            LEAF => (0, [node; 2]),
            feature => (feature as usize, [self.right[node] as usize, self.left[node] as usize]),
        };
        let (steps, depth): (Vec<_>, usize) =
            ((0..self.n_nodes()).map(step).collect(), self.depth());
        let leaf_of = |r: usize| {
            let mut node = 0;
            for _ in 0..depth {
                let (feature, next) = steps[node];
                node = next[usize::from(holds(r, feature))];
            }
            number[node]
        };
        (0..n_rows).map(leaf_of).collect()
    }

    /// Nodes that row `r` passes, from the root to its leaf.
    pub fn path<'a>(
        &'a self,
        features: &'a BinaryMatrix,
        r: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        std::iter::successors(Some(0), move |&node| {
            let feature = self.feature[node];
            let yes = feature != LEAF && features.get(r, feature as usize);
            let next = if yes { self.left[node] } else { self.right[node] };
            (feature != LEAF).then_some(next as usize)
        })
    }

    /// All nodes, each with the features that are tested above it.
    pub fn nodes_with_tested(&self) -> Vec<(usize, Vec<usize>)> {
        let (mut nodes, mut waiting) = (Vec::new(), vec![(0usize, Vec::new())]);
        while let Some((node, tested)) = waiting.pop() {
            if self.feature[node] != LEAF {
                let mut below: Vec<usize> = tested.clone();
                below.push(self.feature[node] as usize);
                waiting.push((self.left[node] as usize, below.clone()));
                waiting.push((self.right[node] as usize, below));
            }
            nodes.push((node, tested));
        }
        nodes
    }

    /// Node of the leaf of row `r`.
    pub fn leaf_of(&self, features: &BinaryMatrix, r: usize) -> usize {
        self.path(features, r).last().expect("the root at least")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_laid_out_in_preorder() {
        let inner = Tree::split(7, &Tree::leaf(), &Tree::leaf());
        let tree = Tree::split(3, &inner, &Tree::leaf());
        assert_eq!(tree.feature, [3, 7, LEAF, LEAF, LEAF]);
        assert_eq!(tree.left, [1, 2, -1, -1, -1]);
        assert_eq!(tree.right, [4, 3, -1, -1, -1]);
        assert_eq!((tree.n_leaves(), tree.depth()), (3, 2));
    }

    #[test]
    fn rows_with_the_feature_go_left() {
        let matrix = BinaryMatrix::from_bytes(2, 1, &[1, 0]).unwrap();
        let tree = Tree::split(0, &Tree::leaf(), &Tree::leaf());
        assert_eq!((tree.leaf_of(&matrix, 0), tree.leaf_of(&matrix, 1)), (1, 2));
        assert_eq!(tree.partition(&matrix), [0, 1]);
    }
}
