//! Rewards of treatments as label costs: how far each treatment falls short of the best one of its
//! row.
//!
//! A search minimises these shortfalls, which are not negative; objectives are the negative
//! rewards. Shortfalls may be much smaller than the rewards that they are differences of, so
//! objectives and bounds are computed with twice the precision, and the error of the shortfalls is
//! bounded. See docs/maths/resolution.md.

use super::fixed::{times_power, unit_exponent};
use super::weights::Counts;
use super::{Placed, Weights, range_of};
use crate::error::Error;
use crate::precise::{Precise, two_sum};
use crate::search::{EVALUATED, Measured};

/// Smallest size of the largest reward for which means of rewards keep their digits.
const LEAST_REWARD: f64 = 1e-290;

/// Products below this may lose digits, each up to half the smallest number.
const EXACT_PRODUCT: f64 = 1e-290;

/// Rewards of all rows under every treatment.
#[derive(Clone, Debug)]
pub struct Rewards {
    /// `[row][treatment]`, divided by 2^`outward`.
    values: Vec<f64>,
    /// Weights of the rows, in their own unit; empty if all are one.
    weights: Vec<f64>,
    counts: Counts,
    n_treatments: usize,
    /// Exponent of the power of two that rewards were divided by.
    pub(super) outward: i32,
    /// Sum of the weights, in their own unit.
    pub(super) total_weight: f64,
    /// Sum of the best reward of every row, times its weight.
    best: Precise,
    /// Smallest absolute reward that is not 0, times the weight of its row.
    least: f64,
    penalty: f64,
}

/// Weighted shortfalls `[row][treatment]`, and the largest change of a sum over all rows by their
/// rounding.
pub(super) struct Shortfalls {
    pub values: Vec<f64>,
    pub off: f64,
}

