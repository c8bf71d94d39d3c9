//! Group fairness of a classifier: demographic parity and equality of opportunity.
//!
//! STreeD, eqs. 66–70. With N_a the weight of group a, the tree may differ between the
//! groups by |P(ŷ=1 | a=1) − P(ŷ=1 | a=0)| ≤ δ (demographic parity), or by the same
//! difference among the rows with y = 1 (equality of opportunity). The paper's two sums
//! g_a and g_ā are each 1 ± the signed difference, so one integer, its numerator, carries
//! both thresholds: D = Σ over leaves that predict 1 of n_1/N_1 − n_0/N_0, −δ ≤ D ≤ δ.

use super::accuracy::Accuracy;
use super::digits::{ExactSums, parts};
use super::{FrontTask, Said, ScalarTask, Statistics, Task, Ties, Weights};
use crate::error::Error;
use crate::precise::Precise;
use crate::search::{Allowed, Measured};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

/// Bits of a difference of one.
const SHARE_BITS: u32 = 58;

/// What a difference may be above δ: as much as rounding δ and the weights to doubles can move it,
/// 2^−51. See docs/maths/fronts.md.
const ROUNDED: f64 = 2.0 * f64::EPSILON;

/// Which rows the groups' rates are taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// All rows.
    DemographicParity,
    /// The rows of the positive class.
    EqualityOfOpportunity,
}

/// Misclassified weight under a limit on the difference of two groups' rates.
#[derive(Clone, Debug)]
pub struct Parity {
    /// What labels cost, without the limit.
    errors: Accuracy,
    /// Units of cost per unit of the statistics.
    unit: i64,
    /// Cost of either label, share of group 1 and of group 0.
    statistics: Vec<i64>,
    /// Units of the difference.
    scale: f64,
    bound: i64,
    price: i64,
    tie: i64,
    most_leaves: usize,
    rates: Rates,
    /// Class and weight of every row, and the sum of the weights.
    rows: Vec<(bool, f64)>,
    total_weight: f64,
    leaf_penalty: f64,
}

/// The rates of two groups, exactly.
#[derive(Clone, Debug)]
struct Rates {
    /// Group of the rows that count, and their weights.
    group: Vec<Option<usize>>,
    weight: ExactSums,
    /// Weight of either group.
    size: Vec<BigInt>,
    /// Largest difference.
    most: f64,
    /// Whether the statistics are as exact.
    whole: bool,
}

impl Rates {
    /// The largest whole number that is at most `most` of another.
    fn most_of(&self, whole: BigInt) -> BigInt {
        let (mantissa, exponent) = parts(self.most);
        let product = whole * mantissa;
        if exponent >= 0 { product << exponent } else { product >> exponent.unsigned_abs() }
    }

    /// Whether rows of which these are chosen keep the limit.
    fn keep(&self, chosen: impl Iterator<Item = bool>) -> bool {
        let groups = self.group.iter().zip(chosen).map(|(group, chosen)| group.filter(|_| chosen));
        let of = self.weight.of_groups(2, groups);
        let difference = &of[1] * &self.size[0] - &of[0] * &self.size[1];
        difference.abs() <= self.most_of(&self.size[0] * &self.size[1])
    }
}

impl Parity {
    /// `delta` limits the absolute difference; `leaf_penalty` is per leaf, in units of the
    /// misclassified share. Trees will have at most `max_leaves` leaves.
    pub fn new(
        criterion: Criterion,
        positive: &[bool],
        group: &[bool],
        weights: Option<&[f64]>,
        delta: f64,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        let n = positive.len();
        let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
        let labels: Vec<usize> = positive.iter().map(|&p| usize::from(p)).collect();
        let most_leaves = max_leaves.min(n).max(1);
        let errors = Accuracy::new(&labels, 2, weights, leaf_penalty, most_leaves)?;
        let total_weight = Weights::from(weights).total(n)?;
        let counted = |i: usize| criterion == Criterion::DemographicParity || positive[i];
        let of_row = |i: usize| counted(i).then_some(usize::from(group[i]));
        let exact = ExactSums::new((0..n).map(weight));
        let mut rates = Rates {
            size: exact.of_groups(2, (0..n).map(of_row)),
            group: (0..n).map(of_row).collect(),
            weight: exact,
            most: delta.min(1.0) + ROUNDED,
            whole: true,
        };
        if rates.size.iter().any(Zero::is_zero) {
            let reason = match criterion {
                Criterion::DemographicParity => "takes a single value",
                Criterion::EqualityOfOpportunity => {
                    "has a group without a row of the positive class"
                }
            };
            return Err(Error::invalid("sensitive feature", reason));
        }
        // Shares w/N as whole numbers w·N' where these are small enough, N' the other group.
        let product = &rates.size[0] * &rates.size[1];
        rates.whole = product.bits() <= u64::from(SHARE_BITS);
        let whole = rates.whole;
        let one = if whole { product } else { BigInt::from(1i64 << SHARE_BITS) };
        let sizes: Option<Vec<u128>> = rates.size.iter().map(ToPrimitive::to_u128).collect();
        let unit = one.to_u128().unwrap_or(0);
        let share = |i: usize| {
            let Some(group) = of_row(i) else { return 0 };
            // To the nearest: 64 bits of a weight, 58 of a share and one that is dropped.
            if let (Some(sizes), Some(weight)) = (&sizes, rates.weight.word(i)) {
                return ((u128::from(weight) * 2 * unit / sizes[group] + 1) >> 1) as i64;
            }
            let weight = rates.weight.of_row(i) * 2 * &one;
            let share: BigInt = (weight / &rates.size[group] + 1) >> 1;
            share.to_i64().unwrap_or(0)
        };
        let mut statistics = Vec::with_capacity(4 * n);
        for (i, costs) in errors.statistics().chunks_exact(2).enumerate() {
            statistics.extend_from_slice(costs);
            statistics.extend(if group[i] { [share(i), 0] } else { [0, share(i)] });
        }
        // Shares are off by half a unit per row.
        let off = if whole { 0 } else { n as i64 };
        let bound = rates.most_of(one.clone()).to_i64().unwrap_or(0) + off;
        // Without a penalty ties are told apart by leaves alone.
        let free = leaf_penalty == 0.0;
        let (price, tie) = if free { (0, 0) } else { (errors.split_price(), errors.tie_price()) };
        let rows = positive.iter().copied().zip((0..n).map(weight)).collect();
        Ok(Parity {
            unit: errors.unit() as i64,
            errors,
            statistics,
            scale: one.to_f64().unwrap_or(1.0),
            bound,
            price,
            tie,
            most_leaves,
            rates,
            rows,
            total_weight,
            leaf_penalty,
        })
    }

