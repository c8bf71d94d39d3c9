//! Finds the cheapest subtree of a tree within a limit on the number of leaves.

use super::nodes::Cost;

/// A node with its cost as a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Costed<C> {
    /// Cost as a leaf; [`Cost::MOST`] if a leaf is not allowed.
    pub leaf: C,
    /// Cost and number of leaves of another tree that may replace this node, if it is not split.
    pub tree: Option<(C, usize)>,
    /// Price of the split and the numbers of the two nodes below, if the node is split.
    pub split: Option<(C, [usize; 2])>,
}

/// A subtree: its cost, its leaves, and the entries of its two sides.
#[derive(Clone, Copy)]
struct Best<C> {
    cost: C,
    leaves: usize,
    /// Entries of the two sides; `None` for a leaf and for a tree that replaces the node.
    shares: Option<(usize, usize)>,
}

/// The cheapest subtrees with the root of a tree, by their number of leaves.
pub struct Pruned<C> {
    /// Entry k of a node is its best subtree with at most k + 1 leaves. If leaves are not limited,
    /// the only entry is the best subtree of any size.
    best: Vec<Vec<Best<C>>>,
}

impl<C: Cost> Pruned<C> {
    /// Computes the subtrees. Node 0 is the root, and children come after their parents. Costs that
    /// differ by no more than `slack` are equal, and then the smaller subtree is better.
    pub fn new(nodes: &[Costed<C>], most_leaves: usize, slack: C) -> Self {
        let ends = nodes.iter().filter(|node| node.split.is_none());
        let n_leaves: usize = ends.map(|node| node.tree.map_or(1, |(_, leaves)| leaves)).sum();
        let limited = most_leaves < n_leaves;
        let mut best: Vec<Vec<Best<C>>> = (0..nodes.len()).map(|_| Vec::new()).collect();
        for (id, node) in nodes.iter().enumerate().rev() {
            let leaf = Best { cost: node.leaf, leaves: 1, shares: None };
            let mut places = vec![leaf];
            if let Some((cost, leaves)) = node.tree.filter(|&(_, leaves)| leaves <= most_leaves) {
                let place = if limited { leaves - 1 } else { 0 };
                places.resize(place + 1, leaf);
                places[place] = Best { cost, leaves, shares: None };
            }
            if let Some((price, [one, other])) = node.split {
                let (one, other) = (&best[one], &best[other]);
                if limited {
                    places.resize((one.len() + other.len()).min(most_leaves), leaf);
                }
                for a in 0..one.len() {
                    for b in 0..other.len() {
                        let place = if limited { a + b + 1 } else { 0 };
                        if place >= places.len() {
                            break;
                        }
                        let cost = one[a].cost.plus(other[b].cost).plus(price);
                        let leaves = one[a].leaves + other[b].leaves;
                        if (cost.plus(slack), leaves) < (places[place].cost, places[place].leaves) {
                            places[place] = Best { cost, leaves, shares: Some((a, b)) };
                        }
                    }
                }
                for place in 1..places.len() {
                    if places[place].cost >= places[place - 1].cost {
                        places[place] = places[place - 1];
                    }
                }
            }
            best[id] = places;
        }
        Pruned { best }
    }

    /// Cost of the best subtree, and the entry of its root.
    pub fn root(&self) -> (C, usize) {
        let place = self.best[0].len() - 1;
        (self.cost(0, place), place)
    }

    /// Cost of an entry of a node.
    pub fn cost(&self, node: usize, place: usize) -> C {
        self.best[node][place].cost
    }

    /// Number of leaves of an entry of a node.
    pub fn leaves(&self, node: usize, place: usize) -> usize {
        self.best[node][place].leaves
    }

    /// Entries of the two sides of a node; `None` if it is not split.
    pub fn shares(&self, node: usize, place: usize) -> Option<(usize, usize)> {
        self.best[node][place].shares
    }
}
