//! Impurities of the class weights of a leaf: the common part of Gini and entropy.
//!
//! Both are sums over the classes of a term that depends on the weight of the class and of the
//! leaf, so the channels are the weight of the leaf and of all classes except the first.

use super::fixed::{Fixed, nearest, power_of_two, times_power, unit_exponent};
use super::weights::Counts;
use super::{
    FreeQuestions, LaneError, LaneTask, Placed, Questions, ScalarTask, Statistics, Superadditive,
    Swept, Ties, Weights, check_labels, check_values, lane_loss_of, range_of,
};
use crate::error::Error;
use crate::precise::Precise;
use crate::search::{Allowed, Measured};
use crate::simd::{FloatLanes, LaneInt, LaneReal};

/// Bits of the total weight; double lanes hold all of them.
const TOTAL_BITS: u32 = 51;

/// Most classes in a lattice.
const MAX_CLASSES: usize = 34;

/// Which impurity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Σ W_k(W − W_k) / W
    Gini,
    /// Σ W_k ln(W / W_k)
    Entropy,
}

impl Kind {
    /// Loss of a leaf from the weights of its classes. No large numbers are subtracted, so the
    /// digits are right even if one class has nearly all of the weight.
    fn loss(self, classes: &[f64]) -> f64 {
        let total: f64 = classes.iter().sum();
        let heaviest = (0..classes.len()).max_by(|&a, &b| classes[a].total_cmp(&classes[b]));
        let others = |of: usize| {
            classes.iter().enumerate().filter(move |&(k, _)| k != of).map(|(_, w)| w).sum::<f64>()
        };
        let term = |(k, &w): (usize, &f64)| match self {
            _ if w <= 0.0 => 0.0,
            Kind::Gini => w * (others(k) / total),
            Kind::Entropy if Some(k) == heaviest => w * (others(k) / w).ln_1p(),
            Kind::Entropy => w * (total / w).ln(),
        };
        classes.iter().enumerate().map(term).sum()
    }
}

/// Largest allowed difference between 1 and the sum of a row's shares.
const OFF_ONE: f64 = 1e-9;

/// Classes of the rows.
#[derive(Clone, Debug)]
enum Classes {
    /// One class for each row.
    Labels(Vec<usize>),
    /// Weight of every row in every class, `[row][class]`: its share times the weight of the row.
    Weights(Vec<f64>),
}

/// The input of a task; weights are divided by a power of two.
#[derive(Clone, Debug)]
struct Source {
    kind: Kind,
    n_records: usize,
    n_classes: usize,
    classes: Classes,
    weights: Option<Vec<f64>>,
    counts: Counts,
    total_weight: f64,
    penalty: f64,
}

/// A task in which a leaf costs its weight times an impurity.
#[derive(Clone, Debug)]
pub struct Impurity {
    source: Source,
    statistics: Vec<i64>,
    weight_scale: f64,
    price: i64,
    scale: f64,
    /// Largest change of any tree's summed loss by the rounding of weights.
    off: f64,
    /// Bits of the total weight.
    bits: u32,
}

/// Bits of the total weight if costs are as fine as 64 bits allow. Lanes cannot hold them, so
/// everything is computed exactly.
const FINE_BITS: u32 = 61;

/// Cap on the cost of a leaf and on a price.
const MOST: i64 = 1 << 55;

/// Part of the price of a split that orders trees of equal cost by their leaves.
const TIE: i64 = 1;

impl Impurity {
    pub(super) fn new(
        kind: Kind,
        labels: &[usize],
        n_classes: usize,
        weights: Weights,
        leaf_penalty: f64,
    ) -> Result<Self, Error> {
        check_labels(labels, n_classes)?;
        let classes = |_: Option<&[f64]>| Classes::Labels(labels.to_vec());
        Impurity::of_classes(kind, (labels.len(), n_classes), classes, weights, leaf_penalty)
    }

    /// Rows with uncertain classes: `shares[row][k]` is the share of class k, and the shares of a
    /// row sum to 1.
    pub(super) fn of_shares(
        kind: Kind,
        shares: &[f64],
        n_classes: usize,
        weights: Weights,
        leaf_penalty: f64,
    ) -> Result<Self, Error> {
        check_values("shares", shares, n_classes)?;
        for (row, shares) in shares.chunks_exact(n_classes).enumerate() {
            let sum: f64 = shares.iter().sum();
            if (sum - 1.0).abs() > OFF_ONE {
                return Err(Error::invalid("shares", format!("row {row} sums to {sum}, not to 1")));
            }
        }
        let weighted = |weights: &[f64]| {
            let rows = shares.chunks_exact(n_classes).zip(weights);
            rows.flat_map(|(row, w)| row.iter().map(move |share| w * share)).collect()
        };
        let classes =
            |w: Option<&[f64]>| Classes::Weights(w.map_or_else(|| shares.to_vec(), weighted));
        let size = (shares.len() / n_classes, n_classes);
        Impurity::of_classes(kind, size, classes, weights, leaf_penalty)
    }

