//! Label costs plus the price of every test on the path to a leaf.
//!
//! A split adds (weight of its rows) · (price of its feature, given the features above). The price
//! depends on the set of features above, not on their order, so it is a property of the itemset.
//! The lattice adds it when it pairs two cells (docs/maths/label-costs.md).

use super::fixed::{Fixed, mean_times_power, nearest, times_power, unit_exponent};
use super::label_costs::{LabelCosts, MAX_TOTAL_BITS};
use super::prices::FeaturePrices;
use super::wide::Wide;
use super::{
    LaneError, LaneTask, Placed, Questions, ScalarTask, Statistics, Superadditive, Ties, Weights,
};
use crate::error::Error;
use crate::precise::Precise;
use crate::search::{Allowed, Measured};
use crate::simd::FloatLanes;
use crate::tree::{LEAF, Tree};

/// Bits of the total weight. A double holds every sum of weights exactly.
const FINEST_BITS: u32 = 52;

/// An upper bound on the cost of every tree that may be optimal.
const MOST_PRICE: f64 = (1i64 << 58) as f64;

/// Label costs with feature prices; the last channel is the weight of the rows.
#[derive(Clone, Debug)]
pub struct Priced {
    costs: LabelCosts,
    prices: FeaturePrices,
    statistics: Vec<i64>,
    /// Cost units per unit of price and of the weight channel.
    rate: f64,
    /// Whether weights are whole numbers.
    whole: bool,
    /// Divided by a power of two if all weights are very large or very small.
    weights: Vec<f64>,
    /// Weight of all rows.
    total_weight: f64,
    rounding: Rounding,
}

/// Largest change in the cost of tests by the rounding of row weights and of prices.
#[derive(Clone, Debug, Default)]
struct Rounding {
    /// Error of the weights.
    weights: Off,
    /// Error of every price.
    prices: Vec<Off>,
    /// Cost of all rows as a leaf, in cost units: no better tree pays more for its tests.
    single_leaf: f64,
}

/// Possible error of a price.
#[derive(Clone, Copy, Debug, Default)]
struct Off {
    /// If all rows are tested, in cost units.
    of_all: f64,
    /// Relative to the amount paid.
    share: f64,
}

/// Largest relative error for which second-order terms can be ignored.
const SMALL_SHARE: f64 = 1e-3;

impl Rounding {
    /// Largest error of the tests of a tree that may be optimal, if every row passes this many
    /// levels.
    ///
    /// Each price uses the smaller of two bounds: its error on all rows on every level, or its
    /// relative error times the most that a tree can pay.
    fn of_tests(&self, levels: f64) -> f64 {
        let paid = self.single_leaf * (1.0 + 4.0 * SMALL_SHARE);
        let (mut of_all, mut share) = (0.0f64, 0.0f64);
        for off in std::iter::once(&self.weights).chain(&self.prices) {
            if off.share <= SMALL_SHARE && off.share * paid < levels * off.of_all {
                share = share.max(off.share);
            } else {
                of_all = of_all.max(off.of_all);
            }
        }
        // Errors of weights and prices together.
        2.0 * (levels * of_all + share * paid)
    }

    fn is_none(&self) -> bool {
        self.weights.of_all == 0.0 && self.prices.iter().all(|off| off.of_all == 0.0)
    }
}

