//! Rows on the grid of their times, with the weights that undo censoring.

use super::{Observations, RiskTable};
use crate::error::Error;

/// Largest total weight in whole numbers: f64 adds them exactly.
const MAX_TOTAL: f64 = (1u64 << 51) as f64;

/// A row's place in time: twice the index of its time, plus one for a censoring, so that the
/// events of a time come before its censorings.
pub type Code = u32;

/// Rows, the distinct times of those with a weight, and the censoring distribution G there.
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
    /// 1/G at each time of the grid, 0 where G is 0.
    pub inverse_censoring: Vec<f64>,
    total_weight: f64,
    /// [`Timeline::suffix_integrals`] per unit of weight of all rows.
    integrals: (Vec<f64>, Vec<f64>),
}

impl Timeline {
    /// Of rows without delayed entry, some of which have a weight; O(n log n).
    pub fn new(obs: &Observations) -> Result<Self, Error> {
        if obs.entry.is_some() {
            let reason = "the Brier score has no censoring weights for late entry";
            return Err(Error::invalid("entry", reason));
        }
        let weight: Vec<f64> = (0..obs.len()).map(|i| obs.weight(i)).collect();
        let weighted: Vec<usize> = (0..obs.len()).filter(|&i| weight[i] > 0.0).collect();
        if weighted.is_empty() {
            return Err(Error::invalid("sample_weight", "no row has a positive weight"));
        }
        let (times, events, weights): (Vec<f64>, Vec<bool>, Vec<f64>) = (
            weighted.iter().map(|&i| obs.time[i]).collect(),
            weighted.iter().map(|&i| obs.event[i]).collect(),
            weighted.iter().map(|&i| weight[i]).collect(),
        );
        let table = RiskTable::new(&Observations {
            time: &times,
            event: &events,
            weight: Some(&weights),
            entry: None,
        });
        // Those who stay as a sum, so that nothing cancels for weights of different size.
        let mut g = 1.0;
        let inverse_censoring = (0..table.time.len())
            .map(|k| {
                let stay = table.events[k] + table.at_risk.get(k + 1).unwrap_or(&0.0);
                g *= if table.censored[k] > 0.0 { stay / table.at_risk[k] } else { 1.0 };
                if g > 0.0 { 1.0 / g } else { 0.0 }
            })
            .collect();
        let total_weight = table.at_risk[0];
        let mut timeline = Timeline {
            time: obs.time.to_vec(),
            event: obs.event.to_vec(),
            weight,
            grid: table.time,
            inverse_censoring,
            total_weight,
            integrals: Default::default(),
        };
        timeline.integrals = timeline.suffix_integrals(total_weight);
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

    /// [`Timeline::suffix_integrals`] per unit of weight of all rows.
    pub fn integrals(&self) -> (&[f64], &[f64]) {
        (&self.integrals.0, &self.integrals.1)
    }

    /// Mean of 1/G over time.
    pub fn mean_censoring_weight(&self) -> f64 {
        self.integrals.1[0] * self.total_weight
    }

    /// A power of two (or one) that makes all weights whole numbers, as nearly as f64 allows.
    pub fn weight_scale(&self) -> f64 {
        let total: f64 = self.weight.iter().sum();
        if total < MAX_TOTAL && self.weight.iter().all(|w| w.fract() == 0.0) {
            return 1.0;
        }
        (MAX_TOTAL / total).log2().floor().exp2()
    }

    /// Index in the grid of the time of row `i` (of the time before it, for a row without
    /// weight).
    pub fn time_index(&self, i: usize) -> usize {
        self.grid.partition_point(|&u| u <= self.time[i]).saturating_sub(1)
    }

    /// Place in time of row `i`.
    pub fn code(&self, i: usize) -> Code {
        2 * self.time_index(i) as Code + Code::from(!self.event[i])
    }

    /// Weights as whole numbers of units, [`Timeline::weight_scale`] of which weigh one.
    pub fn whole_weights(&self) -> Vec<f64> {
        let scale = self.weight_scale();
        self.weight.iter().map(|weight| (weight * scale).round()).collect()
    }

    /// For every time of the grid: the time from it to the end, and its integral of 1/G, both
    /// divided by `norm` times the largest time.
    pub fn suffix_integrals(&self, norm: f64) -> (Vec<f64>, Vec<f64>) {
        let n = self.grid.len();
        let largest = self.grid[n - 1];
        let norm = if largest > 0.0 { norm * largest } else { 1.0 };
        let (mut plain, mut censoring) = (vec![0.0; n], vec![0.0; n]);
        // What rounding loses is carried on (Kahan): sums of many times are good to a unit.
        let mut lost = 0.0;
        for k in (0..n - 1).rev() {
            let step = self.grid[k + 1] - self.grid[k];
            plain[k] = (self.grid[n - 1] - self.grid[k]) / norm;
            let term = step * self.inverse_censoring[k] / norm - lost;
            censoring[k] = censoring[k + 1] + term;
            lost = (censoring[k] - censoring[k + 1]) - term;
        }
        (plain, censoring)
    }

    /// For every time of the grid: the share of `horizon` that lies after it.
    pub fn rest_of(&self, horizon: f64) -> Vec<f64> {
        self.grid.iter().map(|&time| 1.0 - time.min(horizon) / horizon).collect()
    }
}
