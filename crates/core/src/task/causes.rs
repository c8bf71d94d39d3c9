//! Competing risks: proportional hazards for every cause, with one hazard ratio per cause and leaf.
//!
//! Events of other causes end the observation of a row, as censoring does. The log-likelihood of K
//! causes is therefore that of K separate samples: the loss of a leaf is the sum, over the causes,
//! of the loss that [`Likelihood`] computes from the events and hazards of that cause. Sums of
//! concave and superadditive costs are concave and superadditive, and with one cause this is the
//! likelihood itself. See docs/maths/competing-risks.md.

use super::fixed::power_of_two;
use super::likelihood::{CORNER_OPERATIONS, Constants, Likelihood, operations};
use super::{
    FreeQuestions, LaneError, LaneTask, Placed, Questions, ScalarTask, Statistics, Superadditive,
    Swept, Ties, Weights,
};
use crate::error::Error;
use crate::search::{Allowed, Measured};
use crate::simd::{FloatLanes, LaneReal};
use crate::survival::Observations;

/// Most causes that may have an importance.
pub const MOST_CAUSES: usize = 8;

/// The likelihoods of all causes. The channels are the events and the summed hazard of each cause
/// in turn.
#[derive(Clone, Debug)]
pub struct Causes {
    parts: Vec<Likelihood>,
    statistics: Vec<i64>,
    /// Whether an event of any cause was observed in each row.
    event: Vec<bool>,
    weight: f64,
}

impl Causes {
    /// Prepares the statistics. `cause` is 0 for a censored row and k for the k-th cause, whose
    /// loss is multiplied by `importance[k - 1]`. Causes of importance 0 do not count, although
    /// their events still end the observation. `prior` pseudo-events pull the hazard ratio of every
    /// cause towards one.
    pub fn new(
        obs: &Observations,
        cause: &[i64],
        importance: &[f64],
        prior: f64,
        leaf_penalty: f64,
    ) -> Result<Self, Error> {
        let refuse = |name, reason: String| Err(Error::invalid(name, reason));
        let known = |&k: &i64| (0..=importance.len() as i64).contains(&k);
        if let Some(row) = cause.iter().position(|k| !known(k)) {
            return refuse("cause", format!("row {row} has no known cause"));
        }
        if importance.iter().any(|v| !(1e-6..=1e6).contains(v) && *v != 0.0) {
            return refuse("cause_weights", "must be 0 or between 1e-6 and 1e6".to_string());
        }
        let counted = || (1..).zip(importance).filter(|(_, v)| **v > 0.0);
        if !(1..=MOST_CAUSES).contains(&counted().count()) {
            return refuse("cause_weights", format!("1 to {MOST_CAUSES} must be positive"));
        }
        let mut parts = Vec::new();
        for (k, &importance) in counted() {
            let event: Vec<bool> = cause.iter().map(|&c| c == k).collect();
            if !(0..obs.len()).any(|i| event[i] && obs.weight(i) > 0.0) {
                return refuse("cause", format!("no event of cause {k} was observed"));
            }
            let of_cause = Observations { event: &event, ..*obs };
            parts.push(Likelihood::of_cause(&of_cause, importance, prior)?);
        }
        // All parts share one unit, which has room for the sum of their costs.
        let least = parts.iter().map(Likelihood::scale).fold(f64::INFINITY, f64::min);
        let scale = least / parts.len().next_power_of_two() as f64;
        let weights = Weights { weight: obs.weight, count: obs.count };
        let weight = weights.weight(obs.len());
        let parts: Vec<_> = (0..)
            .zip(parts)
            // The first part charges the penalty of a leaf.
            .map(|(k, part)| part.within(weight, scale, if k == 0 { leaf_penalty } else { 0.0 }))
            .collect();
        let records: Vec<_> = parts.iter().map(|part| part.statistics().chunks_exact(2)).collect();
        let mut statistics = Vec::with_capacity(2 * parts.len() * obs.len());
        for row in 0..obs.len() {
            for of_cause in &records {
                statistics.extend_from_slice(of_cause.clone().nth(row).expect("a record per row"));
            }
        }
        drop(records);
        let event = cause.iter().map(|&k| k > 0).collect();
        Ok(Causes { parts, statistics, event, weight })
    }