    fn of_classes(
        kind: Kind,
        (n_records, n_classes): (usize, usize),
        classes: impl FnOnce(Option<&[f64]>) -> Classes,
        given: Weights,
        leaf_penalty: f64,
    ) -> Result<Self, Error> {
        let weights = given.weight;
        let unit = weights.map_or(0, |w| unit_exponent(w.iter().copied()));
        let scaled = |w: &[f64]| w.iter().map(|&w| times_power(w, -unit)).collect::<Vec<_>>();
        let weights = weights.map(scaled);
        let total_weight = given.with(weights.as_deref()).total(n_records)?;
        // A loss is at most the weight times ln 32 < 4. Costs of up to 2^50 units are added exactly
        // and evaluated to within a few units.
        let scale = power_of_two(48 - total_weight.log2().ceil() as i32);
        let source = Source {
            kind,
            n_records,
            n_classes,
            classes: classes(weights.as_deref()),
            weights,
            counts: given.counts(),
            total_weight,
            penalty: leaf_penalty,
        };
        Ok(Impurity::in_units(source, TOTAL_BITS, scale))
    }

    /// Rounds weights to a total of `bits` bits; `scale` is the number of cost units per unit of
    /// loss.
    fn in_units(source: Source, bits: u32, scale: f64) -> Self {
        let Source { kind, n_records, n_classes, classes, weights, counts, total_weight, penalty } =
            &source;
        let ones;
        let (weight, width) = match (classes, weights) {
            (Classes::Weights(weights), _) => (weights, *n_classes),
            (_, Some(weights)) => (weights, 1),
            (_, None) => {
                ones = vec![1.0; *n_records];
                (&ones, 1)
            }
        };
        let fixed = Fixed::counted(weight.iter().copied(), |at| counts.of(at / width), bits)
            .in_least_bits();
        let mut statistics = vec![0i64; n_records * n_classes];
        let records = statistics.chunks_exact_mut((*n_classes).max(1));
        match classes {
            Classes::Labels(labels) => {
                for (record, (&k, &w)) in records.zip(labels.iter().zip(&fixed.values)) {
                    record[0] = w;
                    if k > 0 {
                        record[k] = w;
                    }
                }
            }
            Classes::Weights(_) => {
                for (record, weights) in records.zip(fixed.values.chunks_exact(*n_classes)) {
                    record.copy_from_slice(weights);
                    // The sum of the rounded weights, so that the remainder for class 0 is not
                    // negative.
                    record[0] = weights.iter().sum();
                }
            }
        }
        let moved = fixed.moved / fixed.scale();
        // The derivative by the weight of a class is at most 2, or 1 + ln(W/that) on average over
        // the change; see docs/maths/impurity.md.
        let off = match kind {
            _ if moved == 0.0 => 0.0,
            Kind::Gini => 2.0 * moved,
            Kind::Entropy => moved * (2.0 + (*n_classes as f64 * total_weight / moved).ln()),
        };
        let price = (penalty * total_weight * scale).min(MOST as f64).round() as i64 + TIE;
        let weight_scale = fixed.scale();
        Impurity { statistics, weight_scale, price, scale, off, bits, source }
    }
}

impl Statistics for Impurity {
    #[inline(always)]
    fn channels(&self) -> usize {
        self.source.n_classes
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }
}

impl ScalarTask for Impurity {
    fn leaf_cost(&self, sums: &[i64]) -> i64 {
        let mut classes = [0.0; MAX_CLASSES];
        classes[0] = (sums[0] - sums[1..].iter().sum::<i64>()) as f64;
        classes.iter_mut().zip(sums).skip(1).for_each(|(class, &w)| *class = w as f64);
        let loss = self.source.kind.loss(&classes[..sums.len()]);
        nearest(loss / self.weight_scale * self.scale).min(MOST)
    }

    /// The minimum, over the probabilities of the classes, of a score that is linear in their
    /// weights.
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

