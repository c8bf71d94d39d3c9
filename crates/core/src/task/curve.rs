//! Curve tasks: what a leaf costs is no function of sums, it follows from the survival curve of its
//! rows, which are read in the order of time.

use crate::survival::timeline::Timeline;

/// The survival curve that a leaf predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafCurve {
    /// Kaplan–Meier of the leaf's rows.
    KaplanMeier,
    /// The non-increasing step function with the least Brier loss on the leaf's rows.
    BrierOptimal,
}

/// A task whose leaves are judged by the integrated Brier score of their curve, and maybe by more
/// that a pass over the same rows can tell.
pub trait CurveTask: Sync {
    /// The rows, and the weights that undo censoring.
    fn timeline(&self) -> &Timeline;

    /// What leaves predict.
    fn curve(&self) -> LeafCurve;

    /// Where the restricted mean of a leaf's Kaplan–Meier curve ends, if that is wanted too.
    fn horizon(&self) -> Option<f64> {
        None
    }
}

/// A curve task with one cost per leaf, which is the loss of its curve and a price.
pub trait ScalarCurveTask: CurveTask {
    /// Price of a leaf.
    fn leaf_penalty(&self) -> f64;

    /// Loss of a reference model on each row, which no subtree is taken to go below.
    fn reference(&self) -> Option<&[f64]> {
        None
    }

    /// Objective of a partition of the rows into leaves, straight from the rows:
    /// `leaf_of[row]` in `0..n_leaves`.
    fn objective(&self, leaf_of: &[usize], n_leaves: usize) -> f64;

    /// Costs that differ by no more may differ by rounding alone.
    fn slack(&self) -> f64;

    /// What sums over rows may be off by.
    fn error(&self) -> f64;
}

/// A curve task whose leaves are part of a cost of several components: its first two statistics,
/// which are no sums.
pub trait CurveStatistics: CurveTask {
    /// Of a leaf with this loss and this share of the horizon as its restricted mean; `share` is the
    /// difference of the leaf's third and fourth statistic, which are sums.
    fn of_leaf(&self, loss: f64, mean: f64, share: i64) -> [i64; 2];
}
