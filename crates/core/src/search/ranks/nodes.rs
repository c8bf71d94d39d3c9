//! Nodes over ranks: intervals of thresholds, which are bisected, best first.

use super::Problem;
use super::cost::Pair;
use super::pairs::Solver;
use super::proofs::Proofs;
use super::rows::{Cuts, Rows};
use crate::data::Column;
use crate::search::Stop;
use crate::search::branch::Branch;
use crate::search::grow::{BestOf, BestSplit, Grower};
use crate::search::nodes::{
    Allowed, Below, Bounded, Cost, Found, Known, KnownOf, Look, Nodes, Parent, Pending, Rooted,
    splits_that_pay,
};
use crate::task::Swept;
use crate::tree::Tree;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Arc, OnceLock};

/// Stands for a leaf where otherwise the question at the root of a best tree is stored.
pub const LEAF: i32 = -1;

/// Rows, and their cost as a leaf.
#[derive(Clone, Debug, Default)]
pub struct RankNode {
    /// The rows.
    pub rows: Rows,
    /// Cost as a leaf, even if a leaf is not allowed, counted from the floor of the rows.
    pub any_leaf: i64,
    /// Proofs for a subset of these rows, which hold for these rows, too.
    pub before: Option<Arc<Proofs>>,
    /// Proofs from the search of this node.
    pub found: OnceLock<Arc<Proofs>>,
}

/// The nodes of one problem, for one thread.
pub struct RankNodes<'a, T> {
    pub problem: &'a Problem<'a, T>,
    /// Finds trees with two levels.
    pub solver: Solver,
    pool: Vec<[RankNode; 2]>,
    /// Proofs for the sides that were returned last, which belong to the question in
    /// [`Nodes::learn`].
    proofs: [Option<Arc<Proofs>>; 2],
}

/// The thresholds of a node.
#[derive(Default)]
pub struct OpenRankNode {
    pub cuts: Cuts,
}

/// The thresholds strictly between two thresholds of one column. The middle one is tried next.
#[derive(Clone, Debug)]
pub struct RankSplit {
    pub column: usize,
    /// Numbers, within the node, of the threshold before the first, of the next one, and of the one
    /// after the last.
    pub cuts: [usize; 3],
    /// Largest rank on the true side of the next threshold.
    pub rank: u32,
    /// Lower bounds on the trees of its false and its true side.
    pub sides: [i64; 2],
    pub bound: i64,
    /// Proofs for the sides at the ends of the interval.
    pub proofs: [Option<Arc<Proofs>>; 2],
}

impl Bounded<Pair> for RankSplit {
    #[inline]
    fn bound(&self) -> Pair {
        Pair::of(self.bound)
    }

    fn first(&self, _question: usize) -> usize {
        self.cuts[0]
    }
}

impl RankSplit {
    /// The interval of the thresholds `first..end`; `None` if it is empty.
    pub fn between(
        (column, cuts): (usize, &Cuts),
        (first, end): (usize, usize),
        sides: [i64; 2],
        price: i64,
    ) -> Option<RankSplit> {
        if first >= end {
            return None;
        }
        let next = first + (end - first) / 2;
        let bound = sides[0].plus(sides[1]).plus(price);
        let (cuts, rank) = ([first, next, end], cuts.rank[next]);
        Some(RankSplit { column, cuts, rank, sides, bound, proofs: [None, None] })
    }

    /// The intervals before and after this threshold, given the proofs for its sides.
    pub fn rest(
        self,
        cuts: &Cuts,
        proven: [i64; 2],
        proofs: [Option<Arc<Proofs>>; 2],
        price: i64,
    ) -> [Option<RankSplit>; 2] {
        let [first, next, end] = self.cuts;
        let column = (self.column, cuts);
        let [no, yes] = [0, 1].map(|side| proven[side].max(self.sides[side]));
        let [no_proofs, yes_proofs] = proofs;
        let [no_end, yes_end] = self.proofs;
        let before = RankSplit::between(column, (first, next), [no, self.sides[1]], price);
        let behind = RankSplit::between(column, (next + 1, end), [self.sides[0], yes], price);
        [
            before.map(|it| RankSplit {
                proofs: [no_proofs.or(no_end.clone()), yes_end.clone()],
                ..it
            }),
            behind.map(|it| RankSplit {
                proofs: [no_end.clone(), yes_proofs.or(yes_end.clone())],
                ..it
            }),
        ]
    }
}

