//! The cheapest label of a leaf, for any cost of giving a row a label.
//!
//! A leaf's cost is min over labels k of Σ cost[i][k], one channel per label. Accuracy,
//! balanced accuracy, cost matrices, per-instance costs and policies are all of this form
//! and share these lanes; each has a file of its own that says what its costs are.

use super::fixed::{Fixed, power_of_two};
use super::{
    FreeQuestions, LaneError, LaneTask, Questions, ScalarTask, Statistics, Superadditive, Ties,
    check_values,
};
use crate::error::Error;
use crate::simd::{LaneInt, Lanes};
use std::ops::RangeInclusive;

/// Totals that leave double lanes room for fractions of a unit.
pub(super) const MAX_TOTAL_BITS: u32 = 44;

/// Most bits of a fraction of a unit.
const MAX_FRACTION_BITS: u32 = 20;

/// Costs of the caller's rows, for the objective in f64.
#[derive(Clone, Debug)]
enum RowCosts {
    /// A row of this class costs its weight unless the leaf has its label.
    Classes { class: Vec<usize>, weight: Vec<f64> },
    /// `[row][label]`, weights included.
    Matrix(Vec<f64>),
}

/// A task of label costs: one channel per label, a leaf takes the cheapest.
#[derive(Clone, Debug)]
pub struct LabelCosts {
    n_labels: usize,
    statistics: Vec<i64>,
    /// Costs are statistics shifted left to leave room for fractional prices.
    up: u32,
    scale: f64,
    price: Price,
    /// What the summed costs are divided by in the objective.
    total_weight: f64,
    penalty: f64,
    rows: RowCosts,
    /// Added to the last label of every leaf: for bounds, which see [`LaneTask::relaxed`].
    last_label: i64,
}

impl LabelCosts {
    /// A row of class `labels[i]` costs `weight[i]` in a leaf with another label; the sum is
    /// divided by `total_weight`.
    pub(super) fn of_classes(
        labels: &[usize],
        n_classes: usize,
        weight: Vec<f64>,
        total_weight: f64,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        let fixed = Fixed::new(&weight, MAX_TOTAL_BITS);
        let mut statistics = vec![0i64; labels.len() * n_classes];
        for (record, (&class, &w)) in
            statistics.chunks_exact_mut(n_classes.max(1)).zip(labels.iter().zip(&fixed.values))
        {
            record.fill(w);
            record[class] = 0;
        }
        if fixed.values.iter().all(|&w| w == 0) {
            return Err(Error::invalid("sample_weight", "all weights are zero"));
        }
        let rows = RowCosts::Classes { class: labels.to_vec(), weight };
        let fixed = Fixed { values: statistics, ..fixed };
        let limits = (leaf_penalty, max_leaves);
        Ok(LabelCosts::of_fixed(n_classes, fixed, rows, total_weight, limits, true))
    }

    /// `costs[row][label]` of giving a row a label, none negative; the objective is the mean
    /// cost per unit of weight. O(rows · labels).
    pub fn of_costs(
        costs: &[f64],
        n_labels: usize,
        weights: Option<&[f64]>,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        LabelCosts::with_tests(costs, n_labels, weights, leaf_penalty, max_leaves, true)
    }

    /// Cost units per unit of the summed costs.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// As [`LabelCosts::of_costs`], beside the costs of tests, `whole` or not.
    pub(super) fn with_tests(
        costs: &[f64],
        n_labels: usize,
        weights: Option<&[f64]>,
        leaf_penalty: f64,
        max_leaves: usize,
        whole: bool,
    ) -> Result<Self, Error> {
        let n_labels = n_labels.max(1);
        check_values("costs", costs, n_labels)?;
        let n = costs.len() / n_labels;
        let weighted: Vec<f64> = match weights {
            None => costs.to_vec(),
            Some(w) => costs.iter().enumerate().map(|(at, c)| c * w[at / n_labels]).collect(),
        };
        let total_weight = weights.map_or(n as f64, |w| w.iter().sum());
        if total_weight == 0.0 {
            return Err(Error::invalid("sample_weight", "all weights are zero"));
        }
        let fixed = Fixed::new(&weighted, MAX_TOTAL_BITS);
        let rows = RowCosts::Matrix(weighted);
        let limits = (leaf_penalty, max_leaves);
        Ok(LabelCosts::of_fixed(n_labels, fixed, rows, total_weight, limits, whole))
    }

