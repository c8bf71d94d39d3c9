//! Leaf costs without rounding, for data whose range is too wide for 64-bit sums.
//!
//! Every value is an integer times one power of two, as wide as it needs to be. Its digits to the
//! base 2^32 are channels, so rows are merged and summed in the usual way. The cost of a leaf is
//! computed from the sums in integers of any size, and rounded down once, to a unit that is a tiny
//! part of the objective of a known tree. See docs/maths/resolution.md.

use super::digits::{Digits, Dyadic, parts};
use super::fixed::mean_times_power;
use super::groups::{Groups, reach};
use super::prices::FeaturePrices;
use super::rewards::{Rewards, in_two_parts};
use super::{Statistics, Weights};
use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Bits of the summed cost of the known tree.
const KNOWN_BITS: i32 = 64;

/// Bits of the summed shortfall of the known tree, which may be much larger than its rewards.
const SHORTFALL_BITS: i32 = 108;

/// Cap on leaves and prices, far above every tree that may be better than the known one.
const MOST: i128 = 1 << 120;

/// A task whose costs are integers of any size, rounded down by less than one unit per leaf and per
/// price.
pub trait Wide: Statistics {
    /// Cost of a leaf with these sums, capped at a limit.
    fn leaf_cost(&self, sums: &[i64]) -> i128;

    /// Whether rows with these sums reach the minima of a leaf.
    fn allows_leaf(&self, _sums: &[i64]) -> bool {
        true
    }

    /// Price of a split.
    fn split_price(&self) -> i128;

    /// Objective of a total cost.
    fn objective_of_cost(&self, cost: i128) -> f64;

    /// A cost in units of the objective.
    fn value_of_cost(&self, cost: i128) -> f64;

    /// Size of the intermediate values that [`objective_of_cost`](Self::objective_of_cost) rounds
    /// to reach this value.
    fn addends(&self, value: f64) -> f64 {
        value.abs()
    }

    /// Whether questions have prices; see [`super::Questions`].
    fn is_priced(&self) -> bool {
        false
    }

    /// Price of a question on rows with these sums below the features `tested`.
    fn feature_price(&self, _feature: usize, _tested: &[usize], _sums: &[i64]) -> i128 {
        0
    }

    /// See [`super::Questions::kinds`].
    fn kinds(&self) -> Vec<u32> {
        Vec::new()
    }

    /// See [`super::Questions::context`].
    fn context(&self, _feature: usize, _tested: &[usize]) -> u64 {
        0
    }
}

/// Unit of cost: 2^`exponent` units are one unit of the summed loss.
#[derive(Clone, Copy)]
struct Unit {
    exponent: i32,
    /// Exponent of the power of two that losses were divided by.
    outward: i32,
    total_weight: f64,
    penalty: f64,
}

impl Unit {
    /// A unit in which the summed loss `known` is a large number. Objectives are multiplied by
    /// 2^`outward`.
    fn new(known: f64, outward: i32, total_weight: f64, penalty: f64) -> Unit {
        // Logarithm of a product that may leave the range of f64.
        let size = known.log2() - f64::from(outward) + total_weight.log2();
        Unit { exponent: KNOWN_BITS - size.ceil() as i32, outward, total_weight, penalty }
    }

    /// numerator / divisor · 2^`exponent` in units, rounded down.
    fn floor(self, numerator: BigInt, divisor: &BigInt, exponent: i32) -> i128 {
        let shift = exponent + self.exponent;
        let quotient = if shift >= 0 {
            (numerator << shift) / divisor
        } else {
            // Costs are not negative, so division rounds down.
            numerator / (divisor << -shift)
        };
        quotient.to_i128().map_or(MOST, |cost| cost.min(MOST))
    }

    fn price(self) -> i128 {
        let ((penalty, a), (weight, b)) = (parts(self.penalty), parts(self.total_weight));
        let price = BigInt::from(penalty) * weight;
        self.floor(price, &BigInt::one(), a + b - self.outward)
    }

    fn value(self, cost: i128) -> f64 {
        mean_times_power(cost as f64, self.total_weight, self.outward - self.exponent)
    }

    fn objective(self, cost: i128) -> f64 {
        self.value(cost) + self.penalty
    }
}

/// Squared error of a constant leaf: Σ wy² − (Σ wy)² / Σ w.
pub struct Squares {
    digits: Digits,
    exponent: i32,
    unit: Unit,
}

