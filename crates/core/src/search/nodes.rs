//! Nodes of the branch and bound: rows, and the knowledge about them.
//!
//! The search itself ([`branch`](super::branch), [`root`](super::root)) knows no task. A task's
//! engine says how a node is split, what it costs as a leaf, what no tree on it costs less than,
//! and which nodes it can solve at once.

use super::Stop;
use super::branch::Branch;
use super::memo::Kept;
use crate::data::{BinaryMatrix, Sample};
use crate::task::Statistics;
use crate::tree::Tree;
use rustc_hash::FxBuildHasher;
use std::fmt::Debug;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Costs of trees: whole numbers, or real ones with a slack (see [`Nodes::slack`]).
pub trait Cost: Copy + PartialOrd + Debug + Send + Sync {
    /// Cost of what is not allowed.
    const MOST: Self;
    /// No slack.
    const NONE: Self;
    /// The least that two costs can differ by, or nothing.
    const UNIT: Self;
    /// Sum; with what is not allowed it is not allowed, whatever the sign of the other.
    fn plus(self, other: Self) -> Self;
    /// Difference.
    fn minus(self, other: Self) -> Self;
    /// The lesser.
    fn lesser(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
    /// The greater.
    fn greater(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
    /// The cost of a best tree, where the trees that were looked at besides cost `others` at least:
    /// for costs that bound more trees than are allowed.
    fn beside(self, _others: Self) -> Self {
        self
    }
}

impl Cost for i64 {
    const MOST: i64 = i64::MAX;
    const NONE: i64 = 0;
    const UNIT: i64 = 1;
    #[inline(always)]
    fn plus(self, other: i64) -> i64 {
        if self == i64::MAX || other == i64::MAX {
            return i64::MAX;
        }
        self.saturating_add(other)
    }
    #[inline(always)]
    fn minus(self, other: i64) -> i64 {
        self.saturating_sub(other)
    }
}

impl Cost for f64 {
    const MOST: f64 = f64::INFINITY;
    const NONE: f64 = 0.0;
    const UNIT: f64 = 0.0;
    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        self + other
    }
    #[inline(always)]
    fn minus(self, other: f64) -> f64 {
        self - other
    }
}

/// Leaves of a complete tree.
pub fn full_leaves(depth: usize) -> usize {
    1usize.checked_shl(depth as u32).unwrap_or(usize::MAX)
}

/// Depth and leaves that remain below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Splits on any path.
    pub depth: usize,
    /// Leaves, at least one.
    pub leaves: usize,
}

impl Allowed {
    /// No more of either than the other has a use for.
    pub fn of(depth: usize, leaves: usize) -> Allowed {
        Allowed { depth, leaves }.at_most(depth, leaves)
    }

    /// As much as both allow.
    pub fn at_most(self, depth: usize, leaves: usize) -> Allowed {
        let (depth, leaves) = (self.depth.min(depth), self.leaves.min(leaves));
        let depth = depth.min(leaves - 1);
        Allowed { depth, leaves: leaves.min(full_leaves(depth)) }
    }

    /// Whether the depth alone limits the leaves.
    pub fn is_full(self) -> bool {
        self.leaves >= full_leaves(self.depth)
    }

    /// The leaves as a lattice counts them: `usize::MAX` where the depth alone limits them.
    pub fn budget(self) -> usize {
        if self.is_full() { usize::MAX } else { self.leaves }
    }

    /// The most that one side of a split may use.
    pub fn below(self) -> Allowed {
        Allowed { depth: self.depth - 1, leaves: self.leaves - 1 }
    }

    /// Tells apart what may be spent, as a number to be mixed into that of the rows.
    pub fn mark(self) -> u128 {
        let mix = (self.depth as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(self.leaves as u64)
            .wrapping_mul(0xd1b5_4a32_d192_ed03);
        u128::from(mix) << 64 | u128::from(mix.rotate_left(29))
    }
}

/// Knowledge about a node: its least cost and a best tree, or a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Known<C, S> {
    /// Least cost, or a lower bound on it.
    pub value: C,
    /// A best tree; `None` where `value` is only a bound.
    pub tree: Option<S>,
}

