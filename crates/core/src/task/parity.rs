//! Group fairness of a classifier: demographic parity and equality of opportunity.
//!
//! STreeD, eqs. 66–70. With N_a the weight of group a, the tree may differ between the
//! groups by |P(ŷ=1 | a=1) − P(ŷ=1 | a=0)| ≤ δ (demographic parity), or by the same
//! difference among the rows with y = 1 (equality of opportunity). The paper's two sums
//! g_a and g_ā are each 1 ± the signed difference, so one integer, its numerator, carries
//! both thresholds: D = Σ over leaves that predict 1 of n_1/N_1 − n_0/N_0, −δ ≤ D ≤ δ.

use super::fixed::{Fixed, Penalty, Precise, power_of_two, room};
use super::{FrontTask, Statistics, Task, total_weight};
use crate::error::Error;

/// Bits of the total weight.
const TOTAL_BITS: u32 = 46;

/// Bits of a group's total share where whole numbers would be larger.
const SHARE_BITS: u32 = 50;

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
    /// Weight of class 0 and of class 1, share of group 1 and of group 0.
    statistics: Vec<i64>,
    /// Errors are statistics shifted left to leave room for fractional prices.
    up: u32,
    penalty: Penalty,
    units: [f64; 2],
    bound: i64,
    grain: i64,
}

impl Parity {
    /// `delta` limits the absolute difference; `leaf_penalty` is per leaf, in units of the
    /// misclassified share.
    pub fn new(
        criterion: Criterion,
        positive: &[bool],
        group: &[bool],
        weights: Option<&[f64]>,
        delta: f64,
        leaf_penalty: f64,
    ) -> Result<Self, Error> {
        let n = positive.len();
        let ones = vec![1.0; n];
        let weight = weights.unwrap_or(&ones);
        let fixed = Fixed::new(weight, TOTAL_BITS);
        let total: i64 = fixed.values.iter().sum();
        let total_weight = total_weight(weights, n)?;
        let counted = |i: usize| criterion == Criterion::DemographicParity || positive[i];
        let mut size = [0i64; 2];
        for i in (0..n).filter(|&i| counted(i)) {
            size[usize::from(group[i])] += fixed.values[i];
        }
        let mut of = [Precise::default(); 2];
        (0..n).filter(|&i| counted(i)).for_each(|i| of[usize::from(group[i])].add(weight[i]));
        let of = of.map(Precise::value);
        if of.contains(&0.0) {
            let reason = match criterion {
                Criterion::DemographicParity => "takes a single value",
                Criterion::EqualityOfOpportunity => {
                    "has a group without a row of the positive class"
                }
            };
            return Err(Error::invalid("sensitive feature", reason));
        }
        // Shares w/N as whole numbers w·N' where these are small enough, N' the other group.
        let product = size[0] as f64 * size[1] as f64;
        let whole = fixed.whole && product <= power_of_two(SHARE_BITS as i32);
        let scale = if whole { product } else { power_of_two(SHARE_BITS as i32) };
        // Otherwise of the weights as they are: those in units are rounded by more than shares.
        let share = |i: usize| {
            if whole {
                fixed.values[i] * size[usize::from(!group[i])]
            } else {
                (weight[i] / of[usize::from(group[i])] * scale).round() as i64
            }
        };
        let mut statistics = Vec::with_capacity(4 * n);
        for i in 0..n {
            let (w, s) = (fixed.values[i], if counted(i) { share(i) } else { 0 });
            statistics.extend(if positive[i] { [0, w] } else { [w, 0] });
            statistics.extend(if group[i] { [s, 0] } else { [0, s] });
        }
        // Rounding of shares is at most half a unit per row, and a tenth for the sum of weights.
        let slack = if whole { 1e-6 } else { n as f64 };
        let bound = (delta.min(1.0) * scale + slack).floor() as i64;
        let up = room(total);
        let unit = fixed.scale() * (1i64 << up) as f64 * total_weight;
        let penalty = Penalty::new(leaf_penalty, unit, total << up);
        let grain = if penalty.price == 0 { 1 << up } else { 1 };
        let units = [unit, scale];
        Ok(Parity { statistics, up, penalty, units, bound, grain })
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
        out.extend([[sums[1] << self.up, 0], [sums[0] << self.up, sums[2] - sums[3]]]);
    }

    #[inline(always)]
    fn combine(&self, a: &[i64; 2], b: &[i64; 2]) -> [i64; 2] {
        [a[0] + b[0] + self.penalty.price, a[1] + b[1]]
    }

    /// A smaller difference may lack what the rest of the tree has too much of.
    #[inline(always)]
    fn dominates(&self, a: &[i64; 2], b: &[i64; 2]) -> bool {
        a[0] <= b[0] && a[1] == b[1]
    }
}

impl FrontTask<2> for Parity {
    fn price(&self) -> i64 {
        self.penalty.price
    }

    fn excess(&self) -> f64 {
        self.penalty.excess
    }

    fn window(&self) -> [(i64, i64); 2] {
        [super::ANY, (-self.bound, self.bound)]
    }

    fn exact(&self, _: usize) -> bool {
        true
    }

    fn reach(&self, sums: &[i64]) -> [(i64, i64); 2] {
        [(0, (sums[0] + sums[1]) << self.up), (-sums[3], sums[2])]
    }

    fn linear(&self, weights: &[f64; 2]) -> Option<Vec<Vec<f64>>> {
        let (error, difference) = (weights[0] * (1i64 << self.up) as f64, weights[1]);
        Some(vec![vec![0.0, error, 0.0, 0.0], vec![error, 0.0, difference, -difference]])
    }

    fn units(&self) -> [f64; 2] {
        self.units
    }

    fn grain(&self) -> i64 {
        self.grain
    }

    fn refinement(&self) -> Option<i64> {
        Some(0)
    }
}
