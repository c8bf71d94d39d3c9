//! Greedy trees over all thresholds: the best split of every node, by log-rank or by the decrease
//! of an objective.
//!
//! They are the baseline for optimal trees and a source of their features: the cuts of the greedy
//! tree of an objective, pruned to what is allowed.

mod brier;
mod columns;
mod logrank;
mod sums;
#[cfg(test)]
mod tests;

use crate::data::Smallest;
use crate::search::PATIENCE;
use crate::search::prune::{Costed, Pruned};
use crate::survival::Observations;
use crate::task::Questions;
use crate::task::curve::ScalarCurveTask;
use crate::tree::{LEAF, Tree};
use brier::BrierScore;
pub use columns::Codes;
use columns::Columns;
use logrank::LogRank;
use std::ops::Range;
use sums::Sums;

/// If two gains differ by a smaller relative amount, the earlier column or threshold is taken, so
/// that rounding does not decide between equally good splits.
const TIE: f64 = 1e-10;

/// Limits of the growth.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest path from the root, in splits.
    pub max_depth: Option<usize>,
    /// Most leaves. If given, the node with the largest gain is split first.
    pub max_leaf_nodes: Option<usize>,
    /// Minimum rows and events per leaf.
    pub smallest: Smallest,
}

/// The caller has stopped the growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// A tree over ordinal codes: `tree.feature` is the column, and rows whose code is at most `below`
/// go left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    /// Structure.
    pub tree: Tree,
    /// For each node, the largest code of its rows on the left and the smallest on the right, which
    /// are neighbours among the codes of the node. Zeros at a leaf.
    pub below: Vec<u32>,
    /// See `below`.
    pub above: Vec<u32>,
}

/// Scores the thresholds of a node.
trait Criterion {
    /// Prepares for a node with these rows (ascending) below the columns of `path`. Returns false
    /// if no split of the node can gain anything.
    fn enter(&mut self, rows: &[u32], path: &[usize]) -> bool;

    /// [`size`](fn@crate::data::size) of a row.
    fn size(&self, row: u32) -> i64;

    /// Offers the thresholds of the current node, or those that may be the best: by column, then
    /// ascending. Calls `interrupted` once per column, or more often if that takes long.
    fn choose(
        &mut self,
        group: &Group,
        choice: &mut Choice,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted>;

    /// Improvements of at most this size are rounding.
    fn rounding(&self) -> f64 {
        0.0
    }

    /// Cost of the node as a leaf, for trees that are pruned.
    fn leaf(&self) -> i64 {
        0
    }
}

/// Computes the improvement of the node at every cut of a column: the first `cut` rows in the order
/// of its codes are on the left.
trait Scores: Criterion {
    fn score(
        &mut self,
        order: &[u32],
        cuts: &[usize],
        falls: &mut [f64],
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted>;

    /// Price of a split in the unit of the costs.
    fn split_price(&self) -> i64 {
        0
    }
}

/// Offers every threshold of a node, reading each column in the order of its codes.
fn choose_in_order(
    criterion: &mut impl Scores,
    group: &Group,
    choice: &mut Choice,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<(), Interrupted> {
    let (mut cuts, mut falls, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
    let price = criterion.split_price();
    for column in 0..group.columns.len() {
        if interrupted() {
            return Err(Interrupted);
        }
        let asked = group.columns.column(column);
        let order = group.columns.ordered(column, group.rows.clone(), &mut scratch);
        cuts.clear();
        let mut left = 0;
        for (i, pair) in order.windows(2).enumerate() {
            left += criterion.size(pair[0]);
            if group.allows(left) && asked.code(pair[0]) != asked.code(pair[1]) {
                cuts.push(i + 1);
            }
        }
        falls.clear();
        falls.resize(cuts.len(), 0.0);
        criterion.score(order, &cuts, &mut falls, interrupted)?;
        for (&cut, &fall) in cuts.iter().zip(&falls) {
            let codes = [order[cut - 1], order[cut]].map(|row| asked.code(row));
            choice.offer(column, codes, fall, price);
        }
    }
    Ok(())
}

/// The rows of a node.
struct Group<'a> {
    columns: &'a Columns<'a>,
    rows: Range<usize>,
    smallest: Smallest,
    /// Total [`size`](fn@crate::data::size) of the rows.
    total: i64,
}

impl Group<'_> {
    /// Whether the node may be split with a left side of this size.
    fn allows(&self, left: i64) -> bool {
        self.smallest.allows_leaf(left) && self.smallest.allows_leaf(self.total - left)
    }
}

/// The best of the offered splits.
struct Choice {
    best: Option<GreedySplit>,
    /// The best of the splits without a gain.
    idle: Option<GreedySplit>,
    /// Decreases of at most this size are rounding.
    nothing: f64,
    /// Whether a split without a gain is acceptable.
    patient: bool,
}

impl Choice {
    /// Offers a split; the first of equally good splits counts. If `fall` is NaN, there is no
    /// threshold.
    fn offer(&mut self, column: usize, [below, above]: [u32; 2], fall: f64, price: i64) {
        if fall.is_nan() {
            return;
        }
        let gain = if fall > self.nothing { fall } else { 0.0 };
        let split = |gain| Some(GreedySplit { column, below, above, gain, price });
        if beats(gain, self.best.as_ref().map_or(0.0, |split| split.gain)) {
            self.best = split(gain);
        } else if self.idle.as_ref().is_none_or(|split| fall > split.gain) {
            self.idle = split(fall);
        }
    }

