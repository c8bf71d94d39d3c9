//! Rows on the grid of their times, with inverse-probability-of-censoring weights.

use super::{Observations, Places};
use crate::error::Error;
use crate::precise::Precise;

/// Largest total weight in whole numbers, which f64 still adds exactly.
const MAX_TOTAL: f64 = (1u64 << 51) as f64;

/// A row's position in time: twice the index of its time, plus one for a censoring. The events of a
/// time come before its censorings.
pub type Code = u32;

/// Rows, the distinct times of the rows with positive weight, and the censoring distribution G at
/// these times.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Time of each row.
    pub time: Vec<f64>,
    /// Whether the event of each row was observed.
    pub event: Vec<bool>,
    /// Weight of each row.
    pub weight: Vec<f64>,
    /// Distinct times, ascending.
    pub grid: Vec<f64>,
    /// 1/G at each time of the grid, or 0 where G is 0.
    pub inverse_censoring: Vec<f64>,
    /// Rows with positive weight, ordered by time (events first) and weight, so that no sum depends
    /// on the order of the caller's rows.
    pub order: Vec<u32>,
    codes: Vec<Code>,
    total_weight: f64,
    /// Integral of 1/G from the first time of the grid to each time, divided by the largest time.
    /// 1/G does not decrease until it is set to 0, so differences of two integrals lose little.
    censoring: Vec<Precise>,
    /// What the rounding of a pass depends on.
    pub extent: Extent,
}

/// What the rounding of a pass over the rows depends on: the largest possible loss, and how often
/// running values change. Derived in docs/maths/brier.md, "Numbers".
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Largest possible loss per unit of weight: rows with an event are given a survival of 1 after
    /// it, and rows at risk a survival of 0.
    pub most_loss: f64,
    /// Number of times with an event.
    pub event_times: f64,
    /// Number of stretches of censorings between two events, plus one.
    pub stretches: f64,
    /// Mean, over the stretches, of the squared number of the stretch times the weight at risk over
    /// G, per unit of weight and divided by `stretches`.
    pub at_risk: f64,
}

impl Timeline {
    /// The timeline of rows without delayed entry and with a positive total weight; O(n log n).
    pub fn new(obs: &Observations) -> Result<Self, Error> {
        if obs.entry.is_some() {
            let reason = "the Brier score has no censoring weights for late entry";
            return Err(Error::invalid("entry", reason));
        }
        let weight: Vec<f64> = (0..obs.len()).map(|i| obs.weight(i)).collect();
        let places = Places::of(obs);
        let mut rows = places.in_order(obs.weight);
        let mut has_weight = vec![false; places.times.len()];
        for (&place, &weight) in places.of_row.iter().zip(&weight) {
            has_weight[place as usize] |= weight > 0.0;
        }
        let mut grid = Vec::new();
        let kept = places.times.into_iter().zip(has_weight).map(|(time, has_weight)| {
            grid.extend(has_weight.then_some(time));
            // A row without weight takes the time before it.
            grid.len().saturating_sub(1) as Code
        });
        let kept: Vec<Code> = kept.collect();
        let code = |(&place, &event): (&u32, &bool)| 2 * kept[place as usize] + Code::from(!event);
        let codes: Vec<Code> = places.of_row.iter().zip(obs.event).map(code).collect();
        rows.retain(|placed| weight[placed.row as usize] > 0.0);
        if rows.is_empty() {
            return Err(Error::invalid("sample_weight", "no row has a positive weight"));
        }
        for tied in rows.chunk_by_mut(|a, b| a.place == b.place) {
            tied.sort_by_key(|placed| codes[placed.row as usize]);
        }
        let order: Vec<u32> = rows.iter().map(|placed| placed.row).collect();
        // Weights of the events and of the censorings of each time.
        let mut leaving = vec![[Precise::default(); 2]; grid.len()];
        for &i in &order {
            let code = codes[i as usize] as usize;
            leaving[code / 2][code % 2].add(weight[i as usize]);
        }
        let mut at_risk = vec![Precise::default(); grid.len() + 1];
        for (k, [events, censored]) in leaving.iter().enumerate().rev() {
            at_risk[k] = at_risk[k + 1].plus(*events).plus(*censored);
        }
        // What stays is a sum, so nothing cancels if weights differ in size.
        let mut g = Precise::from(1.0);
        let inverse_censoring = leaving
            .iter()
            .enumerate()
            .map(|(k, [events, censored])| {
                if censored.value() > 0.0 {
                    g = g.times(at_risk[k + 1].plus(*events).over(at_risk[k]));
                }
                if g.value() > 0.0 { 1.0 / g.value() } else { 0.0 }
            })
            .collect();
        let mut timeline = Timeline {
            time: obs.time.to_vec(),
            event: obs.event.to_vec(),
            weight,
            grid,
            inverse_censoring,
            order,
            codes,
            total_weight: at_risk[0].value(),
            censoring: vec![Precise::default()],
            extent: Extent::default(),
        };
        let (mut happened, mut censored_since, total) = (0.0, false, at_risk[0].value());
        let mut extent = Extent { stretches: 1.0, ..Extent::default() };
        for (k, [events, censored]) in leaving.iter().enumerate() {
            if events.value() > 0.0 {
                extent.event_times += 1.0;
                extent.stretches += f64::from(std::mem::take(&mut censored_since));
            }
            censored_since |= censored.value() > 0.0;
            if k + 1 < leaving.len() {
                let (share, inverse) = (timeline.share(k, k + 1), timeline.inverse_censoring[k]);
                happened += events.value() / total * inverse;
                let beyond = at_risk[k + 1].value() / total * inverse;
                extent.most_loss += share * (happened + beyond);
                extent.at_risk += share * beyond * extent.stretches.powi(2);
                let mut censoring = timeline.censoring[k];
                censoring.add_product(share, inverse);
                timeline.censoring.push(censoring);
            }
        }
        extent.at_risk /= extent.stretches;
        timeline.extent = extent;
        Ok(timeline)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.time.len()
    }

