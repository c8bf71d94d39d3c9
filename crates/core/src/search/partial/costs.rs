//! Exact best costs of the cells of a table.
//!
//! Every cell of an itemset is evaluated once, from the deepest level up to the root. Leaving out
//! one column pairs the cells of an itemset; the two cells of a pair are the sides of a split of
//! the smaller itemset. Costs are stored for every number of leaves. Of equally good trees, the one
//! with the fewest leaves is found, and then the one with the first column, as in a lattice.

use super::cells::{PATTERNS, for_each, of_literals};
use super::{MOST_DEPTH, Table};
use crate::data::{Column, Smallest, size};
use crate::search::nodes::Found;
use crate::search::{Monitor, Stop};
use crate::task::LaneTask;
use crate::tree::Tree;

/// More than the cost of any tree, with room for a sum of three.
const NONE: i64 = i64::MAX / 4;

/// Best costs of all cells, up to a given depth.
pub(in crate::search) struct Costs<'a, T> {
    task: &'a T,
    table: &'a Table,
    /// Columns of the table, and the features that are tested above.
    columns: &'a [Column],
    tested: &'a [usize],
    depth: usize,
    smallest: Smallest,
    /// `[size][(rank, pattern, leaves − 1)]`, for itemsets above the deepest level.
    values: Vec<Vec<i64>>,
}

/// Cost and leaves of a tree, and the leaves where its first feature is true; ordered in the same
/// way as trees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RootSplit {
    cost: i64,
    leaves: usize,
    when_true: usize,
}

impl<'a, T: LaneTask> Costs<'a, T> {
    /// For trees over these columns, below features that were tested already.
    pub fn new(
        task: &'a T,
        table: &'a Table,
        (columns, tested): (&'a [Column], &'a [usize]),
        depth: usize,
        smallest: Smallest,
        monitor: &Monitor,
    ) -> Result<Self, Stop> {
        let entries = |size: usize| (table.itemsets.of_size(size) << size) << (depth - size);
        let values = (0..depth).map(|size| vec![NONE; entries(size)]).collect();
        let mut costs = Costs { task, table, columns, tested, depth, smallest, values };
        for size in (0..=depth).rev() {
            costs.level(size, monitor)?;
        }
        Ok(costs)
    }

    /// Most leaves of a tree on a cell of this many columns.
    fn most(&self, size: usize) -> usize {
        1 << (self.depth - size)
    }

    fn leaf(&self, sums: &[i64]) -> i64 {
        let channels = self.task.channels();
        let size = size(sums[channels], sums[channels + 1]);
        let (task, sums) = (self.task, &sums[..channels]);
        if task.allows_leaf(self.smallest, size, sums) { task.leaf_cost(sums) } else { NONE }
    }

    /// Position of the first cost of a cell.
    fn place(&self, itemset: &[usize], pattern: usize) -> usize {
        let size = itemset.len();
        ((self.table.itemsets.rank(itemset) << size) + pattern) << (self.depth - size)
    }

    /// Price of testing a column on the rows of a cell with these sums, below other columns.
    fn price(&self, column: usize, others: &[usize], sums: impl FnOnce() -> Vec<i64>) -> i64 {
        let price = self.task.split_price();
        if !T::PRICED {
            return price;
        }
        let feature = |&column: &usize| self.columns[column].feature;
        let tested: Vec<usize> =
            self.tested.iter().copied().chain(others.iter().map(feature)).collect();
        price + self.task.feature_price(feature(&column), &tested, &sums()[..self.task.channels()])
    }

    /// Evaluates the cells of all itemsets of a size as leaves, and offers pairs of them as splits
    /// to the itemsets with one column less.
    fn level(&mut self, size: usize, monitor: &Monitor) -> Result<(), Stop> {
        let most = self.most(size);
        let mut own = vec![NONE; most << size];
        let table = self.table;
        for_each(table, size, monitor, &mut |itemset, cells| {
            if size < self.depth {
                let place = self.place(itemset, 0);
                for (pattern, cell) in cells.iter().enumerate() {
                    self.values[size][place + pattern * most] = self.leaf(cell);
                }
                own.copy_from_slice(&self.values[size][place..][..most << size]);
            } else {
                own.iter_mut().zip(cells).for_each(|(own, cell)| *own = self.leaf(cell));
            }
            for left_out in 0..size {
                self.offer(itemset, left_out, cells, &own);
            }
            Ok(())
        })
    }

    /// Offers splits of the itemset without one of its columns, on that column.
    fn offer(&mut self, itemset: &[usize], left_out: usize, cells: &[Vec<i64>], own: &[i64]) {
        let (size, most) = (itemset.len(), self.most(itemset.len()));
        let mut smaller = [0; MOST_DEPTH];
        let others = itemset.iter().enumerate().filter(|&(at, _)| at != left_out);
        others.zip(&mut smaller).for_each(|((_, &column), to)| *to = column);
        let smaller = &smaller[..size - 1];
        let place = self.place(smaller, 0);
        let low = (1 << left_out) - 1;
        debug_assert!(1 << (size - 1) <= PATTERNS);
        for pattern in 0..1usize << (size - 1) {
            let no = (pattern & !low) << 1 | pattern & low;
            let yes = no | 1 << left_out;
            let (of_yes, of_no) = (&own[yes * most..][..most], &own[no * most..][..most]);
            if of_yes.iter().all(|&cost| cost == NONE) || of_no.iter().all(|&cost| cost == NONE) {
                continue;
            }
            let sums = || cells[yes].iter().zip(&cells[no]).map(|(a, b)| a + b).collect();
            let price = self.price(itemset[left_out], smaller, sums);
            let values = &mut self.values[size - 1][place + 2 * pattern * most..][..2 * most];
            for (a, &yes) in of_yes.iter().enumerate().filter(|(_, cost)| **cost < NONE) {
                for (b, &no) in of_no.iter().enumerate().filter(|(_, cost)| **cost < NONE) {
                    let value = &mut values[a + b + 1];
                    *value = (*value).min(yes + no + price);
                }
            }
        }
    }

