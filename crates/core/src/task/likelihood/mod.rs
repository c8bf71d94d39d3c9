//! Survival likelihood (SurTree, Huisman et al. 2024; LeBlanc & Crowley 1992).
//!
//! The survival curve of a leaf is exp(−θΛ(t)), where Λ is the Nelson–Aalen estimate of the whole
//! sample and θ = ES/HS, with ES the events and HS = ΣΛ(t_i) of the leaf. Its loss is
//! NLHS − ES·ln(ES/HS) with NLHS = −Σ δ_i ln Λ(t_i). NLHS sums to a constant over the leaves, so
//! the search minimises Σ ES·ln(HS/ES), here relative to a single leaf:
//! cost = ES·ln((HS/ES)/(HS₀/ES₀)). See docs/maths/likelihood.md.
//!
//! Times do not appear here: a row is a record of events and hazard. Counts with exposure are such
//! records, too; the loss is then half their Poisson deviance. Smoothed events are counts whose
//! exposure is the hazard.

mod lanes;
#[cfg(test)]
mod tests;

pub use lanes::{CORNER_OPERATIONS, Constants, operations};

use super::fixed::{Fixed, nearest, power_of_two};
use super::weights::Counts;
use super::{
    FreeQuestions, Placed, Questions, ScalarTask, Statistics, Superadditive, Ties, Weights,
    check_values, range_of,
};
use crate::error::{Error, not_negative};
use crate::precise::Precise;
use crate::search::{Allowed, Measured};
use crate::survival::{Observations, baseline_hazard};
use lanes::rounding_error;

/// Bits of a channel's total, as many as 64-bit sums allow. Lanes drop the bits that they cannot
/// hold.
const TOTAL_BITS: u32 = 61;

/// Largest price of a split, more than the difference of any two trees.
pub(super) const MOST_PRICE: i64 = 1 << 56;

/// An upper bound on the logarithms of ratios of 64-bit sums and of their scales.
const LOGARITHMS: f64 = 256.0;

/// Most pseudo-events of a prior.
pub const MOST_PRIOR: f64 = 1e9;

/// The likelihood task of a sample. The channels are the events and the summed hazard.
#[derive(Clone, Debug)]
pub struct Likelihood {
    statistics: Vec<i64>,
    /// Whether the event of each row was observed; empty for counts.
    event: Vec<bool>,
    /// Name of the user's array, for messages.
    source: &'static str,
    /// Pseudo-events at θ = 1 that are added to every leaf.
    prior: f64,
    events_scale: f64,
    hazard_scale: f64,
    /// ES₀ and HS₀ of the whole sample.
    total: [i64; 2],
    price: i64,
    scale: f64,
    weight: f64,
    penalty: f64,
    /// Largest change of any tree's summed loss by rounding the events, and, for trees with the
    /// most leaves, by rounding the hazards.
    off: [f64; 2],
    /// Objective of a single leaf.
    single_leaf: f64,
    /// Upper bound on the sum of the absolute terms of any tree's objective, without penalties.
    terms: f64,
    /// Real, weighted values of each record: events, hazard, and the log-likelihood of the
    /// saturated model, −e·ln(h/e).
    rows: Vec<[f64; 3]>,
    counts: Counts,
}

/// Input of the likelihood.
struct Records<'a> {
    /// Events of each row.
    events: &'a [f64],
    /// Hazard that each was exposed to.
    hazard: &'a [f64],
    weights: Weights<'a>,
    /// Whether the event of each row was observed.
    observed: &'a [bool],
    source: &'static str,
}

impl Likelihood {
    /// Prepares the statistics; `leaf_penalty` is per leaf, in the normalised objective.
    pub fn new(obs: &Observations, leaf_penalty: f64) -> Result<Self, Error> {
        Likelihood::with_prior(obs, 0.0, leaf_penalty)
    }

    /// As [`Likelihood::new`], with a prior of `prior` pseudo-events that pulls the hazard ratio of
    /// every leaf towards one.
    pub fn with_prior(obs: &Observations, prior: f64, leaf_penalty: f64) -> Result<Self, Error> {
        Likelihood::of_smoothed(obs, None, prior, leaf_penalty)
    }

