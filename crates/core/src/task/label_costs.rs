//! The cheapest label of a leaf, for any cost of giving a row a label.
//!
//! A leaf's cost is min over labels k of Σ cost[i][k], one channel per label. Accuracy,
//! balanced accuracy, cost matrices, per-instance costs and policies are all of this form
//! and share these lanes; each has a file of its own that says what its costs are.

use super::fixed::Fixed;
use super::{LaneTask, ScalarTask, Superadditive, Task, check_values};
use crate::error::Error;
use crate::simd::{LaneInt, Lanes};

/// Bits of a whole unit of cost left to tie prices: the 31 splits of a depth-5 tree fit.
const TIE_BITS: u32 = 5;

/// Totals that leave lanes room for tie prices.
pub(super) const MAX_TOTAL_BITS: u32 = 46;

/// Costs of the caller's rows, for the objective in f64.
#[derive(Clone, Debug)]
enum RowCosts {
    /// A row of this class costs its weight unless the leaf has its label.
    Classes { class: Vec<usize>, weight: Vec<f64> },
    /// `[row][label]`, weights included.
    Matrix(Vec<f64>),
}

/// A task of label costs: one channel per label, a leaf takes the cheapest.
#[derive(Clone, Debug)]
pub struct LabelCosts {
    n_labels: usize,
    statistics: Vec<i64>,
    /// Costs are statistics shifted left to leave room for fractional prices.
    up: u32,
    scale: f64,
    price: i64,
    tie: i64,
    /// What the summed costs are divided by in the objective.
    total_weight: f64,
    penalty: f64,
    rows: RowCosts,
}

impl LabelCosts {
    /// A row of class `labels[i]` costs `weight[i]` in a leaf with another label; the sum is
    /// divided by `total_weight`.
    pub(super) fn of_classes(
        labels: &[usize],
        n_classes: usize,
        weight: Vec<f64>,
        total_weight: f64,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        let fixed = Fixed::new(&weight, MAX_TOTAL_BITS);
        let mut statistics = vec![0i64; labels.len() * n_classes];
        for (record, (&class, &w)) in
            statistics.chunks_exact_mut(n_classes.max(1)).zip(labels.iter().zip(&fixed.values))
        {
            record.fill(w);
            record[class] = 0;
        }
        let total: i64 = fixed.values.iter().sum();
        if total == 0 {
            return Err(Error::invalid("sample_weight", "all weights are zero"));
        }
        let rows = RowCosts::Classes { class: labels.to_vec(), weight };
        let task = LabelCosts::of_statistics(n_classes, statistics, total, rows);
        Ok(task.normalised(fixed.scale(), total_weight, leaf_penalty, max_leaves))
    }

    /// `costs[row][label]` of giving a row a label, none negative; the objective is the mean
    /// cost per unit of weight. O(rows · labels).
    pub fn of_costs(
        costs: &[f64],
        n_labels: usize,
        weights: Option<&[f64]>,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        let n_labels = n_labels.max(1);
        check_values("costs", costs, n_labels)?;
        let n = costs.len() / n_labels;
        let weighted: Vec<f64> = match weights {
            None => costs.to_vec(),
            Some(w) => costs.iter().enumerate().map(|(at, c)| c * w[at / n_labels]).collect(),
        };
        let total_weight = weights.map_or(n as f64, |w| w.iter().sum());
        if total_weight == 0.0 {
            return Err(Error::invalid("sample_weight", "all weights are zero"));
        }
        let fixed = Fixed::new(&weighted, MAX_TOTAL_BITS);
        let total = |k| fixed.values.iter().skip(k).step_by(n_labels).sum::<i64>();
        let total = (0..n_labels).map(total).max().unwrap_or(0);
        let scale = fixed.scale();
        let rows = RowCosts::Matrix(weighted);
        let task = LabelCosts::of_statistics(n_labels, fixed.values, total, rows);
        Ok(task.normalised(scale, total_weight, leaf_penalty, max_leaves))
    }

    fn of_statistics(n_labels: usize, statistics: Vec<i64>, total: i64, rows: RowCosts) -> Self {
        let up = 54 - (total.max(1) as f64).log2().ceil() as u32;
        LabelCosts {
            n_labels,
            statistics,
            up,
            scale: 1.0,
            price: 0,
            tie: 0,
            total_weight: 1.0,
            penalty: 0.0,
            rows,
        }
    }

    fn normalised(
        mut self,
        fixed: f64,
        total_weight: f64,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Self {
        self.scale = fixed * (1i64 << self.up) as f64;
        self.total_weight = total_weight;
        self.penalty = leaf_penalty;
        let price = leaf_penalty * total_weight * self.scale;
        self.price = price.min((1i64 << 56) as f64).round() as i64;
        // Costs differ by whole units only when the penalty is a whole number of them.
        let whole = self.price % (1 << self.up) == 0;
        if whole && max_leaves <= 1 << TIE_BITS {
            self.tie = 1i64 << (self.up - TIE_BITS);
        }
        self
    }
}

impl Task for LabelCosts {
    type Cost = i64;

    #[inline(always)]
    fn channels(&self) -> usize {
        self.n_labels
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }

    fn leaf_candidates(&self, sums: &[i64], out: &mut Vec<i64>) {
        out.push(self.leaf_cost(sums));
    }

    fn combine(&self, a: &i64, b: &i64) -> i64 {
        a + b + self.split_price()
    }

