//! Impurities of the class weights of a leaf: what Gini and entropy share.
//!
//! Both are sums over the classes of a term of the class's weight and the leaf's, so the
//! channels are the leaf's weight and those of all classes but the first.

use super::fixed::{Fixed, power_of_two};
use super::{
    FreeQuestions, LaneError, LaneTask, Questions, ScalarTask, Statistics, Superadditive, Ties,
    check_labels,
};
use crate::error::Error;
use crate::simd::{LaneInt, Lanes};

/// Bits of the total weight, which double lanes hold without dropping any.
const TOTAL_BITS: u32 = 51;

/// Which impurity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Σ W_k(W − W_k) / W
    Gini,
    /// Σ W_k ln(W / W_k)
    Entropy,
}

impl Kind {
    /// Loss of a leaf of weight `total` from the weights of its classes.
    fn loss(self, total: f64, classes: impl Iterator<Item = f64>) -> f64 {
        let classes = classes.filter(|&w| w > 0.0);
        match self {
            Kind::Gini => {
                classes.map(|w| w * (total - w)).sum::<f64>() / total.max(f64::MIN_POSITIVE)
            }
            Kind::Entropy => classes.map(|w| w * (total / w).ln()).sum(),
        }
    }
}

/// A task whose leaves are charged their weight times an impurity.
#[derive(Clone, Debug)]
pub struct Impurity {
    kind: Kind,
    n_classes: usize,
    statistics: Vec<i64>,
    weight_scale: f64,
    price: i64,
    scale: f64,
    total_weight: f64,
    penalty: f64,
    labels: Vec<usize>,
    weights: Option<Vec<f64>>,
}

impl Impurity {
    pub(super) fn new(
        kind: Kind,
        labels: &[usize],
        n_classes: usize,
        weights: Option<&[f64]>,
        leaf_penalty: f64,
    ) -> Result<Self, Error> {
        check_labels(labels, n_classes)?;
        let weight = weights.map_or_else(|| vec![1.0; labels.len()], <[f64]>::to_vec);
        let fixed = Fixed::new(&weight, TOTAL_BITS);
        let mut statistics = vec![0i64; labels.len() * n_classes];
        let records = statistics.chunks_exact_mut(n_classes.max(1));
        for (record, (&k, &w)) in records.zip(labels.iter().zip(&fixed.values)) {
            record[0] = w;
            if k > 0 {
                record[k] = w;
            }
        }
        let total = fixed.values.iter().sum::<i64>() as f64;
        if total == 0.0 {
            return Err(Error::invalid("sample_weight", "all weights are zero"));
        }
        // A loss is at most the weight times ln 32 < 4; 2^50 units of cost in all are added
        // up exactly, and evaluated to within a few.
        let scale = power_of_two(48 - (total / fixed.scale()).log2().ceil() as i32);
        let total_weight = weight.iter().sum::<f64>();
        let price = leaf_penalty * total_weight * scale;
        Ok(Impurity {
            kind,
            n_classes,
            statistics,
            weight_scale: fixed.scale(),
            price: price.min((1i64 << 56) as f64).round() as i64,
            scale,
            total_weight,
            penalty: leaf_penalty,
            labels: labels.to_vec(),
            weights: weights.map(<[f64]>::to_vec),
        })
    }
}

impl Statistics for Impurity {
    #[inline(always)]
    fn channels(&self) -> usize {
        self.n_classes
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }
}

impl ScalarTask for Impurity {
    fn leaf_cost(&self, sums: &[i64]) -> i64 {
        let first = sums[0] - sums[1..].iter().sum::<i64>();
        let classes = sums[1..].iter().chain([&first]).map(|&w| w as f64);
        let loss = self.kind.loss(sums[0] as f64, classes);
        (loss / self.weight_scale * self.scale).round() as i64
    }

    /// The least over the probabilities of the classes of a score that is linear in their weights.
    fn concave_cost(&self, sums: &[i64]) -> Option<f64> {
        let none = sums[1..].iter().sum::<i64>() > sums[0];
        Some(if none { f64::NEG_INFINITY } else { self.leaf_cost(sums) as f64 })
    }

    fn splits_help(&self, sums: &[i64]) -> bool {
        self.leaf_cost(sums) > 0
    }

    fn cost_rounding(&self) -> i64 {
        // Half a unit, and at most 38 roundings relative to 2^50 units.
        6
    }