    fn of_fixed(
        n_labels: usize,
        fixed: Fixed,
        rows: RowCosts,
        total_weight: f64,
        (leaf_penalty, max_leaves): (f64, usize),
        whole_tests: bool,
    ) -> Self {
        let total = |k| fixed.values.iter().skip(k).step_by(n_labels).sum::<i64>();
        let totals: Vec<i64> = (0..n_labels).map(total).collect();
        let most = totals.iter().copied().max().unwrap_or(0).max(1);
        let single_leaf = totals.iter().copied().min().unwrap_or(0);
        let up = 54 - (most as f64).log2().ceil() as u32;
        let price = leaf_penalty * total_weight * fixed.scale();
        // Where statistics are rounded, so may prices be.
        let price = if fixed.whole { price } else { price.round() };
        let grains = if fixed.whole && !whole_tests { 1..=up } else { up..=up };
        let price = Price::new(price, up, grains, single_leaf, max_leaves);
        LabelCosts {
            n_labels,
            scale: fixed.scale() * (1i64 << up) as f64,
            statistics: fixed.values,
            up,
            price,
            total_weight,
            penalty: leaf_penalty,
            rows,
            last_label: 0,
        }
    }
}

impl LabelCosts {
    /// Cost units per unit of the statistics.
    pub(super) fn unit(&self) -> f64 {
        (1i64 << self.up) as f64
    }

    /// Cost units that all costs are to be multiples of, those of tests too.
    pub(super) fn grain(&self) -> f64 {
        (1i64 << self.price.grain) as f64
    }

    /// Error of lanes that drop no bits, if costs are multiples of the `grain`: none where every
    /// value that can win has a mantissa to hold it. Elsewhere sums round, relative to the best
    /// tree of a cell: the leaf, then on each level both sides, the price of the split and that
    /// of the test.
    pub(super) fn relative_error(
        &self,
        max_leaves: usize,
        roundoff: f64,
        grain: bool,
    ) -> LaneError {
        let bits = (self.up - self.price.grain + self.price.bits) as i32;
        let exact = grain && self.price.is_exact();
        let exact_to = if exact { power_of_two(-bits) / roundoff } else { -1.0 };
        LaneError::Relative { share: f64::from(3 * max_leaves.ilog2() + 6) * roundoff, exact_to }
    }
}

/// The price of a split as the search charges it, in cost units.
///
/// Whole costs and at most q splits: trees compare by E + s·p, E whole and s ≤ q, so only the
/// position of p among the fractions of denominators up to q matters. Any number strictly
/// between the same two of them gives the same order without ties between sizes; just above
/// such a fraction, equal trees go to fewer leaves. The one of fewest bits keeps lanes exact.
#[derive(Clone, Copy, Debug)]
struct Price {
    charged: i64,
    /// What is charged beyond the true price.
    tie: i64,
    /// Costs are multiples of 2^grain.
    grain: u32,
    /// Bits of the fraction of a grain.
    bits: u32,
    /// Whether trees of equal cost have equally many leaves.
    orders: bool,
}

impl Price {
    /// `price` in units of the statistics, which are shifted by `up` to give costs; by the
    /// finest of the `grains` that leaves room for a fraction.
    fn new(
        price: f64,
        up: u32,
        mut grains: RangeInclusive<u32>,
        single_leaf: i64,
        max_leaves: usize,
    ) -> Self {
        let exact = (price * power_of_two(up as i32)).min(power_of_two(56)).round() as i64;
        let plain =
            Price { charged: exact, tie: 0, grain: *grains.start(), bits: 0, orders: false };
        let ordering = |grain: u32| {
            let single_leaf = (single_leaf << (up - grain)) as f64;
            // More than the single leaf costs is never paid.
            let price = (price * power_of_two((up - grain) as i32)).min(single_leaf + 1.0);
            let affordable = if price > 0.0 { single_leaf / price } else { f64::INFINITY };
            let splits = ((max_leaves - 1) as f64).min(affordable.floor()).max(1.0);
            // A bit less than the total has, for the mantissa of double lanes.
            let room = grain - u32::from(grain < up);
            let (numerator, bits) = between(price, splits).filter(|&(_, bits)| bits <= room)?;
            let charged = numerator << (grain - bits);
            Some(Price { charged, tie: charged - exact, grain, bits, orders: true })
        };
        grains.find_map(ordering).unwrap_or(plain)
    }

