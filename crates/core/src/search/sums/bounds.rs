//! Lower bounds on the trees of a node that need no search, only its rows.

use crate::data::{Sample, add, column_bitsets, n_words};
use crate::search::nodes::NOTHING;
use crate::search::{Monitor, Settings, Stop};
use crate::task::LaneTask;

/// Number of rows between two checks of the clock.
const ROWS_PER_CHECK: usize = 1 << 14;

/// Computes bounds from the costs of single rows.
pub struct RowBounds<'a, T> {
    task: &'a T,
    enabled: bool,
    /// Whether leaves may have any size.
    any_leaves: bool,
    /// Cost of each distinct row as a part, rounded down; no tree separates these rows further.
    row_costs: Vec<i64>,
    /// The most that each distinct row can cost in any leaf, if the task has such a bound.
    worst_costs: Option<Vec<i64>>,
}

impl<'a, T: LaneTask> RowBounds<'a, T> {
    /// Prepares for `sample`, from which the rows of all nodes come.
    pub fn new(task: &'a T, sample: &Sample, settings: &Settings) -> Self {
        let rows = || (0..sample.n_rows()).map(|r| sample.statistics(r));
        RowBounds {
            task,
            enabled: settings.switches.equivalent_points,
            any_leaves: settings.limits.any_leaves() && task.minima().is_empty(),
            row_costs: rows().map(|row| task.row_cost(row)).collect(),
            worst_costs: rows().map(|row| task.worst_cost(row)).collect(),
        }
    }

    /// Cost of the finest partition of a node's rows, a lower bound for every tree (equivalent
    /// points).
    pub fn finest(&self, sample: &Sample) -> i64 {
        if self.enabled {
            sample.ids.iter().map(|&r| self.row_costs[r as usize]).sum()
        } else {
            2 * NOTHING
        }
    }

    /// Cost of a distinct row as a part, rounded down.
    pub fn row_cost(&self, id: u32) -> i64 {
        self.row_costs[id as usize]
    }

    /// Bounds on the best trees of both sides of every split, `[column][value]`. A side costs at
    /// least its leaf, or its finest partition plus one more split and the cheapest test
    /// (look-ahead). The bound is `i64::MAX` if the tree of the other side would cost no more in
    /// the place of the split (leaf support). O(rows · columns · channels).
    pub fn sides(&self, sample: &Sample, monitor: &Monitor) -> Result<Vec<[i64; 2]>, Stop> {
        let n = sample.n_columns();
        if !self.enabled {
            return Ok(vec![[NOTHING; 2]; n]);
        }
        // Sums over the rows in which each column is true: statistics, cost as parts, worst cost.
        let (channels, width) = (sample.channels, sample.channels + 2);
        let (mut yes, mut all) = (vec![0i64; n * width], vec![0i64; width]);
        let mut record = vec![0i64; width];
        for r in 0..sample.n_rows() {
            if r.is_multiple_of(ROWS_PER_CHECK) {
                monitor.check()?;
            }
            let id = sample.ids[r] as usize;
            record[..channels].copy_from_slice(sample.statistics(r));
            record[channels] = self.row_costs[id];
            record[channels + 1] = self.worst_costs.as_ref().map_or(0, |worst| worst[id]);
            add(&mut all, &record);
            for c in sample.true_columns(r) {
                add(&mut yes[c * width..][..width], &record);
            }
        }
        let tests = T::PRICED.then(|| Tests::new(self.task, sample));
        let price = self.task.split_price();
        let bound = |c: usize, value: bool, sums: &[i64]| {
            let (finest, worst) = (sums[channels], sums[channels + 1]);
            if self.worst_costs.is_some() && worst.saturating_sub(finest) <= price {
                return i64::MAX;
            }
            let sums = &sums[..channels];
            let test = tests.as_ref().map_or(0, |tests| tests.cheapest(c, value, sums));
            self.task.leaf_cost(sums).min(finest.saturating_add(price).saturating_add(test))
        };
        let mut no = vec![0i64; width];
        let sides = yes.chunks_exact(width).enumerate().map(|(c, yes)| {
            if T::PRICED {
                monitor.check()?;
            }
            no.iter_mut().zip(&all).zip(yes).for_each(|((no, all), yes)| *no = all - yes);
            Ok([bound(c, false, &no), bound(c, true, yes)])
        });
        sides.collect()
    }

