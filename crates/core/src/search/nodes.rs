//! Nodes of the branch and bound: rows, and what is known about them.
//!
//! The search itself ([`branch`](super::branch), [`root`](super::root)) is independent of the task.
//! The engine of a task says how a node is split, what it costs as a leaf, lower bounds on its
//! trees, and which nodes it can solve at once.

use super::Stop;
use super::branch::Branch;
use super::memo::Kept;
use crate::data::{BinaryMatrix, Column, Sample, add};
use crate::task::Statistics;
use crate::tree::Tree;
use rustc_hash::FxBuildHasher;
use std::fmt::Debug;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Costs of trees: whole numbers, or real numbers with a slack (see [`Nodes::slack`]).
pub trait Cost: Copy + PartialOrd + Debug + Send + Sync {
    /// Cost of a tree that is not allowed.
    const MOST: Self;
    /// No slack.
    const NONE: Self;
    /// Smallest difference of two costs, or zero.
    const UNIT: Self;
    /// Sum. If one cost is not allowed, neither is the sum, whatever the sign of the other.
    fn plus(self, other: Self) -> Self;
    /// Difference.
    fn minus(self, other: Self) -> Self;
    /// The smaller of two costs.
    fn lesser(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
    /// The larger of two costs.
    fn greater(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
    /// The cost of a best tree, given that all other trees cost at least `others`. Overridden by
    /// costs that bound more trees than are allowed.
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

/// A bound below every cost, with room for sums of such bounds.
pub const NOTHING: i64 = i64::MIN / 8;

/// Number of leaves of a complete tree.
pub fn full_leaves(depth: usize) -> usize {
    u32::try_from(depth).ok().and_then(|depth| 1usize.checked_shl(depth)).unwrap_or(usize::MAX)
}

/// Remaining depth and leaves below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Most splits on any path.
    pub depth: usize,
    /// Most leaves, at least one.
    pub leaves: usize,
}

impl Allowed {
    /// An allowance in which neither number exceeds what the other can use.
    pub fn of(depth: usize, leaves: usize) -> Allowed {
        Allowed { depth, leaves }.at_most(depth, leaves)
    }

    /// The smaller of both allowances.
    pub fn at_most(self, depth: usize, leaves: usize) -> Allowed {
        let (depth, leaves) = (self.depth.min(depth), self.leaves.min(leaves));
        let depth = depth.min(leaves - 1);
        Allowed { depth, leaves: leaves.min(full_leaves(depth)) }
    }

    /// Whether the depth alone limits the leaves.
    pub fn is_full(self) -> bool {
        self.leaves >= full_leaves(self.depth)
    }

    /// The leaves as a lattice counts them: `usize::MAX` if only the depth limits them.
    pub fn budget(self) -> usize {
        if self.is_full() { usize::MAX } else { self.leaves }
    }

    /// The most that one side of a split may use.
    pub fn below(self) -> Allowed {
        Allowed { depth: self.depth - 1, leaves: self.leaves - 1 }
    }

    /// A number that identifies the allowance, to be mixed into that of the rows.
    pub fn mark(self) -> u128 {
        let mix = (self.depth as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(self.leaves as u64)
            .wrapping_mul(0xd1b5_4a32_d192_ed03);
        u128::from(mix) << 64 | u128::from(mix.rotate_left(29))
    }
}

/// What is known about a node: its least cost and a best tree, or a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Known<C, S> {
    /// Least cost, or a lower bound on it.
    pub value: C,
    /// A best tree; `None` if `value` is only a bound.
    pub tree: Option<S>,
}

impl<C: Cost, S> Known<C, S> {
    /// A lower bound.
    pub fn bound(value: C) -> Self {
        Known { value, tree: None }
    }

    /// The least cost, with a best tree.
    pub fn exact(value: C, tree: S) -> Self {
        Known { value, tree: Some(tree) }
    }

    /// Whether `value` is the least cost.
    pub fn is_exact(&self) -> bool {
        self.tree.is_some()
    }
}

/// A tree and the cost of its leaves and splits; [`Cost::MOST`] if no tree is allowed.
#[derive(Clone, Debug)]
pub struct Found<C = i64> {
    /// Its cost.
    pub cost: C,
    /// The tree, over the caller's features.
    pub tree: Tree,
}

/// [`Known`] of the nodes of a task.
pub type KnownOf<N> = Known<<N as Nodes>::Cost, <N as Nodes>::Subtree>;

/// The split above a node, and the node on its other side.
pub struct Parent<'a, N: Nodes> {
    /// Values that were computed for the node above.
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
    /// The node is solved.
    Solved {
        /// The result with the allowed leaves.
        known: KnownOf<N>,
        /// The results with 1, 2, … leaves, if they are known, too.
        fewer: Vec<KnownOf<N>>,
    },
    /// Questions to try: the part that all threads read, and the queue, which changes.
    Open(N::Open, N::Queue),
}

impl<N: Nodes> Look<N> {
    /// The result of a node that is solved.
    pub fn solved(known: KnownOf<N>) -> Self {
        Look::Solved { known, fewer: Vec::new() }
    }
}

impl<N: Nodes<Subtree = Arc<Tree>>> Look<N> {
    /// Best trees for several budgets of leaves: for the allowed one, or for all up to it.
    pub fn of_budgets(found: impl Iterator<Item = (N::Cost, Tree)>) -> Self {
        let mut fewer: Vec<KnownOf<N>> =
            found.map(|(cost, tree)| Known::exact(cost, Arc::new(tree))).collect();
        let known = fewer.pop().expect("at least one budget");
        Look::Solved { known, fewer }
    }
}

/// A question with a lower bound on the trees that have it at the root.
pub trait Bounded<C>: Clone {
    /// The lower bound.
    fn bound(&self) -> C;

