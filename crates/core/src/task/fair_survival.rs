//! Survival trees under a limit on the difference of two groups' restricted mean survival times.
//!
//! Let μ be the restricted mean ∫₀^τ S of a leaf's predicted curve, and M_g the mean of μ over the
//! rows of group g. The tree must satisfy |M₁ − M₀| ≤ δ. A leaf adds μ·(n₁/N₁ − n₀/N₀) to the
//! difference, which is therefore a component of its own. The two sums that turn it into two
//! thresholds are τ ± the difference. See docs/maths/fair-survival.md.

use super::fixed::{nearest, power_of_two};
use super::likelihood::{Likelihood, MOST_PRICE};
use super::{ANY, FrontTask, Placed, Said, ScalarTask, Statistics, Superadditive, Task};
use crate::error::Error;
use crate::precise::Precise;
use crate::search::{Allowed, Measured};
use crate::survival::{Observations, RiskTable};
use std::sync::OnceLock;

/// Bits of a group's total share.
pub(super) const SHARE_BITS: i32 = 50;

/// Number of knots, per unit of ln θ, in the table of restricted means.
const KNOTS: f64 = 256.0;

/// Largest interpolation error between knots, as a share of τ: 2^−40. See
/// docs/maths/fair-survival.md.
const INTERPOLATED: f64 = 1.0 / (1u64 << 40) as f64;

/// Number of steps of the hazard that one block sums up.
const BLOCK: usize = 64;

/// Number of powers of the distance from the middle of a block that are summed up.
const MOMENTS: usize = 9;

/// Largest θ·distance for which these powers give the sum: the next power would add less than 1e-15
/// of it.
const NEAR: f64 = 0.05;

/// Likelihood loss under a limit on the difference of two groups' restricted mean survival times.
#[derive(Clone, Debug)]
pub struct FairSurvival {
    likelihood: Likelihood,
    /// Events and hazard of the likelihood, share of group 1, share of group 0.
    statistics: Vec<i64>,
    mean: RestrictedMean,
    /// A lower bound on the cost of any tree over any of the rows.
    least: i64,
    bound: i64,
    units: [f64; 2],
    /// Objective of a tree with cost 0, including the penalty of one leaf.
    at_no_cost: f64,
    leaf_penalty: f64,
    excess: f64,
    /// Share of every row in the weight of its group, negative in group 0.
    shares: Vec<f64>,
    /// Largest difference of the restricted means, computed from the rows and divided by τ.
    most: f64,
}

/// Share of every row in the weight of its group, negative in group 0.
pub(super) fn shares(obs: &Observations, group: &[bool]) -> Result<Vec<f64>, Error> {
    let mut size = [Precise::default(); 2];
    for (i, &g) in group.iter().enumerate() {
        size[usize::from(g)].add(obs.weight(i));
    }
    let size = size.map(Precise::value);
    if size.contains(&0.0) {
        return Err(Error::invalid("group", "takes a single value"));
    }
    let of_row = |(i, &g): (usize, &bool)| {
        let share = obs.weight(i) / size[usize::from(g)];
        if g { share } else { -share }
    };
    Ok(group.iter().enumerate().map(of_row).collect())
}

/// The share of a row in group 1 and in group 0, in whole units with `bits` bits.
pub(super) fn in_units(share: f64, bits: i32) -> [i64; 2] {
    let units = (share * power_of_two(bits)).round() as i64;
    [units.max(0), -units.min(0)]
}

/// Share of τ by which a difference of restricted means may exceed the limit because of rounding:
/// of curves with this number of steps, and of the limit. See docs/maths/fair-survival.md.
pub(super) fn room(steps: usize) -> f64 {
    (4 * steps + 64) as f64 * f64::EPSILON
}

/// μ(θ)/τ for the curve exp(−θΛ), tabulated over ln θ.
#[derive(Clone, Debug)]
struct RestrictedMean {
    /// For every step of Λ: the share of [0, τ] that it starts, and the value of Λ.
    steps: Vec<(f64, f64)>,
    /// Sums over [`BLOCK`] steps each.
    blocks: Vec<Block>,
    first: f64,
    /// Value and slope in ln θ at every knot. A knot is computed when it is first needed, because
    /// each takes a pass over the steps, and a search uses few of them.
    knots: Vec<OnceLock<(f64, f64)>>,
    /// θ per ratio of the fixed-point sums.
    unit: f64,
}

