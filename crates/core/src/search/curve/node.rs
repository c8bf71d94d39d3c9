//! Nodes of a curve task: rows in the order of time. One pass evaluates all splits of a node.

use super::kernel::{self, Kernel, Splits, exact};
use super::rows::{Rows, Tables};
use crate::data::Column;
use crate::search::branch::Branch;
use crate::search::nodes::{
    Allowed, Bounded, InOrder, Known, KnownOf, Listed, Look, Nodes, Parent, Rooted,
};
use crate::search::{Monitor, Settings, Stop};
use crate::task::curve::Rounding;
use crate::tree::Tree;

/// Stands for a leaf where otherwise the column at the root of a best tree is stored.
const LEAF: i32 = -1;

/// Rows and their loss as a leaf.
#[derive(Clone, Debug, Default)]
pub struct CurveNode {
    /// The rows.
    pub rows: Rows,
    /// Their loss, without the price of a leaf.
    pub leaf: f64,
}

/// What all threads of a search share, and the buffers of one thread.
pub struct CurveNodes<'a> {
    /// Constants.
    pub tables: &'a Tables,
    /// Limits and switches.
    pub settings: &'a Settings,
    /// Counts the evaluated leaves.
    pub monitor: &'a Monitor<'a>,
    /// Evaluates splits.
    pub kernel: Kernel,
    /// Price of a leaf.
    pub price: f64,
    slack: f64,
    nodes_pool: Vec<CurveNode>,
    #[expect(clippy::vec_box, reason = "they are large and handed on")]
    splits_pool: Vec<Box<Splits>>,
}

/// The splits of a node, and the best tree with a single split.
pub struct OpenCurveNode {
    splits: Box<Splits>,
    first: Known<f64, i32>,
}

impl<'a> CurveNodes<'a> {
    /// With empty buffers. Takes the price of a leaf, and the difference below which costs are
    /// equal.
    pub fn new(
        tables: &'a Tables,
        settings: &'a Settings,
        monitor: &'a Monitor<'a>,
        kernel: Kernel,
        (price, slack): (f64, f64),
    ) -> Self {
        let (nodes_pool, splits_pool) = (Vec::new(), Vec::new());
        CurveNodes { tables, settings, monitor, kernel, price, slack, nodes_pool, splits_pool }
    }

    /// Losses of all single splits; includes their parts of the floor only with `floors`.
    fn splits(
        &mut self,
        node: &CurveNode,
        parent: Option<Parent<Self>>,
        floors: bool,
    ) -> Box<Splits> {
        let mut splits = self.splits_pool.pop().unwrap_or_default();
        let parent = parent.map(|Parent { open, sibling }| kernel::Parent {
            splits: &open.splits,
            sibling: &sibling.rows,
        });
        self.kernel.splits(&node.rows, self.tables, parent, floors, &mut splits);
        self.monitor.count(2 * self.tables.columns.len() as u64);
        splits
    }

    /// Lower bound for rows: their cost as a leaf, or the floor and at least two leaves.
    pub fn bound_of(&self, leaf: f64, floor: f64, count: f64) -> f64 {
        let leaves = if self.settings.switches.look_ahead { 2.0 } else { 1.0 };
        let split = if count >= 2.0 * self.settings.limits.least_rows() as f64 {
            floor + leaves * self.price
        } else {
            f64::INFINITY
        };
        split.min(leaf + self.price)
    }

    /// Whether both sides of a split have enough events for a leaf.
    fn allows_events(&self, rows: &Rows, column: usize) -> bool {
        let least = self.settings.limits.min_events as u64;
        least == 0 || self.tables.events(rows, column).into_iter().all(|events| events >= least)
    }

    /// The best tree of one split, or the leaf.
    fn best_single(&self, node: &CurveNode, splits: &Splits) -> Known<f64, i32> {
        if let Some(passes) = self.passes() {
            return self.best_single_exactly(node, splits, passes);
        }
        let (rows, least) = (&node.rows, self.settings.limits.least_rows() as f64);
        let mut best = self.leaf(node);
        for (lane, &column) in splits.columns.iter().enumerate() {
            let value = splits.yes[lane] + splits.no[lane] + 2.0 * self.price;
            let fewer = splits.count[lane].min(rows.count - splits.count[lane]);
            let better = fewer >= least && value < best.value - self.slack;
            if better && self.allows_events(rows, column) {
                best = Known::exact(value, column as i32);
            }
        }
        best
    }

    /// Error of passes, if losses are computed leaf by leaf where it matters.
    fn passes(&self) -> Option<Rounding> {
        self.tables.exact.as_ref().and_then(|exact| exact.passes)
    }

