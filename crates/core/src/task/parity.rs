//! Group fairness of a classifier: demographic parity, equality of opportunity, equalized odds.
//!
//! STreeD, eqs. 66–70, for any number of groups. Let N_a be the weight of group a. The rates of
//! positive predictions of any two groups a and b must satisfy |P(ŷ=1 | a) − P(ŷ=1 | b)| ≤ δ. The
//! rates are taken over all rows (demographic parity), over the rows with y = 1 (equality of
//! opportunity), or over the rows with y = 1 and those with y = 0 separately (equalized odds,
//! Hardt, Price and Srebro, NeurIPS 2016). The paper's two sums g_a and g_ā are each 1 ± the signed
//! difference, so one integer per pair of groups, its numerator, represents both thresholds: D = Σ
//! over leaves that predict 1 of n_b/N_b − n_a/N_a, with −δ ≤ D ≤ δ.

use super::accuracy::Accuracy;
use super::digits::{ExactSums, parts};
use super::{ANY, FrontTask, Said, ScalarTask, Statistics, Task, Ties, Weights};
use crate::error::Error;
use crate::precise::Precise;
use crate::search::{Allowed, Measured};
use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Bits of a difference of one.
const SHARE_BITS: u32 = 58;

/// Allowance for a difference above δ: rounding δ and the weights to doubles can move it by this
/// much, 2^−51. See docs/maths/fronts.md.
const ROUNDED: f64 = 2.0 * f64::EPSILON;

/// The rates of the groups that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// Positive predictions among all rows.
    DemographicParity,
    /// Positive predictions among the rows of the positive class.
    EqualityOfOpportunity,
    /// Positive predictions among the rows of either class.
    EqualizedOdds,
}

impl Criterion {
    /// The class of the rows of every rate; `None` for rows of both classes.
    fn classes(self) -> &'static [Option<bool>] {
        match self {
            Criterion::DemographicParity => &[None],
            Criterion::EqualityOfOpportunity => &[Some(true)],
            Criterion::EqualizedOdds => &[Some(true), Some(false)],
        }
    }

    /// Number of limited differences: one per pair of groups for every rate.
    pub fn differences(self, n_groups: usize) -> usize {
        self.classes().len() * pairs(n_groups).count()
    }
}

/// A limit on the differences between the rates of groups.
#[derive(Clone, Copy, Debug)]
pub struct GroupLimit<'a> {
    /// Which rates are compared.
    pub criterion: Criterion,
    /// Group of every row, from 0.
    pub group: &'a [usize],
    /// Weight of every row in the rate of its group; `None` if all rows weigh the same.
    pub weights: Option<&'a [f64]>,
    /// Largest difference.
    pub most: f64,
}

/// Misclassified weight under a limit on the differences between the groups' rates; there are at
/// most K − 1 differences.
#[derive(Clone, Debug)]
pub struct Parity<const K: usize> {
    /// Costs of labels, without the limit.
    errors: Accuracy,
    /// Units of cost per unit of the statistics.
    unit: i64,
    /// Cost of either label, followed by the share of the row in every rate of every group.
    statistics: Vec<i64>,
    channels: usize,
    /// The channels of the two groups of every component except the first.
    compared: Vec<[usize; 2]>,
    units: [f64; K],
    window: [(i64, i64); K],
    price: i64,
    tie: i64,
    most_leaves: usize,
    rates: Rates,
    /// Class and weight of every row, and the sum of the weights.
    rows: Vec<(bool, f64)>,
    total_weight: f64,
    leaf_penalty: f64,
}

/// The exact rates of the groups.
#[derive(Clone, Debug)]
struct Rates {
    n_groups: usize,
    weight: ExactSums,
    of_class: Vec<Rate>,
    /// Largest difference.
    most: f64,
}

/// The rate of one class, or of all rows.
#[derive(Clone, Debug)]
struct Rate {
    /// Group of the rows that count, `None` for the others.
    group: Vec<Option<usize>>,
    /// Weight of every group.
    size: Vec<BigInt>,
    /// A rate of one, in units of the statistics.
    one: BigInt,
    /// Whether the statistics are exact.
    whole: bool,
}

