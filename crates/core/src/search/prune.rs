//! The cheapest of all subtrees of a tree with the leaves allowed.

use super::nodes::Cost;

/// A node with its cost as a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Costed<C> {
    /// Cost as a leaf; [`Cost::MOST`] where it may not be one.
    pub leaf: C,
    /// Cost and leaves of a tree that may stand there too, if it is not split.
    pub tree: Option<(C, usize)>,
    /// Price of its split and the two nodes below, if it is split.
    pub split: Option<(C, [usize; 2])>,
}

/// A subtree: its cost, its leaves, and the place of the answers below.
#[derive(Clone, Copy)]
struct Best<C> {
    cost: C,
    leaves: usize,
    /// Budgets of the two sides, as places; `None` for a leaf, and for a tree in its place.
    shares: Option<(usize, usize)>,
}

/// The cheapest subtrees with the root of a tree and at most so many leaves.
pub struct Pruned<C> {
    /// Place k of a node is its best with k + 1 leaves at most, or the only place its best of all.
    best: Vec<Vec<Best<C>>>,
}

impl<C: Cost> Pruned<C> {
    /// Finds them; node 0 is the root, and children come after their parents. Costs that differ by
    /// no more than `slack` are equal, and then the smaller subtree is the better one.
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

    /// Cost of the whole, and the place of its root.
    pub fn root(&self) -> (C, usize) {
        let place = self.best[0].len() - 1;
        (self.best[0][place].cost, place)
    }

    /// Leaves of a node at a place.
    pub fn leaves(&self, node: usize, place: usize) -> usize {
        self.best[node][place].leaves
    }

    /// Places of the two sides of a node at a place; `None` where it is not split.
    pub fn shares(&self, node: usize, place: usize) -> Option<(usize, usize)> {
        self.best[node][place].shares
    }
}