impl Squares {
    /// `target` was divided by 2^`outward`; `known` is the objective of a tree.
    pub fn new(
        target: &[f64],
        outward: i32,
        weight: Option<&[f64]>,
        penalty: f64,
        known: f64,
    ) -> Squares {
        let n = target.len();
        let targets = Dyadic::new(target.iter().copied());
        let weights = Dyadic::new((0..n).map(|i| weight.map_or(1.0, |w| w[i])));
        // A common offset does not change the loss.
        let middle = targets.integers.iter().sum::<BigInt>() / BigInt::from(n.max(1));
        let record = |(y, w): (&BigInt, &BigInt)| {
            let y = y - &middle;
            let wy = w * &y;
            [w.clone(), wy.clone(), wy * y]
        };
        let rows = targets.integers.iter().zip(&weights.integers);
        let records: Vec<BigInt> = rows.flat_map(record).collect();
        let exponent = 2 * targets.exponent + weights.exponent;
        let total_weight = Weights::from(weight).total(n).unwrap_or(1.0);
        let unit = Unit::new(known, 2 * outward, total_weight, penalty);
        Squares { digits: Digits::new(&records, 3), exponent, unit }
    }
}

impl Statistics for Squares {
    fn channels(&self) -> usize {
        self.digits.channels
    }

    fn statistics(&self) -> &[i64] {
        &self.digits.statistics
    }
}

impl Wide for Squares {
    fn leaf_cost(&self, sums: &[i64]) -> i128 {
        let [w, s, q] = [0, 1, 2].map(|number| self.digits.sum(number, sums));
        if w.is_zero() {
            return 0;
        }
        self.unit.floor(q * &w - &s * &s, &w, self.exponent)
    }

    fn split_price(&self) -> i128 {
        self.unit.price()
    }

    fn objective_of_cost(&self, cost: i128) -> f64 {
        self.unit.objective(cost)
    }

    fn value_of_cost(&self, cost: i128) -> f64 {
        self.unit.value(cost)
    }
}

/// The cheapest label of a leaf, and prices of questions.
pub struct Labels<'a> {
    n_labels: usize,
    digits: Digits,
    exponent: i32,
    unit: Unit,
    prices: Option<(&'a FeaturePrices, i32)>,
    /// The rewards, if costs are their shortfalls, and the most splits of a tree that may be
    /// optimal.
    rewards: Option<(&'a Rewards, f64)>,
    /// Minimum counts, which are the last channels.
    minima: &'a [i64],
}

impl<'a> Labels<'a> {
    /// `costs[row][label]` are weighted; their sum over the rows is divided by `total_weight` in
    /// the objective, which is multiplied by 2^`outward`. Prices are charged on the weights of the
    /// rows.
    pub fn new(
        costs: &[f64],
        n_labels: usize,
        (total_weight, outward): (f64, i32),
        prices: Option<(&'a FeaturePrices, &[f64])>,
        penalty: f64,
        known: f64,
    ) -> Labels<'a> {
        let of_labels = Dyadic::new(costs.iter().copied());
        let exponent = of_labels.exponent;
        let unit = Unit::new(known, outward, total_weight, penalty);
        let Some((prices, weights)) = prices else {
            let digits = Digits::new(&of_labels.integers, n_labels);
            let (prices, rewards, minima) = (None, None, &[][..]);
            return Labels { n_labels, digits, exponent, unit, prices, rewards, minima };
        };
        let weights = Dyadic::new(weights.iter().copied());
        let rows = of_labels.integers.chunks_exact(n_labels).zip(&weights.integers);
        let record = |(costs, w): (&[BigInt], &'_ BigInt)| {
            costs.iter().cloned().chain([w.clone()]).collect::<Vec<_>>()
        };
        let records: Vec<BigInt> = rows.flat_map(record).collect();
        let digits = Digits::new(&records, n_labels + 1);
        let (prices, rewards, minima) = (Some((prices, weights.exponent)), None, &[][..]);
        Labels { n_labels, digits, exponent, unit, prices, rewards, minima }
    }

    /// Exact shortfalls of rewards; `splits` is the largest number of splits that may be useful.
    pub fn of_rewards(
        rewards: &'a Rewards,
        groups: &'a Groups,
        penalty: f64,
        splits: f64,
        known: f64,
    ) -> Labels<'a> {
        let (values, weights) = rewards.weighted();
        let n_labels = values.len() / weights.len().max(1);
        let values = Dyadic::new(values.iter().copied());
        let weights = Dyadic::new(weights.iter().copied());
        let rows = values.integers.chunks_exact(n_labels.max(1)).zip(&weights.integers);
        let short = |(rewards, w): (&'_ [BigInt], &'_ BigInt)| {
            let best = rewards.iter().max().cloned().unwrap_or_default();
            rewards.iter().map(|reward| (&best - reward) * w).collect::<Vec<_>>()
        };
        let records: Vec<BigInt> = rows.flat_map(short).collect();
        let exponent = values.exponent + weights.exponent;
        let size = rewards.most_short(known).max(f64::MIN_POSITIVE).log2().ceil();
        let (outward, total_weight) = (rewards.outward, rewards.total_weight);
        let unit = Unit { exponent: SHORTFALL_BITS - size as i32, outward, total_weight, penalty };
        let mut digits = Digits::new(&records, n_labels);
        let (rewards, minima) = (Some((rewards, splits)), groups.minima());
        digits.statistics = groups.behind(digits.statistics, digits.channels);
        digits.channels += minima.len();
        Labels { n_labels, digits, exponent, unit, prices: None, rewards, minima }
    }
}