impl Priced {
    /// As [`LabelCosts::of_costs`], with a price per unit of weight for every test.
    pub fn new<'a>(
        costs: &[f64],
        n_labels: usize,
        weights: impl Into<Weights<'a>>,
        prices: FeaturePrices,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        let (given, tests) = (weights.into(), Some(&prices));
        let weights = given.weight;
        let costs =
            LabelCosts::with_tests(costs, n_labels, given, leaf_penalty, max_leaves, tests)?;
        let n = costs.statistics().len() / costs.channels();
        let unit = weights.map_or(0, |w| unit_exponent(w.iter().copied()));
        let scaled = |w: &[f64]| w.iter().map(|&w| times_power(w, -unit)).collect();
        let weights: Vec<f64> = weights.map_or_else(|| vec![1.0; n], scaled);
        Ok(Priced::beside(costs, prices, weights, MAX_TOTAL_BITS))
    }

    /// Adds prices to label costs; `weights` are the stored weights, whose total has a given number
    /// of bits.
    fn beside(costs: LabelCosts, prices: FeaturePrices, weights: Vec<f64>, bits: u32) -> Self {
        let counts = costs.counts().clone();
        let fixed = Fixed::counted(weights.iter().copied(), |i| counts.of(i), bits);
        let statistics = costs
            .statistics()
            .chunks_exact(costs.channels())
            .zip(&fixed.values)
            .flat_map(|(record, &w)| record.iter().copied().chain([w]))
            .collect();
        let rate = times_power(costs.scale() / fixed.scale(), -costs.outward());
        let whole = fixed.whole;
        let total_weight = counts.sum(weights.iter().copied());
        let total = counts.sum(fixed.values.iter().map(|&w| w as f64));
        let mut task = Priced {
            costs,
            prices,
            statistics,
            rate,
            whole,
            weights,
            total_weight,
            rounding: Rounding::default(),
        };
        let of_label = |k: usize| {
            let records = task.costs.statistics().iter().skip(k).step_by(task.costs.channels());
            records.enumerate().map(|(i, &v)| v * counts.of(i) as i64).sum()
        };
        let totals: Vec<i64> = (0..task.costs.channels()).map(of_label).collect();
        // No tree that may be optimal pays a larger price.
        let paid = task.prices.values().map(|price| price * rate).filter(|&r| r < MOST_PRICE);
        let paid: Vec<f64> = paid.filter(|&rate| rate > 0.0).collect();
        if fixed.moved > 0.0 {
            // Four roundings in addition to the error of the quotients.
            let share = |(&v, w): (&i64, f64)| (v as f64 / (w * fixed.scale()) - 1.0).abs();
            let rows = fixed.values.iter().zip(task.weights.iter().copied());
            let shares = rows.filter(|&(_, w)| w > 0.0).map(share);
            task.rounding.weights = Off {
                of_all: fixed.moved * paid.iter().copied().fold(0.0, f64::max),
                share: shares.fold(0.0, f64::max) + 4.0 * f64::EPSILON,
            };
        }
        let of_price = |&rate: &f64| {
            let moved = (task.charged(rate) - rate).abs();
            Off { of_all: total * moved, share: moved / rate * (1.0 + 1e-6) }
        };
        task.rounding.prices = paid.iter().map(of_price).collect();
        let single_leaf = task.costs.leaf_cost(&totals) as f64;
        task.rounding.single_leaf = (single_leaf + task.costs.off()) * (1.0 + 1e-6);
        task
    }

    /// Charge for a price in cost units per unit of the weight channel. For whole weights it is a
    /// multiple of the grain, so that all costs are.
    fn charged(&self, rate: f64) -> f64 {
        let rate = rate.min(MOST_PRICE);
        let grain = self.costs.grain();
        if self.whole { (rate / grain).round() * grain } else { rate }
    }

    /// Cost units per unit of the weight channel.
    fn rate(&self, feature: usize, tested: &[usize]) -> f64 {
        self.charged(self.prices.price(feature, tested) * self.rate)
    }
}

impl Statistics for Priced {
    #[inline(always)]
    fn channels(&self) -> usize {
        self.costs.channels() + 1
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }
}

impl ScalarTask for Priced {
    fn leaf_cost(&self, sums: &[i64]) -> i64 {
        self.costs.leaf_cost(&sums[..sums.len() - 1])
    }

    fn concave_cost(&self, sums: &[i64]) -> Option<f64> {
        self.costs.concave_cost(&sums[..sums.len() - 1])
    }

    fn impurity(&self, sums: &[i64]) -> Option<f64> {
        self.costs.impurity(&sums[..sums.len() - 1])
    }

    fn splits_help(&self, sums: &[i64]) -> bool {
        self.leaf_cost(sums) > 0
    }

    fn cost_rounding(&self) -> i64 {
        self.costs.cost_rounding()
    }

    fn split_price(&self) -> i64 {
        self.costs.split_price()
    }

    fn objective(&self, rows: Placed) -> Measured {
        self.costs.objective(rows)
    }

    fn least_objective(&self, leaves: usize) -> f64 {
        self.costs.least_objective(leaves)
    }

    fn objective_of_cost(&self, cost: i64) -> f64 {
        self.costs.objective_of_cost(cost)
    }

    fn resolution(&self, allowed: Allowed) -> f64 {
        // Every row may be tested once on every level, and every test is rounded to a unit.
        let tests = (allowed.leaves - 1) as f64;
        let levels = tests.min(allowed.depth as f64);
        // Tie prices of splits order trees exactly only if the prices of tests are exact.
        let half = if self.whole { 0.0 } else { 0.5 };
        let is_exact = self.whole && self.rounding.is_none();
        let of_splits = if self.costs.orders_sizes() && !is_exact { 0.5 } else { 0.0 };
        let units = self.rounding.of_tests(levels) + tests * (half + of_splits);
        let (scale, outward) = (self.costs.scale(), self.costs.outward());
        let of_tests = mean_times_power(units / scale, self.total_weight, outward);
        self.costs.resolution(allowed) + of_tests
    }

    /// A tree as good as a known one has label costs no larger than that, whatever it pays for
    /// tests.
    fn finer(&self, known: f64) -> Option<Self> {
        let costs = self.costs.finer(known)?;
        Some(Priced::beside(costs, self.prices.clone(), self.weights.clone(), FINEST_BITS))
    }

