//! The cheapest label of a leaf, for any costs of giving a label to a row.
//!
//! The cost of a leaf is the minimum over labels k of `Σ cost[i][k]`, with one channel per label.
//! Accuracy, balanced accuracy, cost matrices, costs per row and policies all have this form and
//! share these lanes. Each has a file that defines its costs.

mod lanes;
mod units;

use super::fixed::{mean_times_power, power_of_two, times_power, unit_exponent};
use super::groups::Groups;
use super::prices::FeaturePrices;
use super::rewards::{Rewards, in_two_parts};
use super::split_price::Price;
use super::weights::Counts;
use super::wide::{Labels, Wide};
use super::{
    FreeQuestions, LaneError, Placed, Questions, ScalarTask, Statistics, Superadditive, Ties,
    Weights, check_values, range_of,
};
use crate::error::Error;
use crate::precise::Precise;
use crate::search::{Allowed, Measured};
use units::FINE_BITS;

/// Bits of the total of whole costs, which leave double lanes room for fractions of a unit.
pub(super) const MAX_TOTAL_BITS: u32 = 44;

/// Smallest contribution of a cost to the mean for which means of costs keep their digits.
const LEAST_COST: f64 = 1e-290;

/// Costs of the caller's rows.
#[derive(Clone, Debug)]
enum RowCosts {
    /// A row of this class costs its weight unless its leaf has the same label.
    Classes { class: Vec<usize>, weight: Vec<f64> },
    /// `[row][label]`, weights included.
    Matrix(Vec<f64>),
}

/// The input of a task: costs divided by 2^`outward`, and the limits of trees.
#[derive(Clone, Debug)]
struct Source {
    rows: RowCosts,
    counts: Counts,
    n_labels: usize,
    outward: i32,
    /// Divisor of the summed costs in the objective.
    total_weight: f64,
    penalty: f64,
    max_leaves: usize,
    /// Whether the costs of tests are whole numbers (or zero).
    whole_tests: bool,
    /// The rewards, if costs are their shortfalls, and the largest change of any tree by rounding
    /// them.
    rewards: Option<(Rewards, f64)>,
    /// Groups with a minimum number of rows in every leaf.
    groups: Groups,
}

/// A task of label costs: one channel per label, followed by the channels of the groups. A leaf
/// takes the cheapest label.
#[derive(Clone, Debug)]
pub struct LabelCosts {
    source: Source,
    /// `source.n_labels`, plus one in the task that gives bounds; see
    /// [`relaxed`](super::LaneTask::relaxed).
    n_labels: usize,
    statistics: Vec<i64>,
    /// Costs are statistics shifted left, which leaves room for fractional prices.
    up: u32,
    scale: f64,
    price: Price,
    /// Largest change of any tree by rounding the rows' costs, in cost units.
    off: f64,
    /// Largest relative change of a cost by rounding, and the change of any tree by rounded prices.
    off_each: f64,
    off_prices: f64,
    /// Whether lanes drop bits.
    fine: bool,
    /// Amount added to the last label of every leaf in the task that gives bounds; see
    /// [`relaxed`](super::LaneTask::relaxed).
    last_label: i64,
}

impl LabelCosts {
    /// A row of class `labels[i]` costs `weight[i]` in a leaf with another label; the sum is
    /// divided by `total_weight`.
    pub(super) fn of_classes(
        labels: &[usize],
        n_classes: usize,
        weights: Weights,
        total_weight: f64,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        let weight: Vec<f64> = (0..labels.len()).map(|i| weights.of(i)).collect();
        if weight.iter().all(|&w| w == 0.0) {
            return Err(Error::invalid("sample_weight", "all weights are zero"));
        }
        let rows = RowCosts::Classes { class: labels.to_vec(), weight };
        Ok(LabelCosts::prepare(Source {
            rows,
            counts: weights.counts(),
            n_labels: n_classes,
            outward: 0,
            total_weight,
            penalty: leaf_penalty,
            max_leaves,
            whole_tests: true,
            rewards: None,
            groups: Groups::default(),
        }))
    }