    /// Every part with the sums of its channels.
    fn each<'a>(&'a self, sums: &'a [i64]) -> impl Iterator<Item = (&'a Likelihood, &'a [i64])> {
        self.parts.iter().zip(sums.chunks_exact(2))
    }

    /// Lane units of the total per lane unit of a part.
    fn lane_factor(&self, k: usize, shift: &[u32]) -> f64 {
        let unit = |k: usize| self.parts[k].lane_unit(&shift[2 * k..2 * k + 2]);
        unit(k) / unit(0)
    }

    /// Factor on the errors of the parts that covers adding up the losses of the causes in every
    /// leaf. No such sum rounds by more than one of the `operations` that the error of a part
    /// contains.
    fn more_sums(&self, operations: f64) -> f64 {
        let sums = if self.parts.len() > 1 { self.parts.len() as f64 } else { 0.0 };
        1.0 + sums / operations
    }
}

impl Statistics for Causes {
    #[inline(always)]
    fn channels(&self) -> usize {
        2 * self.parts.len()
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }

    fn events(&self) -> &[bool] {
        &self.event
    }
}

impl ScalarTask for Causes {
    fn leaf_cost(&self, sums: &[i64]) -> i64 {
        self.each(sums).map(|(part, sums)| part.leaf_cost(sums)).sum()
    }

    fn concave_cost(&self, sums: &[i64]) -> Option<f64> {
        self.each(sums).map(|(part, sums)| part.concave_cost(sums)).sum()
    }

    fn splits_help(&self, sums: &[i64]) -> bool {
        self.each(sums).any(|(part, sums)| part.splits_help(sums))
    }

    fn split_price(&self) -> i64 {
        self.parts[0].split_price()
    }

    fn cost_rounding(&self) -> i64 {
        self.parts.iter().map(ScalarTask::cost_rounding).sum()
    }

    fn objective(&self, rows: Placed) -> Measured {
        let parts = self.parts.iter().map(|part| part.objective(rows));
        let add = |a: Measured, b: Measured| Measured {
            objective: a.objective + b.objective,
            magnitude: a.magnitude + b.magnitude,
        };
        parts.reduce(add).expect("there is a cause")
    }

    fn least_objective(&self, leaves: usize) -> f64 {
        self.parts.iter().map(|part| part.least_objective(leaves)).sum()
    }

    fn objective_of_cost(&self, cost: i64) -> f64 {
        let single: f64 = self.parts.iter().map(Likelihood::single_leaf).sum();
        let whole: i64 = self.parts.iter().map(Likelihood::single_cost).sum();
        single + (cost - whole) as f64 / self.parts[0].scale() / self.weight
    }

    fn addends(&self, value: f64, at_no_cost: f64) -> f64 {
        let terms = self.parts.iter().map(|part| part.addends(0.0, 0.0));
        value.abs() + (value - at_no_cost).abs() + terms.sum::<f64>()
    }

    fn resolution(&self, allowed: Allowed) -> f64 {
        self.parts.iter().map(|part| part.resolution(allowed)).sum()
    }

    fn widest(&self) -> (&'static str, String) {
        self.parts[0].widest()
    }
}

impl Superadditive for Causes {
    fn part_cost(&self, sums: &[i64]) -> i64 {
        self.each(sums).map(|(part, sums)| part.part_cost(sums)).sum()
    }

    fn rank(&self, sums: &[i64]) -> Option<f64> {
        // Each cause orders the rows differently, so only a single cause has an order.
        if let [part] = &self.parts[..] { part.rank(sums) } else { None }
    }
}

impl Ties for Causes {}
impl Questions for Causes {}
impl FreeQuestions for Causes {}

