//! Survival trees by integrated Brier score whose restricted mean survival time may differ
//! little between two groups; leaves predict their Kaplan–Meier curve.
//!
//! As in [`super::fair_survival`], but loss and restricted mean of a leaf are those of its curve: a
//! [curve task](super::curve) with a horizon. See docs/maths/fair-survival.md.

use super::brier::Brier;
use super::curve::{CurveStatistics, CurveTask, LeafCurve};
use super::fair_survival::{SHARE_BITS, shares};
use super::fixed::{Penalty, power_of_two};
use super::{ANY, FrontTask, Statistics, Task};
use crate::error::Error;
use crate::survival::Observations;
use crate::survival::timeline::Timeline;

/// Bits of a loss of one.
const LOSS_BITS: i32 = 46;

/// Most that rounding of weights may move sums by: what a loss of one is certified to. What it moves curves by is not bounded yet, see docs/maths/resolution.md.
const MOST_ROUNDING: f64 = 1e-9;

/// More than the loss of any tree: the rows' losses stay below 2^6 in all.
const MOST: i64 = 1 << (LOSS_BITS + 6);

/// Brier loss under a limit on the difference of two groups' restricted means.
#[derive(Clone, Debug)]
pub struct FairBrier {
    brier: Brier,
    /// Loss and difference (of the curve), share of group 1 and of group 0.
    statistics: Vec<i64>,
    tau: f64,
    bound: i64,
    penalty: Penalty,
}

impl FairBrier {
    /// `group[row]` is the group; `delta` and `tau` are in the unit of time.
    pub fn new(
        obs: &Observations,
        group: &[bool],
        delta: f64,
        tau: f64,
        leaf_penalty: f64,
    ) -> Result<Self, Error> {
        let brier = Brier::new(obs, leaf_penalty, LeafCurve::KaplanMeier, None)?;
        let timeline = brier.timeline();
        let rounded = if timeline.weight_error() > 0.0 { obs.len() as f64 } else { 1.0 };
        let off = 2.0 * f64::EPSILON * rounded * timeline.mean_censoring_weight();
        if off > MOST_ROUNDING {
            let reason = format!(
                "the weights span too wide a range: rounding to whole numbers moves sums by up \
                 to {off:.1e}, more than {MOST_ROUNDING:.1e}"
            );
            return Err(Error::invalid("sample_weight", reason));
        }
        let n = obs.len();
        let mut statistics = Vec::with_capacity(4 * n);
        for [one, zero] in shares(obs, group)? {
            statistics.extend([0, 0, one, zero]);
        }
        let bound = (delta / tau).min(1.0) * power_of_two(SHARE_BITS) + n as f64;
        let (bound, penalty) =
            (bound as i64, Penalty::new(leaf_penalty, power_of_two(LOSS_BITS), MOST));
        Ok(FairBrier { brier, statistics, tau, bound, penalty })
    }
}

impl CurveTask for FairBrier {
    fn timeline(&self) -> &Timeline {
        self.brier.timeline()
    }

    fn curve(&self) -> LeafCurve {
        self.brier.curve()
    }

    fn horizon(&self) -> Option<f64> {
        Some(self.tau)
    }
}

impl CurveStatistics for FairBrier {
    fn of_leaf(&self, loss: f64, mean: f64, share: i64) -> [i64; 2] {
        let loss = (loss * power_of_two(LOSS_BITS)).round() as i64;
        [loss, (share as f64 * mean).round() as i64]
    }
}

impl Statistics for FairBrier {
    fn channels(&self) -> usize {
        4
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }

    fn events(&self) -> &[bool] {
        &self.brier.timeline.event
    }
}

impl Task for FairBrier {
    /// Brier loss, difference of the restricted means.
    type Cost = [i64; 2];

    fn leaf_candidates(&self, sums: &[i64], out: &mut Vec<[i64; 2]>) {
        out.push([sums[0], sums[1]]);
    }

    fn combine(&self, a: &[i64; 2], b: &[i64; 2]) -> [i64; 2] {
        [a[0] + b[0] + self.penalty.price, a[1] + b[1]]
    }

    fn dominates(&self, a: &[i64; 2], b: &[i64; 2]) -> bool {
        a[0] <= b[0] && a[1] == b[1]
    }
}

impl FrontTask<2> for FairBrier {
    fn price(&self) -> i64 {
        self.penalty.price
    }

    fn excess(&self) -> f64 {
        self.penalty.excess
    }

    fn window(&self) -> [(i64, i64); 2] {
        [ANY, (-self.bound, self.bound)]
    }

    fn exact(&self, _: usize) -> bool {
        true
    }

    fn reach(&self, sums: &[i64]) -> [(i64, i64); 2] {
        // A split can raise this loss.
        [(0, MOST), (-sums[3] - (1 << 20), sums[2] + (1 << 20))]
    }

    fn units(&self) -> [f64; 2] {
        [power_of_two(LOSS_BITS), power_of_two(SHARE_BITS) / self.tau]
    }

    fn curve_statistics(&self) -> Option<&dyn CurveStatistics> {
        Some(self)
    }
}