    /// Decreases of at most this size change nothing.
    fn least(&self) -> f64 {
        match (&self.best, &self.idle) {
            (Some(best), _) => best.gain,
            (None, Some(idle)) if self.patient => idle.gain,
            (None, None) if self.patient => f64::NEG_INFINITY,
            _ => self.nothing,
        }
    }

    fn end(self) -> Option<GreedySplit> {
        self.best.or(if self.patient { self.idle } else { None })
    }
}

/// Grows a tree by the log-rank statistic of the two sides of a split within the node.
///
/// `interrupted` is called once per node and column. O(columns · rows · log(rows)) per level.
///
/// # Errors
///
/// [`Interrupted`] as soon as `interrupted` returns true.
pub fn grow_by_logrank(
    columns: Vec<Codes>,
    obs: &Observations,
    limits: &Limits,
    interrupted: impl FnMut() -> bool,
) -> Result<Grown, Interrupted> {
    let order = canonical_order(obs);
    let columns = Columns::new(obs.len(), of_rows(&columns, &order));
    let mut growth = Growth::new(LogRank::new(obs, &order), columns, *limits, false);
    growth.run(interrupted)?;
    Ok(in_preorder(growth.nodes))
}

fn of_rows(columns: &[Codes], rows: &[u32]) -> Vec<Codes<'static>> {
    columns.iter().map(|codes| codes.of_rows(rows)).collect()
}

/// Rows ordered by time and by everything else that sums depend on, so that no sum over them
/// depends on the order of the caller's rows.
fn canonical_order(obs: &Observations) -> Vec<u32> {
    let entry = |i: usize| obs.entry.map_or(0.0, |v| v[i]);
    let mut order: Vec<u32> = (0..obs.len() as u32).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (a as usize, b as usize);
        let by_time = obs.time[a].total_cmp(&obs.time[b]).then(obs.event[a].cmp(&obs.event[b]));
        by_time.then(obs.weight(a).total_cmp(&obs.weight(b))).then(entry(a).total_cmp(&entry(b)))
    });
    order
}

/// Grows a tree by the decrease of the costs of `task`, without its price of a split.
///
/// O(columns · rows) per level; otherwise as [`grow_by_logrank`].
///
/// # Errors
///
/// [`Interrupted`] as soon as `interrupted` returns true.
pub fn grow_by_costs<T: Questions>(
    task: &T,
    columns: Vec<Codes>,
    limits: &Limits,
    interrupted: impl FnMut() -> bool,
) -> Result<Grown, Interrupted> {
    let sums = Sums::new(task);
    let columns = Columns::new(sums.n_rows(), columns);
    let mut growth = Growth::new(sums, columns, *limits, false);
    growth.run(interrupted)?;
    Ok(in_preorder(growth.nodes))
}