    /// `costs[row][label]` is the non-negative cost of giving a row a label. The objective is the
    /// mean cost per unit of weight. O(rows · labels).
    pub fn of_costs<'a>(
        costs: &[f64],
        n_labels: usize,
        weights: impl Into<Weights<'a>>,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        LabelCosts::with_tests(costs, n_labels, weights.into(), leaf_penalty, max_leaves, None)
    }

    /// As [`LabelCosts::of_costs`], in combination with costs of tests.
    pub(super) fn with_tests(
        costs: &[f64],
        n_labels: usize,
        given: Weights,
        leaf_penalty: f64,
        max_leaves: usize,
        tests: Option<&FeaturePrices>,
    ) -> Result<Self, Error> {
        let n_labels = n_labels.max(1);
        check_values("costs", costs, n_labels)?;
        let n = costs.len() / n_labels;
        let of_tests = || tests.into_iter().flat_map(FeaturePrices::values);
        let outward = unit_exponent(costs.iter().copied().chain(of_tests()));
        let weight_unit = given.weight.map_or(0, |w| unit_exponent(w.iter().copied()));
        let of_unit = |w: &[f64]| w.iter().map(|&w| times_power(w, -weight_unit)).collect();
        let weights: Option<Vec<f64>> = given.weight.map(of_unit);
        let weights = given.with(weights.as_deref());
        let total_weight = weights.total(n)?;
        let weight = |row: usize| weights.of(row);
        // Sums and their parts of the objective must stay in the range of normal numbers.
        let is_lost = |value: f64, weight: f64| {
            let summed = times_power(value, -outward) * weight;
            let lost = || {
                summed < f64::MIN_POSITIVE
                    || mean_times_power(summed, total_weight, outward) < LEAST_COST
            };
            value > 0.0 && weight > 0.0 && lost()
        };
        let reason = |value: f64, place: &str| {
            let most = costs.iter().copied().chain(of_tests()).fold(0.0, f64::max);
            format!(
                "{value:e}{place} adds less than {LEAST_COST:e} to the mean, or is lost beside the \
                 largest cost, {most:e}; make it 0, or change the unit"
            )
        };
        let mut by_row = costs.iter().enumerate().map(|(at, &c)| (at / n_labels, c));
        if let Some((row, c)) = by_row.find(|&(row, c)| is_lost(c, weight(row))) {
            return Err(Error::invalid("costs", reason(c, &format!(" in row {row}"))));
        }
        let lightest = (0..n).map(weight).filter(|&w| w > 0.0).fold(f64::INFINITY, f64::min);
        if let Some(price) = of_tests().find(|&price| is_lost(price, lightest)) {
            return Err(Error::invalid("feature_costs", reason(price, "")));
        }
        let weighted = costs
            .iter()
            .enumerate()
            .map(|(at, &c)| times_power(c, -outward) * weight(at / n_labels));
        Ok(LabelCosts::prepare(Source {
            rows: RowCosts::Matrix(weighted.collect()),
            counts: given.counts(),
            n_labels,
            outward,
            total_weight,
            penalty: leaf_penalty,
            max_leaves,
            whole_tests: of_tests().all(|price| price.fract() == 0.0),
            rewards: None,
            groups: Groups::default(),
        }))
    }

    /// `rewards[row][label]` is the reward, of any sign, for giving a row a label. The objective is
    /// the penalties of the leaves minus the mean reward per unit of weight. O(rows · labels).
    pub fn of_rewards<'a>(
        rewards: &[f64],
        n_labels: usize,
        weights: impl Into<Weights<'a>>,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        let weights = weights.into();
        let rewards = Rewards::new(rewards, n_labels, weights, leaf_penalty)?;
        let short = rewards.shortfalls(f64::INFINITY);
        Ok(LabelCosts::prepare(Source {
            rows: RowCosts::Matrix(short.values),
            counts: weights.counts(),
            n_labels: n_labels.max(1),
            outward: rewards.outward,
            total_weight: rewards.total_weight,
            penalty: leaf_penalty,
            max_leaves,
            whole_tests: true,
            rewards: Some((rewards, short.off)),
            groups: Groups::default(),
        }))
    }

    /// The same with a minimum number of rows of every group in every leaf.
    pub fn within(mut self, groups: Groups) -> Self {
        self.statistics = groups.behind(self.statistics, self.n_labels);
        self.source.groups = groups;
        self
    }

    /// Number of rows of every record.
    pub(super) fn counts(&self) -> &Counts {
        &self.source.counts
    }

    /// Cost units per unit of the summed costs.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// Most splits of a tree that may be optimal.
    fn splits(&self) -> f64 {
        self.price.affordable.min(self.source.max_leaves as f64)
    }

    /// A lower bound on the rows' costs and split prices of any tree whose cost in the units of the
    /// search is at least `cost`.
    pub fn least_total(&self, cost: f64) -> f64 {
        times_power((cost - self.off) / self.scale, self.source.outward)
    }

    /// Exponent of the power of two that costs were divided by.
    pub(super) fn outward(&self) -> i32 {
        self.source.outward
    }

    /// The task without rounding, with prices of questions per unit of the rows' weights.
    pub(super) fn wide_with<'a>(
        &'a self,
        known: f64,
        prices: Option<(&'a FeaturePrices, &[f64])>,
    ) -> Labels<'a> {
        let Source { rows, n_labels, outward, total_weight, penalty, .. } = &self.source;
        if let Some((rewards, _)) = &self.source.rewards {
            let groups = &self.source.groups;
            return Labels::of_rewards(rewards, groups, *penalty, self.splits(), known);
        }
        let of = (*total_weight, *outward);
        match rows {
            RowCosts::Matrix(costs) => Labels::new(costs, *n_labels, of, prices, *penalty, known),
            RowCosts::Classes { class, weight } => {
                let of_row = |(&class, &w): (&usize, &f64)| {
                    (0..*n_labels).map(move |label| if label == class { 0.0 } else { w })
                };
                let costs: Vec<f64> = class.iter().zip(weight).flat_map(of_row).collect();
                Labels::new(&costs, *n_labels, of, prices, *penalty, known)
            }
        }
    }
}

