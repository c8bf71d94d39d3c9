//! Of all subtrees of a tree with the leaves allowed, the cheapest.

/// A node with its cost as a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Costed {
    /// Cost as a leaf; `i64::MAX` where it may not be one.
    pub leaf: i64,
    /// Price of its split and the two nodes below, if it is split.
    pub split: Option<(i64, [usize; 2])>,
}

/// A subtree: its cost, its leaves, and the place of the answers below.
#[derive(Clone, Copy)]
struct Best {
    cost: i64,
    leaves: usize,
    /// Budgets of the two sides, as places; `None` for a leaf.
    shares: Option<(usize, usize)>,
}

/// The cheapest subtrees with the root of a tree and at most so many leaves.
pub struct Pruned {
    /// Place k of a node is its best with k + 1 leaves at most, or the only place its best of all.
    best: Vec<Vec<Best>>,
}

impl Pruned {
    /// Finds them; node 0 is the root, and children come after their parents.
    pub fn new(nodes: &[Costed], most_leaves: usize) -> Self {
        let n_leaves = nodes.iter().filter(|node| node.split.is_none()).count();
        let limited = most_leaves < n_leaves;
        let mut best: Vec<Vec<Best>> = (0..nodes.len()).map(|_| Vec::new()).collect();
        for (id, node) in nodes.iter().enumerate().rev() {
            let leaf = Best { cost: node.leaf, leaves: 1, shares: None };
            let mut places = vec![leaf];
            if let Some((price, [yes, no])) = node.split {
                let (yes, no) = (&best[yes], &best[no]);
                if limited {
                    places.resize((yes.len() + no.len()).min(most_leaves), leaf);
                }
                for a in 0..yes.len() {
                    for b in 0..no.len() {
                        let place = if limited { a + b + 1 } else { 0 };
                        if place >= places.len() {
                            break;
                        }
                        let cost = yes[a].cost.saturating_add(no[b].cost).saturating_add(price);
                        let leaves = yes[a].leaves + no[b].leaves;
                        if (cost, leaves) < (places[place].cost, places[place].leaves) {
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
    pub fn root(&self) -> (i64, usize) {
        let place = self.best[0].len() - 1;
        (self.best[0][place].cost, place)
    }

    /// Places of the two sides of a node at a place; `None` where it is a leaf.
    pub fn shares(&self, node: usize, place: usize) -> Option<(usize, usize)> {
        self.best[node][place].shares
    }
}