    /// As [`Likelihood::with_prior`], but if `smoothed` events are given, the loss of leaves is
    /// computed from them. Hazards and the minimum number of events of a leaf use the observed
    /// events.
    pub fn of_smoothed(
        obs: &Observations,
        smoothed: Option<&[f64]>,
        prior: f64,
        leaf_penalty: f64,
    ) -> Result<Self, Error> {
        check_prior(prior)?;
        not_negative("smoothed", smoothed.unwrap_or(&[]))?;
        let hazard = baseline_hazard(obs);
        let counts = |&event: &bool| f64::from(u8::from(event));
        let records = Records {
            events: &smoothed
                .map_or_else(|| obs.event.iter().map(counts).collect(), <[f64]>::to_vec),
            hazard: &hazard,
            weights: Weights { weight: obs.weight, count: obs.count },
            observed: obs.event,
            source: if smoothed.is_some() { "smoothed" } else { "y" },
        };
        let task = Likelihood::prepare(&records, prior, leaf_penalty)?;
        if !(0..obs.len()).any(|i| obs.event[i] && obs.weight(i) > 0.0) {
            return Err(Error::invalid("event", "no event was observed"));
        }
        Ok(task)
    }

    /// The events of one of several causes, whose loss is multiplied by `importance`. It is still
    /// divided by its own weight, see [`within`](Self::within).
    pub(super) fn of_cause(obs: &Observations, importance: f64, prior: f64) -> Result<Self, Error> {
        check_prior(prior)?;
        let weights: Vec<f64> = (0..obs.len()).map(|i| importance * obs.weight(i)).collect();
        let records = Records {
            events: &obs.event.iter().map(|&event| f64::from(u8::from(event))).collect::<Vec<_>>(),
            hazard: &baseline_hazard(obs),
            weights: Weights { weight: Some(&weights), count: obs.count },
            observed: obs.event,
            source: "y",
        };
        Likelihood::prepare(&records, importance * prior, 0.0)
    }

    /// The same loss as part of an objective with another weight and price of a leaf, in cost units
    /// that are no finer.
    pub(super) fn within(mut self, weight: f64, scale: f64, leaf_penalty: f64) -> Self {
        self.terms *= self.weight / weight;
        (self.weight, self.scale, self.penalty) = (weight, scale, leaf_penalty);
        self.price = price_of_leaf(leaf_penalty, weight, scale);
        self.single_leaf = self.objective_of_one_leaf();
        self
    }

    /// Objective of a single leaf.
    pub(super) fn single_leaf(&self) -> f64 {
        self.single_leaf
    }

    fn objective_of_one_leaf(&self) -> f64 {
        let all = (0..self.rows.len()).map(|record| (record, 0, self.counts.of(record)));
        self.measured(all, 1).objective
    }

    /// Cost of a single leaf.
    pub(super) fn single_cost(&self) -> i64 {
        self.leaf_cost(&self.total)
    }

