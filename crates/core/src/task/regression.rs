//! Squared error of a constant leaf.
//!
//! Σ w(y − ȳ)² = Σ w(y − c)² − S²/W with W = Σ w and S = Σ w(y − c). The first term is the same for
//! every tree, so a leaf costs −S²/W. See docs/maths/regression.md.

use super::fixed::{Fixed, nearest, power_of_two, times_power, unit_exponent};
use super::wide::{Squares, Wide};
use super::{
    FreeQuestions, LaneError, LaneTask, Placed, Questions, ScalarTask, Statistics, Superadditive,
    Swept, Ties, Weights, check_values, range_of,
};
use crate::error::Error;
use crate::precise::{Precise, two_sum};
use crate::search::{Allowed, Measured};
use crate::simd::{FloatLanes, LaneInt, LaneReal};

/// Bits of a channel's total, as many as 64-bit sums allow. Lanes drop the bits that they cannot
/// hold.
const TOTAL_BITS: u32 = 61;

/// Largest and smallest mean square of the targets, in the caller's unit.
const SQUARES: (f64, f64) = (1e-290, 1e300);

/// The regression task. The channels are the weight and the centred, weighted target.
#[derive(Clone, Debug)]
pub struct Regression {
    statistics: Vec<i64>,
    weight_scale: f64,
    target_scale: f64,
    price: i64,
    scale: f64,
    total_weight: f64,
    penalty: f64,
    /// Objective of a cost of 0: the mean squared distance from the centre.
    base: f64,
    /// Largest change of any tree's summed loss by rounding, apart from its costs and prices.
    off: f64,
    n_rows: f64,
    /// Smallest statistic of the target per unit of the weight statistic.
    least: f64,
    /// Targets divided by 2^`unit`.
    target: Vec<f64>,
    unit: i32,
    weight: Option<Vec<f64>>,
}

impl Regression {
    /// `target` must be finite; `leaf_penalty` is per leaf, in units of the mean squared error.
    /// O(n).
    pub fn new<'a>(
        target: &[f64],
        weights: impl Into<Weights<'a>>,
        leaf_penalty: f64,
    ) -> Result<Self, Error> {
        let given = weights.into();
        let weights = given.weight;
        if let Some(bad) = target.iter().position(|y| !y.is_finite()) {
            return Err(Error::invalid("y", format!("row {bad} is not finite")));
        }
        check_values("sample_weight", weights.unwrap_or(&[]), 1)?;
        let unit = unit_exponent(target.iter().copied());
        let target: Vec<f64> = target.iter().map(|&y| times_power(y, -unit)).collect();
        let weight_unit = weights.map_or(0, |w| unit_exponent(w.iter().copied()));
        let weights: Option<Vec<f64>> =
            weights.map(|w| w.iter().map(|&w| times_power(w, -weight_unit)).collect());
        let rows = given.with(weights.as_deref());
        let total_weight = rows.total(target.len())?;
        let weight = |i: usize| rows.of(i);
        let mut sum = Precise::default();
        for (i, &y) in target.iter().enumerate() {
            sum.add_product_times(weight(i), y, rows.count(i));
        }
        let mean = sum.value() / total_weight;
        // Whole targets remain whole numbers.
        let whole = target.iter().all(|y| y.fract() == 0.0);
        let centre = if whole { mean.round() } else { mean };
        let centred: Vec<f64> =
            target.iter().enumerate().map(|(i, y)| weight(i) * (y - centre)).collect();
        let absolute: Vec<f64> = centred.iter().map(|s| s.abs()).collect();
        let spread = rows.sum(centred.iter().zip(&target).map(|(s, y)| s * (y - centre)));
        let square = times_power(spread / total_weight, 2 * unit);
        if spread > 0.0 && !(SQUARES.0..SQUARES.1).contains(&square) {
            let far = |i: &usize| absolute[*i];
            let row = (0..target.len()).max_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(0);
            let reason = format!(
                "row {row} is {:e}: the mean square of the targets, about their mean, is not \
                 between {:e} and {:e}; change their unit",
                times_power(target[row], unit),
                SQUARES.0,
                SQUARES.1
            );
            return Err(Error::invalid("y", reason));
        }
        let fixed =
            |values: &[f64]| Fixed::counted(values.iter().copied(), |i| rows.count(i), TOTAL_BITS);
        let weight_fixed = fixed(&(0..target.len()).map(weight).collect::<Vec<_>>());
        let target_fixed = fixed(&absolute);
        let signed = |(&v, s): (&i64, &f64)| if *s < 0.0 { -v } else { v };
        let mut lifted = 0.0;
        let statistics: Vec<i64> = weight_fixed
            .values
            .iter()
            // A row with a target keeps some weight, however light it is.
            .zip(target_fixed.values.iter().zip(&centred).map(signed))
            .enumerate()
            .flat_map(|(i, (&w, s))| {
                lifted += if w == 0 && s != 0 { rows.count(i) } else { 0.0 };
                [w.max(i64::from(s != 0)), s]
            })
            .collect();
        // |cost| is at most the total spread; whole numbers are exact up to 2^52.
        let bits = if spread > 0.0 { 52 - spread.log2().ceil() as i32 } else { 40 };
        let scale = power_of_two(bits);
        let price = times_power(leaf_penalty, -2 * unit) * total_weight * scale;
        // The errors of the sums, and their effect on S²/W; see docs/maths/regression.md.
        let farthest = target.iter().map(|y| (y - centre).abs()).fold(0.0, f64::max);
        let rounded = if whole && weights.is_none() { 0.0 } else { 2.0 * f64::EPSILON };
        let targets = target_fixed.moved / target_fixed.scale()
            + rounded * rows.sum(absolute.iter().copied());
        let of_row = |record: &[i64]| record[1] as f64 / record[0] as f64;
        let weighed = statistics.chunks_exact(2).filter(|record| record[0] > 0);
        let least = weighed.map(of_row).fold(f64::INFINITY, f64::min);
        let light = (weight_fixed.moved + lifted) / weight_fixed.scale();
        let off = farthest * (8.0 * targets + 2.0 * farthest * light) + f64::EPSILON * 8.0 * spread;
        Ok(Regression {
            statistics,
            weight_scale: weight_fixed.scale(),
            target_scale: target_fixed.scale(),
            price: price.min((1i64 << 56) as f64).round() as i64,
            scale,
            total_weight,
            penalty: leaf_penalty,
            base: spread / total_weight,
            off,
            least,
            n_rows: given.counts().rows(target.len()),
            target,
            unit,
            weight: weights,
        })
    }

    /// The mean squared error in the caller's unit.
    fn outward(&self, scaled: f64) -> f64 {
        times_power(scaled, 2 * self.unit)
    }

    fn record(rows: &[i64], shift: &[u32]) -> Vec<(f64, f64)> {
        let unit = |c: usize| power_of_two(-(shift[c] as i32));
        rows.chunks_exact(2).map(|r| (r[0] as f64 * unit(0), r[1] as f64 * unit(1))).collect()
    }
}

