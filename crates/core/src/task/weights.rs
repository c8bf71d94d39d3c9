//! Weights of records, and the number of rows that each record stands for.
//!
//! A task is prepared from records of outcomes. In a frame every row is a record. A table that is
//! read in parts is prepared from its distinct outcomes; many rows may have the same one.
//! Constants and scales are computed over all rows, and the statistics of a record are those of one
//! of its rows, so both ways give the same numbers.

use crate::error::Error;
use crate::precise::Precise;

/// Weights and numbers of rows, by record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weights<'a> {
    /// Weight of each row of a record; 1 if not given.
    pub weight: Option<&'a [f64]>,
    /// Number of rows of each record; 1 if not given.
    pub count: Option<&'a [i64]>,
}

impl<'a> From<Option<&'a [f64]>> for Weights<'a> {
    fn from(weight: Option<&'a [f64]>) -> Self {
        Weights { weight, count: None }
    }
}

impl<'a> Weights<'a> {
    /// Weight of each row of a record.
    #[inline(always)]
    pub fn of(self, record: usize) -> f64 {
        self.weight.map_or(1.0, |weight| weight[record])
    }

    /// Number of rows of a record.
    #[inline(always)]
    pub fn count(self, record: usize) -> f64 {
        self.count.map_or(1.0, |count| count[record] as f64)
    }

    /// An owned copy of the numbers of rows.
    pub fn counts(self) -> Counts {
        Counts(self.count.map(|count| count.iter().map(|&n| n as f64).collect()))
    }

    /// The same numbers of rows with other weights.
    pub fn with<'b>(self, weight: Option<&'b [f64]>) -> Weights<'b>
    where
        'a: 'b,
    {
        Weights { weight, count: self.count }
    }

    /// Sum of the weights of the rows of `n` records.
    ///
    /// # Errors
    ///
    /// If all weights are zero.
    pub fn total(self, n: usize) -> Result<f64, Error> {
        let total = self.weight(n);
        if total > 0.0 {
            Ok(total)
        } else {
            Err(Error::invalid("sample_weight", "all weights are zero"))
        }
    }

    /// The same sum, which may be zero.
    pub fn weight(self, n: usize) -> f64 {
        if self.weight.is_none() && self.count.is_none() {
            return n as f64;
        }
        self.sum((0..n).map(|record| self.of(record)))
    }

    /// Sum over all rows of one value per record.
    pub fn sum(self, values: impl Iterator<Item = f64>) -> f64 {
        sum_of(values, |record| self.count(record))
    }
}

fn sum_of(values: impl Iterator<Item = f64>, count: impl Fn(usize) -> f64) -> f64 {
    let mut sum = Precise::default();
    values.enumerate().for_each(|(record, v)| sum.add_times(v, count(record)));
    sum.value()
}

/// Number of rows of each record of a task; `None` if every record is one row.
#[derive(Clone, Debug, Default)]
pub struct Counts(Option<Vec<f64>>);

impl Counts {
    /// Number of rows of a record.
    #[inline(always)]
    pub fn of(&self, record: usize) -> f64 {
        self.0.as_ref().map_or(1.0, |count| count[record])
    }

    /// Sum over all rows of one value per record.
    pub fn sum(&self, values: impl Iterator<Item = f64>) -> f64 {
        sum_of(values, |record| self.of(record))
    }

    /// Number of rows of `n` records.
    pub fn rows(&self, n: usize) -> f64 {
        self.0.as_ref().map_or(n as f64, |count| count.iter().sum())
    }
}

/// Rows in the leaves of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    leaf: &'a [usize],
    record: Option<&'a [usize]>,
    count: Option<&'a [i64]>,
    /// Number of leaves.
    pub n_leaves: usize,
}

impl<'a> Placed<'a> {
    /// Every record is one row; `leaf` is the leaf of each.
    pub fn rows(leaf: &'a [usize], n_leaves: usize) -> Self {
        Placed { leaf, record: None, count: None, n_leaves }
    }

    /// For each entry, a record, its leaf, and its number of rows in that leaf.
    pub fn counted(
        record: &'a [usize],
        leaf: &'a [usize],
        count: &'a [i64],
        n_leaves: usize,
    ) -> Self {
        assert!(record.len() == leaf.len() && count.len() == leaf.len());
        Placed { leaf, record: Some(record), count: Some(count), n_leaves }
    }

    /// Record, leaf and number of rows.
    #[inline(always)]
    pub fn iter(self) -> impl Iterator<Item = (usize, usize, f64)> + 'a {
        (0..self.leaf.len()).map(move |at| {
            let record = self.record.map_or(at, |record| record[at]);
            (record, self.leaf[at], self.count.map_or(1.0, |count| count[at] as f64))
        })
    }
}
