//! Greedy survival trees: the best split of every node, by likelihood or by log-rank.
//!
//! The baseline that optimal trees are compared with, and their warm start.

mod columns;
mod likelihood;
mod logrank;
#[cfg(test)]
mod tests;

use crate::data::{Smallest, size};
use crate::survival::Observations;
use crate::tree::{LEAF, Tree};
use columns::{Columns, Entry};
use likelihood::Likelihood;
use logrank::LogRank;
use std::ops::Range;

pub use columns::dense_ranks;

/// Of two gains closer than this, relatively, the earlier column or threshold is taken, so
/// that rounding does not decide between splits that are equally good.
const TIE: f64 = 1e-10;

/// Where to stop.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest path from the root, in splits.
    pub max_depth: Option<usize>,
    /// Number of leaves; with it the node of largest gain is split first.
    pub max_leaf_nodes: Option<usize>,
    /// Rows and events per leaf.
    pub smallest: Smallest,
}

/// Stopped by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// A tree over ordinal codes: `tree.feature` is the column, and rows whose code is at most
/// `below` go left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    /// Structure.
    pub tree: Tree,
    /// Per node, the largest code of its rows on the left and the smallest on the right:
    /// neighbours among the codes of the node. Zeros at a leaf.
    pub below: Vec<u32>,
    /// See `below`.
    pub above: Vec<u32>,
}

/// Judges the thresholds of a node.
trait Criterion {
    /// Prepares for a node, its rows ascending; false when no split of it can gain.
    fn enter(&mut self, rows: &[u32]) -> bool;

    /// Writes the gain of every cut, 0 for none: left are the first `cut` rows of `order`.
    fn score(&mut self, order: &[Entry], cuts: &[usize], gains: &mut [f64]);
}

/// Grows a tree by the log-rank statistic of the two sides of a split within the node.
///
/// `code(row, column)` is the dense rank of a value (0, 1, 2, …); a binary feature that should
/// send its rows left has code 0 where it is true. `interrupted` is asked once per node and
/// column. O(columns · rows · log(rows)) per level.
///
/// # Errors
/// [`Interrupted`] as soon as `interrupted` says so.
pub fn grow_by_logrank(
    n_columns: usize,
    code: impl Fn(usize, usize) -> u32,
    obs: &Observations,
    limits: &Limits,
    interrupted: impl FnMut() -> bool,
) -> Result<Grown, Interrupted> {
    let order = canonical_order(obs);
    let columns = Columns::new(obs.len(), n_columns, |r, c| code(order[r] as usize, c));
    let sizes: Vec<i64> =
        order.iter().map(|&r| size(1, i64::from(obs.event[r as usize]))).collect();
    grow(LogRank::new(obs, &order), columns, &sizes, limits, interrupted)
}

/// Rows in the order of time and all else that sums depend on, so that no sum over them depends
/// on the order in which the caller has them.
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

/// Grows a tree by the fall of the likelihood loss: `statistics` are the events and the
/// baseline hazard of every row in any fixed units, `prior` those of a prior at θ = 1, `sizes`
/// the rows and events that each row stands for.
///
/// O(columns · rows) per level; otherwise as [`grow_by_logrank`]. On the rows of a
/// [`Sample`](crate::data::Sample) with the statistics of the likelihood task it gives a tree to
/// start the search from.
///
/// # Errors
/// [`Interrupted`] as soon as `interrupted` says so.
pub fn grow_by_likelihood(
    n_columns: usize,
    code: impl Fn(usize, usize) -> u32,
    statistics: &[[i64; 2]],
    prior: [f64; 2],
    sizes: &[i64],
    limits: &Limits,
    interrupted: impl FnMut() -> bool,
) -> Result<Grown, Interrupted> {
    let columns = Columns::new(statistics.len(), n_columns, code);
    grow(Likelihood::new(statistics.to_vec(), prior), columns, sizes, limits, interrupted)
}

struct Split {
    column: usize,
    below: u32,
    above: u32,
    gain: f64,
}

/// A leaf that can be split.
struct Open {
    node: usize,
    depth: usize,
    rows: Range<usize>,
    split: Split,
}

