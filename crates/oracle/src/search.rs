//! Exhaustive recursion over all trees.

use std::rc::Rc;

use crate::Tree;

/// Which trees are allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Largest depth; the depth of a single leaf is 0.
    pub max_depth: usize,
    /// Largest number of leaves, `None` for as many as the depth permits.
    pub max_leaves: Option<usize>,
    /// Fewest rows in a leaf. An empty leaf is never allowed, so 0 means 1.
    pub min_leaf: usize,
}

impl Limits {
    /// Most leaves that any allowed tree over `n_rows` rows can have, at least 1.
    fn leaves(&self, n_rows: usize) -> usize {
        let by_depth = u32::try_from(self.max_depth)
            .ok()
            .and_then(|depth| 1usize.checked_shl(depth))
            .unwrap_or(usize::MAX);
        let by_rows = n_rows / self.min_leaf.max(1);
        by_depth.min(by_rows).min(self.max_leaves.unwrap_or(usize::MAX)).max(1)
    }

    /// The limits of a child of the root: one level less, and a leaf left for the sibling.
    fn of_child(&self) -> Limits {
        Limits {
            max_depth: self.max_depth - 1,
            max_leaves: self.max_leaves.map(|leaves| leaves - 1),
            min_leaf: self.min_leaf,
        }
    }

    fn allows_leaf(&self, rows: &[usize]) -> bool {
        rows.len() >= self.min_leaf.max(1)
    }

    fn allows_split(&self) -> bool {
        self.max_depth > 0 && self.max_leaves.is_none_or(|leaves| leaves > 1)
    }
}

/// Least cost over all allowed trees, infinite when there is none.
///
/// O((2F)^depth) leaf costs.
pub fn best(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_cost: impl Fn(&[usize]) -> f64,
) -> f64 {
    best_tree(features, rows, limits, leaf_cost).map_or(f64::INFINITY, |(cost, _)| cost)
}

/// Entry `k`: least cost over all allowed trees with at most `k + 1` leaves.
///
/// As long as the number of leaves that `limits` and the number of rows permit.
pub fn best_by_leaves(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_cost: impl Fn(&[usize]) -> f64,
) -> Vec<f64> {
    let mut least = f64::INFINITY;
    let exact = best_with_exactly(features, rows, limits, &leaf_cost);
    exact
        .into_iter()
        .map(|entry| {
            least = entry.map_or(least, |found| least.min(found.cost));
            least
        })
        .collect()
}

/// A tree of least cost and, among those, fewest leaves; `None` when no tree is allowed.
pub fn best_tree(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_cost: impl Fn(&[usize]) -> f64,
) -> Option<(f64, Tree)> {
    let mut least: Option<Found> = None;
    for found in best_with_exactly(features, rows, limits, &leaf_cost).into_iter().flatten() {
        if least.as_ref().is_none_or(|l| found.cost < l.cost) {
            least = Some(found);
        }
    }
    least.map(|found| (found.cost, found.node.to_tree()))
}

#[derive(Clone)]
struct Found {
    cost: f64,
    node: Rc<Node>,
}

enum Node {
    Leaf,
    Split { feature: usize, yes: Rc<Node>, no: Rc<Node> },
}

impl Node {
    fn to_tree(&self) -> Tree {
        match self {
            Node::Leaf => Tree::leaf(),
            Node::Split { feature, yes, no } => {
                Tree::split(*feature, &yes.to_tree(), &no.to_tree())
            }
        }
    }
}

/// Entry `k`: the best tree with exactly `k + 1` leaves.
fn best_with_exactly(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_cost: &impl Fn(&[usize]) -> f64,
) -> Vec<Option<Found>> {
    let mut best: Vec<Option<Found>> = vec![None; limits.leaves(rows.len())];
    if limits.allows_leaf(rows) {
        best[0] = Some(Found { cost: leaf_cost(rows), node: Rc::new(Node::Leaf) });
    }
    for (feature, yes, no) in splits(features, rows, limits) {
        let left = best_with_exactly(features, &yes, &limits.of_child(), leaf_cost);
        let right = best_with_exactly(features, &no, &limits.of_child(), leaf_cost);
        for (i, l) in left.iter().enumerate() {
            for (j, r) in right.iter().enumerate() {
                let (Some(l), Some(r)) = (l, r) else { continue };
                let Some(entry) = best.get_mut(i + j + 1) else { continue };
                let cost = l.cost + r.cost;
                if entry.as_ref().is_none_or(|found| cost < found.cost) {
                    let node = Node::Split { feature, yes: l.node.clone(), no: r.node.clone() };
                    *entry = Some(Found { cost, node: Rc::new(node) });
                }
            }
        }
    }
    best
}

/// Entry `k`: least cost over all allowed trees with at most `k + 1` leaves, where a split
/// costs `price(feature, features above, rows)` on top of its leaves.
pub fn best_priced(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_cost: &impl Fn(&[usize]) -> f64,
    price: &impl Fn(usize, &[usize], &[usize]) -> f64,
) -> Vec<f64> {
    priced_with_exactly(features, rows, limits, &mut vec![], leaf_cost, price)
        .into_iter()
        .scan(f64::INFINITY, |least, cost| {
            *least = least.min(cost);
            Some(*least)
        })
        .collect()
}