    /// Number of the first question that the bound covers; `question` is the one to be tried.
    #[inline]
    fn first(&self, question: usize) -> usize {
        question
    }
}

/// Order of trees with equal cost: fewer leaves first, then the question at the root. With it, the
/// tree that is kept does not depend on cuts, bounds or threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    leaves: usize,
    question: usize,
}

impl Place {
    /// The place of a leaf, before all others.
    pub const FIRST: Place = Place { leaves: 0, question: 0 };

    /// The place of a tree with this number of leaves (0 for any number) and this question at the
    /// root.
    pub fn new(leaves: usize, question: usize) -> Place {
        Place { leaves, question }
    }

    /// Whether a tree with this question may come first.
    #[inline]
    pub fn may_follow(self, question: usize) -> bool {
        Place { leaves: self.leaves.min(2), question } < self
    }

    /// Amount added to the best tree's cost for trees with this question: a unit if a tree of equal
    /// cost may come first.
    #[inline]
    pub fn tie<C: Cost>(self, question: usize) -> C {
        if self.may_follow(question) { C::UNIT } else { C::NONE }
    }
}

/// Questions `S` that are still to be tried at a node with the open state `O`.
pub trait Pending<O, S, C> {
    /// Takes the next question, with a number that orders equally good questions.
    fn next(&mut self, open: &O) -> Option<(usize, S)>;

    /// A lower bound on trees with questions that were not taken; [`Cost::MOST`] if there are none.
    fn still_open(&self) -> C;

    /// Share of the questions that were taken.
    fn done(&self) -> f64;
}

/// Questions in a fixed order.
pub struct InOrder<S> {
    splits: Vec<S>,
    next: usize,
}

impl<S> InOrder<S> {
    /// Starts with the first question.
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
    /// What is known about the trees with this question at the root.
    pub known: Known<C, S>,
    /// Proven lower bounds on the trees of the false and the true side.
    pub sides: [C; 2],
}

/// The nodes of one problem, for one thread.
pub trait Nodes: Sized {
    /// Cost of trees: leaves and splits.
    type Cost: Cost;
    /// Rows.
    type Node;
    /// What is known about all questions of a node, for the nodes below it.
    type Open;
    /// The questions that are still to be tried, and the bounds found meanwhile.
    type Queue: Pending<Self::Open, Self::Split, Self::Cost>;
    /// A question at a node.
    type Split: Bounded<Self::Cost>;
    /// The part of a best tree that is kept.
    type Subtree: Kept;

    /// Whether an inner node that is solved at a look is solved for all numbers of leaves.
    const ALL_SIZES: bool;

    /// Costs that differ by no more than this are taken as equal.
    fn slack(&self) -> Self::Cost {
        Self::Cost::NONE
    }