    fn is_exact(&self) -> bool {
        self.orders || self.charged % (1i64 << self.grain) == 0
    }
}

/// The fraction numerator/2^bits of fewest bits strictly between neighbouring fractions of
/// denominators up to `most`, such that `price` is there or is the lower of them.
fn between(price: f64, most: f64) -> Option<(i64, u32)> {
    // Prices this close to a fraction are meant to be it; large ones are whole.
    let tolerance = if price < 1e5 { 1e-10 } else { 0.0 };
    let (mut low, mut high) = ((-1i64, 1i64), (i64::MAX, 1i64));
    for b in 1..=(most.min(1025.0) as i64) {
        let a = ((price + tolerance) * b as f64).floor() as i64;
        if i128::from(a) * i128::from(low.1) > i128::from(low.0) * i128::from(b) {
            low = (a, b);
        }
        if i128::from(a + 1) * i128::from(high.1) < i128::from(high.0) * i128::from(b) {
            high = (a + 1, b);
        }
    }
    let fraction = |bits: u32| {
        let numerator = ((i128::from(low.0) << bits) / i128::from(low.1) + 1) as i64;
        let below = i128::from(numerator) * i128::from(high.1) < i128::from(high.0) << bits;
        below.then_some((numerator, bits))
    };
    if most > 1024.0 { None } else { (0..=MAX_FRACTION_BITS).find_map(fraction) }
}

impl Statistics for LabelCosts {
    #[inline(always)]
    fn channels(&self) -> usize {
        self.n_labels
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }
}

impl ScalarTask for LabelCosts {
    fn leaf_cost(&self, sums: &[i64]) -> i64 {
        let Some((last, others)) = sums.split_last() else { return 0 };
        others.iter().copied().fold(last + self.last_label, i64::min) << self.up
    }

    /// The least of functions that are linear.
    fn concave_cost(&self, sums: &[i64]) -> Option<f64> {
        Some(self.leaf_cost(sums) as f64)
    }

    fn splits_help(&self, sums: &[i64]) -> bool {
        self.leaf_cost(sums) > 0
    }

    fn cost_rounding(&self) -> i64 {
        0
    }

    fn split_price(&self) -> i64 {
        self.price.charged
    }

    fn objective(&self, leaf_of: &[usize], n_leaves: usize) -> f64 {
        let n_labels = self.n_labels;
        let mut sums = vec![0.0; n_leaves * n_labels];
        let loss: f64 = match &self.rows {
            RowCosts::Classes { class, weight } => {
                for (&leaf, (&k, &w)) in leaf_of.iter().zip(class.iter().zip(weight)) {
                    sums[leaf * n_labels + k] += w;
                }
                let wrong = |leaf: &[f64]| {
                    leaf.iter().sum::<f64>() - leaf.iter().copied().fold(0.0, f64::max)
                };
                sums.chunks_exact(n_labels).map(wrong).sum()
            }
            RowCosts::Matrix(costs) => {
                for (&leaf, row) in leaf_of.iter().zip(costs.chunks_exact(n_labels)) {
                    for (sum, cost) in sums[leaf * n_labels..].iter_mut().zip(row) {
                        *sum += cost;
                    }
                }
                let least = |leaf: &[f64]| leaf.iter().copied().fold(f64::INFINITY, f64::min);
                sums.chunks_exact(n_labels).map(least).sum()
            }
        };
        loss / self.total_weight + self.penalty * n_leaves as f64
    }

    fn least_objective(&self) -> f64 {
        self.penalty
    }

    fn objective_of_cost(&self, cost: i64) -> f64 {
        cost as f64 / self.scale / self.total_weight + self.penalty
    }
}

impl Superadditive for LabelCosts {
    fn pure_leaves(&self) -> bool {
        true
    }

    fn worst_cost(&self, sums: &[i64]) -> Option<i64> {
        sums.iter().copied().max().map(|most| most << self.up)
    }
}

impl Ties for LabelCosts {
    fn tie_price(&self) -> i64 {
        self.price.tie
    }