impl LabelCosts {
    /// Cost units per unit of the statistics.
    pub(super) fn unit(&self) -> f64 {
        (1i64 << self.up) as f64
    }

    /// Largest change of any tree by rounding the rows' costs, in cost units.
    pub(super) fn off(&self) -> f64 {
        self.off
    }

    /// Upper bound on the rows' costs of a tree with an objective below this, with a margin for the
    /// rounding of the bound itself.
    fn charged_by(&self, known: f64) -> f64 {
        let Source { outward, total_weight, penalty, .. } = self.source;
        times_power(known - penalty, -outward) * total_weight * (1.0 + 1e-9)
    }

    /// A total in cost units as a part of the objective.
    fn mean_of(&self, units: f64) -> f64 {
        mean_times_power(units / self.scale, self.source.total_weight, self.source.outward)
    }

    /// Number of cost units that all costs, including those of tests, are multiples of.
    pub(super) fn grain(&self) -> f64 {
        (1i64 << self.price.grain) as f64
    }

    /// Error of lanes that drop no bits, if costs are multiples of the `grain`. There is no error
    /// if the mantissa can hold every value that may win. Otherwise sums are rounded, relative to
    /// the best tree of a cell: the leaf, and on each level both sides, the price of the split and
    /// that of the test.
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

impl Statistics for LabelCosts {
    #[inline(always)]
    fn channels(&self) -> usize {
        self.n_labels + self.source.groups.minima().len()
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }
}

impl ScalarTask for LabelCosts {
    fn leaf_cost(&self, sums: &[i64]) -> i64 {
        let Some((last, others)) = sums[..self.n_labels].split_last() else { return 0 };
        others.iter().copied().fold(last + self.last_label, i64::min) << self.up
    }

    /// The minimum of linear functions.
    fn concave_cost(&self, sums: &[i64]) -> Option<f64> {
        Some(self.leaf_cost(sums) as f64)
    }

