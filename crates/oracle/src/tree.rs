//! A tree as parallel arrays, and its cost from the raw rows.

use crate::Limits;
use crate::search::Cost;

/// Parallel arrays over the nodes in preorder; node 0 is the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Binary feature that is tested at the node, −2 at a leaf.
    pub feature: Vec<i64>,
    /// Child for the rows whose feature is true, −1 at a leaf.
    pub left: Vec<i64>,
    /// Child for the rows whose feature is false, −1 at a leaf.
    pub right: Vec<i64>,
}

impl Tree {
    /// A single leaf.
    pub fn leaf() -> Tree {
        Tree { feature: vec![-2], left: vec![-1], right: vec![-1] }
    }

    /// A root that tests `feature`, with two subtrees.
    pub fn split(feature: usize, left: &Tree, right: &Tree) -> Tree {
        let left_root = 1;
        let right_root = left_root + left.feature.len() as i64;
        let mut tree =
            Tree { feature: vec![feature as i64], left: vec![left_root], right: vec![right_root] };
        for (subtree, root) in [(left, left_root), (right, right_root)] {
            let moved = |child: &i64| if *child < 0 { -1 } else { child + root };
            tree.feature.extend(&subtree.feature);
            tree.left.extend(subtree.left.iter().map(moved));
            tree.right.extend(subtree.right.iter().map(moved));
        }
        tree
    }

    /// Number of leaves.
    pub fn n_leaves(&self) -> usize {
        self.feature.iter().filter(|&&f| f < 0).count()
    }

    /// Depth of every node, or a description of what is wrong with the arrays.
    ///
    /// Requires preorder: a left child directly after its parent, and the right child directly
    /// after the last node of the left subtree.
    pub fn depths(&self) -> Result<Vec<usize>, String> {
        let n = self.feature.len();
        if self.left.len() != n || self.right.len() != n {
            return Err(format!("arrays of {n}, {}, {}", self.left.len(), self.right.len()));
        }
        let mut depths = vec![];
        let mut expected = vec![(0, 0)];
        while let Some((node, depth)) = expected.pop() {
            if node != depths.len() as i64 || node >= n as i64 {
                return Err(format!("node {node} where {} of {n} comes next", depths.len()));
            }
            let i = node as usize;
            depths.push(depth);
            if self.feature[i] >= 0 {
                expected.push((self.right[i], depth + 1));
                expected.push((self.left[i], depth + 1));
            } else if (self.feature[i], self.left[i], self.right[i]) != (-2, -1, -1) {
                return Err(format!("node {node} is neither a leaf nor a split"));
            }
        }
        match depths.len() {
            reached if reached == n => Ok(depths),
            reached => Err(format!("{reached} of {n} nodes are reached from the root")),
        }
    }

    /// The rows of every leaf, in the order of the nodes; a leaf may be empty.
    pub fn leaves(
        &self,
        features: &[Vec<bool>],
        rows: &[usize],
    ) -> Result<Vec<Vec<usize>>, String> {
        self.depths()?;
        let mut at: Vec<Vec<usize>> = vec![vec![]; self.feature.len()];
        for &row in rows {
            let mut node = 0;
            while self.feature[node] >= 0 {
                let value = features[row]
                    .get(self.feature[node] as usize)
                    .ok_or(format!("node {node} tests feature {}", self.feature[node]))?;
                node = if *value { self.left[node] } else { self.right[node] } as usize;
            }
            at[node].push(row);
        }
        Ok(at.into_iter().zip(&self.feature).filter(|(_, f)| **f < 0).map(|(r, _)| r).collect())
    }
}

/// Cost of a given tree, computed from the rows: Σ over its leaves of `leaf_cost(rows)`.
pub fn score_tree<C: Cost>(
    tree: &Tree,
    features: &[Vec<bool>],
    rows: &[usize],
    leaf_cost: impl Fn(&[usize]) -> C,
) -> Result<C, String> {
    Ok(tree.leaves(features, rows)?.iter().fold(C::ZERO, |sum, leaf| sum.plus(leaf_cost(leaf))))
}

/// Σ over its splits of `price(feature, features above, rows)`.
pub fn price_tree<C: Cost>(
    tree: &Tree,
    features: &[Vec<bool>],
    rows: &[usize],
    price: &impl Fn(usize, &[usize], &[usize]) -> C,
) -> C {
    let mut total = C::ZERO;
    let mut waiting = vec![(0usize, rows.to_vec(), vec![])];
    while let Some((node, rows, above)) = waiting.pop() {
        if tree.feature[node] >= 0 {
            let feature = tree.feature[node] as usize;
            total = total.plus(price(feature, &above, &rows));
            let (yes, no) = rows.into_iter().partition(|&row| features[row][feature]);
            let below = [above.as_slice(), &[feature]].concat();
            waiting.push((tree.left[node] as usize, yes, below.clone()));
            waiting.push((tree.right[node] as usize, no, below));
        }
    }
    total
}

/// Checks that `limits` allow the tree on these rows; the error names the violated limit.
pub fn admit_tree(
    tree: &Tree,
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
) -> Result<(), String> {
    let depth = tree.depths()?.into_iter().max().unwrap_or(0);
    if depth > limits.max_depth {
        return Err(format!("depth {depth} > {}", limits.max_depth));
    }
    if limits.max_leaves.is_some_and(|most| tree.n_leaves() > most) {
        return Err(format!("{} leaves > {:?}", tree.n_leaves(), limits.max_leaves));
    }
    let smallest = tree.leaves(features, rows)?.iter().map(Vec::len).min().unwrap_or(0);
    if smallest < limits.min_leaf.max(1) {
        return Err(format!("a leaf of {smallest} rows < {}", limits.min_leaf.max(1)));
    }
    Ok(())
}