impl<C: Cost, S> Known<C, S> {
    /// No tree costs less.
    pub fn bound(value: C) -> Self {
        Known { value, tree: None }
    }

    /// This tree costs no more than any.
    pub fn exact(value: C, tree: S) -> Self {
        Known { value, tree: Some(tree) }
    }

    /// Whether `value` is the least cost.
    pub fn is_exact(&self) -> bool {
        self.tree.is_some()
    }
}

/// A tree and its cost: that of its leaves and splits, [`Cost::MOST`] when no tree is allowed.
#[derive(Clone, Debug)]
pub struct Found<C = i64> {
    /// Its cost.
    pub cost: C,
    /// The tree, over the caller's features.
    pub tree: Tree,
}

/// [`Known`] of the nodes of a task.
pub type KnownOf<N> = Known<<N as Nodes>::Cost, <N as Nodes>::Subtree>;

/// The split above a node.
pub struct Parent<'a, N: Nodes> {
    /// Values computed for it.
    pub open: &'a N::Open,
    /// The node on the other side.
    pub sibling: &'a N::Node,
}

impl<N: Nodes> Clone for Parent<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N: Nodes> Copy for Parent<'_, N> {}

/// Result of a first look at a node.
pub enum Look<N: Nodes> {
    /// All there is to know.
    Solved {
        /// With the leaves that are allowed.
        known: KnownOf<N>,
        /// With 1, 2, … leaves, where that is known, too.
        fewer: Vec<KnownOf<N>>,
    },
    /// Questions to be tried: what all threads read, and the order, which changes.
    Open(N::Open, N::Queue),
}

impl<N: Nodes> Look<N> {
    /// All there is to know.
    pub fn solved(known: KnownOf<N>) -> Self {
        Look::Solved { known, fewer: Vec::new() }
    }
}

impl<N: Nodes<Subtree = Arc<Tree>>> Look<N> {
    /// Best trees for some budgets of leaves: for the one that is allowed, or for all up to it.
    pub fn of_budgets(found: impl Iterator<Item = (N::Cost, Tree)>) -> Self {
        let mut fewer: Vec<KnownOf<N>> =
            found.map(|(cost, tree)| Known::exact(cost, Arc::new(tree))).collect();
        let known = fewer.pop().expect("at least one budget");
        Look::Solved { known, fewer }
    }
}

/// A best tree, where it is kept whole.
pub fn kept<C>(known: &Known<C, Arc<Tree>>) -> Tree {
    Tree::clone(known.tree.as_ref().expect("the tree of an exact value"))
}

/// A question that no tree with it at the root costs less than.
pub trait Bounded<C>: Clone {
    /// Their bound.
    fn bound(&self) -> C;

    /// Number of the first question that the bound is of; `question` is the one to be tried.
    #[inline]
    fn first(&self, question: usize) -> usize {
        question
    }
}

/// Order of trees that cost the same: fewer leaves first, then the question at the
/// root, so that the tree that is kept depends neither on cuts and bounds nor on threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    leaves: usize,
    question: usize,
}

impl Place {
    /// Before all others: that of a leaf.
    pub const FIRST: Place = Place { leaves: 0, question: 0 };

    /// The place of a tree with so many leaves, or any number of them, with this question at the
    /// root.
    pub fn new(leaves: usize, question: usize) -> Place {
        Place { leaves, question }
    }

    /// Whether a tree with this question may come before.
    #[inline]
    pub fn may_follow(self, question: usize) -> bool {
        Place { leaves: self.leaves.min(2), question } < self
    }

    /// Amount added to the best tree's cost for trees with this question: a unit if one that
    /// costs the same may come before.
    #[inline]
    pub fn tie<C: Cost>(self, question: usize) -> C {
        if self.may_follow(question) { C::UNIT } else { C::NONE }
    }
}

/// Questions `S` still to be tried at a node that is known as `O`.
pub trait Pending<O, S, C> {
    /// Takes the next, with a number that tells equally good questions apart, whichever is first.
    fn next(&mut self, open: &O) -> Option<(usize, S)>;