    /// For every other column, an upper bound on how much more the best tree with column `c` at its
    /// root may cost than the best tree with that column. The rows that change sides may cost their
    /// worst instead of what they cost alone (similar support). `None` for tasks without a worst
    /// cost, and if leaves need a minimum of rows. O(rows · columns).
    pub fn exchange(&self, sample: &Sample, c: usize) -> Option<Vec<i64>> {
        let worst = self.worst_costs.as_ref().filter(|_| self.enabled && self.any_leaves)?;
        let (mut all, mut of_c) = (0i64, 0i64);
        // Sums over the rows in which each column is true: all of them, and those where `c` is
        // true, too.
        let mut sums = vec![[0i64; 2]; sample.n_columns()];
        for r in 0..sample.n_rows() {
            let id = sample.ids[r] as usize;
            let rise = worst[id] - self.row_costs[id];
            let with = sample.get(r, c);
            all += rise;
            of_c += if with { rise } else { 0 };
            for other in sample.true_columns(r) {
                sums[other][0] += rise;
                sums[other][1] += if with { rise } else { 0 };
            }
        }
        // A column and its complement are the same question.
        let differ = |[one, both]: [i64; 2]| of_c + one - 2 * both;
        Some(sums.into_iter().map(|sums| differ(sums).min(all - differ(sums))).collect())
    }
}

/// Finds the cheapest test that splits a side.
struct Tests<'a, T> {
    task: &'a T,
    sample: &'a Sample,
    /// Columns as bitsets over the rows, `[column][words]`.
    bits: Vec<u64>,
    words: usize,
    ones: Vec<usize>,
    /// Columns from cheap to expensive; the order of prices is the same for all rows.
    ascending: Vec<usize>,
}

impl<'a, T: LaneTask> Tests<'a, T> {
    fn new(task: &'a T, sample: &'a Sample) -> Self {
        let (n, words) = (sample.n_columns(), n_words(sample.n_rows()));
        let mut bits = Vec::new();
        column_bitsets(sample.n_rows(), n, |r| sample.row(r), &mut bits);
        let count = |column: &[u64]| column.iter().map(|w| w.count_ones() as usize).sum();
        let ones = bits.chunks_exact(words).map(count).collect();
        let price = |&c: &usize| {
            task.feature_price(sample.columns[c].feature, &sample.tested, &sample.total)
        };
        let mut ascending: Vec<usize> = (0..n).collect();
        ascending.sort_by_key(price);
        Tests { task, sample, bits, words, ones, ascending }
    }

    /// Whether column `other` splits the rows in which column `c` has this value.
    fn part(&self, c: usize, value: bool, other: usize) -> bool {
        let column = |c: usize| self.bits[c * self.words..][..self.words].iter();
        let both: usize =
            column(c).zip(column(other)).map(|(a, b)| (a & b).count_ones() as usize).sum();
        let (inside, rows) = if value {
            (both, self.ones[c])
        } else {
            (self.ones[other] - both, self.sample.n_rows() - self.ones[c])
        };
        0 < inside && inside < rows
    }

    /// Smallest price of a test that splits the rows in which column `c` has this value, whose
    /// statistics are `sums`; `i64::MAX` if there is no such test.
    fn cheapest(&self, c: usize, value: bool, sums: &[i64]) -> i64 {
        let feature = self.sample.columns[c].feature;
        let tested: Vec<usize> = self.sample.tested.iter().copied().chain([feature]).collect();
        let relatives = self.task.relatives(feature).iter();
        let relatives = relatives.filter_map(|&f| self.sample.column_of(f));
        let others = self.ascending.iter().copied().filter(|&other| other != c);
        let part = |&other: &usize| self.part(c, value, other);
        let candidates = relatives.filter(part).chain(others.filter(part).take(1));
        let price =
            |c: usize| self.task.feature_price(self.sample.columns[c].feature, &tested, sums);
        candidates.map(price).min().unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::task::accuracy::Accuracy;
    use crate::task::{ScalarTask, Statistics};

    #[test]
    fn columns_that_part_two_rows_differently_are_two_errors_apart() {
        let bits = |r: u8| {
            let first = u8::from(r < 4);
            let other = first ^ u8::from(r == 1 || r == 2);
            [first, other, u8::from(r.is_multiple_of(3)), u8::from(r.is_multiple_of(2))]
        };
        let bytes: Vec<u8> = (0..9).flat_map(bits).collect();
        let labels: Vec<usize> = (0..9).map(|r| r / 5).collect();
        let task = Accuracy::new(&labels, 2, None, 0.0, 8).unwrap();
        let matrix = BinaryMatrix::from_bytes(9, 4, &bytes).unwrap();
        let sample = Sample::new(&matrix, task.statistics(), 2);
        let settings = Settings::default();
        let bounds = RowBounds::new(&task, &sample, &settings);
        let error = task.leaf_cost(&[1, 1]);
        let column = |feature| sample.column_of(feature).unwrap();
        let rises = bounds.exchange(&sample, column(0)).unwrap();
        assert_eq!((rises[column(0)], rises[column(1)]), (0, 2 * error));
        let rows = settings.with_limits(|s| s.min_leaf = 2);
        assert!(RowBounds::new(&task, &sample, &rows).exchange(&sample, 0).is_none());
    }
}
