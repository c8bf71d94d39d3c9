//! The exhaustive recursion over all trees.

use std::rc::Rc;

use crate::{Real, Tree};

/// The trees that are allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Largest depth; the depth of a single leaf is 0.
    pub max_depth: usize,
    /// Largest number of leaves; `None` if only the depth limits them.
    pub max_leaves: Option<usize>,
    /// Minimum number of rows in a leaf. An empty leaf is never allowed, so 0 means 1.
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

    /// The limits for a child of the root: one level less, and one leaf less for the sibling.
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

/// Cost of a tree: the sum over its leaves and splits.
pub trait Cost: Copy + PartialOrd {
    /// The sum of no costs.
    const ZERO: Self;

    /// The sum of two costs.
    fn plus(self, other: Self) -> Self;

    /// Whether no component is larger.
    fn dominates(&self, other: &Self) -> bool;
}

impl Cost for f64 {
    const ZERO: f64 = 0.0;

    fn plus(self, other: f64) -> f64 {
        self + other
    }

    fn dominates(&self, other: &f64) -> bool {
        self <= other
    }
}

impl Cost for Real {
    const ZERO: Real = Real::ZERO;

    fn plus(self, other: Real) -> Real {
        self + other
    }

    fn dominates(&self, other: &Real) -> bool {
        self <= other
    }
}

/// A cost that is a number.
pub trait Number: Cost {
    /// Larger than any cost.
    const INFINITY: Self;
}

impl Number for f64 {
    const INFINITY: f64 = f64::INFINITY;
}

impl Number for Real {
    const INFINITY: Real = Real::INFINITY;
}

impl<C: Cost, const K: usize> Cost for [C; K] {
    const ZERO: Self = [C::ZERO; K];

    fn plus(self, other: Self) -> Self {
        std::array::from_fn(|k| self[k].plus(other[k]))
    }

    fn dominates(&self, other: &Self) -> bool {
        (0..K).all(|k| self[k] <= other[k])
    }
}

/// Description of a tree that is kept next to its cost.
pub trait Shape: Clone {
    /// A single leaf.
    fn leaf() -> Self;

    /// A root that tests `feature`, with two subtrees.
    fn split(feature: usize, yes: &Self, no: &Self) -> Self;
}

/// No description.
impl Shape for () {
    fn leaf() {}

    fn split(_: usize, _: &(), _: &()) {}
}

/// A tree that shares its parts with other trees.
pub enum Node {
    /// A leaf.
    Leaf,
    /// A split: the feature, the side where it is true, and the other side.
    Split(usize, Rc<Node>, Rc<Node>),
}

impl Shape for Rc<Node> {
    fn leaf() -> Self {
        Rc::new(Node::Leaf)
    }

    fn split(feature: usize, yes: &Self, no: &Self) -> Self {
        Rc::new(Node::Split(feature, yes.clone(), no.clone()))
    }
}

impl Node {
    fn to_tree(&self) -> Tree {
        match self {
            Node::Leaf => Tree::leaf(),
            Node::Split(feature, yes, no) => Tree::split(*feature, &yes.to_tree(), &no.to_tree()),
        }
    }
}

/// Which trees over the same rows, with the same number of leaves, are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Keep {
    /// Those that no other tree dominates; the first of equal ones.
    Best,
    /// One tree for every cost.
    Costs,
    /// All of them. Of features that split a node's rows in the same way, only the first is used.
    Trees,
}

struct Search<'a, L, P> {
    features: &'a [Vec<bool>],
    keep: Keep,
    /// Possible costs of a leaf: one, one per label, or none if the rows may not form a leaf.
    leaf: &'a L,
    /// Price of a split, given the feature, the features above and the rows.
    price: &'a P,
}

impl<L, P> Search<'_, L, P> {
    /// Entry `k`: the trees that are kept with exactly `k + 1` leaves, below the features `above`.
    fn exactly<C: Cost, S: Shape, I: IntoIterator<Item = C>>(
        &self,
        rows: &[usize],
        limits: &Limits,
        above: &mut Vec<usize>,
    ) -> Vec<Vec<(C, S)>>
    where
        L: Fn(&[usize]) -> I,
        P: Fn(usize, &[usize], &[usize]) -> C,
    {
        let mut kept: Vec<Vec<(C, S)>> = vec![vec![]; limits.leaves(rows.len())];
        if limits.allows_leaf(rows) {
            (self.leaf)(rows).into_iter().for_each(|cost| self.add(&mut kept[0], cost, S::leaf));
        }
        for (feature, yes, no) in self.splits(rows, limits) {
            let price = (self.price)(feature, above, rows);
            above.push(feature);
            let below = limits.of_child();
            let [yes, no] = [yes, no].map(|rows| self.exactly::<C, S, I>(&rows, &below, above));
            above.pop();
            for (i, yes) in yes.iter().enumerate() {
                for (j, no) in no.iter().enumerate() {
                    let Some(entry) = kept.get_mut(i + j + 1) else { continue };
                    for (a, l) in yes {
                        for (b, r) in no {
                            let cost = a.plus(*b).plus(price);
                            self.add(entry, cost, || S::split(feature, l, r));
                        }
                    }
                }
            }
        }
        if self.keep == Keep::Costs {
            for entry in &mut kept {
                entry.sort_by(|a, b| a.0.partial_cmp(&b.0).expect("no NaN"));
                entry.dedup_by(|a, b| a.0 == b.0);
            }
        }
        kept
    }

    fn add<C: Cost, S>(&self, kept: &mut Vec<(C, S)>, cost: C, shape: impl FnOnce() -> S) {
        if self.keep == Keep::Best {
            if kept.iter().any(|(other, _)| other.dominates(&cost)) {
                return;
            }
            kept.retain(|(other, _)| !cost.dominates(other));
        }
        kept.push((cost, shape()));
    }

    /// Every split into two children that may be leaves: the feature, and the rows where it is true
    /// and false.
    fn splits(&self, rows: &[usize], limits: &Limits) -> Vec<(usize, Vec<usize>, Vec<usize>)> {
        let mut splits: Vec<(usize, Vec<usize>, Vec<usize>)> = vec![];
        if rows.is_empty() || !limits.allows_split() {
            return splits;
        }
        for feature in 0..self.features[rows[0]].len() {
            let (yes, no): (Vec<_>, _) = rows.iter().partition(|&&row| self.features[row][feature]);
            let same = |(_, other, _): &(_, Vec<usize>, _)| *other == yes || *other == no;
            let again = self.keep == Keep::Trees && splits.iter().any(same);
            if limits.allows_leaf(&yes) && limits.allows_leaf(&no) && !again {
                splits.push((feature, yes, no));
            }
        }
        splits
    }
}