    /// No tree with one that was not taken costs less; [`Cost::MOST`] without any.
    fn still_open(&self) -> C;

    /// Share of those that were taken.
    fn done(&self) -> f64;
}

/// Questions in a fixed order, and the next of them.
pub struct InOrder<S> {
    splits: Vec<S>,
    next: usize,
}

impl<S> InOrder<S> {
    /// From the first on.
    pub fn new(splits: Vec<S>) -> Self {
        InOrder { splits, next: 0 }
    }
}

impl<O, S: Bounded<C>, C: Cost> Pending<O, S, C> for InOrder<S> {
    #[inline]
    fn next(&mut self, _open: &O) -> Option<(usize, S)> {
        let at = self.next;
        let split = self.splits.get(at).cloned()?;
        self.next += 1;
        Some((at, split))
    }

    fn still_open(&self) -> C {
        self.splits[self.next..].iter().map(S::bound).fold(C::MOST, C::lesser)
    }

    fn done(&self) -> f64 {
        self.next as f64 / self.splits.len().max(1) as f64
    }
}

/// Result of the search below one question.
pub struct Below<C, S> {
    /// Knowledge about the trees with this question at the root.
    pub known: Known<C, S>,
    /// Proven lower bounds on the trees of the false and the true side.
    pub sides: [C; 2],
}

/// The nodes of one problem, as one thread sees them.
pub trait Nodes: Sized {
    /// Cost of trees: leaves and splits together.
    type Cost: Cost;
    /// Rows.
    type Node;
    /// Knowledge about all questions of a node, for those below it.
    type Open;
    /// The questions still to be tried, and bounds that become known on the way.
    type Queue: Pending<Self::Open, Self::Split, Self::Cost>;
    /// A question at a node.
    type Split: Bounded<Self::Cost>;
    /// Part of a best tree that is kept.
    type Subtree: Kept;

    /// Whether a node below others that is solved at a look is solved for all numbers of leaves.
    const ALL_SIZES: bool;

    /// Costs that differ by no more are taken as equal.
    fn slack(&self) -> Self::Cost {
        Self::Cost::NONE
    }

    /// The node as a leaf; [`Cost::MOST`] where it may not be one.
    fn leaf(&self, node: &Self::Node) -> KnownOf<Self>;

    /// The part of the allowance that the node can use.
    fn useful(&self, node: &Self::Node, allowed: Allowed) -> Allowed;

    /// No tree on the node costs less, a leaf included.
    fn bound(&self, node: &Self::Node) -> Self::Cost;

    /// Identifies the node's rows, and what else its best tree depends on.
    fn key(&self, node: &Self::Node) -> u128;

    /// Solves the node, or says which questions to try. What costs `cut` or more need not be
    /// found, only be bounded by it.
    fn look(
        &mut self,
        node: &Self::Node,
        parent: Option<Parent<Self>>,
        allowed: Allowed,
        cut: Self::Cost,
    ) -> Result<Look<Self>, Stop>;

    /// The best tree that is known after a look: a leaf, or a single split.
    fn first(&self, node: &Self::Node, _open: &Self::Open) -> KnownOf<Self> {
        self.leaf(node)
    }

    /// Price of the split itself.
    fn price(&self, split: &Self::Split) -> Self::Cost;

    /// The false and the true side of a split.
    fn sides(
        &mut self,
        node: &Self::Node,
        open: &Self::Open,
        split: &Self::Split,
    ) -> Result<[Self::Node; 2], Stop>;

    /// Takes nodes back for their memory.
    fn give_back(&mut self, _sides: [Self::Node; 2]) {}

    /// Takes back what a look gave.
    fn close(&mut self, _open: Self::Open) {}

    /// No tree on one side of a split costs less.
    fn bound_of_side(&self, _split: &Self::Split, node: &Self::Node, _side: usize) -> Self::Cost {
        self.bound(node)
    }

    /// The side to search first: 0 the false one, 1 the true one.
    fn first_side(&self, sides: &[Self::Node; 2]) -> usize;