    fn dominates(&self, a: &i64, b: &i64) -> bool {
        a <= b
    }
}

impl ScalarTask for LabelCosts {
    fn leaf_cost(&self, sums: &[i64]) -> i64 {
        sums.iter().copied().min().unwrap_or(0) << self.up
    }

    fn splits_help(&self, sums: &[i64]) -> bool {
        self.leaf_cost(sums) > 0
    }

    fn cost_rounding(&self) -> i64 {
        0
    }

    fn split_price(&self) -> i64 {
        self.price + self.tie
    }

    fn tie_price(&self) -> i64 {
        self.tie
    }

    fn scale(&self) -> f64 {
        self.scale
    }

    fn objective(&self, leaf_of: &[usize], n_leaves: usize) -> f64 {
        let n_labels = self.n_labels;
        let mut sums = vec![0.0; n_leaves * n_labels];
        let loss: f64 = match &self.rows {
            RowCosts::Classes { class, weight } => {
                for (&leaf, (&k, &w)) in leaf_of.iter().zip(class.iter().zip(weight)) {
                    sums[leaf * n_labels + k] += w;
                }
                let wrong = |leaf: &[f64]| {
                    leaf.iter().sum::<f64>() - leaf.iter().copied().fold(0.0, f64::max)
                };
                sums.chunks_exact(n_labels).map(wrong).sum()
            }
            RowCosts::Matrix(costs) => {
                for (&leaf, row) in leaf_of.iter().zip(costs.chunks_exact(n_labels)) {
                    for (sum, cost) in sums[leaf * n_labels..].iter_mut().zip(row) {
                        *sum += cost;
                    }
                }
                let least = |leaf: &[f64]| leaf.iter().copied().fold(f64::INFINITY, f64::min);
                sums.chunks_exact(n_labels).map(least).sum()
            }
        };
        loss / self.total_weight + self.penalty * n_leaves as f64
    }

    fn least_objective(&self) -> f64 {
        self.penalty
    }

    fn objective_of_cost(&self, cost: i64) -> f64 {
        cost as f64 / self.scale / self.total_weight + self.penalty
    }
}

impl Superadditive for LabelCosts {}

impl LaneTask for LabelCosts {
    /// The least of the labels so far.
    type State<L: Lanes> = L::Int;
    type Constants<L: Lanes> = ();

    fn max_lane_sum(&self, single: bool) -> i64 {
        // Integers that the reals of the lanes hold exactly, tie prices included.
        if single { 1 << (24 - TIE_BITS) } else { 1 << MAX_TOTAL_BITS }
    }

    fn lane_unit(&self, shift: &[u32]) -> f64 {
        ((1i64 << self.up) as f64) * (1i64 << shift[0]) as f64
    }

    fn lane_error(
        &self,
        rows: &[i64],
        shift: &[u32],
        max_leaves: usize,
        roundoff: f64,
        _: f64,
    ) -> f64 {
        if shift.iter().any(|&s| s > 0) {
            return f64::INFINITY;
        }
        // Whole costs and prices in thirty-seconds: every value that can win is exact. With
        // other prices the sums round, each of at most the costs of one label.
        if self.split_price() % (1 << (self.up - TIE_BITS)) == 0 {
            return 0.0;
        }
        let total = |k| rows.iter().skip(k).step_by(self.n_labels).sum::<i64>();
        let total = (0..self.n_labels).map(total).min().unwrap_or(0);
        f64::from(2 * max_leaves.ilog2()) * roundoff * total as f64
    }

    #[inline(always)]
    unsafe fn lane_constants<L: Lanes>(&self, _: &[u32]) {}

    #[inline(always)]
    unsafe fn lane_start<L: Lanes>(&self) -> L::Int {
        // SAFETY: the caller's contract.
        unsafe { L::splat(L::I::from_i64(L::I::MAX_SUM)) }
    }

    #[inline(always)]
    unsafe fn lane_fold<L: Lanes>(&self, least: L::Int, _: usize, sums: L::Int) -> L::Int {
        // SAFETY: the caller's contract.
        unsafe { L::min(least, sums) }
    }

    #[inline(always)]
    unsafe fn lane_loss<L: Lanes>(&self, (): (), least: L::Int) -> L::Real {
        // SAFETY: the caller's contract.
        unsafe { L::to_real(least) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_takes_its_cheapest_label() {
        let costs = [0.0, 2.0, 5.0, 1.0, 0.0, 0.5];
        let task = LabelCosts::of_costs(&costs, 3, Some(&[1.0, 2.0]), 0.25, 4).unwrap();
        let sums: Vec<i64> =
            (0..3).map(|k| task.statistics()[k] + task.statistics()[3 + k]).collect();
        // Labels cost 2, 2 and 6, for a weight of 3.
        assert!((task.objective_of_cost(task.leaf_cost(&sums)) - (2.0 / 3.0 + 0.25)).abs() < 1e-15);
        assert!((task.objective(&[0, 0], 1) - (2.0 / 3.0 + 0.25)).abs() < 1e-15);
        assert_eq!(task.objective(&[0, 1], 2), 0.5);
    }

    #[test]
    fn negative_costs_are_refused_by_row() {
        let refused = LabelCosts::of_costs(&[0.0, 1.0, 2.0, -1.0], 2, None, 0.0, 4).unwrap_err();
        assert_eq!(refused.to_string(), "costs: row 1 has a value that is not a number >= 0");
    }
}