    fn objective(&self, rows: Placed) -> Measured {
        let n_classes = self.source.n_classes;
        let mut per_class = vec![Precise::default(); rows.n_leaves * n_classes];
        match &self.source.classes {
            Classes::Labels(labels) => {
                for (i, leaf, count) in rows.iter() {
                    let w = self.source.weights.as_ref().map_or(1.0, |w| w[i]);
                    per_class[leaf * n_classes + labels[i]].add_times(w, count);
                }
            }
            Classes::Weights(weights) => {
                for (i, leaf, count) in rows.iter() {
                    let row = &weights[i * n_classes..][..n_classes];
                    let sums = &mut per_class[leaf * n_classes..];
                    sums.iter_mut().zip(row).for_each(|(sum, &w)| sum.add_times(w, count));
                }
            }
        }
        let loss = |leaf: &[Precise]| {
            self.source.kind.loss(&leaf.iter().map(|sum| sum.value()).collect::<Vec<_>>())
        };
        let loss = Precise::of(per_class.chunks_exact(n_classes).map(loss)).value();
        Measured::plain(
            loss / self.source.total_weight + self.source.penalty * rows.n_leaves as f64,
        )
    }

    fn least_objective(&self, leaves: usize) -> f64 {
        self.source.penalty * leaves as f64
    }

    fn objective_of_cost(&self, cost: i64) -> f64 {
        cost as f64 / self.scale / self.source.total_weight + self.source.penalty
    }

    fn resolution(&self, allowed: Allowed) -> f64 {
        // Half a unit per leaf and price; the digits of a leaf's loss are right to 2^-46.
        let n_rows = self.source.counts.rows(self.source.n_records);
        let leaves = (allowed.leaves as f64).min(n_rows);
        (self.off + leaves / self.scale) / self.source.total_weight
    }

    fn finer(&self, known: f64) -> Option<Self> {
        let Source { penalty, total_weight, .. } = self.source;
        let known = (known - penalty) * total_weight;
        let scale = power_of_two((53 - known.log2().ceil() as i32).min(1000));
        if known <= 0.0 || (self.bits == FINE_BITS && scale <= self.scale) {
            return None;
        }
        // First use finer costs, because then lanes still hold the weights without loss.
        let bits = if scale <= 4.0 * self.scale { FINE_BITS } else { self.bits };
        Some(Impurity::in_units(self.source.clone(), bits, scale))
    }

    fn widest(&self) -> (&'static str, String) {
        let weight = |i| (i, self.source.weights.as_ref().map_or(1.0, |w: &Vec<f64>| w[i]));
        ("sample_weight", range_of((0..self.source.n_records).map(weight)))
    }
}

impl Superadditive for Impurity {
    /// A leaf with one class is not rounded, and no leaf costs less.
    fn row_cost(&self, sums: &[i64]) -> i64 {
        let cost = self.part_cost(sums);
        if cost > 0 { cost - self.cost_rounding() } else { 0 }
    }

    fn pure_leaves(&self) -> bool {
        true
    }
}

impl Ties for Impurity {
    fn tie_price(&self) -> i64 {
        TIE
    }
}

impl Questions for Impurity {}
impl FreeQuestions for Impurity {}

impl Swept for Impurity {
    /// The corners for two classes. With more classes, a part costs at least as much as a subset of
    /// its rows.
    #[inline(always)]
    fn lane_least<L: FloatLanes>(
        &self,
        lanes: L,
        constants: &(),
        from: &[L::Int],
        to: &[L::Int],
        whole: &[L::Int],
    ) -> L::Real {
        if self.source.n_classes != 2 {
            let mut rest = [lanes.splat(L::I::default()); MAX_CLASSES];
            for (rest, (&whole, &to)) in rest.iter_mut().zip(whole.iter().zip(to)) {
                *rest = whole - to;
            }
            return lane_loss_of(self, lanes, constants, from)
                + lane_loss_of(self, lanes, constants, &rest[..whole.len()]);
        }
        // One class of one end with the other class of the other end, as channels of the task.
        let first = [from[0] - from[1] + to[1], to[1]];
        let second = [to[0] - to[1] + from[1], from[1]];
        let mut least = lanes.splat_real(L::R::INFINITY);
        for part in [first, second] {
            let rest = [whole[0] - part[0], whole[1] - part[1]];
            let both = lane_loss_of(self, lanes, constants, &part)
                + lane_loss_of(self, lanes, constants, &rest);
            least = L::min_real(least, both);
        }
        least
    }

    fn least_error(&self, rows: &[i64], _: &[u32], roundoff: f64, ln_error: f64) -> f64 {
        let classes = self.source.n_classes;
        let total = rows.iter().step_by(classes).sum::<i64>() as f64;
        total * (ln_error + 8.0 * roundoff * (classes as f64 + 8.0))
    }
}

/// Weight of the leaf, its remainder after the classes so far, and the sum of their terms.
#[derive(Clone, Copy)]
pub struct SoFar<L: FloatLanes> {
    total: L::Int,
    rest: L::Int,
    sum: L::Real,
}