impl Swept for Causes {
    /// Bounds the channels of each cause by a box of their own.
    #[inline(always)]
    fn lane_least<L: FloatLanes>(
        &self,
        lanes: L,
        constants: &Self::Constants<L>,
        from: &[L::Int],
        to: &[L::Int],
        whole: &[L::Int],
    ) -> L::Real {
        let mut least = lanes.splat_real(L::R::default());
        for (k, part) in self.parts.iter().enumerate() {
            let (own, factor) = (2 * k..2 * k + 2, constants[k].1);
            let (from, to, whole) = (&from[own.clone()], &to[own.clone()], &whole[own]);
            least = least + factor * part.lane_least(lanes, &constants[k].0, from, to, whole);
        }
        least
    }

    fn least_error(&self, rows: &[i64], shift: &[u32], roundoff: f64, ln_error: f64) -> f64 {
        let of_cause = |(k, part): (usize, &Likelihood)| {
            let records = rows.chunks_exact(self.channels()).map(|row| &row[2 * k..2 * k + 2]);
            let own: Vec<i64> = records.flatten().copied().collect();
            part.least_error(&own, &shift[2 * k..2 * k + 2], roundoff, ln_error)
                * self.lane_factor(k, shift)
        };
        let error: f64 = self.parts.iter().enumerate().map(of_cause).sum();
        error * self.more_sums(CORNER_OPERATIONS)
    }
}

/// Events of the current cause, whose hazard comes next, and the loss of the causes before it.
#[derive(Clone, Copy)]
pub struct SoFar<L: FloatLanes> {
    events: L::Int,
    loss: L::Real,
}

impl LaneTask for Causes {
    type State<L: FloatLanes> = SoFar<L>;
    type Constants<L: FloatLanes> = [(Constants<L::Real>, L::Real); MOST_CAUSES];

    fn max_lane_sum(&self, single: bool) -> i64 {
        self.parts[0].max_lane_sum(single)
    }

    fn lane_unit(&self, shift: &[u32]) -> f64 {
        self.parts[0].lane_unit(&shift[..2])
    }

    fn lane_scale(&self, rows: &[i64], shift: &[u32]) -> f64 {
        let of_cause = |k: usize| {
            let total: i64 = rows.iter().skip(2 * k).step_by(self.channels()).sum();
            total as f64 / power_of_two(shift[2 * k] as i32) * self.lane_factor(k, shift)
        };
        (0..self.parts.len()).map(of_cause).sum::<f64>().max(1.0)
    }

    fn lane_error(
        &self,
        rows: &[i64],
        shift: &[u32],
        max_leaves: usize,
        roundoff: f64,
        ln_error: f64,
    ) -> LaneError {
        let of_cause = |(k, part): (usize, &Likelihood)| {
            let records = rows.chunks_exact(self.channels()).map(|row| &row[2 * k..2 * k + 2]);
            let (own, shift_k) = (records.flatten().copied().collect::<Vec<_>>(), &shift[2 * k..]);
            let error = part.lane_error(&own, &shift_k[..2], max_leaves, roundoff, ln_error);
            // Leaf costs are not below 0 except for their own error, so the bound is `Fixed`.
            error.of(0.0) * self.lane_factor(k, shift)
        };
        let error: f64 = self.parts.iter().enumerate().map(of_cause).sum();
        LaneError::Fixed(error * self.more_sums(operations(max_leaves)))
    }

    #[inline(always)]
    fn lane_constants<L: FloatLanes>(&self, lanes: L, shift: &[u32]) -> Self::Constants<L> {
        std::array::from_fn(|k| {
            // The iteration may exceed the number of causes; such parts are not used.
            let k = k.min(self.parts.len() - 1);
            let constants = self.parts[k].lane_constants(lanes, &shift[2 * k..2 * k + 2]);
            (constants, lanes.splat_real(L::R::from_f64(self.lane_factor(k, shift))))
        })
    }

    #[inline(always)]
    fn lane_start<L: FloatLanes>(&self, lanes: L) -> SoFar<L> {
        SoFar { events: lanes.splat(L::I::default()), loss: lanes.splat_real(L::R::default()) }
    }

    #[inline(always)]
    fn lane_fold<L: FloatLanes>(
        &self,
        lanes: L,
        constants: &Self::Constants<L>,
        state: SoFar<L>,
        channel: usize,
        sums: L::Int,
    ) -> SoFar<L> {
        if channel.is_multiple_of(2) {
            return SoFar { events: sums, ..state };
        }
        let (constants, factor) = constants[channel / 2];
        let of_cause = self.parts[channel / 2].lane_loss(lanes, constants, [state.events, sums]);
        SoFar { loss: state.loss + factor * of_cause, ..state }
    }