    /// Bounds on both sides that are not worth computing before a question's turn.
    fn look_closer(
        &mut self,
        _open: &Self::Open,
        _split: &Self::Split,
        _sides: &[Self::Node; 2],
        _allowed: Allowed,
        _cut: Self::Cost,
    ) -> Result<Option<[Self::Cost; 2]>, Stop> {
        Ok(None)
    }

    /// The cut up to which a side is searched where what is proven of it bounds other questions, even if
    /// the other side has ruled this one out.
    fn reach(&self, _split: &Self::Split, _side: usize, _cut: Self::Cost) -> Option<Self::Cost> {
        None
    }

    /// Takes over to the queue what was learned of a question.
    fn learn(
        &self,
        _node: &Self::Node,
        _open: &Self::Open,
        _queue: &mut Self::Queue,
        _split: &Self::Split,
        _below: &Below<Self::Cost, Self::Subtree>,
        _allowed: Allowed,
    ) {
    }

    /// Leaves of a best tree; 0 where trees that cost the same have equally many, or any number
    /// will do.
    fn leaves(&self, _tree: &Self::Subtree) -> usize {
        0
    }

    /// A split above best trees of its false and its true side.
    fn join(
        &mut self,
        node: &Self::Node,
        split: &Self::Split,
        trees: [&Self::Subtree; 2],
    ) -> Self::Subtree;
}

/// Nodes as the root needs them.
pub trait Rooted: Nodes<Node: Sync, Open: Sync, Queue: Send> + Send {
    /// As other threads see the nodes that take questions of this one in turn; with none of them
    /// one thread takes all questions, and may use more for each.
    fn workers(&self, node: &Self::Node, allowed: Allowed) -> Vec<Self>;

    /// The whole of a best tree of what is kept of it, for an exact `known`.
    fn whole(
        branch: &mut Branch<Self>,
        node: &Self::Node,
        allowed: Allowed,
        known: &KnownOf<Self>,
    ) -> Result<Tree, Stop>;
}

/// Nodes whose questions can be listed, none left out.
pub trait Listed: Rooted {
    /// All questions whose two sides may be leaves, by column, and what their sides are made from. Bounds
    /// are worth some effort where they are of trees with so much `allowed`.
    fn questions(
        &mut self,
        node: &Self::Node,
        allowed: Option<Allowed>,
    ) -> Result<(Self::Open, Vec<Self::Split>), Stop>;

    /// A split above trees of the false and the true side.
    fn joined(&self, node: &Self::Node, split: &Self::Split, trees: [&Tree; 2]) -> Tree;
}
/// Key of a node where what was tested above matters as far as it changes prices below.
pub(super) fn key_in_context(rows: u128, sample: &Sample, context: impl Fn(usize) -> u64) -> u128 {
    let features = sample.columns.iter().map(|column| column.feature);
    let contexts: Vec<_> = features.map(|feature| (feature, context(feature))).collect();
    rows ^ u128::from(FxBuildHasher.hash_one(contexts)).rotate_left(31)
}

/// Splits of this price, more than 0, that may pay for themselves where so much can be saved.
pub(super) fn splits_that_pay(saved: i128, price: i128) -> usize {
    usize::try_from(saved.max(0) / price).unwrap_or(usize::MAX)
}

/// Cost of a tree from its leaves and splits: what is tested, the features tested above, and the sums
/// of the rows there.
pub(super) fn cost_of_tree<C: Cost>(
    task: &(impl Statistics + ?Sized),
    features: &BinaryMatrix,
    tree: &Tree,
    of_node: impl Fn(Option<usize>, &[usize], &[i64]) -> C,
) -> C {
    let channels = task.channels();
    let mut sums = vec![0i64; tree.n_nodes() * channels];
    for (r, record) in task.statistics().chunks_exact(channels).enumerate() {
        for node in tree.path(features, r) {
            for (sum, v) in sums[node * channels..].iter_mut().zip(record) {
                *sum += v;
            }
        }
    }
    let of_node = |(node, tested): (usize, Vec<usize>)| {
        of_node(
            usize::try_from(tree.feature[node]).ok(),
            &tested,
            &sums[node * channels..][..channels],
        )
    };
    tree.nodes_with_tested().into_iter().map(of_node).fold(C::NONE, C::plus)
}
