//! Curve tasks: the cost of a leaf is not a function of sums. It follows from the survival curve of
//! the leaf's rows, read in the order of time.

use crate::survival::timeline::Timeline;

/// The survival curve that a leaf predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafCurve {
    /// Kaplan–Meier of the leaf's rows.
    KaplanMeier,
    /// The non-increasing step function with the least Brier loss on the leaf's rows.
    BrierOptimal,
}

/// A task that scores leaves by the integrated Brier score of their curve, and possibly by other
/// quantities that the same pass over the rows can compute.
pub trait CurveTask: Sync {
    /// The rows, with inverse-probability-of-censoring weights.
    fn timeline(&self) -> &Timeline;

    /// Curve that leaves predict.
    fn curve(&self) -> LeafCurve;

    /// End of the restricted mean of a leaf's Kaplan–Meier curve, if the task needs it.
    fn horizon(&self) -> Option<f64> {
        None
    }

    /// Whether searches for several components compute every loss [leaf by
    /// leaf](super::brier::exact), which is slow.
    fn leaf_by_leaf(&self) -> bool {
        false
    }
}

/// A curve task with one cost per leaf: the loss of its curve plus a price.
pub trait ScalarCurveTask: CurveTask {
    /// Price of a leaf.
    fn leaf_penalty(&self) -> f64;

    /// Loss of a reference model on each row, taken as a lower bound for every subtree.
    fn reference(&self) -> Option<&[f64]> {
        None
    }

    /// Objective of a partition of the rows into leaves, computed from the rows; `leaf_of[row]` is
    /// in `0..n_leaves`.
    fn objective(&self, leaf_of: &[usize], n_leaves: usize) -> f64;
}

/// Largest difference between the loss of a tree as computed in a search and its true loss. Derived
/// in docs/maths/brier.md, "Numbers".
#[derive(Clone, Copy, Debug)]
pub struct Rounding {
    /// Relative part.
    pub relative: f64,
    /// Absolute part, which is added to the relative one.
    pub absolute: f64,
}

/// Largest relative error of one operation.
const UNIT: f64 = 0.5 * f64::EPSILON;

/// Relative error of a survival probability per stretch of censorings: a reciprocal and two
/// products.
const STRETCH: f64 = 3.5 * UNIT;

/// Number of terms of a stretch of censorings that passes add up one by one.
pub const BLOCK: usize = 256;

impl Rounding {
    /// Rounding of passes over nodes down to level `depth` that read whole weights in f64; floors
    /// are sums over `floors` groups.
    pub fn of_passes(
        timeline: &Timeline,
        curve: LeafCurve,
        depth: usize,
        floors: usize,
    ) -> Rounding {
        let (times, depth) = (timeline.grid.len() as f64, depth as f64);
        let (extent, weights) = (timeline.extent, timeline.weight_error());
        if weights > 1e-3 {
            return Rounding { relative: 1.0, absolute: f64::INFINITY };
        }
        let (terms, chain, survival) = match curve {
            LeafCurve::KaplanMeier => {
                let floor = 2.0 * (times + extent.event_times);
                let leaf = 3.0 * extent.event_times + 2.0 * STRETCH / UNIT * extent.stretches;
                let chain = times.min(BLOCK as f64 + times / BLOCK as f64);
                (leaf.max(floor), chain, 0.5 * STRETCH * extent.at_risk)
            }
            LeafCurve::BrierOptimal => (16.0 * times, times, 0.0),
        };
        let most =
            extent.most_loss * (UNIT * ((depth + 1.0) * (chain + 4.0) + 32.0) + 1.2 * weights);
        Rounding {
            relative: UNIT * (terms + depth * floors as f64 + 32.0) + 2.1 * weights,
            absolute: most + survival,
        }
    }

    /// Largest error of a leaf's restricted mean in passes, as a share of the horizon.
    pub fn of_means(timeline: &Timeline) -> f64 {
        let (extent, weights) = (timeline.extent, timeline.weight_error());
        let passes = STRETCH * extent.stretches + UNIT * (extent.event_times + 14.0);
        if weights > 1e-3 { 1.0 } else { passes + 0.74 * weights }
    }

    /// Rounding of losses that are computed [leaf by leaf](super::brier::exact::leaf_loss) from
    /// unrounded weights.
    pub fn of_leaves(timeline: &Timeline, depth: usize, floors: usize) -> Rounding {
        let (times, sums) = (timeline.grid.len() as f64, depth as f64 * floors as f64);
        Rounding { relative: UNIT * (2.0 * times + sums + 64.0), absolute: 0.0 }
    }

    /// An upper bound on the true loss if `loss` was computed, and on the computed loss if `loss`
    /// is true.
    pub fn above(self, loss: f64) -> f64 {
        (loss + self.absolute) * (1.0 + 2.0 * self.relative)
    }

    /// A lower bound on the true loss if `loss` was computed.
    pub fn below(self, loss: f64) -> f64 {
        loss * (1.0 - self.relative) - self.absolute
    }
}

/// A curve task whose leaves contribute to a cost of several components. The first two statistics
/// of a leaf come from its curve.
pub trait CurveStatistics: CurveTask {
    /// These two statistics for a leaf with this loss and restricted mean (as a share of the
    /// horizon). `share` is the difference of the leaf's third and fourth statistics, which are
    /// sums.
    fn of_leaf(&self, loss: f64, mean: f64, share: i64) -> [i64; 2];
}
