//! Rewards with a capacity for some labels: policies with scarce treatments.
//!
//! A limit on the rows that get a label is a task in itself (STreeD, prop. A.3): the weight of a
//! leaf counts towards the label that it predicts, and these weights add up. Together with the cost
//! this makes a tuple of K components (prop. A.4); for each of them, smaller is better.

use super::digits::ExactSums;
use super::fixed::{Fixed, Penalty, power_of_two, room, times_power};
use super::rewards::{Rewards, in_two_parts};
use super::{ANY, FrontTask, Said, Statistics, Task};
use crate::error::Error;
use crate::precise::Precise;
use crate::search::{Allowed, Measured};

/// Bits of the summed costs.
const TOTAL_BITS: u32 = 46;

/// Bits of the summed costs if a tree is known, because lanes need not hold these sums.
const FINE_BITS: u32 = 55;

/// Bits of the summed weights.
const WEIGHT_BITS: u32 = 58;

/// Share of all weights by which a label may exceed its capacity. Rounding the capacity and the
/// weights to doubles can move the weight by this much, 2^−51. See docs/maths/fronts.md.
const ROUNDED: f64 = 2.0 * f64::EPSILON;

/// How far every label falls short of the best label of its row, and the weight of the rows.
/// Component 0 is the shortfall, component j the weight of the rows with the j-th limited label.
#[derive(Clone, Debug)]
pub struct Capacity<const K: usize> {
    n_labels: usize,
    /// Shortfall of every label, followed by the weight.
    statistics: Vec<i64>,
    /// Component that each label counts towards, or 0.
    component: Vec<usize>,
    window: [(i64, i64); K],
    /// Largest weight of every limited label, and the weights if they were rounded to units.
    most: [f64; K],
    exact: Option<ExactSums>,
    /// The shortfall of a tree is its statistic shifted left, which leaves room for fractional
    /// prices.
    up: u32,
    penalty: Penalty,
    units: [f64; K],
    grain: i64,
    rewards: Rewards,
    /// Largest change of any tree's objective by the rounding of shortfalls.
    off: f64,
    /// Largest change by the rounding of the price of a split.
    off_price: f64,
}

impl<const K: usize> Capacity<K> {
    /// `rewards[row][label]` is the reward for giving a row a label, and `capacity[label]` the
    /// largest weight of the rows with that label; it is finite for K − 1 labels. If `known` is the
    /// objective of an admissible tree, shortfalls that no better tree can have are lowered to the
    /// largest possible one, which permits finer units.
    pub fn new(
        rewards: &[f64],
        capacity: &[f64],
        weights: Option<&[f64]>,
        leaf_penalty: f64,
        known: Option<f64>,
    ) -> Result<Self, Error> {
        let n_labels = capacity.len().max(1);
        let rewards = Rewards::new(rewards, n_labels, weights.into(), leaf_penalty)?;
        if let Some(bad) = capacity.iter().position(|c| c.is_nan() || *c < 0.0) {
            return Err(Error::invalid("capacity", format!("of label {bad} is not a number >= 0")));
        }
        let cap = known.map_or(f64::INFINITY, |known| rewards.most_short(known));
        // Every tree falls short by at most the worst label of every row, so only this has to fit.
        let short = rewards.shortfalls(cap);
        let bits = if known.is_some() { FINE_BITS } else { TOTAL_BITS };
        let fixed = Fixed::new(&short.values, bits);
        let scale = fixed.scale();
        let rows = fixed.values.chunks_exact(n_labels).zip(short.values.chunks_exact(n_labels));
        let of_row = |(values, costs): (&[i64], &[f64])| {
            values.iter().zip(costs).map(|(&v, c)| (v as f64 - c * scale).abs()).fold(0.0, f64::max)
        };
        let moved = rows.map(of_row).sum::<f64>() * (1.0 + 1e-6) / scale;
        let off = times_power((moved + short.off) / rewards.total_weight, rewards.outward);
        let n = rewards.n_rows();
        let ones = vec![1.0; n];
        let weight = weights.unwrap_or(&ones);
        let fixed_weight = Fixed::new(weight, WEIGHT_BITS);
        let total_weight = Precise::of(weight.iter().copied()).value();
        let mut statistics = Vec::with_capacity(n * (n_labels + 1));
        for (record, w) in fixed.values.chunks_exact(n_labels).zip(&fixed_weight.values) {
            statistics.extend_from_slice(record);
            statistics.push(*w);
        }
        let (mut component, mut window) = (vec![0; n_labels], [ANY; K]);
        let mut limits = [f64::INFINITY; K];
        let mut units = [fixed_weight.scale(); K];
        let total: i64 = fixed.values.iter().sum();
        let up = room(total);
        units[0] = scale * rewards.total_weight * power_of_two(up as i32);
        let limited = capacity.iter().enumerate().filter(|(_, c)| c.is_finite());
        for (next, (label, &most)) in (1..).zip(limited) {
            if next == K {
                return Err(Error::invalid("capacity", "more labels are limited than expected"));
            }
            component[label] = next;
            limits[next] = most + ROUNDED * total_weight;
            // Every rounded weight may be half a unit too large.
            let off = if fixed_weight.moved == 0.0 { 0.0 } else { n as f64 };
            let most = (limits[next] * fixed_weight.scale() + off).min(power_of_two(60));
            window[next] = (0, most.floor() as i64);
        }
        let rounded = fixed_weight.moved > 0.0;
        let exact = rounded.then(|| ExactSums::new(weight.iter().copied()));
        let inward = times_power(leaf_penalty, -rewards.outward);
        let penalty = Penalty::new(inward, units[0], total << up);
        let off_price = (inward - penalty.price as f64 / units[0]).abs();
        let off_price = times_power(off_price, rewards.outward);
        let grain = if penalty.price == 0 { 1 << up } else { 1 };
        Ok(Capacity {
            n_labels,
            statistics,
            component,
            window,
            most: limits,
            exact,
            up,
            penalty,
            units,
            grain,
            rewards,
            off,
            off_price,
        })
    }
}