    fn wide(&self, known: f64) -> Option<Box<dyn Wide + '_>> {
        Some(Box::new(self.costs.wide_with(known, Some((&self.prices, &self.weights)))))
    }

    fn widest(&self) -> (&'static str, String) {
        self.costs.widest()
    }
}

impl Superadditive for Priced {}

impl Ties for Priced {
    fn tie_price(&self) -> i64 {
        self.costs.tie_price()
    }

    fn orders_sizes(&self) -> bool {
        self.costs.orders_sizes() && self.whole
    }
}

impl Questions for Priced {
    const PRICED: bool = true;

    fn feature_price(&self, feature: usize, tested: &[usize], sums: &[i64]) -> i64 {
        let rate = self.rate(feature, tested);
        nearest((sums[sums.len() - 1] as f64 * rate).min(MOST_PRICE))
    }

    fn relatives(&self, feature: usize) -> &[usize] {
        self.prices.relatives(feature)
    }

    fn kinds(&self) -> Vec<u32> {
        self.prices.kinds()
    }

    fn context(&self, feature: usize, tested: &[usize]) -> u64 {
        self.prices.price(feature, tested).to_bits()
    }

    fn tree_price(&self, tree: &Tree, rows: Placed) -> f64 {
        let mut of_leaf = vec![Precise::default(); rows.n_leaves];
        for (record, leaf, count) in rows.iter() {
            of_leaf[leaf].add_times(self.weights[record], count);
        }
        let (mut weight, mut leaves) = (vec![Precise::default(); tree.n_nodes()], of_leaf.iter());
        for node in (0..tree.n_nodes()).filter(|&node| tree.feature[node] == LEAF) {
            weight[node] = *leaves.next().expect("a weight per leaf, in preorder");
        }
        for node in (0..tree.n_nodes()).rev().filter(|&node| tree.feature[node] != LEAF) {
            let [yes, no] = [tree.left[node], tree.right[node]].map(|child| weight[child as usize]);
            weight[node] = yes.plus(no);
        }
        let mut mean = Precise::default();
        for (node, tested) in tree.nodes_with_tested() {
            if tree.feature[node] != LEAF {
                let price = self.prices.price(tree.feature[node] as usize, &tested);
                mean.add(weight[node].value() / self.total_weight * price);
            }
        }
        mean.value()
    }

    fn lane_rate(&self, feature: usize, tested: &[usize]) -> f64 {
        // Must be finite in single lanes, where a cell without weight is charged nothing.
        (self.rate(feature, tested) / self.costs.unit()).min(1e30)
    }
}

impl LaneTask for Priced {
    type State<L: FloatLanes> = L::Int;
    type Constants<L: FloatLanes> = ();

    fn max_lane_sum(&self, single: bool) -> i64 {
        self.costs.max_lane_sum(single)
    }

    fn lane_unit(&self, shift: &[u32]) -> f64 {
        self.costs.lane_unit(shift)
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
        self.costs.relative_error(max_leaves, roundoff, self.whole)
    }

    #[inline(always)]
    fn lane_constants<L: FloatLanes>(&self, _: L, _: &[u32]) {}

    #[inline(always)]
    fn lane_start<L: FloatLanes>(&self, lanes: L) -> L::Int {
        self.costs.lane_start(lanes)
    }

    #[inline(always)]
    fn lane_fold<L: FloatLanes>(
        &self,
        _: L,
        _: &Self::Constants<L>,
        least: L::Int,
        channel: usize,
        sums: L::Int,
    ) -> L::Int {
        if channel == self.costs.channels() {
            return least;
        }
        L::min(least, sums)
    }

    #[inline(always)]
    fn lane_loss<L: FloatLanes>(&self, _: L, (): (), least: L::Int) -> L::Real {
        L::to_real(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::LaneReal;

    #[test]
    fn double_lanes_hold_fractions_of_whole_costs() {
        let costs: Vec<f64> =
            (0..1000).flat_map(|i| [f64::from(69 + i % 2), f64::from(70 + i % 3)]).collect();
        let exact = |price: f64| {
            let prices = FeaturePrices::new(&[price, 3.0], None, None, None).unwrap();
            let task = Priced::new(&costs, 2, None, prices, 0.0, 32).unwrap();
            let totals: Vec<i64> =
                (0..3).map(|k| task.statistics().iter().skip(k).step_by(3).sum()).collect();
            let leaf = task.leaf_cost(&totals) as f64 / task.lane_unit(&[0]);
            let error = |roundoff| task.lane_error(&[], &[0; 3], 32, roundoff, 0.0).of(leaf) == 0.0;
            [error(f32::ROUNDOFF), error(f64::ROUNDOFF)]
        };
        assert_eq!(exact(2.0), [true, true]);
        assert_eq!(exact(5.58562), [false, true]);
    }
}