/// Entry `k`: the least cost with exactly `k + 1` leaves, below the features `above`.
fn priced_with_exactly(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    above: &mut Vec<usize>,
    leaf_cost: &impl Fn(&[usize]) -> f64,
    price: &impl Fn(usize, &[usize], &[usize]) -> f64,
) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; limits.leaves(rows.len())];
    if limits.allows_leaf(rows) {
        best[0] = leaf_cost(rows);
    }
    for (feature, yes, no) in splits(features, rows, limits) {
        let price_here = price(feature, above, rows);
        above.push(feature);
        let below = limits.of_child();
        let left = priced_with_exactly(features, &yes, &below, above, leaf_cost, price);
        let right = priced_with_exactly(features, &no, &below, above, leaf_cost, price);
        above.pop();
        for (i, l) in left.iter().enumerate() {
            for (j, r) in right.iter().enumerate() {
                if let Some(entry) = best.get_mut(i + j + 1) {
                    *entry = entry.min(l + r + price_here);
                }
            }
        }
    }
    best
}

/// All non-dominated cost pairs of allowed trees, by ascending first component.
///
/// A leaf offers several candidate pairs (one per label, say), of which a tree takes one;
/// the pairs of the leaves add up. A pair is dominated when another is no larger in both
/// components and smaller in one. Sums are compared exactly: use costs that `f64` adds
/// exactly, such as integers.
pub fn pareto_front(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_costs: impl Fn(&[usize]) -> Vec<[f64; 2]>,
) -> Vec<[f64; 2]> {
    non_dominated(fronts_with_exactly(features, rows, limits, &leaf_costs).concat())
}

/// Entry `k`: the front of the trees with exactly `k + 1` leaves.
fn fronts_with_exactly(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_costs: &impl Fn(&[usize]) -> Vec<[f64; 2]>,
) -> Vec<Vec<[f64; 2]>> {
    let mut fronts: Vec<Vec<[f64; 2]>> = vec![vec![]; limits.leaves(rows.len())];
    if limits.allows_leaf(rows) {
        fronts[0] = leaf_costs(rows);
    }
    for (_, yes, no) in splits(features, rows, limits) {
        let left = fronts_with_exactly(features, &yes, &limits.of_child(), leaf_costs);
        let right = fronts_with_exactly(features, &no, &limits.of_child(), leaf_costs);
        for (i, ls) in left.iter().enumerate() {
            for (j, rs) in right.iter().enumerate() {
                let Some(front) = fronts.get_mut(i + j + 1) else { continue };
                for l in ls {
                    front.extend(rs.iter().map(|r| [l[0] + r[0], l[1] + r[1]]));
                }
            }
        }
    }
    fronts.into_iter().map(non_dominated).collect()
}

/// The distinct costs of all allowed trees, K components each, in no particular order.
///
/// A leaf offers several candidates (one per label, say), of which a tree takes one; the
/// costs of the leaves add up. Nothing is left out but exact duplicates, so that any
/// constraint can be put on the list.
pub fn all_costs<const K: usize>(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_costs: impl Fn(&[usize]) -> Vec<[f64; K]>,
) -> Vec<[f64; K]> {
    distinct(costs_with_exactly(features, rows, limits, &leaf_costs).concat())
}

/// Entry `k`: the costs of the trees with exactly `k + 1` leaves.
fn costs_with_exactly<const K: usize>(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_costs: &impl Fn(&[usize]) -> Vec<[f64; K]>,
) -> Vec<Vec<[f64; K]>> {
    let mut costs: Vec<Vec<[f64; K]>> = vec![vec![]; limits.leaves(rows.len())];
    if limits.allows_leaf(rows) {
        costs[0] = leaf_costs(rows);
    }
    for (_, yes, no) in splits(features, rows, limits) {
        let left = costs_with_exactly(features, &yes, &limits.of_child(), leaf_costs);
        let right = costs_with_exactly(features, &no, &limits.of_child(), leaf_costs);
        for (i, ls) in left.iter().enumerate() {
            for (j, rs) in right.iter().enumerate() {
                let Some(entry) = costs.get_mut(i + j + 1) else { continue };
                for l in ls {
                    entry.extend(rs.iter().map(|r| std::array::from_fn(|k| l[k] + r[k])));
                }
            }
        }
    }
    costs.into_iter().map(distinct).collect()
}

fn distinct<const K: usize>(mut costs: Vec<[f64; K]>) -> Vec<[f64; K]> {
    costs.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
    costs.dedup();
    costs
}

fn non_dominated(mut pairs: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    pairs.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    let mut front: Vec<[f64; 2]> = vec![];
    for pair in pairs {
        if front.last().is_none_or(|last| pair[1] < last[1]) {
            front.push(pair);
        }
    }
    front
}

/// Every split into two children that may be leaves: (feature, rows with it, rows without).
fn splits(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
) -> Vec<(usize, Vec<usize>, Vec<usize>)> {
    if rows.is_empty() || !limits.allows_split() {
        return vec![];
    }
    (0..features[rows[0]].len())
        .map(|f| {
            let (yes, no): (Vec<_>, _) = rows.iter().partition(|&&row| features[row][f]);
            (f, yes, no)
        })
        .filter(|(_, yes, no)| limits.allows_leaf(yes) && limits.allows_leaf(no))
        .collect()
}