/// A node in the order of creation: its split and its children, or a leaf.
type Node = Option<(Split, [usize; 2])>;

fn grow(
    mut criterion: impl Criterion,
    mut columns: Columns,
    sizes: &[i64],
    limits: &Limits,
    mut interrupted: impl FnMut() -> bool,
) -> Result<Grown, Interrupted> {
    let mut scratch = Scratch::default();
    let mut nodes: Vec<Node> = Vec::new();
    let mut frontier = Vec::new();
    let mut created = vec![(0..sizes.len(), 0)];
    let most_leaves = limits.max_leaf_nodes.unwrap_or(usize::MAX);
    let mut leaves = 1;
    loop {
        for (rows, depth) in created.drain(..) {
            let node = nodes.len();
            nodes.push(None);
            if leaves < most_leaves && limits.max_depth.is_none_or(|most| depth < most) {
                let split = scratch.best_split(
                    &mut criterion,
                    &mut columns,
                    rows.clone(),
                    sizes,
                    limits.smallest,
                    &mut interrupted,
                )?;
                frontier.extend(split.map(|split| Open { node, depth, rows, split }));
            }
        }
        if leaves >= most_leaves || frontier.is_empty() {
            return Ok(in_preorder(nodes));
        }
        let next = match limits.max_leaf_nodes {
            Some(_) => first_best(frontier.iter().map(|open: &Open| open.split.gain)),
            None => frontier.len() - 1,
        };
        let Open { node, depth, rows, split } = frontier.remove(next);
        let middle = rows.start + columns.split(split.column, split.below, rows.clone());
        created.extend([(rows.start..middle, depth + 1), (middle..rows.end, depth + 1)]);
        nodes[node] = Some((split, [nodes.len(), nodes.len() + 1]));
        leaves += 1;
    }
}

/// Where the first of the largest non-negative values stands, up to rounding.
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

#[derive(Default)]
struct Scratch {
    cuts: Vec<usize>,
    gains: Vec<f64>,
}

impl Scratch {
    fn best_split(
        &mut self,
        criterion: &mut impl Criterion,
        columns: &mut Columns,
        node: Range<usize>,
        sizes: &[i64],
        smallest: Smallest,
        interrupted: &mut impl FnMut() -> bool,
    ) -> Result<Option<Split>, Interrupted> {
        let rows = columns.rows(node.clone());
        let size: i64 = rows.iter().map(|&row| sizes[row as usize]).sum();
        if !smallest.allows_split(size) || !criterion.enter(rows) {
            return Ok(None);
        }
        let mut best: Option<Split> = None;
        for column in 0..columns.len() {
            if interrupted() {
                return Err(Interrupted);
            }
            let order = columns.ordered(column, node.clone());
            self.cuts.clear();
            let mut left = 0;
            for (i, pair) in order.windows(2).enumerate() {
                left += sizes[pair[0].row as usize];
                let large = smallest.allows_leaf(left) && smallest.allows_leaf(size - left);
                if large && pair[0].code != pair[1].code {
                    self.cuts.push(i + 1);
                }
            }
            self.gains.clear();
            self.gains.resize(self.cuts.len(), 0.0);
            criterion.score(order, &self.cuts, &mut self.gains);
            for (&cut, &gain) in self.cuts.iter().zip(&self.gains) {
                if beats(gain, best.as_ref().map_or(0.0, |split| split.gain)) {
                    let (below, above) = (order[cut - 1].code, order[cut].code);
                    best = Some(Split { column, below, above, gain });
                }
            }
        }
        Ok(best)
    }
}

fn in_preorder(mut nodes: Vec<Node>) -> Grown {
    let mut grown = Grown { tree: Tree::default(), below: Vec::new(), above: Vec::new() };
    let tree = &mut grown.tree;
    // Nodes to lay out, each with the parent that it is the right child of.
    let mut waiting = vec![(0, None)];
    while let Some((node, right_of)) = waiting.pop() {
        let id = tree.feature.len();
        if let Some(parent) = right_of {
            tree.right[parent] = id as i64;
        }
        tree.right.push(-1);
        match nodes[node].take() {
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