    /// The same in finer units of cost, where an admissible tree of the objective `known` is
    /// given; none where that does not help.
    pub fn finer(&self, known: f64) -> Option<Parity> {
        let errors = self.errors.finer(known)?;
        let mut finer = self.clone();
        let rows = finer.statistics.chunks_exact_mut(4);
        for (row, costs) in rows.zip(errors.statistics().chunks_exact(2)) {
            row[..2].copy_from_slice(costs);
        }
        if finer.leaf_penalty > 0.0 {
            (finer.price, finer.tie) = (errors.split_price(), errors.tie_price());
        }
        (finer.unit, finer.errors) = (errors.unit() as i64, errors);
        Some(finer)
    }
}

impl Statistics for Parity {
    fn channels(&self) -> usize {
        4
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }
}

impl Task for Parity {
    /// Misclassified weight, difference between the groups.
    type Cost = [i64; 2];

    #[inline(always)]
    fn leaf_candidates(&self, sums: &[i64], out: &mut Vec<[i64; 2]>) {
        let unit = self.unit;
        out.extend([[sums[0] * unit, 0], [sums[1] * unit, sums[2] - sums[3]]]);
    }

    #[inline(always)]
    fn combine(&self, a: &[i64; 2], b: &[i64; 2]) -> [i64; 2] {
        [a[0] + b[0] + self.price, a[1] + b[1]]
    }

    /// A smaller difference may lack what the rest of the tree has too much of.
    #[inline(always)]
    fn dominates(&self, a: &[i64; 2], b: &[i64; 2]) -> bool {
        a[0] <= b[0] && a[1] == b[1]
    }
}

impl FrontTask<2> for Parity {
    fn price(&self) -> i64 {
        self.price
    }

    fn window(&self) -> [(i64, i64); 2] {
        [super::ANY, (-self.bound, self.bound)]
    }

    fn exact(&self, _: usize) -> bool {
        true
    }

    fn reach(&self, sums: &[i64]) -> [(i64, i64); 2] {
        [(0, (sums[0] + sums[1]) * self.unit), (-sums[3], sums[2])]
    }

    fn linear(&self, weights: &[f64; 2]) -> Option<Vec<Vec<f64>>> {
        let (error, difference) = (weights[0] * self.errors.unit(), weights[1]);
        Some(vec![vec![error, 0.0, 0.0, 0.0], vec![0.0, error, difference, -difference]])
    }

    fn units(&self) -> [f64; 2] {
        [self.errors.scale() * self.total_weight, self.scale]
    }

    fn objective_of(&self, cost: i64, _leaves: u32) -> f64 {
        self.errors.objective_of_cost(cost)
    }

    fn grain(&self) -> i64 {
        // Of whole costs and of prices both.
        self.unit.min(1 << self.price.trailing_zeros().min(62))
    }

    fn refinement(&self) -> Option<i64> {
        Some(0)
    }

    fn resolution(&self, allowed: Allowed) -> f64 {
        self.errors.resolution(allowed)
    }

    fn ties(&self) -> f64 {
        // No tree with more splits than these costs less than a single leaf, which has no
        // difference.
        let cost = |k: usize| self.errors.statistics().iter().skip(k).step_by(2).sum::<i64>();
        let most = cost(0).min(cost(1)).saturating_mul(self.unit);
        let splits = if self.price > 0 { most / self.price } else { 0 };
        let splits = splits.min(self.most_leaves as i64 - 1) as f64;
        // Prices are charged in whole units.
        let tie = self.tie.max(0);
        let rounded = ((self.price - tie) as f64 / self.units()[0] - self.leaf_penalty).abs();
        let rounded = if self.price > 0 { rounded } else { 0.0 };
        splits * (tie as f64 / self.units()[0] + rounded)
    }

    fn measured(&self, said: &Said) -> Option<Measured> {
        let wrong = |&((positive, _), label): &(&(bool, f64), i64)| *positive != (label == 1);
        let rows = self.rows.iter().zip(said.of_rows()).filter(wrong);
        let loss = Precise::of(rows.map(|((_, weight), _)| *weight)).value() / self.total_weight;
        Some(Measured::plain(loss + self.leaf_penalty * said.labels.len() as f64))
    }

    fn admits(&self, said: &Said) -> bool {
        self.rates.whole || self.rates.keep(said.of_rows().map(|label| label == 1))
    }

    fn widest(&self) -> (&'static str, String) {
        self.errors.widest()
    }
}