/// The cheapest subtree within the limits, including all prices, of the tree that [`grow_by_costs`]
/// grows without a limit on leaves.
///
/// Down to a depth of [`PATIENCE`], nodes are split even if that does not pay immediately. When
/// `interrupted`, it is a subtree of what has been grown so far.
pub fn subtree_by_costs<T: Questions>(
    task: &T,
    columns: Vec<Codes>,
    limits: &Limits,
    interrupted: impl FnMut() -> bool,
) -> Grown {
    let sums = Sums::new(task);
    let columns = Columns::new(sums.n_rows(), columns);
    subtree(Growth::new(sums, columns, unlimited(limits), true), limits, interrupted)
}

/// As [`subtree_by_costs`], by the loss of a curve task. If a column has many thresholds, only some
/// of them are scored. O(columns · rows · log(rows)) per level.
pub fn subtree_by_curve(
    task: &(impl ScalarCurveTask + ?Sized),
    columns: Vec<Codes>,
    limits: &Limits,
    interrupted: impl FnMut() -> bool,
) -> Grown {
    let (criterion, order) = BrierScore::new(task);
    let columns = Columns::new(order.len(), of_rows(&columns, &order));
    subtree(Growth::new(criterion, columns, unlimited(limits), true), limits, interrupted)
}

/// A tree that was grown without a limit on leaves contains all smaller ones.
fn unlimited(limits: &Limits) -> Limits {
    let deepest = limits.max_leaf_nodes.map_or(usize::MAX, |leaves| leaves - 1);
    let max_depth = Some(limits.max_depth.unwrap_or(usize::MAX).min(deepest));
    Limits { max_depth, max_leaf_nodes: None, ..*limits }
}

fn subtree<C: Criterion>(
    mut growth: Growth<'_, C>,
    limits: &Limits,
    interrupted: impl FnMut() -> bool,
) -> Grown {
    // The part that was grown before a stop is a tree, too.
    let _ = growth.run(interrupted);
    let mut nodes = growth.nodes;
    let n_nodes = nodes.len();
    for node in &mut nodes {
        node.split.take_if(|(_, children)| children[1] >= n_nodes);
    }
    let costed = |node: &GreedyNode| Costed {
        leaf: node.leaf,
        tree: None,
        split: node.split.as_ref().map(|(split, children)| (split.price, *children)),
    };
    let most_leaves = limits.max_leaf_nodes.unwrap_or(usize::MAX);
    let pruned = Pruned::new(&nodes.iter().map(costed).collect::<Vec<_>>(), most_leaves, 0);
    let mut waiting = vec![(0, pruned.root().1)];
    while let Some((node, place)) = waiting.pop() {
        match (pruned.shares(node, place), &nodes[node].split) {
            (Some((a, b)), Some((_, [left, right]))) => {
                waiting.extend([(*left, a), (*right, b)]);
            }
            _ => nodes[node].split = None,
        }
    }
    in_preorder(nodes)
}

struct GreedySplit {
    column: usize,
    below: u32,
    above: u32,
    gain: f64,
    price: i64,
}

/// A leaf that can be split.
struct OpenGreedyNode {
    node: usize,
    depth: usize,
    rows: Range<usize>,
    split: GreedySplit,
}

/// A node, in the order of creation: its split and its children, or a leaf.
struct GreedyNode {
    parent: usize,
    leaf: i64,
    split: Option<(GreedySplit, [usize; 2])>,
}

/// A tree while it grows.
struct Growth<'a, C> {
    criterion: C,
    columns: Columns<'a>,
    limits: Limits,
    /// Whether splits need not pay immediately.
    patient: bool,
    nodes: Vec<GreedyNode>,
}

impl<'a, C: Criterion> Growth<'a, C> {
    fn new(criterion: C, columns: Columns<'a>, limits: Limits, patient: bool) -> Self {
        Growth { criterion, columns, limits, patient, nodes: Vec::new() }
    }