/// Intervals, ordered by bound and then by position.
struct Waiting(RankSplit);

impl Waiting {
    fn key(&self) -> (i64, usize) {
        (self.0.bound, self.0.cuts[0])
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The remaining intervals.
pub struct RankQueue {
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// Number of all thresholds, and of those in the remaining intervals.
    thresholds: [usize; 2],
}

impl RankQueue {
    /// A queue for `n_cuts` thresholds in these intervals.
    pub fn new(n_cuts: usize, splits: Vec<RankSplit>) -> Self {
        let mut queue = RankQueue { waiting: BinaryHeap::new(), thresholds: [n_cuts, 0] };
        splits.into_iter().for_each(|split| queue.push(Some(split)));
        queue
    }

    fn push(&mut self, split: Option<RankSplit>) {
        if let Some(split) = split {
            self.thresholds[1] += split.cuts[2] - split.cuts[0];
            self.waiting.push(Reverse(Waiting(split)));
        }
    }
}

impl Pending<OpenRankNode, RankSplit, Pair> for RankQueue {
    /// The number of a question is that of its threshold in the node.
    fn next(&mut self, _open: &OpenRankNode) -> Option<(usize, RankSplit)> {
        let Reverse(Waiting(split)) = self.waiting.pop()?;
        self.thresholds[1] -= split.cuts[2] - split.cuts[0];
        Some((split.cuts[1], split))
    }

    fn still_open(&self) -> Pair {
        self.waiting.peek().map_or(Pair::MOST, |Reverse(Waiting(split))| split.bound())
    }

    fn done(&self) -> f64 {
        1.0 - self.thresholds[1] as f64 / self.thresholds[0].max(1) as f64
    }
}

impl<'a, T: Swept> RankNodes<'a, T> {
    pub fn new(problem: &'a Problem<'a, T>) -> Self {
        let (solver, pool) = (Solver::new(problem), Vec::new());
        RankNodes { problem, solver, pool, proofs: [None, None] }
    }

    /// The node of these rows.
    pub fn node(&self, rows: Rows, before: Option<Arc<Proofs>>) -> RankNode {
        let any_leaf = self.problem.task.leaf_cost(&rows.total) - rows.floor;
        RankNode { rows, any_leaf, before, found: OnceLock::new() }
    }

    /// Cost as a leaf; [`i64::MAX`] if a leaf is not allowed.
    pub fn leaf_cost(&self, node: &RankNode) -> i64 {
        if self.problem.allows(&node.rows) { node.any_leaf } else { i64::MAX }
    }

    /// A lower bound on the leaf and on all trees with a split.
    pub fn least(&self, node: &RankNode) -> i64 {
        node.any_leaf.min(self.problem.price) - self.problem.slack
    }

    /// The intervals of the node, one for each column.
    pub fn intervals(&self, node: &RankNode) -> (OpenRankNode, Vec<RankSplit>) {
        let Problem { table, price, slack, .. } = self.problem;
        let mut cuts = Cuts::default();
        cuts.fill(table, &node.rows);
        let whole = |k: usize| {
            let range = cuts.of(k);
            RankSplit::between((k, &cuts), (range.start, range.end), [-slack; 2], *price)
        };
        let splits = (0..table.n_columns()).filter_map(whole).collect();
        (OpenRankNode { cuts }, splits)
    }
}

impl<'a, T: Swept> Nodes for RankNodes<'a, T> {
    type Cost = Pair;
    type Node = RankNode;
    type Open = OpenRankNode;
    type Queue = RankQueue;
    type Split = RankSplit;
    /// The question at the root.
    type Subtree = i32;

    const ALL_SIZES: bool = true;

    fn leaf(&self, node: &RankNode) -> KnownOf<Self> {
        Known::exact(Pair { value: self.leaf_cost(node), free: node.any_leaf }, LEAF)
    }

    /// A split that does not pay is useless for trees with leaves of any size, too.
    fn useful(&self, node: &RankNode, allowed: Allowed) -> Allowed {
        let Problem { price, slack, .. } = *self.problem;
        let mut leaves = node.rows.count.max(1);
        if price > 0 && !self.problem.is_limited() {
            let saved = i128::from(node.any_leaf) + i128::from(slack);
            leaves = leaves.min(splits_that_pay(saved, price.into()).saturating_add(1));
        }
        allowed.at_most(usize::MAX, leaves)
    }

    fn bound(&self, node: &RankNode) -> Pair {
        Pair::of(self.least(node))
    }

    fn key(&self, node: &RankNode) -> u128 {
        node.rows.hash
    }

    fn look(
        &mut self,
        node: &RankNode,
        _parent: Option<Parent<Self>>,
        allowed: Allowed,
        cut: Pair,
    ) -> Result<Look<Self>, Stop> {
        let problem = self.problem;
        if problem.is_limited() && !problem.smallest.allows_split(node.rows.size) {
            let (value, free) = (self.leaf_cost(node), self.least(node));
            let tree = (value < i64::MAX).then_some(LEAF);
            return Ok(Look::solved(Known { value: Pair { value, free }, tree }));
        }
        if allowed.depth <= 2 {
            let known = self.solver.solve(problem, node, allowed, cut.value)?;
            return Ok(Look::solved(known));
        }
        let (open, splits) = self.intervals(node);
        let queue = RankQueue::new(open.cuts.len(), splits);
        Ok(Look::Open(open, queue))
    }

    fn price(&self, _split: &RankSplit) -> Pair {
        Pair::of(self.problem.price)
    }

    fn sides(
        &mut self,
        node: &RankNode,
        _open: &OpenRankNode,
        split: &RankSplit,
    ) -> Result<[RankNode; 2], Stop> {
        let mut sides = self.pool.pop().unwrap_or_default();
        let mut rows = sides.each_mut().map(|side| std::mem::take(&mut side.rows));
        node.rows.split(&self.problem.table, split.column, split.rank, &mut rows);
        let [no, yes] = rows;
        let [of_no, of_yes] = split.proofs.clone();
        Ok([self.node(no, of_no), self.node(yes, of_yes)])
    }

    fn give_back(&mut self, mut sides: [RankNode; 2]) {
        self.proofs = sides.each_mut().map(|side| side.found.take());
        self.pool.push(sides);
    }

    fn bound_of_side(&self, split: &RankSplit, node: &RankNode, side: usize) -> Pair {
        Pair::of(self.least(node).max(split.sides[side]))
    }

    fn column(&self, _node: &RankNode, split: &RankSplit) -> Column {
        Column { feature: self.problem.question(split.column, split.rank), flipped: false }
    }

    fn first_side(&self, sides: &[RankNode; 2]) -> usize {
        usize::from(sides[1].rows.count >= sides[0].rows.count)
    }

    /// The true side bounds the thresholds after this one, and the false side those before it. The
    /// cut is what would rule them out.
    fn reach(&self, split: &RankSplit, side: usize, cut: Pair) -> Option<Pair> {
        let [first, next, end] = split.cuts;
        let others = if side == 1 { next + 1 < end } else { first < next };
        let Problem { price, slack, .. } = *self.problem;
        others.then(|| cut.minus(Pair::of(price + split.sides[1 - side] - slack)))
    }

    /// A proof for a side holds, for leaves of any size, for all sides with more rows.
    fn learn(
        &self,
        _node: &RankNode,
        open: &OpenRankNode,
        queue: &mut RankQueue,
        split: &RankSplit,
        below: &Below<Pair, i32>,
        _allowed: Allowed,
    ) {
        let Problem { price, slack, .. } = *self.problem;
        let proven = below.sides.map(|side| side.free.minus(slack));
        let rest = split.clone().rest(&open.cuts, proven, self.proofs.clone(), price);
        rest.into_iter().for_each(|rest| queue.push(rest));
    }

    fn join(&mut self, node: &RankNode, split: &RankSplit, _trees: [&i32; 2]) -> i32 {
        self.column(node, split).feature as i32
    }
}

impl<T: Swept> Rooted for RankNodes<'_, T> {
    fn workers(&self, _node: &RankNode, _allowed: Allowed) -> Vec<Self> {
        let n_threads = self.problem.settings.threads();
        (0..n_threads).map(|_| RankNodes::new(self.problem)).collect()
    }

    fn whole(
        branch: &mut Branch<Self>,
        node: &RankNode,
        allowed: Allowed,
        known: &KnownOf<Self>,
    ) -> Result<Tree, Stop> {
        let question = known.tree.expect("the tree of an exact value");
        let Ok(question) = usize::try_from(question) else { return Ok(Tree::leaf()) };
        let allowed = branch.nodes.useful(node, allowed);
        let split = split_on(&branch.nodes, question);
        let sides = branch.nodes.sides(node, &OpenRankNode::default(), &split)?;
        let enough = known.value;
        let cut = enough.plus(Pair::UNIT);
        let share = branch.best_share(node, &sides, &split, allowed, cut, enough)?;
        let share = share.expect("the best tree has a share");
        let mut below = Vec::with_capacity(2);
        for (side, share) in sides.iter().zip(share) {
            let known = branch.solve(side, None, share, Pair::MOST)?;
            below.push(RankNodes::whole(branch, side, share, &known)?);
        }
        branch.nodes.give_back(sides);
        Ok(Tree::split(question, &below[1], &below[0]))
    }
}

/// Chooses splits by their sides as leaves.
pub struct RankGrower<'a, 'b, T: Swept>(pub &'b mut Branch<'a, RankNodes<'a, T>>);

impl<'a, T: Swept> RankGrower<'a, '_, T> {
    /// The best tree of this number of levels.
    fn near(
        &mut self,
        node: &RankNode,
        levels: usize,
    ) -> Result<(Allowed, KnownOf<RankNodes<'a, T>>), Stop> {
        let near = self.0.nodes.useful(node, Allowed::of(levels, usize::MAX));
        Ok((near, self.0.solve(node, None, near, Pair::MOST)?))
    }
}

impl<T: Swept> Grower for RankGrower<'_, '_, T> {
    type Cost = Pair;
    type Node = RankNode;
    type Split = RankSplit;