    fn orders_sizes(&self) -> bool {
        self.price.orders
    }
}

impl Questions for LabelCosts {}
impl FreeQuestions for LabelCosts {}

impl LaneTask for LabelCosts {
    fn relaxed(&self) -> Option<Self> {
        // One more label: the finest partition of a leaf's rows, and a split (rounded down).
        let (n_labels, last_label) = (self.n_labels + 1, self.price.charged >> self.up);
        let roomy = self.max_lane_sum(true) > 2 * last_label;
        roomy.then(|| LabelCosts { n_labels, last_label, ..self.clone() })
    }

    /// The least of the labels so far.
    type State<L: Lanes> = L::Int;
    type Constants<L: Lanes> = ();

    fn max_lane_sum(&self, single: bool) -> i64 {
        // Room for `last_label`.
        if single { i32::MAX_SUM / 2 } else { i64::MAX_SUM / 2 }
    }

    fn lane_unit(&self, shift: &[u32]) -> f64 {
        self.unit() * (1i64 << shift[0]) as f64
    }

    fn lane_error(
        &self,
        _: &[i64],
        shift: &[u32],
        max_leaves: usize,
        roundoff: f64,
        _: f64,
    ) -> LaneError {
        if shift.iter().any(|&s| s > 0) {
            return LaneError::Fixed(f64::INFINITY);
        }
        self.relative_error(max_leaves, roundoff, true)
    }

    #[inline(always)]
    fn lane_constants<L: Lanes>(&self, _: L, _: &[u32]) {}

    #[inline(always)]
    fn lane_start<L: Lanes>(&self, lanes: L) -> L::Int {
        lanes.splat(L::I::from_i64(L::I::MAX_SUM))
    }

    #[inline(always)]
    fn lane_fold<L: Lanes>(&self, lanes: L, least: L::Int, label: usize, sums: L::Int) -> L::Int {
        if label + 1 < self.n_labels {
            return L::min(least, sums);
        }
        L::min(least, sums + lanes.splat(L::I::from_i64(self.last_label)))
    }

    #[inline(always)]
    fn lane_loss<L: Lanes>(&self, _: L, (): (), least: L::Int) -> L::Real {
        L::to_real(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_takes_its_cheapest_label() {
        let costs = [0.0, 2.0, 5.0, 1.0, 0.0, 0.5];
        let task = LabelCosts::of_costs(&costs, 3, Some(&[1.0, 2.0]), 0.25, 4).unwrap();
        let sums: Vec<i64> =
            (0..3).map(|k| task.statistics()[k] + task.statistics()[3 + k]).collect();
        // Labels cost 2, 2 and 6, for a weight of 3.
        assert!((task.objective_of_cost(task.leaf_cost(&sums)) - (2.0 / 3.0 + 0.25)).abs() < 1e-15);
        assert!((task.objective(&[0, 0], 1) - (2.0 / 3.0 + 0.25)).abs() < 1e-15);
        assert_eq!(task.objective(&[0, 1], 2), 0.5);
    }

    #[test]
    fn charged_prices_order_trees_as_true_ones_do() {
        for (price, most) in [(0.0, 31), (0.3, 31), (1.0 / 3.0, 7), (34.535, 31), (4.79, 60)] {
            let (numerator, bits) = between(price, most as f64).unwrap();
            let charged = numerator as f64 / (1u64 << bits) as f64;
            assert!(bits <= 13, "{price}: {bits} bits");
            for splits in 1..=most {
                for whole in -2000..2000 {
                    let of = |price: f64| f64::from(whole) + f64::from(splits) * price;
                    let (truth, used) = (of(price), of(charged));
                    // A tie goes to fewer splits, and to nothing else.
                    let expected = if truth.abs() < 1e-9 { 1.0 } else { truth.signum() };
                    assert!(used.signum() == expected && used.abs() > 1e-9);
                }
            }
        }
        assert_eq!(between(0.0, 31.0), Some((1, 5)));
    }

    #[test]
    fn negative_costs_are_refused_by_row() {
        let refused = LabelCosts::of_costs(&[0.0, 1.0, 2.0, -1.0], 2, None, 0.0, 4).unwrap_err();
        assert_eq!(refused.to_string(), "costs: row 1 has a value that is not a number >= 0");
    }
}