    #[inline(always)]
    fn lane_loss<L: FloatLanes>(&self, _: L, _: Self::Constants<L>, state: SoFar<L>) -> L::Real {
        state.loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bristlecone_oracle::instances::Random;

    struct Rows {
        time: Vec<f64>,
        cause: Vec<i64>,
        event: Vec<bool>,
        weight: Vec<f64>,
    }

    impl Rows {
        fn random(n: usize, n_causes: usize) -> Rows {
            let random = &mut Random::new(7);
            let cause: Vec<i64> = (0..n).map(|_| random.below(n_causes + 1) as i64).collect();
            Rows {
                time: (0..n).map(|_| random.unit()).collect(),
                event: cause.iter().map(|&k| k > 0).collect(),
                weight: (0..n).map(|_| random.unit()).collect(),
                cause,
            }
        }

        fn observations(&self) -> Observations<'_> {
            let (time, event) = (&self.time, &self.event);
            Observations { time, event, weight: Some(&self.weight), ..Observations::default() }
        }

        fn refusal(&self, importance: &[f64]) -> String {
            let task = Causes::new(&self.observations(), &self.cause, importance, 0.0, 0.0);
            task.unwrap_err().to_string()
        }
    }

    #[test]
    fn one_cause_is_the_likelihood() {
        let rows = Rows::random(50, 1);
        let obs = rows.observations();
        for (prior, penalty) in [(0.0, 0.01), (3.0, 0.0)] {
            let one = Likelihood::with_prior(&obs, prior, penalty).unwrap();
            let task = Causes::new(&obs, &rows.cause, &[1.0], prior, penalty).unwrap();
            assert_eq!(task.statistics(), one.statistics());
            let leaf_of: Vec<usize> = (0..50).map(|i| i % 3).collect();
            let placed = Placed::rows(&leaf_of, 3);
            assert_eq!(task.objective(placed).objective, one.objective(placed).objective);
            let sums: Vec<i64> =
                (0..2).map(|c| one.statistics().iter().skip(c).step_by(6).sum()).collect();
            assert_eq!(task.leaf_cost(&sums), one.leaf_cost(&sums));
            assert_eq!(task.objective_of_cost(12345), one.objective_of_cost(12345));
        }
    }

    #[test]
    fn a_cause_may_count_for_nothing_but_is_a_censoring() {
        let rows = Rows::random(60, 2);
        let obs = rows.observations();
        let task = Causes::new(&obs, &rows.cause, &[0.0, 2.0], 0.0, 0.0).unwrap();
        let event: Vec<bool> = rows.cause.iter().map(|&k| k == 2).collect();
        let second = Likelihood::new(&Observations { event: &event, ..obs }, 0.0).unwrap();
        let leaf_of: Vec<usize> = (0..60).map(|i| i / 30).collect();
        let placed = Placed::rows(&leaf_of, 2);
        let value = |objective: Measured| objective.objective;
        let expected = 2.0 * value(second.objective(placed));
        assert!((value(task.objective(placed)) - expected).abs() < 1e-12);
        assert_eq!(task.events(), rows.event);
    }

    #[test]
    fn causes_that_are_none_are_refused_by_row() {
        let rows = Rows::random(20, 2);
        let row = rows.cause.iter().position(|&k| k == 2).unwrap();
        assert_eq!(rows.refusal(&[1.0]), format!("cause: row {row} has no known cause"));
        assert_eq!(rows.refusal(&[1.0; 3]), "cause: no event of cause 3 was observed");
        assert_eq!(rows.refusal(&[0.0; 2]), "cause_weights: 1 to 8 must be positive");
        for wrong in [-1.0, f64::NAN, 1e300] {
            let reason = "cause_weights must be 0 or between 1e-6 and 1e6";
            assert_eq!(rows.refusal(&[1.0, wrong]), reason);
        }
    }
}
