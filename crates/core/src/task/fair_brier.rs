//! Survival trees by integrated Brier score whose restricted mean survival time may differ
//! little between two groups; leaves predict their Kaplan–Meier curve.
//!
//! As in [`super::fair_survival`], but loss and restricted mean of a leaf follow from its
//! rows in the order of time. See docs/maths/fair-survival.md.

use super::brier::{Brier, LeafCurve};
use super::fair_survival::{SHARE_BITS, shares};
use super::fixed::{Penalty, power_of_two};
use super::{ANY, FrontTask, RowLeaves, Statistics, Task};
use crate::error::Error;
use crate::survival::Observations;

/// Bits of a loss of one.
const LOSS_BITS: i32 = 46;

/// More than the loss of any tree: the rows' losses stay below 2^6 in all.
const MOST: i64 = 1 << (LOSS_BITS + 6);

/// Brier loss under a limit on the difference of two groups' restricted means.
#[derive(Clone, Debug)]
pub struct FairBrier {
    brier: Brier,
    /// Loss and difference (from the rows), share of group 1 and of group 0.
    statistics: Vec<i64>,
    /// Rows by time.
    order: Vec<u32>,
    /// Place in the grid of the time of every row.
    place: Vec<u32>,
    /// Integrals from every time of the grid to the end, without and with 1/G.
    plain: Vec<f64>,
    censoring: Vec<f64>,
    tau: f64,
    bound: i64,
    penalty: Penalty,
}

/// A leaf's curve as far as the rows have been read.
#[derive(Clone, Copy)]
struct Curve {
    at_risk: f64,
    survival: f64,
    /// Σ 1/G over the events so far.
    happened: f64,
    loss: f64,
    mean: f64,
    /// Last time that was dealt with.
    place: usize,
    time: f64,
    /// Weight of the events and of the rows at the present time.
    events: f64,
    leaving: f64,
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
        let n = obs.len();
        let mut statistics = Vec::with_capacity(4 * n);
        for [one, zero] in shares(obs, group)? {
            statistics.extend([0, 0, one, zero]);
        }
        let place: Vec<u32> = (0..n).map(|i| brier.time_index(i) as u32).collect();
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|&i| place[i as usize]);
        let (plain, censoring) = brier.suffix_integrals(brier.total_weight());
        let bound = (delta / tau).min(1.0) * power_of_two(SHARE_BITS) + n as f64;
        let (bound, penalty) =
            (bound as i64, Penalty::new(leaf_penalty, power_of_two(LOSS_BITS), MOST));
        Ok(FairBrier { brier, statistics, order, place, plain, censoring, tau, bound, penalty })
    }

    /// Moves a leaf on to a time of the grid, after its events and departures at the last.
    #[inline]
    fn advance(&self, curve: &mut Curve, place: usize, time: f64) {
        if curve.leaving > 0.0 {
            if curve.events > 0.0 {
                curve.survival *= (1.0 - curve.events / curve.at_risk).max(0.0);
                curve.happened += curve.events * self.brier.inverse_censoring[curve.place];
            }
            curve.at_risk -= curve.leaving;
            (curve.events, curve.leaving) = (0.0, 0.0);
        }
        let (s, f) = (curve.survival, 1.0 - curve.survival);
        let plain = self.plain[curve.place] - self.plain[place];
        let censoring = self.censoring[curve.place] - self.censoring[place];
        curve.loss += s * s * curve.happened * plain + f * f * curve.at_risk * censoring;
        curve.mean += s * (time.min(self.tau) - curve.time.min(self.tau));
        (curve.place, curve.time) = (place, time);
    }
}

impl RowLeaves for FairBrier {
    fn order(&self) -> &[u32] {
        &self.order
    }

    fn fill(&self, rows: &[u32], cells: &[u8], leaves: &mut [[i64; 2]], shares: &[i64]) {
        let start = Curve {
            at_risk: 0.0,
            survival: 1.0,
            happened: 0.0,
            loss: 0.0,
            mean: 0.0,
            place: 0,
            time: 0.0,
            events: 0.0,
            leaving: 0.0,
        };
        let mut curves = [start; 4];
        let weight = |i: u32| self.brier.weight[i as usize];
        for (&i, &cell) in rows.iter().zip(cells) {
            curves[cell as usize].at_risk += weight(i);
        }
        for (&i, &cell) in rows.iter().zip(cells) {
            let (place, curve) = (self.place[i as usize] as usize, &mut curves[cell as usize]);
            let time = self.brier.grid[place];
            if place != curve.place || time != curve.time {
                self.advance(curve, place, time);
            }
            curve.leaving += weight(i);
            if self.brier.event[i as usize] {
                curve.events += weight(i);
            }
        }
        let end = self.plain.len() - 1;
        for ((leaf, curve), share) in leaves.iter_mut().zip(&mut curves).zip(shares) {
            self.advance(curve, end, self.brier.grid[end].max(self.tau));
            let mean = curve.mean / self.tau;
            leaf[0] = (curve.loss * power_of_two(LOSS_BITS)).round() as i64;
            leaf[1] = (*share as f64 * mean).round() as i64;
        }
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
        &self.brier.event
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

    fn row_leaves(&self) -> Option<&dyn RowLeaves> {
        Some(self)
    }
}