/// Consecutive steps with similar Λ.
#[derive(Clone, Debug)]
struct Block {
    middle: f64,
    half_width: f64,
    /// Σ width·(middle − Λ)^k / k! over the steps.
    moments: [f64; MOMENTS],
}

impl Block {
    fn new(steps: &[(f64, f64)]) -> Self {
        let (first, last) = (steps[0].1, steps[steps.len() - 1].1);
        let middle = 0.5 * (first + last);
        let mut moments = [0.0; MOMENTS];
        for &(width, hazard) in steps {
            let mut term = width;
            for (k, moment) in moments.iter_mut().enumerate() {
                *moment += term;
                term *= (middle - hazard) / (k + 1) as f64;
            }
        }
        Block { middle, half_width: 0.5 * (last - first), moments }
    }

    /// Σ width·exp(−θΛ) and its derivative in ln θ, by the series of exp(θ(middle − Λ)).
    fn sum(&self, theta: f64) -> (f64, f64) {
        let (mut value, mut slope) = (0.0, 0.0);
        for (k, moment) in self.moments.iter().enumerate().rev() {
            value = value * theta + moment;
            slope = slope * theta + k as f64 * moment;
        }
        let survival = (-theta * self.middle).exp();
        (survival * value, survival * (slope - theta * self.middle * value))
    }
}

impl RestrictedMean {
    fn new(table: &RiskTable, tau: f64, unit: f64, (low, high): (f64, f64)) -> Self {
        let hazard = table.nelson_aalen();
        let mut steps: Vec<(f64, f64)> = Vec::new();
        let mut previous = (0.0, 0.0);
        for (&t, &h) in table.time.iter().zip(&hazard).filter(|(t, _)| **t < tau) {
            if h > previous.1 {
                steps.push(((t - previous.0) / tau, previous.1));
                previous = (t, h);
            }
        }
        steps.push(((tau - previous.0) / tau, previous.1));
        let first = low.ln();
        let n = ((high.ln() - first) * KNOTS).ceil().max(0.0) as usize + 2;
        let blocks = steps.chunks(BLOCK).map(Block::new).collect();
        RestrictedMean { steps, blocks, first, knots: vec![OnceLock::new(); n], unit }
    }

    /// Value and slope at knot `k`.
    #[inline]
    fn knot(&self, k: usize) -> (f64, f64) {
        *self.knots[k].get_or_init(|| self.at(self.first + k as f64 / KNOTS))
    }

    /// Value and derivative at a value of ln θ; O(blocks), or O(steps) where Λ rises quickly.
    fn at(&self, x: f64) -> (f64, f64) {
        self.at_ratio(x.exp())
    }

    /// Value and derivative at θ.
    fn at_ratio(&self, theta: f64) -> (f64, f64) {
        let step = |(value, slope): (f64, f64), &(width, hazard): &(f64, f64)| {
            let survival = width * (-theta * hazard).exp();
            (value + survival, slope - theta * hazard * survival)
        };
        let blocks = self.blocks.iter().zip(self.steps.chunks(BLOCK));
        blocks.fold((0.0, 0.0), |sum, (block, steps)| {
            if theta * block.half_width > NEAR {
                return steps.iter().fold(sum, step);
            }
            let (value, slope) = block.sum(theta);
            (sum.0 + value, sum.1 + slope)
        })
    }

    /// μ/τ of a leaf with this number of events and this hazard.
    #[inline]
    fn of(&self, events: f64, hazard: f64) -> f64 {
        let x = (events / hazard * self.unit).ln();
        let at = (x - self.first) * KNOTS;
        let k = at.floor();
        if !(k >= 0.0 && k + 1.0 < self.knots.len() as f64) {
            return self.at(x).0;
        }
        let t = at - k;
        let ((a, da), (b, db)) = (self.knot(k as usize), self.knot(k as usize + 1));
        let (da, db) = (da / KNOTS, db / KNOTS);
        // Cubic Hermite interpolation.
        let c = 3.0 * (b - a) - 2.0 * da - db;
        let d = 2.0 * (a - b) + da + db;
        a + t * (da + t * (c + t * d))
    }
}

