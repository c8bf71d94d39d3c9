//! Survival trees by integrated Brier score under a limit on the difference of two groups'
//! restricted mean survival times. Leaves predict their Kaplan–Meier curve.
//!
//! As in [`super::fair_survival`], except that the loss and the restricted mean of a leaf come from
//! its curve: this is a [curve task](super::curve) with a horizon. See docs/maths/fair-survival.md.

use super::brier::{Brier, exact};
use super::curve::{CurveStatistics, CurveTask, LeafCurve, Rounding, ScalarCurveTask};
use super::fair_survival::{SHARE_BITS, in_units, room, shares};
use super::fixed::{Penalty, nearest, power_of_two};
use super::{ANY, FrontTask, Said, Statistics, Task, range_of};
use crate::error::Error;
use crate::precise::Precise;
use crate::search::{Allowed, Measured};
use crate::survival::Observations;
use crate::survival::timeline::Timeline;

/// Bits of a loss of one. Fewer are used if censoring weights make losses much larger.
const LOSS_BITS: i32 = 46;

/// An upper bound on the loss of any tree: no unit of weight loses more than the mean censoring
/// weight.
const MOST_BITS: i32 = LOSS_BITS + 6;

/// Most bits of all losses together if the losses of leaves are capped.
const FINE_BITS: i32 = 60;

/// Bits of a group's total share in that case.
const FINE_SHARE_BITS: i32 = 60;

/// Share of the horizon by which the window of differences is then wider than the limit and its
/// units: more than rounding moves such a difference. See docs/maths/fair-survival.md.
const FINE_ROOM: f64 = 20.0 * f64::EPSILON;

/// Brier loss under a limit on the difference of two groups' restricted mean survival times.
#[derive(Clone, Debug)]
pub struct FairBrier {
    brier: Brier,
    /// Loss and difference (both from the curve), share of group 1, share of group 0.
    statistics: Vec<i64>,
    /// Share of every row in the weight of its group, negative in group 0.
    shares: Vec<f64>,
    tau: f64,
    /// Largest difference of the restricted means, divided by τ.
    limit: f64,
    /// Bits of a group's total share.
    share_bits: i32,
    /// Largest difference in the units of a search, and its possible error.
    bound: i64,
    off: i64,
    /// Units per loss of one, and the largest loss of a leaf and of a tree.
    scale: f64,
    most_loss: [i64; 2],
    /// Loss of a known tree; the search looks for better trees.
    known: f64,
    leaf_by_leaf: bool,
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
        let n = obs.len();
        let shares = shares(obs, group)?;
        let statistics = statistics(&shares, SHARE_BITS);
        let limit = (delta / tau).min(1.0);
        // Rounding of both groups' means in passes.
        let off = 2.0 * Rounding::of_means(brier.timeline());
        let most = limit + room(brier.timeline().grid.len());
        let [bound, off] = window(most, n, off, SHARE_BITS);
        // Only trees better than a single leaf matter, and a single leaf satisfies every limit.
        let known = brier.leaf_loss(&(0..n).collect::<Vec<_>>());
        let largest = brier.timeline().extent.most_loss.max(1.0).log2().ceil() as i32;
        let scale = power_of_two(LOSS_BITS.min(MOST_BITS - 1 - largest));
        let penalty = Penalty::new(leaf_penalty, scale, 1 << MOST_BITS);
        Ok(FairBrier {
            brier,
            statistics,
            shares,
            tau,
            limit,
            share_bits: SHARE_BITS,
            bound,
            off,
            scale,
            most_loss: [1 << MOST_BITS; 2],
            known,
            leaf_by_leaf: false,
            penalty,
        })
    }

    /// The same task, computed leaf by leaf, for trees that are no worse than this objective. A
    /// leaf that loses more is treated as losing twice as much.
    ///
    /// Differences have enough digits that no tree within the window breaks the limit, unless there
    /// are very many rows.
    pub fn finer(&self, known: f64) -> FairBrier {
        let leaves = (self.shares.len() as f64).log2().ceil() as i32;
        let bits = LOSS_BITS.min(FINE_BITS - leaves);
        let scale = power_of_two((bits - 2 - known.log2().floor() as i32).min(1000));
        let most_loss = [bits, bits + leaves].map(|bits| 1 << bits);
        let penalty = Penalty::new(self.brier.leaf_penalty, scale, most_loss[1]);
        let [bound, off] = window(self.limit, self.shares.len(), FINE_ROOM, FINE_SHARE_BITS);
        FairBrier {
            statistics: statistics(&self.shares, FINE_SHARE_BITS),
            share_bits: FINE_SHARE_BITS,
            bound,
            off,
            scale,
            most_loss,
            known,
            leaf_by_leaf: true,
            penalty,
            ..self.clone()
        }
    }
}

