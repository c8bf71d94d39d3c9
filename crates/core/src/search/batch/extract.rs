//! Reads the best trees from the tables of a lattice.
//!
//! The tables hold the least costs, not the splits that attain them. From the root down, splits are
//! evaluated again on sums over rows, and the first of the cheapest is taken. A leaf that costs no
//! more than the best split, up to rounding, is not split.

use super::Problem;
use super::lattice::{Lattice, Solved};
use crate::data::{Sample, add, rows_of};
use crate::search::lattice::geometry::best_at;
use crate::search::nodes::Found;
use crate::search::{Monitor, Stop};
use crate::tree::Tree;

/// A leaf and the best split of a cell are a tie if their relative difference is at most this.
const TIE: f64 = 4.0 * f64::EPSILON;

/// Sums of both sides of each column over some rows, `[2 · column + (false: 1)]`: the statistics
/// and the number of rows.
pub fn side_records(sample: &Sample, rows: &[u32]) -> Vec<i64> {
    let (n, stride) = (sample.n_columns(), sample.channels + 1);
    let mut records = vec![0i64; 2 * n * stride];
    for &r in rows {
        let r = r as usize;
        for c in 0..n {
            let at = (2 * c + usize::from(!sample.get(r, c))) * stride;
            let record = &mut records[at..at + stride];
            add(record, sample.statistics(r));
            record[stride - 1] += rows_of(sample.size(r));
        }
    }
    records
}

/// Sums over all rows, and the number of rows.
pub fn total_record(sample: &Sample) -> Vec<i64> {
    let mut record = sample.total.clone();
    record.push(rows_of(sample.total_size()));
    record
}

/// A node on the path from the root.
struct ExtractedNode {
    rows: Vec<u32>,
    /// Columns and values, ascending in column.
    literals: Vec<(usize, bool)>,
    leaf: f64,
    price: f64,
}

/// A split, and the leaf budgets of its false and its true side.
struct ExtractedSplit {
    value: f64,
    column: usize,
    shares: [usize; 2],
}

impl Lattice<'_> {
    /// The best tree for each budget.
    pub fn extract(&self, budgets: &[usize], monitor: &Monitor) -> Result<Solved, Stop> {
        let record = total_record(self.sample);
        let root = ExtractedNode {
            rows: (0..self.sample.n_rows() as u32).collect(),
            literals: Vec::new(),
            leaf: self.problem.leaf_costs(&record)?[0],
            price: self.problem.prices(&record)?[0],
        };
        // A table without levels is the result of another lattice.
        let split = |slot: usize| match self.tables.depth {
            0 => f64::INFINITY,
            _ => self.best[0].0[slot],
        };
        let (mut found, mut lower) = (Vec::new(), Vec::new());
        let mut root_values = Vec::new();
        for &budget in budgets {
            let slot =
                if self.tables.unlimited { 0 } else { (budget - 1).min(self.tables.slots[0]) };
            lower.push(self.value(slot, root.leaf, root.price, split));
            found.push(self.descend(&root, slot, &mut root_values, monitor)?);
        }
        Ok(Solved { found, lower, root_values })
    }

    /// The best tree of a node for a budget slot; `values` receives the least cost with each column
    /// at its root.
    fn descend(
        &self,
        node: &ExtractedNode,
        slot: usize,
        values: &mut Vec<f64>,
        monitor: &Monitor,
    ) -> Result<Found<f64>, Stop> {
        let level = node.literals.len();
        let leaf = Found { cost: node.leaf, tree: Tree::leaf() };
        if level == self.tables.depth || (slot == 0 && !self.tables.unlimited) {
            return Ok(leaf);
        }
        monitor.check()?;
        let sides =
            Sides::new(self.problem, self.sample, &node.rows, level + 1 < self.tables.depth)?;
        let n = self.sample.n_columns();
        let mut best: Option<ExtractedSplit> = None;
        values.clear();
        values.resize(n, f64::INFINITY);
        for column in (0..n).filter(|c| node.literals.iter().all(|(used, _)| used != c)) {
            // Slot j stands for j + 1 leaves; both sides have at least one.
            let shares = if self.tables.unlimited { 0..1 } else { 0..slot };
            for a in shares {
                let b = if self.tables.unlimited { 0 } else { slot - 1 - a };
                let shares = self.sample.columns[column].turned([b, a]);
                let value = |value, slot| self.side_value(node, &sides, column, value, slot);
                let value = value(false, shares[0]) + value(true, shares[1]) + node.price;
                values[column] = values[column].min(value);
                if best.as_ref().is_none_or(|best| value < best.value) {
                    best = Some(ExtractedSplit { value, column, shares });
                }
            }
        }
        let Some(ExtractedSplit { value, column, shares }) = best else { return Ok(leaf) };
        let tie = TIE * value.abs().max(node.leaf.abs());
        if value == f64::INFINITY || (node.leaf.is_finite() && node.leaf <= value + tie) {
            return Ok(leaf);
        }
        let side = |value: bool| {
            let at = 2 * column + usize::from(!value);
            let has = |&&r: &&u32| self.sample.get(r as usize, column) == value;
            let mut literals = node.literals.clone();
            literals.insert(literals.partition_point(|&(c, _)| c < column), (column, value));
            ExtractedNode {
                rows: node.rows.iter().filter(has).copied().collect(),
                literals,
                leaf: sides.leaf[at],
                price: sides.price.get(at).copied().unwrap_or(0.0),
            }
        };
        let mut below = Vec::new();
        let yes = self.descend(&side(true), shares[1], &mut below, monitor)?;
        let no = self.descend(&side(false), shares[0], &mut below, monitor)?;
        let cost = yes.cost + no.cost + node.price;
        Ok(Found { cost, tree: Tree::on(self.sample.columns[column], [&no.tree, &yes.tree]) })
    }

    /// Value of one side of a split below `node`, read from the tables.
    fn side_value(
        &self,
        node: &ExtractedNode,
        sides: &Sides,
        column: usize,
        value: bool,
        slot: usize,
    ) -> f64 {
        let at = 2 * column + usize::from(!value);
        let level = node.literals.len() + 1;
        if level == self.tables.depth {
            return sides.leaf[at];
        }
        let mut columns = Vec::with_capacity(level);
        let mut pattern = 0;
        let mut push = |&(c, value): &(usize, bool)| {
            pattern |= usize::from(value) << columns.len();
            columns.push(c);
        };
        let place = node.literals.partition_point(|&(c, _)| c < column);
        node.literals[..place].iter().for_each(&mut push);
        push(&(column, value));
        node.literals[place..].iter().for_each(&mut push);
        let (&lane, prefix) = columns.split_last().expect("at least the column");
        let row = self.tables.sums.geometry.row(prefix);
        let slots = self.tables.slots[level];
        // A budget larger than the level can use is equivalent to its largest one.
        let slot = if self.tables.unlimited { 0 } else { slot.min(slots) };
        let split =
            |below: usize| self.best[level].0[best_at(row, slots, level, below, pattern, lane)];
        self.value(slot, sides.leaf[at], sides.price[at], split)
    }
}

/// Costs of both sides of every column.
struct Sides {
    leaf: Vec<f64>,
    price: Vec<f64>,
}

impl Sides {
    fn new(problem: &Problem, sample: &Sample, rows: &[u32], prices: bool) -> Result<Self, Stop> {
        let records = side_records(sample, rows);
        let leaf = problem.leaf_costs(&records)?;
        let price = if prices { problem.prices(&records)? } else { Vec::new() };
        Ok(Sides { leaf, price })
    }
}