impl FairSurvival {
    /// `group[row]` is the group; `delta` and `tau` are in the unit of time.
    pub fn new(
        obs: &Observations,
        group: &[bool],
        delta: f64,
        tau: f64,
        prior: f64,
        leaf_penalty: f64,
    ) -> Result<Self, Error> {
        let likelihood = Likelihood::with_prior(obs, prior, leaf_penalty)?;
        let n = obs.len();
        let scale = power_of_two(SHARE_BITS);
        let mut statistics = Vec::with_capacity(4 * n);
        let mut least = 0i64;
        let shares = shares(obs, group)?;
        for (record, &share) in likelihood.statistics().chunks_exact(2).zip(&shares) {
            statistics.extend_from_slice(record);
            statistics.extend(in_units(share, SHARE_BITS));
            least += likelihood.part_cost(record).min(0) - 1;
        }
        let events_unit = likelihood.events_scale();
        let ratio = likelihood.hazard_scale() / events_unit;
        let (mut largest, mut hazard, mut lightest) = (0.0f64, 0.0, f64::INFINITY);
        for record in likelihood.statistics().chunks_exact(2).filter(|r| r[1] > 0) {
            hazard += record[1] as f64;
            largest = largest.max(record[0].max(1) as f64 / record[1] as f64);
            if record[0] > 0 {
                lightest = lightest.min(record[0] as f64);
            }
        }
        // Leaves without events are given half an event, in units of the statistics.
        let half = 0.5 * events_unit;
        let mut low = lightest.min(half) / hazard * ratio;
        let mut high = largest.max(half) * ratio;
        let [prior_events, prior_hazard] = likelihood.prior();
        if prior > 0.0 {
            low = prior_events / (hazard + prior_hazard) * ratio;
            high = high.max(1.0);
        }
        let mean =
            RestrictedMean::new(&RiskTable::new(obs), tau, ratio, (low, high.max(2.0 * low)));
        // Differences from the rows are rounded so little that the limit is applied as given.
        let most = (delta / tau).min(1.0) + room(mean.steps.len());
        // Differences in units have an error of half a unit for every row and leaf, the error of
        // the table, and the effect on θ of rounding the sums of a leaf; the derivative by ln θ is
        // less than a half.
        let lightest = likelihood.lightest();
        let blurred = if lightest < 4.0 { 1.0 } else { 2.0 / lightest };
        let off = n as f64 + (4.0 * INTERPOLATED + blurred) * scale;
        let bound = most.mul_add(scale, off).min(2.0 * scale);
        let weight: f64 = (0..n).map(|i| obs.weight(i)).sum();
        let units = [likelihood.scale() * weight, scale / tau];
        // The likelihood limits the price of a split to the range of its costs.
        let charged = likelihood.split_price();
        let excess = leaf_penalty - charged as f64 / units[0];
        let excess = if charged < MOST_PRICE { 0.0 } else { excess.max(0.0) };
        let (bound, at_no_cost) = (bound as i64, likelihood.objective_of_cost(0));
        Ok(FairSurvival {
            likelihood,
            statistics,
            mean,
            least,
            bound,
            units,
            at_no_cost,
            leaf_penalty,
            excess,
            shares,
            most,
        })
    }
}

impl Statistics for FairSurvival {
    fn channels(&self) -> usize {
        4
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }

    fn events(&self) -> &[bool] {
        self.likelihood.events()
    }
}

impl Task for FairSurvival {
    /// Loss relative to a single leaf, and difference of the restricted means.
    type Cost = [i64; 2];