/// All pairs of `n_groups` groups.
fn pairs(n_groups: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..n_groups).flat_map(move |b| (0..b).map(move |a| [a, b]))
}

fn least_common_multiple(a: &BigInt, b: &BigInt) -> BigInt {
    let (mut divisor, mut rest) = (a.clone(), b.clone());
    while !rest.is_zero() {
        (divisor, rest) = (rest.clone(), divisor % rest);
    }
    a / divisor * b
}

impl Rates {
    /// The rates of groups. Every group must have a row of every class that counts.
    fn new(limit: &GroupLimit, positive: &[bool]) -> Result<Rates, Error> {
        let n_groups = limit.group.iter().max().map_or(0, |most| most + 1);
        let exact = match limit.weights {
            Some(weights) => ExactSums::new(weights.iter().copied()),
            None => ExactSums::new(positive.iter().map(|_| 1.0)),
        };
        let of_class = |&class: &Option<bool>| {
            let counts = |i: usize| class.is_none_or(|class| positive[i] == class);
            let of_row = |i: usize| counts(i).then_some(limit.group[i]);
            let group: Vec<_> = (0..positive.len()).map(of_row).collect();
            let size = exact.of_groups(n_groups, group.iter().copied());
            if n_groups < 2 || size.iter().any(Zero::is_zero) {
                let reason = match class {
                    None => "takes a single value",
                    Some(true) => "has a group without a row of the positive class",
                    Some(false) => "has a group without a row of the negative class",
                };
                return Err(Error::invalid("sensitive feature", reason));
            }
            // If this unit is small enough, shares w/N are whole multiples of it.
            let one = size.iter().fold(BigInt::one(), |one, n| least_common_multiple(&one, n));
            let whole = one.bits() <= u64::from(SHARE_BITS);
            let one = if whole { one } else { BigInt::from(1i64 << SHARE_BITS) };
            Ok(Rate { group, size, one, whole })
        };
        let of_class = limit.criterion.classes().iter().map(of_class).collect::<Result<_, _>>()?;
        Ok(Rates { n_groups, weight: exact, of_class, most: limit.most.min(1.0) + ROUNDED })
    }

    /// The largest whole number that is at most `most` times another.
    fn most_of(&self, whole: BigInt) -> BigInt {
        let (mantissa, exponent) = parts(self.most);
        let product = whole * mantissa;
        if exponent >= 0 { product << exponent } else { product >> exponent.unsigned_abs() }
    }

    /// Share of every row in its group, to the nearest unit.
    fn shares(&self, rate: &Rate) -> Vec<i64> {
        let sizes: Option<Vec<u128>> = rate.size.iter().map(ToPrimitive::to_u128).collect();
        let unit = rate.one.to_u128().unwrap_or(0);
        let share = |(i, group): (usize, &Option<usize>)| {
            let Some(group) = *group else { return 0 };
            // Rounded to the nearest: 64 bits for a weight, 58 for a share, and one that is
            // dropped.
            if let (Some(sizes), Some(weight)) = (&sizes, self.weight.word(i)) {
                return ((u128::from(weight) * 2 * unit / sizes[group] + 1) >> 1) as i64;
            }
            let weight = self.weight.of_row(i) * 2 * &rate.one;
            let share: BigInt = (weight / &rate.size[group] + 1) >> 1;
            share.to_i64().unwrap_or(0)
        };
        rate.group.iter().enumerate().map(share).collect()
    }

    /// Whether the predictions keep the limit; `chosen` says which rows are predicted to be
    /// positive.
    fn keep(&self, chosen: impl Iterator<Item = bool> + Clone) -> bool {
        self.of_class.iter().all(|Rate { group, size, .. }| {
            let groups = group.iter().zip(chosen.clone());
            let groups = groups.map(|(group, chosen)| group.filter(|_| chosen));
            let of = self.weight.of_groups(self.n_groups, groups);
            pairs(self.n_groups).all(|[a, b]| {
                let difference = &of[b] * &size[a] - &of[a] * &size[b];
                difference.abs() <= self.most_of(&size[a] * &size[b])
            })
        })
    }
}

