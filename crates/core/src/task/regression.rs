//! Squared error of a constant leaf.
//!
//! Σ w(y − ȳ)² = Σ w(y − c)² − S²/W with W = Σ w, S = Σ w(y − c): the first term is the same
//! for every tree, so a leaf costs −S²/W. See docs/maths/regression.md.

use super::fixed::{Fixed, power_of_two};
use super::{
    FreeQuestions, LaneError, LaneTask, Questions, ScalarTask, Statistics, Superadditive, Ties,
    check_values,
};
use crate::error::Error;
use crate::simd::{LaneInt, LaneReal, Lanes};

/// Bits of a channel's total: as precise as 64-bit sums allow. Lanes drop what they cannot
/// hold.
const TOTAL_BITS: u32 = 61;

/// The regression task: channels are the weight and the weighted target, centred.
#[derive(Clone, Debug)]
pub struct Regression {
    statistics: Vec<i64>,
    weight_scale: f64,
    target_scale: f64,
    price: i64,
    scale: f64,
    total_weight: f64,
    penalty: f64,
    /// What a cost of 0 is worth: the mean squared distance from the centre, and a leaf.
    base: f64,
    target: Vec<f64>,
    weight: Option<Vec<f64>>,
}

impl Regression {
    /// `target` finite; `leaf_penalty` is per leaf, in units of the mean squared error. O(n).
    pub fn new(target: &[f64], weights: Option<&[f64]>, leaf_penalty: f64) -> Result<Self, Error> {
        if let Some(bad) = target.iter().position(|y| !y.is_finite()) {
            return Err(Error::invalid("y", format!("row {bad} is not finite")));
        }
        check_values("sample_weight", weights.unwrap_or(&[]), 1)?;
        let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
        let total_weight: f64 = (0..target.len()).map(weight).sum();
        if total_weight == 0.0 {
            return Err(Error::invalid("sample_weight", "all weights are zero"));
        }
        let mean =
            target.iter().enumerate().map(|(i, y)| weight(i) * y).sum::<f64>() / total_weight;
        // Whole targets stay whole.
        let centre = if target.iter().all(|y| y.fract() == 0.0) { mean.round() } else { mean };
        let centred: Vec<f64> =
            target.iter().enumerate().map(|(i, y)| weight(i) * (y - centre)).collect();
        let absolute: Vec<f64> = centred.iter().map(|s| s.abs()).collect();
        let spread: f64 = centred.iter().zip(target).map(|(s, y)| s * (y - centre)).sum::<f64>();
        if !spread.is_finite() {
            return Err(Error::invalid("y", "the squares of the targets overflow"));
        }
        let weight_fixed =
            Fixed::new(&(0..target.len()).map(weight).collect::<Vec<_>>(), TOTAL_BITS);
        let target_fixed = Fixed::new(&absolute, TOTAL_BITS);
        let signed = |(&v, s): (&i64, &f64)| if *s < 0.0 { -v } else { v };
        let statistics = weight_fixed
            .values
            .iter()
            // No row with a target is without weight, however light.
            .zip(target_fixed.values.iter().zip(&centred).map(signed))
            .flat_map(|(&w, s)| [w.max(i64::from(s != 0)), s])
            .collect();
        // |cost| is at most the spread in all; 2^52 is as far as whole numbers are exact.
        let bits = if spread > 0.0 { 52 - spread.log2().ceil() as i32 } else { 40 };
        let scale = power_of_two(bits);
        let price = leaf_penalty * total_weight * scale;
        Ok(Regression {
            statistics,
            weight_scale: weight_fixed.scale(),
            target_scale: target_fixed.scale(),
            price: price.min((1i64 << 56) as f64).round() as i64,
            scale,
            total_weight,
            penalty: leaf_penalty,
            base: spread / total_weight + leaf_penalty,
            target: target.to_vec(),
            weight: weights.map(<[f64]>::to_vec),
        })
    }

    fn record(rows: &[i64], shift: &[u32]) -> Vec<(f64, f64)> {
        let unit = |c: usize| power_of_two(-(shift[c] as i32));
        rows.chunks_exact(2).map(|r| (r[0] as f64 * unit(0), r[1] as f64 * unit(1))).collect()
    }
}

/// Σ s²/w over records (w, s): more than the cost of any partition of the rows.
fn spread(records: &[(f64, f64)]) -> f64 {
    records.iter().filter(|r| r.0 > 0.0).map(|&(w, s)| s * s / w).sum()
}

impl Statistics for Regression {
    #[inline(always)]
    fn channels(&self) -> usize {
        2
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }
}

impl ScalarTask for Regression {
    fn leaf_cost(&self, sums: &[i64]) -> i64 {
        if sums[0] == 0 {
            return 0;
        }
        let (weight, target) =
            (sums[0] as f64 / self.weight_scale, sums[1] as f64 / self.target_scale);
        -(target * target / weight * self.scale).round() as i64
    }

    fn splits_help(&self, sums: &[i64]) -> bool {
        sums[0] > 0
    }

    fn cost_rounding(&self) -> i64 {
        // Half a unit, and five roundings relative to 2^52 units.
        4
    }

    fn split_price(&self) -> i64 {
        self.price
    }