    /// Half the Poisson deviance of `counts` given `exposure`, or an exposure of 1 each: every leaf
    /// has one rate per unit of exposure.
    pub fn of_counts<'a>(
        counts: &[f64],
        exposure: Option<&[f64]>,
        weights: impl Into<Weights<'a>>,
        leaf_penalty: f64,
    ) -> Result<Self, Error> {
        let weights = weights.into();
        check_values("y", counts, 1)?;
        check_values("exposure", exposure.unwrap_or(&[]), 1)?;
        if let Some(row) = exposure.and_then(|m| m.iter().position(|&m| m == 0.0)) {
            return Err(Error::invalid("exposure", format!("row {row} is 0; it must be positive")));
        }
        weights.total(counts.len())?;
        let ones = vec![1.0; if exposure.is_none() { counts.len() } else { 0 }];
        let records = Records {
            events: counts,
            hazard: exposure.unwrap_or(&ones),
            weights,
            observed: &[],
            source: "exposure",
        };
        Likelihood::prepare(&records, 0.0, leaf_penalty)
    }

    /// Cost units per unit of the summed loss.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    fn prepare(records: &Records, prior: f64, leaf_penalty: f64) -> Result<Self, Error> {
        let (n, weights) = (records.events.len(), records.weights);
        let rows: Vec<[f64; 3]> = (0..n)
            .map(|i| {
                let (events, hazard) = (weights.of(i) * records.events[i], records.hazard[i]);
                let rate = hazard / records.events[i];
                let saturated = if events > 0.0 { -events * rate.ln() } else { 0.0 };
                [events, weights.of(i) * hazard, saturated]
            })
            .collect();
        let (source, event) = (records.source, records.observed.to_vec());
        if let Some(row) = rows.iter().position(|row| row.iter().any(|v| !v.is_finite())) {
            let reason = format!("row {row} is too large or too small beside its weight");
            return Err(Error::invalid(source, reason));
        }
        let fixed =
            |c: usize| Fixed::counted(rows.iter().map(|r| r[c]), |i| weights.count(i), TOTAL_BITS);
        let (events, mut hazards) = (fixed(0), fixed(1));
        let mut statistics = Vec::with_capacity(2 * n);
        for ((hazard, &events), row) in hazards.values.iter_mut().zip(&events.values).zip(&rows) {
            // A row with weight keeps some hazard, however small it is.
            *hazard = (*hazard).max(i64::from(row[1] > 0.0));
            statistics.extend_from_slice(&[events, *hazard]);
        }
        // Without any event every leaf costs 0, for any rate of the whole sample.
        let of_all = |fixed: &Fixed| {
            let records = fixed.values.iter().enumerate();
            records.map(|(i, &v)| v * weights.count(i) as i64).sum::<i64>()
        };
        let total = [of_all(&events).max(1), of_all(&hazards)];
        let weight = weights.weight(n);
        let counts = weights.counts();
        let unit = 1.0 / hazards.scale();
        let records = || {
            let rows = rows.iter().enumerate().filter(|(_, r)| r[1] > 0.0);
            rows.map(|(i, r)| (r[0], r[1], weights.count(i)))
        };
        // Rounding may change rows of less than four units of hazard by any share: their error is
        // all that their events can cost.
        let is_heavy = |hazard: f64| hazards.whole || hazard >= 4.0 * unit;
        let heavy = || records().filter(|r| is_heavy(r.1));
        // With a prior, the rate at which the hazard of a leaf is charged is at least 1.
        let least_rate = if prior > 0.0 { 1.0 } else { 0.0 };
        let of_hazards = if hazards.whole {
            0.0
        } else {
            let at_least_rate = 4.0 / 7.0 * counts.rows(n) * unit * least_rate;
            rounding_error(heavy(), unit, 1).max(at_least_rate)
        };
        let (mut rate, mut lightest, mut least) = (least_rate, f64::INFINITY, f64::INFINITY);
        for (events, hazard, _) in records().filter(|r| r.0 > 0.0) {
            if is_heavy(hazard) {
                rate = f64::max(rate, events / hazard);
            }
            (lightest, least) = (lightest.min(events), least.min(hazard / events));
        }
        let light = records().filter(|r| !is_heavy(r.1));
        let of_light = light.map(|r| r.2 * (r.0 * LOGARITHMS + unit * rate)).sum::<f64>();
        // The derivative by the events is ln(H/E) − 1, at most the logarithm of the largest ratio.
        let range = (hazards.total / lightest).ln().abs().max(least.ln().abs()) + 2.0;
        let of_events =
            if events.moved > 0.0 { events.moved / events.scale() * range } else { 0.0 };
        let of_events = of_events + of_light;
        let events_total = total[0] as f64 / events.scale();
        let saturated = weights.sum(rows.iter().map(|r| r[2].abs()));
        let fitted = if range.is_finite() { events_total * range } else { 0.0 };
        let terms = (saturated + fitted + events_total) / weight;
        // |cost| ≤ 64·ES₀ in total (hazard ratios stay within e^±64); a prior adds HS₀, and the
        // baseline adds its charge. 2^54 leaves room for the prices of all splits.
        let hazard_total = total[1] as f64 / hazards.scale();
        let most = if prior > 0.0 {
            let baseline = (events_total / hazard_total).ln();
            64.0f64.max(baseline) * (events_total + hazard_total)
        } else {
            64.0 * events_total
        };
        let scale = power_of_two(54 - most.log2().ceil() as i32);
        let price = price_of_leaf(leaf_penalty, weight, scale);
        let mut task = Likelihood {
            statistics,
            event,
            source,
            prior,
            events_scale: events.scale(),
            hazard_scale: hazards.scale(),
            total,
            price,
            scale,
            weight,
            penalty: leaf_penalty,
            off: [of_events, of_hazards],
            single_leaf: 0.0,
            terms,
            rows,
            counts,
        };
        task.single_leaf = task.objective_of_one_leaf();
        Ok(task)
    }
}

