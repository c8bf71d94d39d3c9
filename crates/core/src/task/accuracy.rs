//! Misclassified weight, for any number of classes.

use super::fixed::Fixed;
use super::{LaneTask, ScalarTask, Superadditive, Task};
use crate::error::Error;
use crate::simd::Lanes;

/// Bits of a whole unit of cost left to tie prices: the 31 splits of a depth-5 tree fit.
const TIE_BITS: u32 = 5;

/// Totals that leave lanes room for tie prices.
const MAX_TOTAL_BITS: u32 = 46;

/// The accuracy task: one channel per class, the leaf predicts its heaviest class.
#[derive(Clone, Debug)]
pub struct Accuracy {
    n_classes: usize,
    statistics: Vec<i64>,
    /// Costs are weights in fixed point, shifted left to leave room for fractional prices.
    up: u32,
    scale: f64,
    price: i64,
    tie: i64,
    total_weight: f64,
    penalty: f64,
    labels: Vec<usize>,
    weights: Option<Vec<f64>>,
}

impl Accuracy {
    /// `labels` in `0..n_classes`; `leaf_penalty` is per leaf in the normalised objective
    /// (misclassified weight / total weight). Trees will have at most `max_leaves` leaves;
    /// when these are few, ties go to the fewest.
    pub fn new(
        labels: &[usize],
        n_classes: usize,
        weights: Option<&[f64]>,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        if let Some(bad) = labels.iter().position(|&k| k >= n_classes) {
            return Err(Error::invalid("y", format!("the label of row {bad} is out of range")));
        }
        let ones = vec![1.0; labels.len()];
        let weight = weights.unwrap_or(&ones);
        let fixed = Fixed::new(weight, MAX_TOTAL_BITS);
        let mut statistics = vec![0i64; labels.len() * n_classes];
        for (i, (&k, &w)) in labels.iter().zip(&fixed.values).enumerate() {
            statistics[i * n_classes + k] = w;
        }
        let total: i64 = fixed.values.iter().sum();
        if total == 0 {
            return Err(Error::invalid("sample_weight", "all weights are zero"));
        }
        let up = 54 - (total as f64).log2().ceil() as u32;
        let scale = fixed.scale() * (1i64 << up) as f64;
        let total_weight = weight.iter().sum::<f64>();
        let price = (leaf_penalty * total_weight * scale).min((1i64 << 56) as f64).round() as i64;
        // Costs differ by whole units only when the penalty is a whole number of them.
        let whole = price % (1 << up) == 0;
        let tie = if whole && max_leaves <= 1 << TIE_BITS { 1i64 << (up - TIE_BITS) } else { 0 };
        Ok(Accuracy {
            n_classes,
            statistics,
            up,
            scale,
            price,
            tie,
            total_weight,
            penalty: leaf_penalty,
            labels: labels.to_vec(),
            weights: weights.map(<[f64]>::to_vec),
        })
    }
}

impl Task for Accuracy {
    type Cost = i64;

    fn channels(&self) -> usize {
        self.n_classes
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

impl ScalarTask for Accuracy {
    fn leaf_cost(&self, sums: &[i64]) -> i64 {
        let heaviest = sums.iter().copied().max().unwrap_or(0);
        (sums.iter().sum::<i64>() - heaviest) << self.up
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
        let mut per_class = vec![0.0; n_leaves * self.n_classes];
        for (i, (&leaf, &k)) in leaf_of.iter().zip(&self.labels).enumerate() {
            per_class[leaf * self.n_classes + k] += self.weights.as_ref().map_or(1.0, |w| w[i]);
        }
        let wrong =
            |leaf: &[f64]| leaf.iter().sum::<f64>() - leaf.iter().copied().fold(0.0, f64::max);
        per_class.chunks_exact(self.n_classes).map(wrong).sum::<f64>() / self.total_weight
            + self.penalty * n_leaves as f64
    }

    fn least_objective(&self) -> f64 {
        self.penalty
    }

    fn objective_of_cost(&self, cost: i64) -> f64 {
        cost as f64 / self.scale / self.total_weight + self.penalty
    }
}

impl Superadditive for Accuracy {}

impl LaneTask for Accuracy {
    /// Sum over the classes so far, and the largest.
    type State<L: Lanes> = [L::Int; 2];
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
        // other prices the sums round, each of at most the whole weight.
        if self.split_price() % (1 << (self.up - TIE_BITS)) == 0 {
            return 0.0;
        }
        let total: i64 = rows.iter().sum();
        f64::from(2 * max_leaves.ilog2()) * roundoff * total as f64
    }

    #[inline(always)]
    unsafe fn lane_constants<L: Lanes>(&self, _: &[u32]) {}

    #[inline(always)]
    unsafe fn lane_start<L: Lanes>(&self) -> [L::Int; 2] {
        // SAFETY: the caller's contract.
        unsafe { [L::splat(L::I::default()); 2] }
    }

    #[inline(always)]
    unsafe fn lane_fold<L: Lanes>(
        &self,
        state: [L::Int; 2],
        _: usize,
        sums: L::Int,
    ) -> [L::Int; 2] {
        // SAFETY: the caller's contract.
        unsafe { [L::add(state[0], sums), L::max(state[1], sums)] }
    }

    #[inline(always)]
    unsafe fn lane_loss<L: Lanes>(&self, (): (), state: [L::Int; 2]) -> L::Real {
        // SAFETY: the caller's contract.
        unsafe { L::to_real(L::sub(state[0], state[1])) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_predicts_its_heaviest_class() {
        let task = Accuracy::new(&[0, 1, 2, 1], 3, Some(&[1.0, 2.0, 0.5, 0.25]), 0.0, 4).unwrap();
        let mut sums = [0i64; 3];
        for record in task.statistics().chunks(3) {
            for (s, v) in sums.iter_mut().zip(record) {
                *s += v;
            }
        }
        assert!((task.objective_of_cost(task.leaf_cost(&sums)) - 0.4).abs() < 1e-15);
        assert!((task.objective(&[0; 4], 1) - 0.4).abs() < 1e-15);
    }
}