    /// The cheapest tree with at most this many leaves; the smallest of equally good ones.
    pub fn best(&self, most_leaves: usize) -> Found {
        let (cost, leaves) = self.least(most_leaves);
        if cost == NONE {
            return Found { cost: i64::MAX, tree: Tree::leaf() };
        }
        Found { cost, tree: self.tree(&mut Vec::new(), leaves, cost) }
    }

    /// Least cost of trees with at most this many leaves, and the number of leaves of the smallest
    /// such tree.
    pub fn least(&self, most_leaves: usize) -> (i64, usize) {
        let of_root = &self.values[0][..most_leaves.min(self.most(0))];
        let costs = of_root.iter().enumerate().map(|(at, &cost)| (cost, at + 1));
        costs.min().expect("a leaf at least")
    }

    /// For each column, the cost of the best tree with it at the root and at most this many leaves,
    /// without the price that every split has; infinite if there is none.
    pub fn root_values(&self, most_leaves: usize) -> Vec<f64> {
        let price = self.task.split_price();
        let value = |split: RootSplit| (split.cost - price) as f64;
        let columns = 0..self.columns.len();
        columns.map(|c| self.root_split(c, most_leaves).map_or(f64::INFINITY, value)).collect()
    }

    /// The best tree with a column at the root and at most this many leaves, if there is one; the
    /// smallest of equally good ones.
    pub fn best_below(&self, column: usize, most_leaves: usize) -> Option<Found> {
        let RootSplit { cost, leaves, when_true } = self.root_split(column, most_leaves)?;
        let below = |value: bool, leaves: usize| {
            let mut literals = vec![(column, value)];
            let cost = self.costs_of(&literals)[leaves - 1];
            self.tree(&mut literals, leaves, cost)
        };
        let [of_no, of_yes] = self.shares(column, leaves, when_true);
        let (yes, no) = (below(true, of_yes), below(false, of_no));
        Some(Found { cost, tree: Tree::on(self.columns[column], [&no, &yes]) })
    }

    /// Leaves of the false and the true side of a column, from those where its feature is true.
    fn shares(&self, column: usize, leaves: usize, when_true: usize) -> [usize; 2] {
        self.columns[column].turned([leaves - when_true, when_true])
    }

    /// How the best tree with a column at the root divides its leaves.
    fn root_split(&self, column: usize, most_leaves: usize) -> Option<RootSplit> {
        let price = self.price(column, &[], || self.table.of(&[]).to_vec());
        let [yes, no] = [true, false].map(|value| self.costs_of(&[(column, value)]));
        let mut best: Option<RootSplit> = None;
        for (a, yes) in yes.into_iter().enumerate().filter(|(_, cost)| *cost < NONE) {
            let others = no.iter().enumerate().take(most_leaves.saturating_sub(a + 1));
            for (b, no) in others.filter(|(_, cost)| **cost < NONE) {
                let [_, when_true] = self.columns[column].turned([b + 1, a + 1]);
                let split = RootSplit { cost: yes + no + price, leaves: a + b + 2, when_true };
                best = Some(best.map_or(split, |best| best.min(split)));
            }
        }
        best
    }

    /// A tree with this number of leaves and this cost on the rows with these values.
    fn tree(&self, literals: &mut Vec<(usize, bool)>, leaves: usize, cost: i64) -> Tree {
        if leaves == 1 {
            return Tree::leaf();
        }
        let tested: Vec<usize> = literals.iter().map(|literal| literal.0).collect();
        for column in (0..self.table.shape.n_features).filter(|column| !tested.contains(column)) {
            let sums = || of_literals(self.table, literals);
            let price = self.price(column, &tested, sums);
            let sides = [true, false].map(|value| {
                literals.push((column, value));
                let costs = self.costs_of(literals);
                literals.pop();
                costs
            });
            for when_true in 1..leaves {
                let [of_no, of_yes] = self.shares(column, leaves, when_true);
                let costs = [(0, of_yes), (1, of_no)]
                    .map(|(side, n)| sides[side].get(n - 1).copied().unwrap_or(NONE));
                if costs.contains(&NONE) || costs[0] + costs[1] + price != cost {
                    continue;
                }
                let mut below = |value: bool, n: usize, cost: i64| {
                    literals.push((column, value));
                    let tree = self.tree(literals, n, cost);
                    literals.pop();
                    tree
                };
                let yes = below(true, of_yes, costs[0]);
                let no = below(false, of_no, costs[1]);
                return Tree::on(self.columns[column], [&no, &yes]);
            }
        }
        unreachable!("the cost is that of a split")
    }

    /// Costs of the trees with each number of leaves on the rows with these values.
    fn costs_of(&self, literals: &[(usize, bool)]) -> Vec<i64> {
        let size = literals.len();
        if size == self.depth {
            return vec![self.leaf(&of_literals(self.table, literals))];
        }
        let mut sorted = literals.to_vec();
        sorted.sort_unstable();
        let itemset: Vec<usize> = sorted.iter().map(|literal| literal.0).collect();
        let values = sorted.iter().enumerate();
        let pattern: usize = values.map(|(at, &(_, value))| usize::from(value) << at).sum();
        self.values[size][self.place(&itemset, pattern)..][..self.most(size)].to_vec()
    }
}