impl<const K: usize> Parity<K> {
    /// Errors weigh `weights`; `leaf_penalty` is per leaf, in units of the misclassified share.
    /// Trees will have at most `max_leaves` leaves.
    pub fn new(
        limit: &GroupLimit,
        positive: &[bool],
        weights: Option<&[f64]>,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        let n = positive.len();
        let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
        let labels: Vec<usize> = positive.iter().map(|&p| usize::from(p)).collect();
        let most_leaves = max_leaves.min(n).max(1);
        let errors = Accuracy::new(&labels, 2, weights, leaf_penalty, most_leaves)?;
        let total_weight = Weights::from(weights).total(n)?;
        let rates = Rates::new(limit, positive)?;
        let n_groups = rates.n_groups;
        let n_differences = limit.criterion.differences(n_groups);
        if n_differences >= K {
            let reason = format!("{n_differences} differences are limited, {} at most", K - 1);
            return Err(Error::invalid("sensitive feature", reason));
        }
        let channels = 2 + rates.of_class.len() * n_groups;
        let mut statistics = vec![0; channels * n];
        let costs = errors.statistics().chunks_exact(2);
        for (row, costs) in statistics.chunks_exact_mut(channels).zip(costs) {
            row[..2].copy_from_slice(costs);
        }
        let (mut units, mut window) = ([1.0; K], [ANY; K]);
        units[0] = errors.scale() * total_weight;
        let mut compared = Vec::with_capacity(n_differences);
        for (place, rate) in rates.of_class.iter().enumerate() {
            let first = 2 + place * n_groups;
            let rows = statistics.chunks_exact_mut(channels).zip(&rate.group);
            for ((row, group), share) in rows.zip(rates.shares(rate)) {
                if let Some(group) = group {
                    row[first + group] = share;
                }
            }
            // Each share may be half a unit off.
            let off = if rate.whole { 0 } else { n as i64 };
            let bound = rates.most_of(rate.one.clone()).to_i64().unwrap_or(0) + off;
            for pair in pairs(n_groups) {
                compared.push(pair.map(|group| first + group));
                units[compared.len()] = rate.one.to_f64().unwrap_or(1.0);
                window[compared.len()] = (-bound, bound);
            }
        }
        // Without a penalty only the number of leaves breaks ties.
        let free = leaf_penalty == 0.0;
        let (price, tie) = if free { (0, 0) } else { (errors.split_price(), errors.tie_price()) };
        let rows = positive.iter().copied().zip((0..n).map(weight)).collect();
        Ok(Parity {
            unit: errors.unit() as i64,
            errors,
            statistics,
            channels,
            compared,
            units,
            window,
            price,
            tie,
            most_leaves,
            rates,
            rows,
            total_weight,
            leaf_penalty,
        })
    }

    /// The same task in finer units of cost, given the objective `known` of an admissible tree;
    /// `None` if finer units do not help.
    pub fn finer(&self, known: f64) -> Option<Self> {
        let errors = self.errors.finer(known)?;
        let mut finer = self.clone();
        let rows = finer.statistics.chunks_exact_mut(self.channels);
        for (row, costs) in rows.zip(errors.statistics().chunks_exact(2)) {
            row[..2].copy_from_slice(costs);
        }
        if finer.leaf_penalty > 0.0 {
            (finer.price, finer.tie) = (errors.split_price(), errors.tie_price());
        }
        finer.units[0] = errors.scale() * self.total_weight;
        (finer.unit, finer.errors) = (errors.unit() as i64, errors);
        Some(finer)
    }
}

impl<const K: usize> Statistics for Parity<K> {
    fn channels(&self) -> usize {
        self.channels
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }
}

impl<const K: usize> Task for Parity<K> {
    /// Misclassified weight and differences between the groups.
    type Cost = [i64; K];