    /// For misclassified weight the Gini impurity: with the sum S of the costs c of K labels it is
    /// S − (K − 1) Σ c² / S.
    fn impurity(&self, sums: &[i64]) -> Option<f64> {
        let costs = sums[..self.n_labels].iter().map(|&c| c as f64);
        let (sum, squares) = costs.fold((0.0, 0.0), |(sum, squares), c| (sum + c, squares + c * c));
        let others = (self.n_labels - 1) as f64;
        Some(if sum > 0.0 { (sum - others * squares / sum) * self.unit() } else { 0.0 })
    }

    fn minima(&self) -> &[i64] {
        self.source.groups.minima()
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

    fn objective(&self, placed: Placed) -> Measured {
        let n_leaves = placed.n_leaves;
        let Source { rows, n_labels, outward, total_weight, penalty, .. } = &self.source;
        if let Some((rewards, _)) = &self.source.rewards {
            return rewards.measured(placed);
        }
        let n_labels = *n_labels;
        let mut sums = vec![Precise::default(); n_leaves * n_labels];
        let mut loss = Precise::default();
        match rows {
            RowCosts::Classes { class, weight } => {
                for (i, leaf, count) in placed.iter() {
                    sums[leaf * n_labels + class[i]].add_times(weight[i], count);
                }
                for leaf in sums.chunks_exact(n_labels) {
                    let heavier =
                        |&a: &usize, &b: &usize| leaf[a].value().total_cmp(&leaf[b].value());
                    let label = (0..n_labels).max_by(heavier);
                    let others = (0..n_labels).filter(|&k| Some(k) != label);
                    others.for_each(|k| loss.add(leaf[k].value()));
                }
            }
            RowCosts::Matrix(costs) => {
                for (i, leaf, count) in placed.iter() {
                    let row = &costs[i * n_labels..][..n_labels];
                    for (sum, &cost) in sums[leaf * n_labels..].iter_mut().zip(row) {
                        sum.add_times(cost, count);
                    }
                }
                let least = |leaf: &[Precise]| {
                    leaf.iter().map(|sum| sum.value()).fold(f64::INFINITY, f64::min)
                };
                sums.chunks_exact(n_labels).for_each(|leaf| loss.add(least(leaf)));
            }
        };
        let mean = mean_times_power(loss.value(), *total_weight, *outward);
        Measured::plain(mean + penalty * n_leaves as f64)
    }

    fn least_objective(&self, leaves: usize) -> f64 {
        let of_rewards = |(rewards, _): &(Rewards, f64)| rewards.least_objective(leaves);
        self.source.rewards.as_ref().map_or(self.source.penalty * leaves as f64, of_rewards)
    }

    fn objective_of_cost(&self, cost: i64) -> f64 {
        let Source { outward, total_weight, penalty, rewards, .. } = &self.source;
        if let Some((rewards, _)) = rewards {
            return rewards.objective_of(in_two_parts(cost.into(), 0).map(|p| p / self.scale));
        }
        mean_times_power(cost as f64 / self.scale, *total_weight, *outward) + penalty
    }

    fn unit_value(&self) -> f64 {
        mean_times_power(1.0 / self.scale, self.source.total_weight, self.source.outward)
    }

    fn addends(&self, value: f64, at_no_cost: f64) -> f64 {
        match &self.source.rewards {
            Some((rewards, _)) => rewards.addends(value, self.splits()),
            None => value.abs() + (value - at_no_cost).abs(),
        }
    }

    fn resolution(&self, allowed: Allowed) -> f64 {
        let _ = allowed;
        self.mean_of(self.off)
    }

    /// Rounding changes the costs of a tree by a relative amount.
    fn resolution_below(&self, allowed: Allowed, known: f64) -> f64 {
        if self.source.rewards.is_some() {
            return self.resolution(allowed);
        }
        let charged = self.charged_by(known) * self.scale;
        let off = (self.off_each * charged + self.off_prices) * (1.0 + 1e-6);
        self.mean_of(off).min(self.resolution(allowed))
    }

    fn finer(&self, known: f64) -> Option<Self> {
        // A tree that is as good never charges a row more than this above its least cost.
        let cap = match &self.source.rewards {
            None => self.charged_by(known),
            Some((rewards, _)) => rewards.most_short(known),
        };
        let finer = LabelCosts::in_units(self.source.clone(), FINE_BITS, cap);
        let helps = finer.off / finer.scale < 0.25 * self.off / self.scale;
        helps.then_some(finer)
    }

    fn wide(&self, known: f64) -> Option<Box<dyn Wide + '_>> {
        Some(Box::new(self.wide_with(known, None)))
    }