    /// The node as a leaf; [`Cost::MOST`] if a leaf is not allowed.
    fn leaf(&self, node: &Self::Node) -> KnownOf<Self>;

    /// The part of the allowance that the node can use.
    fn useful(&self, node: &Self::Node, allowed: Allowed) -> Allowed;

    /// A lower bound on all trees on the node, including the leaf.
    fn bound(&self, node: &Self::Node) -> Self::Cost;

    /// Identifies the node's rows, and everything else that its best tree depends on.
    fn key(&self, node: &Self::Node) -> u128;

    /// Solves the node, or returns the questions to try. Trees that cost `cut` or more need not be
    /// found, only bounded.
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

    /// Takes nodes back to reuse their memory.
    fn give_back(&mut self, _sides: [Self::Node; 2]) {}

    /// Takes back the result of a look to reuse its memory.
    fn close(&mut self, _open: Self::Open) {}

    /// A lower bound on the trees on one side of a split.
    fn bound_of_side(&self, _split: &Self::Split, node: &Self::Node, _side: usize) -> Self::Cost {
        self.bound(node)
    }

    /// The column that a question asks about. Among equally good trees, those with the fewest leaves
    /// on its true side come first.
    fn column(&self, node: &Self::Node, split: &Self::Split) -> Column;

    /// The side to search first: 0 for the false side, 1 for the true side.
    fn first_side(&self, sides: &[Self::Node; 2]) -> usize;

    /// Bounds on both sides that are only worth computing when it is a question's turn.
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

    /// The cut up to which a side is searched even if the other side has ruled this question out,
    /// because bounds on the side also bound other questions.
    fn reach(&self, _split: &Self::Split, _side: usize, _cut: Self::Cost) -> Option<Self::Cost> {
        None
    }

    /// Passes on to the queue what was learned about a question.
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

    /// Leaves of a best tree; 0 if trees of equal cost have the same number of leaves, or if the
    /// number does not matter.
    fn leaves(&self, _tree: &Self::Subtree) -> usize {
        0
    }

    /// A split with the best trees of its false and its true side.
    fn join(
        &mut self,
        node: &Self::Node,
        split: &Self::Split,
        trees: [&Self::Subtree; 2],
    ) -> Self::Subtree;
}

/// What the root of a search needs of nodes.
pub trait Rooted: Nodes<Node: Sync, Open: Sync, Queue: Send> + Send {
    /// Nodes for the other threads, which take questions of this node in turn. If there are none,
    /// one thread takes all questions and may use more resources for each.
    fn workers(&self, node: &Self::Node, allowed: Allowed) -> Vec<Self>;

    /// The whole best tree for an exact `known`. Overridden if only a part of it is kept.
    fn whole(
        _branch: &mut Branch<Self>,
        _node: &Self::Node,
        _allowed: Allowed,
        known: &KnownOf<Self>,
    ) -> Result<Tree, Stop> {
        let tree = known.tree.as_ref().and_then(Kept::whole);
        Ok(tree.expect("the whole tree of an exact value"))
    }
}

/// Nodes whose questions can be listed completely.
pub trait Listed: Rooted {
    /// All questions whose two sides may be leaves, by column, and what is needed to make their
    /// sides. With `allowed`, bounds are for trees of that size and worth some effort.
    fn questions(
        &mut self,
        node: &Self::Node,
        allowed: Option<Allowed>,
    ) -> Result<(Self::Open, Vec<Self::Split>), Stop>;
}
/// Key of a node if the features tested above matter because they change prices below.
pub(super) fn key_in_context(rows: u128, sample: &Sample, context: impl Fn(usize) -> u64) -> u128 {
    let features = sample.columns.iter().map(|column| column.feature);
    let contexts: Vec<_> = features.map(|feature| (feature, context(feature))).collect();
    rows ^ u128::from(FxBuildHasher.hash_one(contexts)).rotate_left(31)
}

/// Number of splits of this positive price that may pay for themselves if `saved` can be saved.
pub(super) fn splits_that_pay(saved: i128, price: i128) -> usize {
    usize::try_from(saved.max(0) / price).unwrap_or(usize::MAX)
}

/// Cost of a tree from those of its leaves and splits. `split_cost` takes the tested feature, the
/// features tested above, and the sums of the rows.
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
            add(&mut sums[node * channels..], record);
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