fn check_prior(prior: f64) -> Result<(), Error> {
    if (0.0..=MOST_PRIOR).contains(&prior) {
        return Ok(());
    }
    let reason = format!("{prior} is not a number between 0 and {MOST_PRIOR:e}");
    Err(Error::invalid("prior", reason))
}

fn price_of_leaf(leaf_penalty: f64, weight: f64, scale: f64) -> i64 {
    (leaf_penalty * weight * scale).min(MOST_PRICE as f64).round() as i64
}

impl Likelihood {
    /// Units of the summed events per event.
    pub(super) fn events_scale(&self) -> f64 {
        self.events_scale
    }

    /// Units of the summed hazard per unit of hazard.
    pub(super) fn hazard_scale(&self) -> f64 {
        self.hazard_scale
    }

    /// Events and hazard of the prior in the units of the statistics.
    pub fn prior(&self) -> [f64; 2] {
        [self.prior * self.events_scale, self.prior * self.hazard_scale]
    }

    /// The smallest events or hazard, in units, among the rows that were rounded; infinite if
    /// nothing was rounded.
    pub(super) fn lightest(&self) -> f64 {
        let scales = [self.events_scale, self.hazard_scale];
        let rows = self.statistics.chunks_exact(2).zip(&self.rows);
        let of_row = |(record, row): (&[i64], &[f64; 3])| {
            let rounded = (0..2).filter(|&c| record[c] as f64 != row[c] * scales[c]);
            rounded.map(|c| record[c] as f64).fold(f64::INFINITY, f64::min)
        };
        rows.map(of_row).fold(f64::INFINITY, f64::min)
    }

    /// Objective of rows that are given as (record, leaf, number of rows).
    fn measured(
        &self,
        rows: impl Iterator<Item = (usize, usize, f64)>,
        n_leaves: usize,
    ) -> Measured {
        let mut leaves = vec![[Precise::default(); 3]; n_leaves];
        for (record, leaf, count) in rows {
            let row = self.rows[record].iter();
            for (sum, &v) in leaves[leaf].iter_mut().zip(row).filter(|(_, v)| **v != 0.0) {
                sum.add_times(v, count);
            }
        }
        let (mut loss, mut magnitude) = (Precise::default(), self.penalty * n_leaves as f64);
        for leaf in leaves {
            let [events, hazard, nlhs] = leaf.map(Precise::value);
            let fitted = if self.prior > 0.0 {
                under_prior(events, hazard, self.prior)
            } else if events > 0.0 {
                -events * (events / hazard).ln()
            } else {
                0.0
            };
            loss.add(nlhs);
            loss.add(fitted);
            // The terms of the log-likelihood: NLHS, ES · ln θ, and θ · HS, which equals ES.
            magnitude += (nlhs.abs() + fitted.abs() + events) / self.weight;
        }
        // Logarithms are rounded, but no loss is below 0.
        let loss = loss.value().max(0.0) / self.weight;
        let objective = loss + self.penalty * n_leaves as f64;
        Measured { objective, magnitude }
    }

    /// Predicted hazard ratio of every leaf, computed from the rows; `None` for a leaf without
    /// hazard.
    pub(super) fn hazard_ratios(&self, leaf_of: &[usize], n_leaves: usize) -> Vec<Option<f64>> {
        let mut leaves = vec![[Precise::default(); 2]; n_leaves];
        for (row, &leaf) in self.rows.iter().zip(leaf_of) {
            leaves[leaf].iter_mut().zip(row).for_each(|(sum, &v)| sum.add(v));
        }
        let ratio = |[events, hazard]: [f64; 2]| match (events > 0.0, self.prior > 0.0) {
            _ if hazard == 0.0 => None,
            (_, true) => Some((events + self.prior) / (hazard + self.prior)),
            (true, false) => Some(events / hazard),
            (false, false) => Some(0.5 / hazard),
        };
        leaves.into_iter().map(|leaf| ratio(leaf.map(Precise::value))).collect()
    }

    /// ln(ES₀/HS₀) of the whole sample.
    fn baseline(&self) -> f64 {
        let [events, hazard] = self.total.map(|total| total as f64);
        (events / self.events_scale / (hazard / self.hazard_scale)).ln()
    }

    /// Whether refining a leaf never increases the cost. It may with a prior, which is charged on
    /// every leaf.
    pub(super) fn is_superadditive(&self) -> bool {
        self.prior == 0.0
    }

