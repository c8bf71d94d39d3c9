//! The greedy tree that every search starts from.
//!
//! It grows breadth-first, so that a useful tree remains after a stop, and is pruned exactly: the
//! result is the cheapest subtree of the grown tree with the allowed leaves.

use super::nodes::{Cost, Found};
use super::prune::{Costed, Pruned};
use super::{Monitor, Stop};
use crate::data::Column;
use crate::tree::Tree;
use std::collections::VecDeque;

/// Down to this depth, a split need not pay for itself immediately.
pub(crate) const PATIENCE: usize = 8;

/// What a task provides: its nodes, and the best split of a node.
pub trait Grower {
    /// Cost of trees.
    type Cost: Cost;
    /// Rows, and what is known about them.
    type Node;
    /// A split, with what is needed to make its sides.
    type Split;

    /// Cost as a leaf; [`Cost::MOST`] if a leaf is not allowed.
    fn leaf(&self, node: &Self::Node) -> Self::Cost;

    /// The split, `on` a feature if it is given, whose sides cost least as leaves, `depth` levels
    /// above the deepest level; `None` if no split can help.
    fn best(
        &mut self,
        node: &mut Self::Node,
        depth: usize,
        on: Option<usize>,
    ) -> Result<Option<BestOf<Self>>, Stop>;

    /// The false and the true side of a split; `again` if they will be split, too.
    fn sides(
        &mut self,
        node: Self::Node,
        split: Self::Split,
        again: bool,
    ) -> Result<[Self::Node; 2], Stop>;

    /// The best tree with this number of levels.
    fn exact(&mut self, node: &Self::Node, levels: usize) -> Result<Found<Self::Cost>, Stop>;

    /// Costs that differ by no more than this are equal.
    fn slack(&self) -> Self::Cost {
        Self::Cost::NONE
    }
}

/// The best split of a node.
pub struct BestSplit<S, C> {
    /// What the grower needs to make the sides.
    pub split: S,
    /// The column of the split.
    pub column: Column,
    /// Its price.
    pub price: C,
    /// Cost of the tree that has only this split.
    pub cost: C,
}

/// [`BestSplit`] of a grower.
pub type BestOf<G> = BestSplit<<G as Grower>::Split, <G as Grower>::Cost>;

/// The size of a first tree.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Most questions on any path.
    pub depth: usize,
    /// Most leaves.
    pub leaves: usize,
    /// Levels at the bottom that are searched exactly; fewer than `depth`.
    pub exact: usize,
    /// Levels of the best trees of nodes whose first splits are taken; 0 for the best single split.
    pub ahead: usize,
}

/// A node, in the order of creation.
struct Grown<C> {
    /// Cost as a leaf.
    leaf: C,
    split: Option<GrownSplit<C>>,
    /// The best tree over its rows, if it was searched and is better than a leaf.
    best: Option<Found<C>>,
}

struct GrownSplit<C> {
    column: Column,
    price: C,
    /// Nodes of the false and the true side.
    sides: [usize; 2],
}

/// The greedy tree of this shape; a limit ends it early.
pub fn greedy<G: Grower>(
    grower: &mut G,
    root: G::Node,
    shape: Shape,
    monitor: &Monitor,
) -> Found<G::Cost> {
    let mut nodes = Vec::new();
    // After a stop, the part that was grown is a tree, too.
    let _ = grow(grower, root, shape, monitor, &mut nodes);
    prune(&nodes, shape.leaves, grower.slack())
}