impl Statistics for Labels<'_> {
    fn channels(&self) -> usize {
        self.digits.channels
    }

    fn statistics(&self) -> &[i64] {
        &self.digits.statistics
    }
}

impl Wide for Labels<'_> {
    fn leaf_cost(&self, sums: &[i64]) -> i128 {
        let of_label = |label| self.digits.sum(label, sums);
        let least = (0..self.n_labels).map(of_label).min().unwrap_or_default();
        self.unit.floor(least, &BigInt::one(), self.exponent)
    }

    fn allows_leaf(&self, sums: &[i64]) -> bool {
        reach(sums, self.minima)
    }

    fn split_price(&self) -> i128 {
        self.unit.price()
    }

    fn objective_of_cost(&self, cost: i128) -> f64 {
        match self.rewards {
            Some((rewards, _)) => rewards.objective_of(in_two_parts(cost, self.unit.exponent)),
            None => self.unit.objective(cost),
        }
    }

    fn value_of_cost(&self, cost: i128) -> f64 {
        self.unit.value(cost)
    }

    fn addends(&self, value: f64) -> f64 {
        let of_rewards = |(rewards, splits): (&Rewards, f64)| rewards.addends(value, splits);
        self.rewards.map_or(value.abs(), of_rewards)
    }

    fn is_priced(&self) -> bool {
        self.prices.is_some()
    }

    fn feature_price(&self, feature: usize, tested: &[usize], sums: &[i64]) -> i128 {
        let Some((prices, of_weights)) = self.prices else { return 0 };
        let (mantissa, exponent) = parts(prices.price(feature, tested));
        let price = BigInt::from(mantissa) * self.digits.sum(self.n_labels, sums);
        debug_assert!(!price.is_negative());
        self.unit.floor(price, &BigInt::one(), exponent + of_weights - self.unit.outward)
    }

    fn kinds(&self) -> Vec<u32> {
        self.prices.map_or_else(Vec::new, |(prices, _)| prices.kinds())
    }

    fn context(&self, feature: usize, tested: &[usize]) -> u64 {
        self.prices.map_or(0, |(prices, _)| prices.price(feature, tested).to_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_does_not_blur_the_other_leaves() {
        let target = [1e8, 0.0, 1.0, 1.5, 3.0];
        let task = Squares::new(&target, 0, None, 0.0, 0.225);
        let channels = task.channels();
        let sums = |rows: &[usize]| -> Vec<i64> {
            let of = |c| rows.iter().map(|r| task.statistics()[r * channels + c]).sum();
            (0..channels).map(of).collect()
        };
        let loss = |rows: &[usize]| 5.0 * task.objective_of_cost(task.leaf_cost(&sums(rows)));
        assert_eq!(loss(&[0]), 0.0);
        assert!((loss(&[1, 2]) - 0.5).abs() < 1e-15);
        assert!((loss(&[2, 3, 4]) - 13.0 / 6.0).abs() < 1e-15);
        assert_eq!(task.leaf_cost(&sums(&[0, 1])), MOST.min(task.leaf_cost(&sums(&[0, 1]))));
    }
}