/// Splits that cost nothing.
pub fn free<C: Cost>(_feature: usize, _above: &[usize], _rows: &[usize]) -> C {
    C::ZERO
}

/// Entry `k`: least cost over all allowed trees with at most `k + 1` leaves, infinite if there is
/// none. A split costs `price(feature, features above, rows)` in addition to its leaves.
///
/// There is one entry per number of leaves that `limits` and the number of rows permit;
/// O((2F)^depth) leaf costs.
pub fn best_by_leaves<C: Number>(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_cost: impl Fn(&[usize]) -> C,
    price: impl Fn(usize, &[usize], &[usize]) -> C,
) -> Vec<C> {
    let leaf = |rows: &[usize]| Some(leaf_cost(rows));
    let search = Search { features, keep: Keep::Best, leaf: &leaf, price: &price };
    let mut least = C::INFINITY;
    let exactly = search.exactly::<C, (), _>(rows, limits, &mut vec![]);
    let at_most = |best: Vec<(C, ())>| {
        if let Some((cost, ())) = best.first().filter(|(cost, ())| *cost < least) {
            least = *cost;
        }
        least
    };
    exactly.into_iter().map(at_most).collect()
}

/// Least cost over all allowed trees, infinite if there is none.
pub fn best<C: Number>(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_cost: impl Fn(&[usize]) -> C,
) -> C {
    let by_leaves = best_by_leaves(features, rows, limits, leaf_cost, free);
    by_leaves.last().copied().expect("one leaf or more")
}

/// A tree with the least cost and, among those, the fewest leaves; `None` if no tree is allowed.
pub fn best_tree<C: Number>(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_cost: impl Fn(&[usize]) -> C,
) -> Option<(C, Tree)> {
    let leaf = |rows: &[usize]| Some(leaf_cost(rows));
    let search = Search { features, keep: Keep::Best, leaf: &leaf, price: &free };
    let found = search.exactly::<C, Rc<Node>, _>(rows, limits, &mut vec![]).concat();
    // `min_by` returns the first of equal elements.
    let least = found.into_iter().min_by(|a, b| a.0.partial_cmp(&b.0).expect("no NaN"));
    least.map(|(cost, node)| (cost, node.to_tree()))
}

/// All allowed trees with their costs. Of features that split a node's rows in the same way, only
/// the first is used.
pub fn all_trees<C: Cost>(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_cost: impl Fn(&[usize]) -> C,
) -> Vec<(C, Tree)> {
    let leaf = |rows: &[usize]| Some(leaf_cost(rows));
    let search = Search { features, keep: Keep::Trees, leaf: &leaf, price: &free };
    let all = search.exactly::<C, Rc<Node>, _>(rows, limits, &mut vec![]).concat();
    all.into_iter().map(|(cost, node)| (cost, node.to_tree())).collect()
}

/// All non-dominated costs of allowed trees, in ascending order.
///
/// A leaf offers several candidates (for example one per label), and a tree takes one of them; the
/// costs of the leaves add up. A cost is dominated if another is no larger in any component and
/// smaller in one.
pub fn pareto_front<C: Cost>(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_costs: impl Fn(&[usize]) -> Vec<C>,
) -> Vec<C> {
    let search = Search { features, keep: Keep::Best, leaf: &leaf_costs, price: &free };
    let mut front: Vec<(C, ())> = vec![];
    for (cost, ()) in search.exactly(rows, limits, &mut vec![]).concat() {
        search.add(&mut front, cost, || ());
    }
    let mut front: Vec<C> = front.into_iter().map(|(cost, ())| cost).collect();
    front.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
    front
}

/// Entry `k`: the distinct costs of the allowed trees with exactly `k + 1` leaves.
///
/// A leaf offers several candidates (for example one per label), and a tree takes one of them; the
/// costs of the leaves add up. Only exact duplicates are left out, so any constraint can be applied
/// to the lists.
pub fn all_costs<C: Cost>(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    leaf_costs: impl Fn(&[usize]) -> Vec<C>,
) -> Vec<Vec<C>> {
    let search = Search { features, keep: Keep::Costs, leaf: &leaf_costs, price: &free };
    let lists = search.exactly::<C, (), _>(rows, limits, &mut vec![]);
    lists.into_iter().map(|list| list.into_iter().map(|(cost, ())| cost).collect()).collect()
}