fn grow<G: Grower>(
    grower: &mut G,
    root: G::Node,
    shape: Shape,
    monitor: &Monitor,
    nodes: &mut Vec<Grown<G::Cost>>,
) -> Result<(), Stop> {
    nodes.push(Grown { leaf: grower.leaf(&root), split: None, best: None });
    let mut waiting = VecDeque::from([(0, shape.depth, root)]);
    while let Some((at, depth, mut node)) = waiting.pop_front() {
        if depth <= shape.exact {
            if depth > 0 && nodes[at].leaf < G::Cost::MOST {
                let found = grower.exact(&node, depth)?;
                nodes[at].best = Some(found).filter(|found| found.cost < nodes[at].leaf);
            }
            continue;
        }
        monitor.check_with_grace()?;
        let mut on = None;
        if shape.ahead > 0 {
            let near = grower.exact(&node, depth.min(shape.ahead))?.tree;
            match usize::try_from(near.feature[0]) {
                Ok(feature) => on = Some(feature),
                Err(_) => continue,
            }
        }
        let Some(best) = grower.best(&mut node, depth, on)? else { continue };
        if shape.depth - depth >= PATIENCE && best.cost >= nodes[at].leaf {
            continue;
        }
        let sides = grower.sides(node, best.split, depth - 1 > shape.exact)?;
        let first = nodes.len();
        let BestSplit { column, price, .. } = best;
        nodes[at].split = Some(GrownSplit { column, price, sides: [first, first + 1] });
        for (k, side) in sides.into_iter().enumerate() {
            nodes.push(Grown { leaf: grower.leaf(&side), split: None, best: None });
            waiting.push_back((first + k, depth - 1, side));
        }
    }
    Ok(())
}

/// The better of `near`, a tree of a few levels, and a greedy tree that looks ahead: `below` finds
/// one of a width below a column. Of the first `width` columns, the one with the best tree of width
/// 1 below it is chosen, and `hear` receives these trees.
pub fn look_ahead<S: Copy, C: Cost>(
    near: Found<C>,
    columns: &[S],
    width: usize,
    mut below: impl FnMut(S, usize) -> Result<Found<C>, Stop>,
    hear: &mut dyn FnMut(&Found<C>),
) -> Result<Found<C>, Stop> {
    let mut best = columns[0];
    if width > 1 {
        let mut least = C::MOST;
        for &column in columns.iter().take(width) {
            let found = below(column, 1)?;
            hear(&found);
            if found.cost < least {
                (least, best) = (found.cost, column);
            }
        }
    }
    let far = below(best, width)?;
    Ok(if far.cost < near.cost { far } else { near })
}

/// The subtrees of the greedy tree of this shape with at most 1, 2, … leaves; the last is the tree
/// that [`greedy`] returns.
pub fn greedy_by_leaves<G: Grower>(
    grower: &mut G,
    root: G::Node,
    shape: Shape,
    monitor: &Monitor,
) -> Vec<Found<G::Cost>> {
    let mut nodes = Vec::new();
    let _ = grow(grower, root, shape, monitor, &mut nodes);
    let whole = prune(&nodes, shape.leaves, grower.slack());
    let mut found = Vec::new();
    if whole.tree.n_leaves() > 1 {
        let pruned = pruned(&nodes, whole.tree.n_leaves() - 1, grower.slack());
        let places = 0..=pruned.root().1;
        let subtree = |place| (pruned.cost(0, place), tree(&nodes, &pruned, 0, place));
        found.extend(places.map(subtree).map(|(cost, tree)| Found { cost, tree }));
    }
    found.push(whole);
    found
}

/// The cheapest subtree with the same root and at most `most_leaves` leaves.
fn prune<C: Cost>(nodes: &[Grown<C>], most_leaves: usize, slack: C) -> Found<C> {
    let pruned = pruned(nodes, most_leaves, slack);
    let (cost, place) = pruned.root();
    Found { cost, tree: tree(nodes, &pruned, 0, place) }
}

fn pruned<C: Cost>(nodes: &[Grown<C>], most_leaves: usize, slack: C) -> Pruned<C> {
    let costed = |node: &Grown<C>| Costed {
        leaf: node.leaf,
        tree: node.best.as_ref().map(|found| (found.cost, found.tree.n_leaves())),
        split: node.split.as_ref().map(|split| (split.price, split.sides)),
    };
    Pruned::new(&nodes.iter().map(costed).collect::<Vec<_>>(), most_leaves, slack)
}

fn tree<C: Cost>(nodes: &[Grown<C>], pruned: &Pruned<C>, node: usize, place: usize) -> Tree {
    let (Some(split), Some((a, b))) = (&nodes[node].split, pruned.shares(node, place)) else {
        let best = nodes[node].best.as_ref().filter(|_| pruned.leaves(node, place) > 1);
        return best.map_or_else(Tree::leaf, |found| found.tree.clone());
    };
    let no = tree(nodes, pruned, split.sides[0], a);
    let yes = tree(nodes, pruned, split.sides[1], b);
    Tree::on(split.column, [&no, &yes])
}