    fn widest(&self) -> (&'static str, String) {
        match &self.source.rows {
            RowCosts::Classes { weight, .. } => {
                ("sample_weight", range_of(weight.iter().copied().enumerate()))
            }
            RowCosts::Matrix(_) if self.source.rewards.is_some() => {
                self.source.rewards.as_ref().expect("rewards").0.widest()
            }
            RowCosts::Matrix(costs) => {
                let by_row =
                    costs.iter().enumerate().map(|(at, &c)| (at / self.source.n_labels, c));
                ("costs", range_of(by_row))
            }
        }
    }
}

impl Superadditive for LabelCosts {
    fn pure_leaves(&self) -> bool {
        true
    }

    fn worst_cost(&self, sums: &[i64]) -> Option<i64> {
        sums[..self.n_labels].iter().copied().max().map(|most| most << self.up)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_takes_its_cheapest_label() {
        let costs = [0.0, 2.0, 5.0, 1.0, 0.0, 0.5];
        let task = LabelCosts::of_costs(&costs, 3, Some(&[1.0, 2.0][..]), 0.25, 4).unwrap();
        let sums: Vec<i64> =
            (0..3).map(|k| task.statistics()[k] + task.statistics()[3 + k]).collect();
        // The labels cost 2, 2 and 6, for a weight of 3.
        assert!((task.objective_of_cost(task.leaf_cost(&sums)) - (2.0 / 3.0 + 0.25)).abs() < 1e-15);
        assert!(
            (task.objective(Placed::rows(&[0, 0], 1)).objective - (2.0 / 3.0 + 0.25)).abs() < 1e-15
        );
        assert_eq!(task.objective(Placed::rows(&[0, 1], 2)).objective, 0.5);
    }

    #[test]
    fn a_tree_of_small_loss_is_off_by_a_share_of_it() {
        // Nearly all of the weight belongs to rows that cost nothing in a good tree.
        let weights: Vec<f64> =
            (0..40).map(|i| if i < 4 { 0.1 } else { f64::from(i) / 3.0 }).collect();
        let labels: Vec<usize> = (0..40).map(|i| i % 2).collect();
        let task = LabelCosts::of_classes(
            &labels,
            2,
            Weights::from(Some(&weights[..])),
            weights.iter().sum(),
            0.0,
            4,
        )
        .unwrap();
        // Leaves follow the labels, except for some of the first rows.
        for wrong in 1..4 {
            let leaf_of: Vec<usize> =
                (0..40).map(|i| if i < wrong { 1 - i % 2 } else { i % 2 }).collect();
            let cost = (0..2).map(|leaf| {
                let mut sums = [0i64; 2];
                for (record, _) in
                    task.statistics().chunks_exact(2).zip(&leaf_of).filter(|(_, of)| **of == leaf)
                {
                    sums.iter_mut().zip(record).for_each(|(sum, v)| *sum += v);
                }
                task.leaf_cost(&sums)
            });
            let objective = task.objective(Placed::rows(&leaf_of, 2)).objective;
            let off = (task.objective_of_cost(cost.sum()) - objective).abs();
            let allowed = Allowed::of(1, 2);
            let below = task.resolution_below(allowed, objective) + 1e-15 * objective;
            assert!(
                off > 0.0 && off <= below && below < 0.25 * task.resolution(allowed),
                "{off} {below}"
            );
        }
        let allowed = Allowed::of(1, 2);
        assert_eq!(task.resolution_below(allowed, 1.0), task.resolution(allowed));
    }

    #[test]
    fn negative_costs_are_refused_by_row() {
        let refused = LabelCosts::of_costs(&[0.0, 1.0, 2.0, -1.0], 2, None, 0.0, 4).unwrap_err();
        assert_eq!(refused.to_string(), "costs: row 1 has a value that is not a number >= 0");
    }
}