    fn objective(&self, leaf_of: &[usize], n_leaves: usize) -> f64 {
        let weight = |i: usize| self.weight.as_ref().map_or(1.0, |w| w[i]);
        let mut sums = vec![[0.0f64; 2]; n_leaves];
        for (i, (&leaf, y)) in leaf_of.iter().zip(&self.target).enumerate() {
            sums[leaf][0] += weight(i);
            sums[leaf][1] += weight(i) * y;
        }
        let error = |(i, (&leaf, y)): (usize, (&usize, &f64))| {
            let [w, s] = sums[leaf];
            if weight(i) > 0.0 { weight(i) * (y - s / w).powi(2) } else { 0.0 }
        };
        let total: f64 = leaf_of.iter().zip(&self.target).enumerate().map(error).sum();
        total / self.total_weight + self.penalty * n_leaves as f64
    }

    fn least_objective(&self) -> f64 {
        self.penalty
    }

    fn objective_of_cost(&self, cost: i64) -> f64 {
        self.base + cost as f64 / self.scale / self.total_weight
    }
}

impl Superadditive for Regression {
    fn rank(&self, sums: &[i64]) -> Option<f64> {
        Some(sums[1] as f64 / sums[0].max(1) as f64)
    }
}

impl Ties for Regression {}

impl Questions for Regression {}
impl FreeQuestions for Regression {}

impl LaneTask for Regression {
    type State<L: Lanes> = [L::Int; 2];
    type Constants<L: Lanes> = ();

    fn max_lane_sum(&self, single: bool) -> i64 {
        if single { i32::MAX_SUM } else { i64::MAX_SUM }
    }

    fn lane_unit(&self, shift: &[u32]) -> f64 {
        let target = power_of_two(shift[1] as i32) / self.target_scale;
        let weight = power_of_two(shift[0] as i32) / self.weight_scale;
        target * target / weight * self.scale
    }

    fn lane_scale(&self, rows: &[i64], shift: &[u32]) -> f64 {
        0.01 * spread(&Regression::record(rows, shift))
    }

    fn lane_error(
        &self,
        rows: &[i64],
        shift: &[u32],
        max_leaves: usize,
        roundoff: f64,
        _: f64,
    ) -> LaneError {
        let records = Regression::record(rows, shift);
        let spread = spread(&records);
        // Five roundings of a leaf and 2d − 3 sums, relative to the cost.
        let mut error = f64::from(2 * max_leaves.ilog2() + 4) * roundoff * spread;
        let lightest =
            records.iter().map(|r| r.0).filter(|&w| w > 0.0).fold(f64::INFINITY, f64::min);
        if shift[0] > 0 {
            if lightest < 4.0 {
                return LaneError::Fixed(f64::INFINITY);
            }
            error += 4.0 / 7.0 * spread / lightest;
        }
        if shift[1] > 0 {
            let total: f64 = records.iter().map(|r| r.1.abs()).sum();
            error += 8.0 / 7.0 * (total + 0.25 * records.len() as f64) / lightest;
        }
        LaneError::Fixed(error)
    }

    #[inline(always)]
    fn lane_constants<L: Lanes>(&self, _: L, _: &[u32]) {}

    #[inline(always)]
    fn lane_start<L: Lanes>(&self, lanes: L) -> [L::Int; 2] {
        [lanes.splat(L::I::default()); 2]
    }

    #[inline(always)]
    fn lane_fold<L: Lanes>(
        &self,
        _: L,
        mut state: [L::Int; 2],
        channel: usize,
        sums: L::Int,
    ) -> [L::Int; 2] {
        state[channel] = sums;
        state
    }

    #[inline(always)]
    fn lane_loss<L: Lanes>(&self, lanes: L, (): (), [weight, target]: [L::Int; 2]) -> L::Real {
        // An empty cell has a target of 0 as well.
        let weight = L::to_real(L::max(weight, lanes.splat(L::I::from_i64(1))));
        let target = L::to_real(target);
        target * target / weight * lanes.splat_real(L::R::from_f64(-1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Task;

    #[test]
    fn cost_and_objective_agree() {
        let (target, weight) = ([1.5, -2.0, 7.25, 3.0, 3.0], [1.0, 0.5, 2.0, 0.0, 1.0]);
        let task = Regression::new(&target, Some(&weight), 0.01).unwrap();
        let leaf_of = [0, 0, 1, 1, 1];
        let sums = |leaf: usize| {
            let mut sums = [0i64; 2];
            for (i, _) in leaf_of.iter().enumerate().filter(|&(_, &l)| l == leaf) {
                sums[0] += task.statistics()[2 * i];
                sums[1] += task.statistics()[2 * i + 1];
            }
            sums
        };
        let cost = task.combine(&task.leaf_cost(&sums(0)), &task.leaf_cost(&sums(1)));
        let objective = task.objective(&leaf_of, 2);
        // Means 1/3 and 17.5/3.
        let by_hand: f64 = [
            (1.5f64 - 1.0 / 3.0).powi(2),
            0.5 * (-2.0f64 - 1.0 / 3.0).powi(2),
            2.0 * (7.25f64 - 17.5 / 3.0).powi(2),
            (3.0f64 - 17.5 / 3.0).powi(2),
        ]
        .iter()
        .sum();
        assert!((objective - (by_hand / 4.5 + 0.02)).abs() < 1e-14);
        assert!((task.objective_of_cost(cost) - objective).abs() < 1e-13);
    }

    #[test]
    fn whole_targets_are_exact() {
        let task = Regression::new(&[3.0, 4.0, 4.0], None, 0.0).unwrap();
        assert_eq!(task.statistics(), [1, -1, 1, 0, 1, 0]);
    }
}