    /// Sum of the weights.
    pub fn total_weight(&self) -> f64 {
        self.total_weight
    }

    /// The distance between two times of the grid, divided by the largest time.
    pub fn share(&self, from: usize, to: usize) -> f64 {
        let largest = self.grid[self.grid.len() - 1];
        // If all times are 0, divide by 1.
        let largest = if largest > 0.0 { largest } else { 1.0 };
        (self.grid[to] - self.grid[from]) / largest
    }

    /// The integral of 1/G between two times of the grid, divided by the largest time.
    pub fn censoring_share(&self, from: usize, to: usize) -> f64 {
        self.censoring[to].minus(self.censoring[from]).value()
    }

    /// Largest relative change of a weight when weights are rounded to whole numbers.
    pub fn weight_error(&self) -> f64 {
        let scale = self.weight_scale();
        let moved = |&weight: &f64| {
            let (exact, near) = (weight * scale, (weight * scale).round());
            if near > 0.0 { (near - exact).abs() / exact.min(near) } else { f64::INFINITY }
        };
        self.weight.iter().filter(|&&weight| weight > 0.0).map(moved).fold(0.0, f64::max)
    }

    /// A power of two (or one) that makes all weights whole numbers, as nearly as f64 allows.
    pub fn weight_scale(&self) -> f64 {
        let total: f64 = self.weight.iter().sum();
        if total < MAX_TOTAL && self.weight.iter().all(|w| w.fract() == 0.0) {
            return 1.0;
        }
        (MAX_TOTAL / total).log2().floor().exp2()
    }

    /// Position of row `i` in time. A row without weight has the time before it.
    pub fn code(&self, i: usize) -> Code {
        self.codes[i]
    }

    /// Weights in whole units; a weight of 1 has [`Timeline::weight_scale`] of them.
    pub fn whole_weights(&self) -> Vec<f64> {
        let scale = self.weight_scale();
        self.weight.iter().map(|weight| (weight * scale).round()).collect()
    }

    /// For every time of the grid: the time that remains after it, and the integral of 1/G up to
    /// it, both divided by the largest time and by `weight`.
    ///
    /// Rows with an event contribute after their time, other rows before it. Sums of many
    /// differences of these integrals therefore round little.
    pub fn integrals(&self, weight: f64) -> (Vec<f64>, Vec<f64>) {
        let last = self.grid.len() - 1;
        let plain = (0..=last).map(|k| self.share(k, last) / weight).collect();
        let censoring = self.censoring.iter().map(|integral| integral.value() / weight).collect();
        (plain, censoring)
    }

    /// For every time of the grid: the share of `horizon` after it.
    pub fn rest_of(&self, horizon: f64) -> Vec<f64> {
        self.grid.iter().map(|&time| 1.0 - time.min(horizon) / horizon).collect()
    }
}