impl Rewards {
    /// `values[row][treatment]` must be finite. The objective is the penalties of the leaves minus
    /// the mean reward per unit of weight.
    pub(super) fn new(
        values: &[f64],
        n_treatments: usize,
        given: Weights,
        penalty: f64,
    ) -> Result<Self, Error> {
        let n_treatments = n_treatments.max(1);
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            let row = at / n_treatments;
            return Err(Error::invalid("rewards", format!("row {row} has one that is not finite")));
        }
        let most = values.iter().map(|v| v.abs()).fold(0.0, f64::max);
        if most > 0.0 && most < LEAST_REWARD {
            let reason = format!(
                "none is larger than {most:e}, less than {LEAST_REWARD:e}; change their unit"
            );
            return Err(Error::invalid("rewards", reason));
        }
        let outward = unit_exponent(values.iter().copied());
        let weight_unit = given.weight.map_or(0, |w| unit_exponent(w.iter().copied()));
        let of_unit = |w: &[f64]| w.iter().map(|&w| times_power(w, -weight_unit)).collect();
        let weights: Option<Vec<f64>> = given.weight.map(of_unit);
        let weighted = given.with(weights.as_deref());
        let total_weight = weighted.total(values.len() / n_treatments)?;
        let inward: Vec<f64> = values.iter().map(|&v| times_power(v, -outward)).collect();
        if inward.iter().zip(values).any(|(&v, &given)| times_power(v, outward) != given) {
            let rows = values.iter().enumerate().map(|(at, &v)| (at / n_treatments, v));
            let reason = format!("the values span too wide a range ({})", range_of(rows));
            return Err(Error::invalid("rewards", reason));
        }
        let (values, weights) = (inward, weights.unwrap_or_default());
        let mut rewards = Rewards {
            values,
            weights,
            counts: given.counts(),
            n_treatments,
            outward,
            total_weight,
            best: Precise::default(),
            least: 0.0,
            penalty,
        };
        let (mut best, mut least) = (Precise::default(), f64::INFINITY);
        for row in 0..rewards.n_rows() {
            let (w, own) = (rewards.weight(row), rewards.row(row));
            best.add_product_times(w, most_of(own), given.count(row));
            let sizes = own.iter().map(|&reward| size_of(w, reward));
            least = sizes.filter(|&size| size > 0.0).fold(least, f64::min);
        }
        rewards.best = best;
        rewards.least = if least < f64::INFINITY { least } else { 0.0 };
        Ok(rewards)
    }

    pub(super) fn n_rows(&self) -> usize {
        self.values.len() / self.n_treatments
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.n_treatments..][..self.n_treatments]
    }

    fn weight(&self, row: usize) -> f64 {
        self.weights.get(row).copied().unwrap_or(1.0)
    }

    /// The rewards, `[row][treatment]`, and one weight per row.
    pub(super) fn weighted(&self) -> (&[f64], Vec<f64>) {
        (&self.values, (0..self.n_rows()).map(|row| self.weight(row)).collect())
    }

    /// Shortfall of every treatment of every row against the best one, capped at `cap`; capped
    /// values are not rounded.
    pub(super) fn shortfalls(&self, cap: f64) -> Shortfalls {
        let (mut values, mut off) = (Vec::with_capacity(self.values.len()), 0.0);
        for row in 0..self.n_rows() {
            let (rewards, w) = (self.row(row), self.weight(row));
            let best = most_of(rewards);
            let mut most = 0f64;
            for &reward in rewards {
                let (short, rest) = two_sum(best, -reward);
                let product = w * short;
                let small = product.abs() < EXACT_PRODUCT && w > 0.0 && short > 0.0 && w != 1.0;
                let left = if small { f64::from_bits(1) } else { w.mul_add(short, -product) };
                if product <= cap {
                    most = most.max(left.abs() + w * rest.abs());
                }
                values.push(product.min(cap));
            }
            off += self.counts.of(row) * most;
        }
        Shortfalls { values, off: off * (1.0 + 1e-6) }
    }

    /// Weighted shortfall against the best rewards of trees with this objective, without the
    /// penalty of one leaf. At least 0, because no tree is better than that.
    pub(super) fn short_of_best(&self, objective: f64) -> f64 {
        let mut short = self.best;
        let mean = times_power(objective - self.penalty, -self.outward);
        short.add_product(mean, self.total_weight);
        short.value().max(0.0)
    }

    /// Bound on the shortfall of any row in a tree at least as good as this objective, with a
    /// margin for the rounding of the bound itself.
    pub(super) fn most_short(&self, objective: f64) -> f64 {
        let size = times_power(objective.abs() + self.penalty, -self.outward) * self.total_weight;
        (self.short_of_best(objective) + 1e-9 * size) * (1.0 + 1e-9)
    }

    /// Objective for a summed shortfall, given in two parts, plus the penalty of a leaf; the
    /// shortfall includes the prices of splits.
    pub(super) fn objective_of(&self, shortfall: [f64; 2]) -> f64 {
        let mut short = Precise::default().minus(self.best);
        shortfall.into_iter().for_each(|part| short.add(part));
        times_power(short.value() / self.total_weight, self.outward) + self.penalty
    }

    /// A lower bound on the objective with this number of leaves: every row gets its best
    /// treatment.
    pub(super) fn least_objective(&self, leaves: usize) -> f64 {
        let least = self.objective_of([0.0; 2]) + self.penalty * (leaves - 1) as f64;
        least - EVALUATED * self.addends(least, 0.0)
    }

    /// Size of the intermediate values that [`objective_of`](Self::objective_of) rounds to reach a
    /// value, including the prices of `splits` splits, whose sum is off by a few units in the last
    /// place.
    pub(super) fn addends(&self, value: f64, splits: f64) -> f64 {
        value.abs() + self.penalty * (1.0 + splits / 16.0)
    }

    /// Objective of a partition of the rows into leaves that take their best treatment, computed
    /// from the rewards of the rows.
    pub(super) fn measured(&self, rows: Placed) -> Measured {
        let (k, n_leaves) = (self.n_treatments, rows.n_leaves);
        let mut sums = vec![(Precise::default(), 0.0); n_leaves * k];
        for (row, leaf, count) in rows.iter() {
            let w = self.weight(row);
            for ((sum, size), &reward) in sums[leaf * k..].iter_mut().zip(self.row(row)) {
                sum.add_product_times(w, reward, count);
                *size += count * size_of(w, reward);
            }
        }
        let (mut value, mut terms) = (Precise::default(), 0.0);
        for leaf in sums.chunks_exact(k) {
            // The first of equally good treatments.
            let mut best = &leaf[0];
            for treatment in leaf {
                best = if treatment.0.value() > best.0.value() { treatment } else { best };
            }
            value = value.plus(best.0);
            terms += best.1;
        }
        self.of_value(value, terms, n_leaves)
    }

    /// Objective of given treatments, one per row.
    pub(super) fn given(&self, treatments: impl Iterator<Item = i64>, n_leaves: usize) -> Measured {
        let (mut value, mut terms) = (Precise::default(), 0.0);
        for (row, treatment) in treatments.enumerate() {
            let (w, reward) = (self.weight(row), self.row(row)[treatment as usize]);
            value.add_product(w, reward);
            terms += size_of(w, reward);
        }
        self.of_value(value, terms, n_leaves)
    }

    fn of_value(&self, value: Precise, terms: f64, n_leaves: usize) -> Measured {
        let mean = |sum: f64| times_power(sum / self.total_weight, self.outward);
        let penalty = self.penalty * n_leaves as f64;
        // If all terms are 0, the least that a reward adds to the mean.
        let size = mean(if terms > 0.0 { terms } else { self.least });
        Measured { objective: penalty - mean(value.value()), magnitude: size + penalty }
    }

    /// Describes values whose range is too wide for a certificate.
    pub(super) fn widest(&self) -> (&'static str, String) {
        let of_rows = self.values.iter().enumerate();
        let given =
            |(at, &v): (usize, &f64)| (at / self.n_treatments, times_power(v, self.outward));
        ("rewards", range_of(of_rows.map(given)))
    }
}

/// An integer times 2^−`exponent` as a sum of two numbers.
pub(super) fn in_two_parts(cost: i128, exponent: i32) -> [f64; 2] {
    let high = cost as f64;
    let low = (cost - high as i128) as f64;
    [high, low].map(|part| times_power(part, -exponent))
}

/// Size of a weighted reward; 0 only if one of the two is.
fn size_of(weight: f64, reward: f64) -> f64 {
    let size = weight * reward.abs();
    let vanishes = size == 0.0 && weight > 0.0 && reward != 0.0;
    if vanishes { f64::from_bits(1) } else { size }
}

fn most_of(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}