/// Σ s²/w over records (w, s), an upper bound on the cost of any partition of the rows.
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
        -nearest(target * target / weight * self.scale)
    }

    fn concave_cost(&self, sums: &[i64]) -> Option<f64> {
        let endless = sums[0] == 0 && sums[1] != 0;
        Some(if endless { f64::NEG_INFINITY } else { self.leaf_cost(sums) as f64 })
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

    fn objective(&self, rows: Placed) -> Measured {
        // Sums and means have twice the precision, so differences from the mean are exact to the
        // last digits for any offset.
        let weight = |i: usize| self.weight.as_ref().map_or(1.0, |w| w[i]);
        let mut sums = vec![[Precise::default(); 2]; rows.n_leaves];
        let mut range = vec![[f64::INFINITY, f64::NEG_INFINITY]; rows.n_leaves];
        for (i, leaf, count) in rows.iter() {
            let (w, y) = (weight(i), self.target[i]);
            if w > 0.0 {
                sums[leaf][0].add_times(w, count);
                sums[leaf][1].add_product_times(w, y, count);
                range[leaf] = [range[leaf][0].min(y), range[leaf][1].max(y)];
            }
        }
        let means: Vec<Precise> = sums.iter().map(|[w, s]| s.over(*w)).collect();
        let mut total = Precise::default();
        for (i, leaf, count) in rows.iter() {
            let (w, y, [least, most]) = (weight(i), self.target[i], range[leaf]);
            if w > 0.0 && least < most {
                let Precise { sum: mean, rest: more } = means[leaf];
                let (difference, rest) = two_sum(y, -mean);
                total.add_times(w * (difference + (rest - more)).powi(2), count);
            }
        }
        let error = self.outward(total.value() / self.total_weight);
        Measured::plain(error + self.penalty * rows.n_leaves as f64)
    }

    fn least_objective(&self, leaves: usize) -> f64 {
        self.penalty * leaves as f64
    }

    fn objective_of_cost(&self, cost: i64) -> f64 {
        self.outward(self.base + cost as f64 / self.scale / self.total_weight) + self.penalty
    }

    fn resolution(&self, allowed: Allowed) -> f64 {
        let leaves = (allowed.leaves as f64).min(self.n_rows);
        // The cost of every leaf, and half a unit of its price.
        let costs = leaves * (self.cost_rounding() as f64 + 0.5) / self.scale;
        self.outward((self.off + costs) / self.total_weight)
    }

    fn wide(&self, known: f64) -> Option<Box<dyn Wide + '_>> {
        let weight = self.weight.as_deref();
        Some(Box::new(Squares::new(&self.target, self.unit, weight, self.penalty, known)))
    }

    fn widest(&self) -> (&'static str, String) {
        let targets = self.target.iter().map(|&y| times_power(y, self.unit));
        ("y", range_of(targets.enumerate()))
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
    type State<L: FloatLanes> = [L::Int; 2];
    /// The lower bound of every target, per unit of weight.
    type Constants<L: FloatLanes> = L::Real;

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
    fn lane_constants<L: FloatLanes>(&self, lanes: L, shift: &[u32]) -> L::Real {
        let least = self.least * power_of_two(shift[0] as i32 - shift[1] as i32);
        // Rows lighter than four units of weight are not shifted; the others may be half a unit
        // off.
        let rounded = if shift.iter().any(|&s| s > 0) { 0.25 } else { 1e-6 };
        lanes.splat_real(L::R::from_f64(least - rounded * (1.0 + least.abs())))
    }

    #[inline(always)]
    fn lane_start<L: FloatLanes>(&self, lanes: L) -> [L::Int; 2] {
        [lanes.splat(L::I::default()); 2]
    }

    #[inline(always)]
    fn lane_fold<L: FloatLanes>(
        &self,
        _: L,
        _: &Self::Constants<L>,
        mut state: [L::Int; 2],
        channel: usize,
        sums: L::Int,
    ) -> [L::Int; 2] {
        state[channel] = sums;
        state
    }

    #[inline(always)]
    fn lane_loss<L: FloatLanes>(
        &self,
        lanes: L,
        _: L::Real,
        [weight, target]: [L::Int; 2],
    ) -> L::Real {
        // An empty cell has a target of 0, too.
        let weight = L::to_real(L::max(weight, lanes.splat(L::I::from_i64(1))));
        let target = L::to_real(target);
        target * target / weight * lanes.splat_real(L::R::from_f64(-1.0))
    }
}