    fn leaf_candidates(&self, sums: &[i64], out: &mut Vec<[i64; 2]>) {
        let [prior_events, prior_hazard] = self.likelihood.prior();
        let mean = match sums[..2] {
            [_, 0] => 1.0,
            // Without events the curve is that of half an event, as in predictions.
            [0, hazard] if prior_events == 0.0 => {
                self.mean.of(0.5 * self.likelihood.events_scale(), hazard as f64)
            }
            [events, hazard] => {
                self.mean.of(events as f64 + prior_events, hazard as f64 + prior_hazard)
            }
            _ => unreachable!("events and hazard"),
        };
        let difference = (sums[2] - sums[3]) as f64 * mean;
        out.push([self.likelihood.leaf_cost(&sums[..2]), nearest(difference)]);
    }

    fn combine(&self, a: &[i64; 2], b: &[i64; 2]) -> [i64; 2] {
        [a[0] + b[0] + self.likelihood.split_price(), a[1] + b[1]]
    }

    fn dominates(&self, a: &[i64; 2], b: &[i64; 2]) -> bool {
        a[0] <= b[0] && a[1] == b[1]
    }
}

impl FrontTask<2> for FairSurvival {
    fn price(&self) -> i64 {
        self.likelihood.split_price()
    }

    fn window(&self) -> [(i64, i64); 2] {
        [ANY, (-self.bound, self.bound)]
    }

    fn exact(&self, _: usize) -> bool {
        true
    }

    fn reach(&self, sums: &[i64]) -> [(i64, i64); 2] {
        // Refining a leaf does not increase the loss, or, with a prior, its value at θ = 1. Every
        // leaf may be rounded by a unit.
        let most = self.likelihood.most_cost(&sums[..2]) + (1 << 20);
        [(self.least, most), (-sums[3] - (1 << 20), sums[2] + (1 << 20))]
    }

    fn units(&self) -> [f64; 2] {
        self.units
    }

    fn excess(&self) -> f64 {
        self.excess
    }

    fn objective_of(&self, cost: i64, leaves: u32) -> f64 {
        self.at_no_cost + cost as f64 / self.units[0] + self.excess * f64::from(leaves - 1)
    }

    fn least_objective(&self) -> f64 {
        self.leaf_penalty
    }

    fn refinement(&self) -> Option<i64> {
        self.likelihood.is_superadditive().then_some(1)
    }

    fn resolution(&self, allowed: Allowed) -> f64 {
        self.likelihood.resolution(allowed)
    }

    fn measured(&self, said: &Said) -> Option<Measured> {
        Some(self.likelihood.objective(Placed::rows(said.leaf_of, said.labels.len())))
    }

    fn admits(&self, said: &Said) -> bool {
        let mut shares = vec![Precise::default(); said.labels.len()];
        said.leaf_of.iter().zip(&self.shares).for_each(|(&leaf, &share)| shares[leaf].add(share));
        let means = self.likelihood.hazard_ratios(said.leaf_of, said.labels.len());
        let mut difference = Precise::default();
        for (ratio, share) in means.into_iter().zip(shares) {
            let mean = ratio.map_or(1.0, |ratio| self.mean.at_ratio(ratio).0);
            difference.add_product(mean, share.value());
        }
        difference.value().abs() <= self.most
    }

    fn widest(&self) -> (&'static str, String) {
        self.likelihood.widest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_blocks_are_sums_of_steps() {
        let n = 5000;
        let time: Vec<f64> = (0..n).map(|i| f64::from(i + 1) / f64::from(n)).collect();
        let event: Vec<bool> = (0..n).map(|i| i % 3 > 0).collect();
        let obs = Observations { time: &time, event: &event, ..Observations::default() };
        let table = RiskTable::new(&obs);
        let mean = RestrictedMean::new(&table, 0.9, 1.0, (1e-3, 1e3));
        for x in [-6.0, -2.0, 0.0, 0.5, 3.0, 6.5] {
            let theta = f64::exp(x);
            let of = |(width, hazard): &(f64, f64)| width * (-theta * hazard).exp();
            let value: f64 = mean.steps.iter().map(of).sum();
            let slope: f64 = mean.steps.iter().map(|s| -theta * s.1 * of(s)).sum();
            let (actual, derivative) = mean.at(x);
            assert!((actual - value).abs() < 1e-13, "{actual} instead of {value}");
            assert!((derivative - slope).abs() < 1e-13, "{derivative} instead of {slope}");
        }
    }
}