    /// Upper bound on the cost, without prices, of a best tree on rows with these sums; with a
    /// prior, the cost of any tree at θ = 1.
    pub(super) fn most_cost(&self, sums: &[i64]) -> i64 {
        if self.is_superadditive() {
            return self.part_cost(sums);
        }
        let (events, hazard) =
            (sums[0] as f64 / self.events_scale, sums[1] as f64 / self.hazard_scale);
        ((hazard - events + events * self.baseline()) * self.scale).ceil() as i64
    }

    /// Cost of a leaf with these events and hazard, including the term of the prior.
    fn cost_under_prior(&self, sums: &[i64]) -> i64 {
        let (events, hazard) =
            (sums[0] as f64 / self.events_scale, sums[1] as f64 / self.hazard_scale);
        let cost = under_prior(events, hazard, self.prior) + events * self.baseline();
        nearest(cost * self.scale)
    }
}

/// −(ES + a)·ln((ES + a)/(HS + a)), precise even for a large `a`.
fn under_prior(events: f64, hazard: f64, a: f64) -> f64 {
    -(events + a) * ((events - hazard) / (hazard + a)).ln_1p()
}

impl Statistics for Likelihood {
    #[inline(always)]
    fn channels(&self) -> usize {
        2
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }

    fn events(&self) -> &[bool] {
        &self.event
    }
}

impl ScalarTask for Likelihood {
    fn leaf_cost(&self, sums: &[i64]) -> i64 {
        if self.prior > 0.0 { self.cost_under_prior(sums) } else { self.part_cost(sums) }
    }

    /// The minimum over θ of θ(H + a) − (E + a) ln θ, without linear terms.
    fn concave_cost(&self, sums: &[i64]) -> Option<f64> {
        let endless = self.prior == 0.0 && sums[0] > 0 && sums[1] == 0;
        Some(if endless { f64::NEG_INFINITY } else { self.leaf_cost(sums) as f64 })
    }

    fn splits_help(&self, sums: &[i64]) -> bool {
        sums[0] > 0
    }

    fn cost_rounding(&self) -> i64 {
        1
    }

    fn split_price(&self) -> i64 {
        self.price
    }

    fn objective(&self, rows: Placed) -> Measured {
        self.measured(rows.iter(), rows.n_leaves)
    }

    /// No leaf fits better than the saturated model, so by the log-sum inequality no loss is
    /// negative.
    fn least_objective(&self, leaves: usize) -> f64 {
        self.penalty * leaves as f64
    }

    fn objective_of_cost(&self, cost: i64) -> f64 {
        let cost = cost - self.single_cost();
        self.single_leaf + cost as f64 / self.scale / self.weight
    }

    /// Terms of the log-likelihood may be much larger than their sum.
    fn addends(&self, value: f64, at_no_cost: f64) -> f64 {
        value.abs() + (value - at_no_cost).abs() + self.terms
    }

    fn resolution(&self, allowed: Allowed) -> f64 {
        let leaves = (allowed.leaves as f64).min(self.counts.rows(self.rows.len()));
        let costs = leaves * (self.cost_rounding() as f64 + 0.5) / self.scale;
        (self.off[0] + leaves * self.off[1] + costs) / self.weight
    }

    fn widest(&self) -> (&'static str, String) {
        // Smoothed events may span any range, hazards only if the sample has weights.
        let of = usize::from(self.source != "smoothed" || self.off[0] < self.off[1]);
        (self.source, range_of(self.rows.iter().map(|row| row[of]).enumerate()))
    }
}

impl Superadditive for Likelihood {
    /// The cost without a prior.
    fn part_cost(&self, sums: &[i64]) -> i64 {
        let [events, hazard] = [sums[0] as f64, sums[1] as f64];
        if sums[0] == 0 || sums[1] == 0 {
            return 0;
        }
        let ratio = (hazard / events) * (self.total[0] as f64 / self.total[1] as f64);
        nearest(events / self.events_scale * ratio.ln() * self.scale)
    }

    fn rank(&self, sums: &[i64]) -> Option<f64> {
        Some(sums[0] as f64 / sums[1].max(1) as f64)
    }
}

impl Ties for Likelihood {}

impl Questions for Likelihood {}
impl FreeQuestions for Likelihood {}