impl<const K: usize> Statistics for Capacity<K> {
    fn channels(&self) -> usize {
        self.n_labels + 1
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }
}

impl<const K: usize> Task for Capacity<K> {
    type Cost = [i64; K];

    #[inline(always)]
    fn leaf_candidates(&self, sums: &[i64], out: &mut Vec<[i64; K]>) {
        for (&cost, &component) in sums.iter().zip(&self.component) {
            let mut candidate = [0; K];
            candidate[component] = sums[self.n_labels];
            candidate[0] = cost << self.up;
            out.push(candidate);
        }
    }

    #[inline(always)]
    fn combine(&self, a: &[i64; K], b: &[i64; K]) -> [i64; K] {
        let mut sum: [i64; K] = std::array::from_fn(|k| a[k] + b[k]);
        sum[0] += self.penalty.price;
        sum
    }

    #[inline(always)]
    fn dominates(&self, a: &[i64; K], b: &[i64; K]) -> bool {
        a.iter().zip(b).all(|(a, b)| a <= b)
    }
}

impl<const K: usize> FrontTask<K> for Capacity<K> {
    fn price(&self) -> i64 {
        self.penalty.price
    }

    fn excess(&self) -> f64 {
        times_power(self.penalty.excess, self.rewards.outward)
    }

    fn objective_of(&self, cost: i64, leaves: u32) -> f64 {
        let scale = self.units[0] / self.rewards.total_weight;
        let short = in_two_parts(cost.into(), 0).map(|part| part / scale);
        self.rewards.objective_of(short) + self.excess() * f64::from(leaves - 1)
    }

    fn cost_of(&self, objective: f64) -> f64 {
        self.rewards.short_of_best(objective) * (self.units[0] / self.rewards.total_weight)
    }

    fn window(&self) -> [(i64, i64); K] {
        self.window
    }

    fn exact(&self, _: usize) -> bool {
        false
    }

    fn reach(&self, sums: &[i64]) -> [(i64, i64); K] {
        let mut reach = [(0, sums[self.n_labels]); K];
        reach[0] = (0, sums[..self.n_labels].iter().sum::<i64>() << self.up);
        reach
    }

    fn linear(&self, weights: &[f64; K]) -> Option<Vec<Vec<f64>>> {
        let of_label = |(label, &component): (usize, &usize)| {
            let mut form = vec![0.0; self.n_labels + 1];
            form[label] = weights[0] * power_of_two(self.up as i32);
            form[self.n_labels] = if component > 0 { weights[component] } else { 0.0 };
            form
        };
        Some(self.component.iter().enumerate().map(of_label).collect())
    }

    fn units(&self) -> [f64; K] {
        self.units
    }

    fn grain(&self) -> i64 {
        self.grain
    }

    fn refinement(&self) -> Option<i64> {
        Some(0)
    }

    fn resolution(&self, allowed: Allowed) -> f64 {
        // Trees with the fewest leaves come first, unless the price of a split exceeds every gain.
        let off = if self.penalty.excess > 0.0 { 0.0 } else { self.off_price };
        self.off + off * allowed.leaves.min(self.rewards.n_rows()).saturating_sub(1) as f64
    }

    fn measured(&self, said: &Said) -> Option<Measured> {
        Some(self.rewards.given(said.of_rows(), said.labels.len()))
    }

    fn admits(&self, said: &Said) -> bool {
        let Some(exact) = &self.exact else { return true };
        let component = said.of_rows().map(|label| Some(self.component[label as usize]));
        let sums = exact.of_groups(K, component);
        (1..K).all(|k| sums[k] <= exact.units_of(self.most[k]))
    }

    fn widest(&self) -> (&'static str, String) {
        self.rewards.widest()
    }
}