    /// As [`best_single`](Self::best_single), but leaf by leaf for all columns that a pass cannot
    /// rule out.
    fn best_single_exactly(
        &self,
        node: &CurveNode,
        splits: &Splits,
        passes: Rounding,
    ) -> Known<f64, i32> {
        let candidates = self.candidates(&node.rows, splits);
        let loss = |candidate: &Candidate| candidate.leaves - 2.0 * self.price;
        let losses = candidates.iter().map(|candidate| passes.above(loss(candidate)));
        let most = losses.fold(node.leaf - self.price, f64::min);
        let may_be_best = |candidate: &&Candidate| passes.below(loss(candidate)) <= most;
        let mut open: Vec<&Candidate> = candidates.iter().filter(may_be_best).collect();
        open.sort_by_key(|candidate| candidate.column);
        let mut best = self.leaf(node);
        for candidate in open {
            let Candidate { column, leaves, .. } = self.settled(node, *candidate);
            if leaves < best.value - self.slack {
                best = Known::exact(leaves, column as i32);
            }
        }
        best
    }

    /// A candidate with the exact losses of its leaves.
    pub fn settled(&self, node: &CurveNode, candidate: Candidate) -> Candidate {
        let Some(exact) = &self.tables.exact else { return candidate };
        let (curve, column) = (self.kernel.curve, candidate.column);
        let leaf = exact::split(&node.rows, self.tables, exact, curve, column);
        Candidate { leaf, leaves: leaf[0] + leaf[1] + 2.0 * self.price, ..candidate }
    }

    /// Columns that split the node into two allowed leaves, the best single split first.
    fn candidates(&self, rows: &Rows, splits: &Splits) -> Vec<Candidate> {
        let (least_rows, passes) = (self.settings.limits.least_rows() as f64, self.passes());
        let of_lane = |(lane, &column): (usize, &usize)| {
            let count = splits.count[lane];
            let too_few = count < least_rows || rows.count - count < least_rows;
            if too_few || !self.allows_events(rows, column) {
                return None;
            }
            let (leaf, floor) = ([splits.no[lane], splits.yes[lane]], splits.floor[lane]);
            let floors = [rows.floor - floor, floor];
            // A leaf loses at least the floor of its rows, unless the floor comes from a reference
            // model.
            let least = |side: usize| match passes {
                Some(passes) if self.tables.reference => passes.below(leaf[side]),
                Some(passes) => passes.below(leaf[side]).max(floors[side]),
                None => leaf[side],
            };
            let bound = self.bound_of(least(1), floors[1], count)
                + self.bound_of(least(0), floors[0], rows.count - count);
            let leaves = leaf[1] + leaf[0] + 2.0 * self.price;
            Some(Candidate { column, leaf, count, floor, leaves, bound })
        };
        let mut all: Vec<Candidate> = Vec::with_capacity(splits.columns.len());
        all.extend(splits.columns.iter().enumerate().filter_map(of_lane));
        all.sort_by(|a, b| a.leaves.total_cmp(&b.leaves));
        all
    }

    /// All splits of a node into two allowed leaves, the best first.
    pub fn all_splits(&mut self, node: &CurveNode) -> (OpenCurveNode, Vec<Candidate>) {
        let splits = self.splits(node, None, true);
        let candidates = self.candidates(&node.rows, &splits);
        (OpenCurveNode { first: self.leaf(node), splits }, candidates)
    }
}

impl<'a> Nodes for CurveNodes<'a> {
    type Cost = f64;
    type Node = CurveNode;
    type Open = OpenCurveNode;
    type Queue = InOrder<Candidate>;
    type Split = Candidate;
    type Subtree = i32;

    const ALL_SIZES: bool = false;

    fn slack(&self) -> f64 {
        self.slack
    }

    fn leaf(&self, node: &CurveNode) -> Known<f64, i32> {
        Known::exact(node.leaf + self.price, LEAF)
    }

    /// A split must pay its price from the part of the loss above the floor, and every leaf needs
    /// enough rows.
    #[inline]
    fn useful(&self, node: &CurveNode, allowed: Allowed) -> Allowed {
        let Rows { count, floor, .. } = node.rows;
        let by_rows = (count / self.settings.limits.least_rows() as f64) as usize;
        let mut leaves = by_rows.max(1);
        if self.price > 0.0 && self.settings.switches.look_ahead {
            // A NaN or infinite quotient saturates.
            let splits = ((node.leaf - floor + self.slack) / self.price) as usize;
            leaves = leaves.min(splits.saturating_add(1));
        }
        allowed.at_most(usize::MAX, leaves)
    }

    #[inline]
    fn bound(&self, node: &CurveNode) -> f64 {
        self.bound_of(node.leaf, node.rows.floor, node.rows.count)
    }

    fn key(&self, node: &CurveNode) -> u128 {
        node.rows.hash
    }

    fn look(
        &mut self,
        node: &CurveNode,
        parent: Option<Parent<Self>>,
        allowed: Allowed,
        _cut: f64,
    ) -> Result<Look<Self>, Stop> {
        let splits = self.splits(node, parent, allowed.leaves > 2);
        let first = self.best_single(node, &splits);
        if allowed.leaves == 2 {
            self.splits_pool.push(splits);
            return Ok(Look::solved(first));
        }
        let candidates = self.candidates(&node.rows, &splits);
        Ok(Look::Open(OpenCurveNode { splits, first }, InOrder::new(candidates)))
    }