    fn split_price(&self) -> i64 {
        self.price
    }

    fn objective(&self, leaf_of: &[usize], n_leaves: usize) -> f64 {
        let mut per_class = vec![0.0; n_leaves * self.n_classes];
        for (i, (&leaf, &k)) in leaf_of.iter().zip(&self.labels).enumerate() {
            per_class[leaf * self.n_classes + k] += self.weights.as_ref().map_or(1.0, |w| w[i]);
        }
        let loss = |leaf: &[f64]| self.kind.loss(leaf.iter().sum(), leaf.iter().copied());
        per_class.chunks_exact(self.n_classes).map(loss).sum::<f64>() / self.total_weight
            + self.penalty * n_leaves as f64
    }

    fn least_objective(&self) -> f64 {
        self.penalty
    }

    fn objective_of_cost(&self, cost: i64) -> f64 {
        cost as f64 / self.scale / self.total_weight + self.penalty
    }
}

impl Superadditive for Impurity {
    fn pure_leaves(&self) -> bool {
        true
    }
}

impl Ties for Impurity {}

impl Questions for Impurity {}
impl FreeQuestions for Impurity {}

/// Weight of the leaf, what the classes so far leave of it, and the sum of their terms.
#[derive(Clone, Copy)]
pub struct Classes<L: Lanes> {
    total: L::Int,
    rest: L::Int,
    sum: L::Real,
}

impl Impurity {
    #[inline(always)]
    fn term<L: Lanes>(&self, lanes: L, total: L::Int, class: L::Int) -> L::Real {
        let weight = L::to_real(class);
        match self.kind {
            Kind::Gini => weight * L::to_real(total - class),
            Kind::Entropy => {
                let zero = lanes.splat_real(L::R::default());
                weight * L::ln_ratio(L::to_real(total), weight, zero)
            }
        }
    }
}

impl LaneTask for Impurity {
    type State<L: Lanes> = Classes<L>;
    type Constants<L: Lanes> = ();

    fn max_lane_sum(&self, single: bool) -> i64 {
        if single { i32::MAX_SUM } else { i64::MAX_SUM }
    }

    fn lane_unit(&self, shift: &[u32]) -> f64 {
        power_of_two(shift[0] as i32) / self.weight_scale * self.scale
    }

    fn lane_error(
        &self,
        rows: &[i64],
        shift: &[u32],
        max_leaves: usize,
        roundoff: f64,
        ln_error: f64,
    ) -> LaneError {
        if shift.iter().any(|&s| s > 0) {
            // The weights of the classes would no longer add up to the leaf's.
            return LaneError::Fixed(f64::INFINITY);
        }
        let total = rows.iter().step_by(self.n_classes).sum::<i64>() as f64;
        // Five roundings of a term, one for each class, and 2d − 3 sums.
        let relative = f64::from(2 * max_leaves.ilog2() + 4) + self.n_classes as f64;
        LaneError::Fixed(match self.kind {
            Kind::Gini => total * roundoff * relative,
            Kind::Entropy => {
                let largest = (self.n_classes as f64).ln().max(1.0);
                total * (ln_error + roundoff * relative * largest)
            }
        })
    }

    #[inline(always)]
    fn lane_constants<L: Lanes>(&self, _: L, _: &[u32]) {}

    #[inline(always)]
    fn lane_start<L: Lanes>(&self, lanes: L) -> Classes<L> {
        let zero = lanes.splat(L::I::default());
        Classes { total: zero, rest: zero, sum: lanes.splat_real(L::R::default()) }
    }

    #[inline(always)]
    fn lane_fold<L: Lanes>(
        &self,
        lanes: L,
        state: Classes<L>,
        channel: usize,
        sums: L::Int,
    ) -> Classes<L> {
        if channel == 0 {
            return Classes { total: sums, rest: sums, ..state };
        }
        let term = self.term(lanes, state.total, sums);
        Classes { rest: state.rest - sums, sum: state.sum + term, ..state }
    }

    #[inline(always)]
    fn lane_loss<L: Lanes>(&self, lanes: L, (): (), state: Classes<L>) -> L::Real {
        let sum = state.sum + self.term(lanes, state.total, state.rest);
        match self.kind {
            Kind::Gini => {
                let one = lanes.splat(L::I::from_i64(1));
                sum / L::to_real(L::max(state.total, one))
            }
            Kind::Entropy => sum,
        }
    }
}