/// Statistics of every row: its share in either group, and zeros for the statistics of curves.
fn statistics(shares: &[f64], bits: i32) -> Vec<i64> {
    let units = shares.iter().map(|&share| in_units(share, bits));
    units.flat_map(|[one, zero]| [0, 0, one, zero]).collect()
}

/// Largest difference in units, and its possible error: half a unit for every row and leaf, and a
/// share of the horizon.
fn window(most: f64, n_rows: usize, share: f64, bits: i32) -> [i64; 2] {
    let unit = power_of_two(bits);
    let off = (n_rows as f64 + share * unit).min(2.0 * unit);
    [most.mul_add(unit, off).min(2.0 * unit) as i64, off as i64 + 1]
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

    fn leaf_by_leaf(&self) -> bool {
        self.leaf_by_leaf
    }
}

impl CurveStatistics for FairBrier {
    fn of_leaf(&self, loss: f64, mean: f64, share: i64) -> [i64; 2] {
        let loss = nearest(loss * self.scale);
        [loss.min(self.most_loss[0]), nearest(share as f64 * mean)]
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
    /// Brier loss and difference of the restricted means.
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
        // A split can increase this loss.
        [(0, self.most_loss[1]), (-sums[3] - self.off, sums[2] + self.off)]
    }

    fn units(&self) -> [f64; 2] {
        [self.scale, power_of_two(self.share_bits) / self.tau]
    }

    fn resolution(&self, allowed: Allowed) -> f64 {
        let leaves = allowed.leaves.min(self.shares.len());
        let depth = allowed.depth.min(leaves);
        let passes = match self.leaf_by_leaf {
            true => Rounding::of_leaves(self.timeline(), depth, 0),
            false => Rounding::of_passes(self.timeline(), LeafCurve::KaplanMeier, depth, 0),
        };
        let most = passes.above(self.known);
        if most == f64::INFINITY {
            return most;
        }
        let charged = self.penalty.price as f64 / self.scale;
        let price =
            if self.penalty.excess > 0.0 { 0.0 } else { (self.brier.leaf_penalty - charged).abs() };
        most - passes.below(most) + leaves as f64 * (0.5 / self.scale + price)
    }

    fn measured(&self, said: &Said) -> Option<Measured> {
        Some(Measured::plain(self.brier.objective(said.leaf_of, said.labels.len())))
    }

    fn admits(&self, said: &Said) -> bool {
        let leaves = self.brier.leaves(said.leaf_of, said.labels.len());
        let mut shares = vec![Precise::default(); leaves.len()];
        for (&leaf, &share) in said.leaf_of.iter().zip(&self.shares) {
            shares[leaf].add(share);
        }
        let mut difference = Precise::default();
        for (rows, share) in leaves.iter().zip(shares) {
            let mean = exact::restricted_mean(self.timeline(), self.tau, rows);
            difference.add_product(mean, share.value());
        }
        difference.value().abs() <= self.limit + room(self.timeline().grid.len())
    }

    fn widest(&self) -> (&'static str, String) {
        ("sample_weight", range_of(self.timeline().weight.iter().copied().enumerate()))
    }

    fn curve_statistics(&self) -> Option<&dyn CurveStatistics> {
        Some(self)
    }
}