    fn first(&self, _node: &CurveNode, open: &OpenCurveNode) -> Known<f64, i32> {
        open.first.clone()
    }

    /// Leaves have a price, splits none.
    fn price(&self, _split: &Candidate) -> f64 {
        0.0
    }

    #[inline]
    fn sides(
        &mut self,
        node: &CurveNode,
        _open: &OpenCurveNode,
        split: &Candidate,
    ) -> Result<[CurveNode; 2], Stop> {
        let [mut no, mut yes] = [(); 2].map(|()| self.nodes_pool.pop().unwrap_or_default());
        let sums = (split.count, split.floor);
        node.rows.split(split.column, self.tables, sums, &mut yes.rows, &mut no.rows);
        [no.leaf, yes.leaf] = self.settled(node, *split).leaf;
        Ok([no, yes])
    }

    #[inline]
    fn give_back(&mut self, sides: [CurveNode; 2]) {
        self.nodes_pool.extend(sides);
    }

    #[inline]
    fn close(&mut self, open: OpenCurveNode) {
        self.splits_pool.push(open.splits);
    }

    #[inline]
    fn column(&self, _node: &CurveNode, split: &Candidate) -> Column {
        self.tables.columns[split.column]
    }

    #[inline]
    fn first_side(&self, sides: &[CurveNode; 2]) -> usize {
        usize::from(sides[0].rows.count >= sides[1].rows.count)
    }

    fn join(&mut self, _node: &CurveNode, split: &Candidate, _trees: [&i32; 2]) -> i32 {
        split.column as i32
    }
}

impl Rooted for CurveNodes<'_> {
    fn workers(&self, _node: &CurveNode, _allowed: Allowed) -> Vec<Self> {
        let CurveNodes { tables, settings, monitor, kernel, price, slack, .. } = *self;
        let worker = |_| CurveNodes::new(tables, settings, monitor, kernel, (price, slack));
        (0..settings.threads()).map(worker).collect()
    }

    fn whole(
        branch: &mut Branch<Self>,
        node: &CurveNode,
        allowed: Allowed,
        known: &KnownOf<Self>,
    ) -> Result<Tree, Stop> {
        let column = known.tree.expect("the tree of an exact value");
        let Ok(column) = usize::try_from(column) else { return Ok(Tree::leaf()) };
        let allowed = branch.nodes.useful(node, allowed);
        with_root(branch, node, allowed, column, known.value)
    }
}

/// A best tree with this column at the root, whose cost is known.
///
/// It may use all of `allowed`: below a question that the caller asked for, more may be useful than
/// above it.
pub fn with_root(
    branch: &mut Branch<CurveNodes>,
    node: &CurveNode,
    allowed: Allowed,
    column: usize,
    value: f64,
) -> Result<Tree, Stop> {
    let (open, candidates) = branch.nodes.all_splits(node);
    let split = *candidates.iter().find(|c| c.column == column).expect("an allowed split");
    let sides = branch.nodes.sides(node, &open, &split)?;
    branch.nodes.close(open);
    let tables = branch.nodes.tables;
    let reached = value + 4.0 * branch.nodes.slack;
    // The floor of a reference model may exceed the cost that was found, and rounding may exceed
    // the cost that must be reached. In both cases the best share is taken.
    let cuts = if tables.reference { &[f64::INFINITY][..] } else { &[reached, f64::INFINITY] };
    let mut share = None;
    for &cut in cuts {
        share = branch.best_share(node, &sides, &split, allowed, cut, reached)?;
        if share.is_some() {
            break;
        }
    }
    let share = share.expect("every share has a tree");
    let mut below = Vec::with_capacity(2);
    for (side, share) in sides.iter().zip(share) {
        let known = branch.solve(side, None, share, f64::INFINITY)?;
        below.push(CurveNodes::whole(branch, side, share, &known)?);
    }
    branch.nodes.give_back(sides);
    Ok(Tree::on(branch.nodes.column(node, &split), [&below[0], &below[1]]))
}

impl Listed for CurveNodes<'_> {
    fn questions(
        &mut self,
        node: &CurveNode,
        _allowed: Option<Allowed>,
    ) -> Result<(OpenCurveNode, Vec<Candidate>), Stop> {
        let (open, mut candidates) = self.all_splits(node);
        candidates.sort_by_key(|c| c.column);
        Ok((open, candidates))
    }
}

/// A column to split on.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The column.
    pub column: usize,
    /// Losses of its false and its true side as leaves, computed by a pass.
    pub leaf: [f64; 2],
    /// Number of the caller's rows where it is true.
    pub count: f64,
    /// Part of the floor where it is true.
    pub floor: f64,
    /// Cost of the tree with this split and two leaves.
    pub leaves: f64,
    /// Lower bound on the cost of all trees with this column at the root.
    pub bound: f64,
}

impl Bounded<f64> for Candidate {
    #[inline]
    fn bound(&self) -> f64 {
        self.bound
    }
}