    fn run(&mut self, mut interrupted: impl FnMut() -> bool) -> Result<(), Interrupted> {
        let Limits { max_depth, max_leaf_nodes, .. } = self.limits;
        let mut frontier = Vec::new();
        let mut created = vec![(self.columns.all(), 0, 0)];
        let most_leaves = max_leaf_nodes.unwrap_or(usize::MAX);
        let mut leaves = 1;
        loop {
            for (rows, depth, parent) in created.drain(..) {
                let node = self.nodes.len();
                self.nodes.push(GreedyNode { parent, leaf: 0, split: None });
                let divisible = leaves < most_leaves && max_depth.is_none_or(|most| depth < most);
                // Pruning needs the costs of all nodes.
                if !divisible && !self.patient {
                    continue;
                }
                let path = self.path(node);
                let helps = self.criterion.enter(self.columns.rows(rows.clone()), &path);
                self.nodes[node].leaf = self.criterion.leaf();
                if divisible && helps {
                    let ends = max_depth == Some(depth + 1);
                    let patient = self.patient && depth < PATIENCE && !ends;
                    let split = self.best_split(rows.clone(), patient, &mut interrupted)?;
                    frontier.extend(split.map(|split| OpenGreedyNode { node, depth, rows, split }));
                }
            }
            if leaves >= most_leaves || frontier.is_empty() {
                return Ok(());
            }
            let next = match max_leaf_nodes {
                Some(_) => first_best(frontier.iter().map(|open: &OpenGreedyNode| open.split.gain)),
                None => frontier.len() - 1,
            };
            let OpenGreedyNode { node, depth, rows, split } = frontier.remove(next);
            let again = max_depth.is_none_or(|most| depth + 1 < most);
            let kept = self.columns.split(split.column, split.below, rows.clone(), again);
            let middle = rows.start + kept;
            let sides = [rows.start..middle, middle..rows.end];
            created.extend(sides.map(|rows| (rows, depth + 1, node)));
            self.nodes[node].split = Some((split, [self.nodes.len(), self.nodes.len() + 1]));
            leaves += 1;
        }
    }

    /// Columns that are tested above a node, nearest first.
    fn path(&self, mut node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        while node > 0 {
            node = self.nodes[node].parent;
            path.extend(self.nodes[node].split.as_ref().map(|(split, _)| split.column));
        }
        path
    }

    /// The best split of the current node; without a gain only if `patient`.
    fn best_split(
        &mut self,
        rows: Range<usize>,
        patient: bool,
        interrupted: &mut impl FnMut() -> bool,
    ) -> Result<Option<GreedySplit>, Interrupted> {
        let Growth { criterion, columns, limits: Limits { smallest, .. }, .. } = self;
        let smallest = *smallest;
        let total = columns.rows(rows.clone()).iter().map(|&row| criterion.size(row)).sum();
        if !smallest.allows_split(total) {
            return Ok(None);
        }
        let nothing = criterion.rounding();
        let mut choice = Choice { best: None, idle: None, nothing, patient };
        let group = Group { columns, rows, smallest, total };
        criterion.choose(&group, &mut choice, interrupted)?;
        Ok(choice.end())
    }
}

/// Position of the first of the largest non-negative values, up to rounding.
fn first_best(values: impl Iterator<Item = f64>) -> usize {
    let (mut at, mut best) = (0, 0.0);
    for (i, value) in values.enumerate() {
        if beats(value, best) {
            (at, best) = (i, value);
        }
    }
    at
}

fn beats(value: f64, best: f64) -> bool {
    value > best + TIE * best
}

fn in_preorder(mut nodes: Vec<GreedyNode>) -> Grown {
    let mut grown = Grown { tree: Tree::default(), below: Vec::new(), above: Vec::new() };
    let tree = &mut grown.tree;
    // Nodes to be placed, each with the parent whose right child it is.
    let mut waiting = vec![(0, None)];
    while let Some((node, right_of)) = waiting.pop() {
        let id = tree.feature.len();
        if let Some(parent) = right_of {
            tree.right[parent] = id as i64;
        }
        tree.right.push(-1);
        match nodes[node].split.take() {
            Some((split, [left, right])) => {
                tree.feature.push(split.column as i64);
                tree.left.push(id as i64 + 1);
                grown.below.push(split.below);
                grown.above.push(split.above);
                waiting.extend([(right, Some(id)), (left, None)]);
            }
            None => {
                tree.feature.push(LEAF);
                tree.left.push(-1);
                grown.below.push(0);
                grown.above.push(0);
            }
        }
    }
    grown
}