impl Swept for Regression {
    /// The corners of the box of the weight and of the targets, which are counted from the smallest
    /// target so that no row is negative. Non-empty parts weigh at least a unit.
    #[inline(always)]
    fn lane_least<L: FloatLanes>(
        &self,
        lanes: L,
        least: &L::Real,
        from: &[L::Int],
        to: &[L::Int],
        whole: &[L::Int],
    ) -> L::Real {
        let one = lanes.splat(L::I::from_i64(1));
        let minus = lanes.splat_real(L::R::from_f64(-1.0));
        let whole_target = L::to_real(whole[1]);
        let mut bound = lanes.splat_real(L::R::INFINITY);
        for (weight, end) in [(from[0], to), (to[0], from)] {
            let weight = L::max(L::min(weight, whole[0] - one), one);
            let rest = L::to_real(L::max(whole[0] - weight, one));
            // Targets at the end of the run are counted from the smallest target.
            let target = L::to_real(end[1]) + *least * L::to_real(weight - end[0]);
            let (weight, others) = (L::to_real(weight), whole_target - target);
            let both = (target * target / weight + others * others / rest) * minus;
            bound = L::min_real(bound, both);
        }
        bound
    }

    fn least_error(&self, rows: &[i64], shift: &[u32], roundoff: f64, _: f64) -> f64 {
        let records = Regression::record(rows, shift);
        let farthest = records.iter().filter(|r| r.0 > 0.0).map(|r| (r.1 / r.0).abs());
        let farthest = farthest.fold(0.0, f64::max) + 1.0;
        let total: f64 = records.iter().map(|r| r.1.abs() + 1.0).sum();
        let weight: f64 = records.iter().map(|r| r.0).sum();
        32.0 * roundoff * farthest * (total + farthest * weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Task;

    #[test]
    fn cost_and_objective_agree() {
        let (target, weight) = ([1.5, -2.0, 7.25, 3.0, 3.0], [1.0, 0.5, 2.0, 0.0, 1.0]);
        let task = Regression::new(&target, Some(&weight[..]), 0.01).unwrap();
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
        let objective = task.objective(Placed::rows(&leaf_of, 2)).objective;
        // The means are 1/3 and 17.5/3.
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
