//! Exact search for tasks whose costs are computed by the caller, in large batches.
//!
//! The engine sums the task's statistics over cells and asks for the costs of thousands of cells at
//! a time; it needs nothing else from the task. Trees of up to
//! [`MAX_DEPTH`](super::lattice::MAX_DEPTH) questions take one pass over the itemset lattice
//! ([`lattice`]); deeper trees are found by branch and bound ([`nodes`]). See docs/maths/batch.md.

mod extract;
mod forecast;
mod lattice;
mod nodes;
mod solve;
mod start;
mod statistics;

pub use forecast::forecast;
pub use solve::solve;
pub use statistics::Statistics;

use super::Stop;
use super::lattice::Pool;
use super::memo::Memo;
use crate::tree::Tree;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums of the statistics of many cells.
#[derive(Clone, Debug)]
pub struct Cells {
    channels: usize,
    capacity: usize,
    len: usize,
    sums: Vec<f64>,
}

impl Cells {
    /// Reserves room for this number of cells.
    fn new(channels: usize, capacity: usize) -> Self {
        Cells { channels, capacity, len: 0, sums: vec![0.0; channels * capacity] }
    }

    /// Number of cells.
    #[allow(clippy::len_without_is_empty, reason = "an empty batch is never handed out")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Number of statistics.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Sums of one statistic, one per cell.
    pub fn channel(&self, c: usize) -> &[f64] {
        &self.sums[c * self.capacity..][..self.len]
    }

    /// Appends a cell.
    fn push(&mut self, sums: &[i64], units: &[f64]) {
        for (c, (&sum, unit)) in sums.iter().zip(units).enumerate() {
            self.sums[c * self.capacity + self.len] = sum as f64 * unit;
        }
        self.len += 1;
    }
}

/// Costs of many cells at once, which depend only on each cell's sums.
///
/// Cells have at least `min_leaf` rows. An error stops the search.
pub trait BatchTask: Sync {
    /// Cost of each cell as a leaf: +∞ if a leaf is not allowed, never NaN or −∞.
    fn leaf_costs(&self, cells: &Cells, costs: &mut [f64]) -> Result<(), Stop>;

    /// Whether splits have costs in addition to the leaf penalty.
    fn has_split_costs(&self) -> bool {
        false
    }

    /// Cost of splitting each cell on any question: finite and not negative.
    fn split_costs(&self, _cells: &Cells, costs: &mut [f64]) -> Result<(), Stop> {
        costs.fill(0.0);
        Ok(())
    }

    /// A lower bound, for each cell, on the summed leaf costs of every partition of its rows.
    fn lower_bounds(&self, _cells: &Cells, bounds: &mut [f64]) -> Result<(), Stop> {
        bounds.fill(f64::NEG_INFINITY);
        Ok(())
    }
}

/// A task with the price of a leaf in the units of the search.
struct Problem<'a> {
    task: &'a dyn BatchTask,
    statistics: &'a Statistics,
    /// Divisor of costs.
    weight: f64,
    /// Added for every leaf, and therefore for every split.
    penalty: f64,
    min_leaf: i64,
    memo: Option<Memo<f64, Arc<Tree>>>,
    tables: Pool,
    /// Observations about the task's costs.
    seen: Seen,
}

/// Observations about the floating-point costs that a search received.
#[derive(Debug, Default)]
struct Seen {
    /// Absolute value of the lowest cost or bound below 0.
    lowest: Largest,
    /// Largest increase of the cost of a tree when it was asked for again on the same rows.
    differs: Largest,
}

/// The largest of several non-negative numbers.
#[derive(Debug, Default)]
struct Largest(AtomicU64);

impl Largest {
    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Takes a number; infinite numbers are ignored.
    fn add(&self, value: f64) {
        if value > self.get() && value < f64::INFINITY {
            // Non-negative numbers have the same order as their bits.
            self.0.fetch_max(value.to_bits(), Ordering::Relaxed);
        }
    }
}

impl Seen {
    /// Takes costs, or bounds on costs.
    fn costs(&self, costs: &[f64]) {
        let finite = costs.iter().copied().filter(|cost| cost.is_finite());
        self.lowest.add(-finite.fold(0.0, f64::min));
    }
}

impl Problem<'_> {
    /// Bytes of the memo.
    fn remembered(&self) -> usize {
        self.memo.as_ref().map_or(0, Memo::bytes)
    }

    /// Leaf costs of records of integer sums, whose last channel is the number of rows; +∞ if there
    /// are fewer rows than allowed.
    fn leaf_costs(&self, records: &[i64]) -> Result<Vec<f64>, Stop> {
        self.of_records(records, f64::INFINITY, |cells, out| self.task.leaf_costs(cells, out))
    }

    /// Prices of splitting, including the penalty; meaningless if there are too few rows for a
    /// leaf.
    fn prices(&self, records: &[i64]) -> Result<Vec<f64>, Stop> {
        let stride = self.statistics.channels + 1;
        if !self.task.has_split_costs() {
            return Ok(vec![self.penalty; records.len() / stride]);
        }
        self.of_records(records, 0.0, |cells, out| {
            self.task.split_costs(cells, out)?;
            out.iter_mut().for_each(|price| *price += self.penalty);
            Ok(())
        })
    }

    /// Lower bounds on summed leaf costs; +∞ if there are too few rows for a leaf.
    fn lower_bounds(&self, records: &[i64]) -> Result<Vec<f64>, Stop> {
        self.of_records(records, f64::INFINITY, |cells, out| self.task.lower_bounds(cells, out))
    }

    fn of_records(
        &self,
        records: &[i64],
        without: f64,
        evaluate: impl FnOnce(&Cells, &mut [f64]) -> Result<(), Stop>,
    ) -> Result<Vec<f64>, Stop> {
        let channels = self.statistics.channels;
        let records = records.chunks_exact(channels + 1);
        let mut out = vec![without; records.len()];
        let mut cells = Cells::new(channels, records.len());
        let mut places = Vec::new();
        for (place, record) in records.enumerate() {
            if record[channels] >= self.min_leaf {
                cells.push(&record[..channels], &self.statistics.units);
                places.push(place);
            }
        }
        if places.is_empty() {
            return Ok(out);
        }
        let mut values = vec![0.0; places.len()];
        evaluate(&cells, &mut values)?;
        self.seen.costs(&values);
        for (place, value) in places.into_iter().zip(values) {
            out[place] = value;
        }
        Ok(out)
    }
}