    #[inline(always)]
    fn leaf_candidates(&self, sums: &[i64], out: &mut Vec<[i64; K]>) {
        let (mut negative, mut positive) = ([0; K], [0; K]);
        negative[0] = sums[0] * self.unit;
        positive[0] = sums[1] * self.unit;
        for (difference, [a, b]) in positive[1..].iter_mut().zip(&self.compared) {
            *difference = sums[*b] - sums[*a];
        }
        out.extend([negative, positive]);
    }

    #[inline(always)]
    fn combine(&self, a: &[i64; K], b: &[i64; K]) -> [i64; K] {
        let mut sum: [i64; K] = std::array::from_fn(|k| a[k] + b[k]);
        sum[0] += self.price;
        sum
    }

    /// A smaller difference is not better: the rest of the tree may have too much of it.
    #[inline(always)]
    fn dominates(&self, a: &[i64; K], b: &[i64; K]) -> bool {
        a[0] <= b[0] && a[1..] == b[1..]
    }
}

impl<const K: usize> FrontTask<K> for Parity<K> {
    fn price(&self) -> i64 {
        self.price
    }

    fn window(&self) -> [(i64, i64); K] {
        self.window
    }

    fn exact(&self, _: usize) -> bool {
        true
    }

    fn reach(&self, sums: &[i64]) -> [(i64, i64); K] {
        let mut reach = [(0, 0); K];
        reach[0].1 = (sums[0] + sums[1]) * self.unit;
        for (reach, [a, b]) in reach[1..].iter_mut().zip(&self.compared) {
            *reach = (-sums[*a], sums[*b]);
        }
        reach
    }

    fn linear(&self, weights: &[f64; K]) -> Option<Vec<Vec<f64>>> {
        let error = weights[0] * self.errors.unit();
        let mut forms = vec![vec![0.0; self.channels]; 2];
        (forms[0][0], forms[1][1]) = (error, error);
        for (weight, [a, b]) in weights[1..].iter().zip(&self.compared) {
            forms[1][*a] -= weight;
            forms[1][*b] += weight;
        }
        Some(forms)
    }

    fn units(&self) -> [f64; K] {
        self.units
    }

    fn objective_of(&self, cost: i64, _leaves: u32) -> f64 {
        self.errors.objective_of_cost(cost)
    }

    fn grain(&self) -> i64 {
        // Smallest difference of whole costs and of prices.
        self.unit.min(1 << self.price.trailing_zeros().min(62))
    }

    fn refinement(&self) -> Option<i64> {
        Some(0)
    }

    fn resolution(&self, allowed: Allowed) -> f64 {
        self.errors.resolution(allowed)
    }

    fn ties(&self) -> f64 {
        // A tree with more splits costs at least as much as a single leaf, which has no difference.
        let cost = |k: usize| self.errors.statistics().iter().skip(k).step_by(2).sum::<i64>();
        let most = cost(0).min(cost(1)).saturating_mul(self.unit);
        let splits = if self.price > 0 { most / self.price } else { 0 };
        let splits = splits.min(self.most_leaves as i64 - 1) as f64;
        // Prices are charged in whole units.
        let tie = self.tie.max(0);
        let rounded = ((self.price - tie) as f64 / self.units()[0] - self.leaf_penalty).abs();
        let rounded = if self.price > 0 { rounded } else { 0.0 };
        splits * (tie as f64 / self.units()[0] + rounded)
    }

    fn measured(&self, said: &Said) -> Option<Measured> {
        let wrong = |&((positive, _), label): &(&(bool, f64), i64)| *positive != (label == 1);
        let rows = self.rows.iter().zip(said.of_rows()).filter(wrong);
        let loss = Precise::of(rows.map(|((_, weight), _)| *weight)).value() / self.total_weight;
        Some(Measured::plain(loss + self.leaf_penalty * said.labels.len() as f64))
    }

    fn admits(&self, said: &Said) -> bool {
        let whole = self.rates.of_class.iter().all(|rate| rate.whole);
        whole || self.rates.keep(said.of_rows().map(|label| label == 1))
    }

    fn widest(&self) -> (&'static str, String) {
        self.errors.widest()
    }
}