    fn leaf(&self, node: &RankNode) -> Pair {
        self.0.nodes.leaf(node).value
    }

    fn best(
        &mut self,
        node: &mut RankNode,
        _depth: usize,
        on: Option<usize>,
    ) -> Result<Option<BestOf<Self>>, Stop> {
        let near = self.0.nodes.useful(node, Allowed::of(1, usize::MAX));
        let known = match self.0.known(node, near, Pair::MOST) {
            Some(known) => known,
            // One level is cheap, and the grower decides when its time is up.
            None => self.0.nodes.solver.solve(self.0.nodes.problem, node, near, i64::MAX)?,
        };
        let Known { value, tree } = known;
        let best = tree.and_then(|question| usize::try_from(question).ok());
        Ok(on.or(best).map(|feature| {
            let split = split_on(&self.0.nodes, feature);
            let (column, price) = (Column { feature, flipped: false }, self.0.nodes.price(&split));
            BestSplit { split, column, price, cost: value }
        }))
    }

    fn sides(
        &mut self,
        node: RankNode,
        split: RankSplit,
        _again: bool,
    ) -> Result<[RankNode; 2], Stop> {
        self.0.nodes.sides(&node, &OpenRankNode::default(), &split)
    }

    fn exact(&mut self, node: &RankNode, levels: usize) -> Result<Found<Pair>, Stop> {
        let (near, known) = self.near(node, levels)?;
        if known.tree.is_none() {
            return Ok(Found { cost: Pair::MOST, tree: Tree::leaf() });
        }
        let tree = RankNodes::whole(self.0, node, near, &known)?;
        Ok(Found { cost: known.value, tree })
    }
}

/// A question without any knowledge about its sides.
pub fn split_on<T: Swept>(nodes: &RankNodes<T>, question: usize) -> RankSplit {
    let Problem { matrix, table, slack, price, .. } = nodes.problem;
    let (column, rank) = matrix.place(question);
    let column = table.columns.binary_search(&column).expect("a column of the search");
    let bound = price - 2 * slack;
    RankSplit { column, cuts: [0, 0, 1], rank, sides: [-slack; 2], bound, proofs: [None, None] }
}