impl Impurity {
    #[inline(always)]
    fn term<L: FloatLanes>(&self, lanes: L, total: L::Int, class: L::Int) -> L::Real {
        let weight = L::to_real(class);
        match self.source.kind {
            Kind::Gini => weight * L::to_real(total - class),
            Kind::Entropy => {
                let zero = lanes.splat_real(L::R::default());
                let term = weight * L::ln_ratio(L::to_real(total), weight, zero);
                // The computed logarithm of 1 is only near 0, but a pure leaf costs nothing.
                L::if_less(class, total, term, zero)
            }
        }
    }
}

impl LaneTask for Impurity {
    type State<L: FloatLanes> = SoFar<L>;
    type Constants<L: FloatLanes> = ();

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
            // The weights of the classes would no longer add up to the weight of the leaf.
            return LaneError::Fixed(f64::INFINITY);
        }
        let total = rows.iter().step_by(self.source.n_classes).sum::<i64>() as f64;
        // Five roundings of a term, one for each class, and 2d − 3 sums.
        let relative = f64::from(2 * max_leaves.ilog2() + 4) + self.source.n_classes as f64;
        LaneError::Fixed(match self.source.kind {
            Kind::Gini => total * roundoff * relative,
            Kind::Entropy => {
                let largest = (self.source.n_classes as f64).ln().max(1.0);
                total * (ln_error + roundoff * relative * largest)
            }
        })
    }

    /// No bits are dropped, or the error would be infinite. A leaf with two classes, which weigh at
    /// least 1 each, costs 1 or more.
    fn lane_pure(&self, error: f64) -> f64 {
        1.0 - error
    }

    #[inline(always)]
    fn lane_constants<L: FloatLanes>(&self, _: L, _: &[u32]) {}

    #[inline(always)]
    fn lane_start<L: FloatLanes>(&self, lanes: L) -> SoFar<L> {
        let zero = lanes.splat(L::I::default());
        SoFar { total: zero, rest: zero, sum: lanes.splat_real(L::R::default()) }
    }

    #[inline(always)]
    fn lane_fold<L: FloatLanes>(
        &self,
        lanes: L,
        _: &Self::Constants<L>,
        state: SoFar<L>,
        channel: usize,
        sums: L::Int,
    ) -> SoFar<L> {
        if channel == 0 {
            return SoFar { total: sums, rest: sums, ..state };
        }
        let term = self.term(lanes, state.total, sums);
        SoFar { rest: state.rest - sums, sum: state.sum + term, ..state }
    }

    #[inline(always)]
    fn lane_loss<L: FloatLanes>(&self, lanes: L, (): (), state: SoFar<L>) -> L::Real {
        let sum = state.sum + self.term(lanes, state.total, state.rest);
        match self.source.kind {
            Kind::Gini => {
                let one = lanes.splat(L::I::from_i64(1));
                sum / L::to_real(L::max(state.total, one))
            }
            Kind::Entropy => sum,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::gini::gini_of_shares;

    #[test]
    fn shares_that_are_none_are_refused() {
        let refusal =
            |shares: &[f64]| gini_of_shares(shares, 2, None, 0.0).unwrap_err().to_string();
        assert_eq!(refusal(&[1.0, 0.0, 0.5, 0.6]), "shares: row 1 sums to 1.1, not to 1");
        for wrong in [f64::NAN, -0.5] {
            let expected = "shares: row 1 has a value that is not a number >= 0";
            assert_eq!(refusal(&[1.0, 0.0, 1.5, wrong]), expected);
        }
    }

    #[test]
    fn no_class_of_rounded_shares_is_negative() {
        let (shares, weights) = ([1e-18, 0.3, 0.7 - 1e-18, 0.1, 0.2, 0.7], [1e-7, 1.0 / 3.0]);
        let task = gini_of_shares(&shares, 3, Some(&weights[..]), 0.0).unwrap();
        for record in task.statistics().chunks_exact(3) {
            assert!(record[0] >= record[1] + record[2] && record.iter().all(|&w| w >= 0));
        }
        assert_eq!(task.source.n_records, 2);
    }

    #[test]
    fn shares_in_fractions_of_two_are_exact_in_few_bits() {
        let task = gini_of_shares(&[0.25, 0.75, 1.0, 0.0], 2, None, 0.0).unwrap();
        assert_eq!((task.statistics(), task.off), (&[4, 3, 4, 0][..], 0.0));
        assert_eq!(
            task.objective(Placed::rows(&[0, 0], 1)).objective,
            2.0 * 0.625 * 0.375 * 2.0 / 2.0
        );
    }
}
