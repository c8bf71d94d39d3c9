//! The fall of an objective that is a function of summed statistics, at every threshold.

use super::{Criterion, Interrupted, columns::Entry};
use crate::task::Questions;

/// Gains of so many units, for each that rounding may add to a leaf, are rounding.
const ROUNDING: i64 = 64;

/// Sums of integers decide: they are exact and do not depend on the order of the rows.
pub(super) struct Sums<'a, T> {
    task: &'a T,
    /// Of the node, and of the two sides of a cut.
    all: Vec<i64>,
    left: Vec<i64>,
    right: Vec<i64>,
    /// Columns tested above the node.
    path: Vec<usize>,
    leaf: i64,
}

impl<'a, T: Questions> Sums<'a, T> {
    pub fn new(task: &'a T) -> Self {
        let zeros = vec![0; task.channels()];
        Sums { task, all: zeros.clone(), left: zeros.clone(), right: zeros, path: vec![], leaf: 0 }
    }

    fn feature_price(&self, column: usize) -> i64 {
        self.task.feature_price(column, &self.path, &self.all)
    }
}

/// Adds the statistics of a row.
fn add<T: Questions>(task: &T, sums: &mut [i64], row: u32) {
    let channels = sums.len();
    let record = &task.statistics()[row as usize * channels..][..channels];
    sums.iter_mut().zip(record).for_each(|(sum, value)| *sum += value);
}

impl<T: Questions> Criterion for Sums<'_, T> {
    fn enter(&mut self, rows: &[u32], path: &[usize]) -> bool {
        self.all.fill(0);
        for &row in rows {
            add(self.task, &mut self.all, row);
        }
        self.path.clear();
        self.path.extend(path);
        self.leaf = self.task.leaf_cost(&self.all);
        self.task.splits_help(&self.all)
    }

    fn score(
        &mut self,
        column: usize,
        order: &[Entry],
        cuts: &[usize],
        falls: &mut [f64],
        _: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        let price = self.feature_price(column);
        let mut begin = 0;
        self.left.fill(0);
        for (&cut, fall) in cuts.iter().zip(falls) {
            for entry in &order[begin..cut] {
                add(self.task, &mut self.left, entry.row);
            }
            begin = cut;
            for ((right, all), left) in self.right.iter_mut().zip(&self.all).zip(&self.left) {
                *right = all - left;
            }
            let sides = self.task.leaf_cost(&self.left) + self.task.leaf_cost(&self.right);
            *fall = (self.leaf - sides - price) as f64;
        }
        Ok(())
    }

    fn rounding(&self) -> f64 {
        (ROUNDING * self.task.cost_rounding()) as f64
    }

    fn leaf(&self) -> i64 {
        self.leaf
    }

    fn price(&self, column: usize) -> i64 {
        self.task.split_price().saturating_add(self.feature_price(column))
    }
}
