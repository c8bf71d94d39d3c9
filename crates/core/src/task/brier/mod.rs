//! Integrated Brier score of survival trees, weighted by the inverse of the censoring
//! distribution (Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024).
//!
//! A curve task: a leaf's loss is not a function of summed statistics, it needs the rows of
//! the leaf in the order of time. See docs/maths/brier.md.

pub mod antitonic;

use crate::error::Error;
use crate::survival::{Observations, RiskTable};
use antitonic::Fit;

/// Largest error of an objective that is let pass, a quarter of what an optimum is certified to.
const MOST_ERROR: f64 = 2.5e-10;

/// Largest total weight in whole numbers: f64 adds them exactly.
const MAX_TOTAL: f64 = (1u64 << 51) as f64;

/// The survival curve that a leaf predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafCurve {
    /// Kaplan–Meier of the leaf's rows.
    KaplanMeier,
    /// The non-increasing step function with the least Brier loss on the leaf's rows.
    BrierOptimal,
}

/// The objective: mean integrated Brier score per unit of weight + penalty · leaves.
#[derive(Clone, Debug)]
pub struct Brier {
    /// Price of a leaf.
    pub leaf_penalty: f64,
    /// What leaves predict.
    pub curve: LeafCurve,
    /// Time of each row.
    pub time: Vec<f64>,
    /// Whether the event of each row was observed.
    pub event: Vec<bool>,
    /// Weight of each row.
    pub weight: Vec<f64>,
    /// Loss of a reference model on each row.
    pub reference: Option<Vec<f64>>,
    /// Distinct times, ascending.
    pub grid: Vec<f64>,
    /// 1/G at each time of the grid, 0 where G is 0.
    pub inverse_censoring: Vec<f64>,
    total_weight: f64,
    /// [`Brier::suffix_integrals`] per unit of weight of all rows.
    integrals: (Vec<f64>, Vec<f64>),
}

impl Brier {
    /// The objective over these rows; O(n log n).
    pub fn new(
        obs: &Observations,
        leaf_penalty: f64,
        curve: LeafCurve,
        reference: Option<&[f64]>,
    ) -> Result<Self, Error> {
        let invalid = |name, reason: &str| Err(Error::invalid(name, reason));
        if obs.entry.is_some() {
            return invalid("entry", "the Brier score has no censoring weights for late entry");
        }
        let weight: Vec<f64> = (0..obs.len()).map(|i| obs.weight(i)).collect();
        let weighted: Vec<usize> = (0..obs.len()).filter(|&i| weight[i] > 0.0).collect();
        if weighted.is_empty() {
            return invalid("sample_weight", "no row has a positive weight");
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
        let mut task = Brier {
            leaf_penalty,
            curve,
            time: obs.time.to_vec(),
            event: obs.event.to_vec(),
            weight,
            reference: reference.map(<[f64]>::to_vec),
            grid: table.time,
            inverse_censoring,
            total_weight,
            integrals: Default::default(),
        };
        task.integrals = task.suffix_integrals(total_weight);
        let error = task.error();
        // A comparison with NaN is false.
        if error.is_nan() || error > MOST_ERROR {
            let mean = task.integrals.1[0] * total_weight;
            let reason = format!(
                "heavy rows are censored long before light ones: 1/G is {mean:.1e} in the mean, \
                 and sums over the rows would be off by {error:.1e}, more than {MOST_ERROR:.1e}"
            );
            return invalid("sample_weight", &reason);
        }
        Ok(task)
    }

    /// Differences of costs that rounding can make: a few units of the mean of 1/G over time.
    pub fn slack(&self) -> f64 {
        2.0 * f64::EPSILON * self.integrals.1[0] * self.total_weight
    }

    /// What the sums of the search may be off by: its slack, and where weights are rounded to
    /// whole numbers as much for every row, or for four times the root of many.
    pub fn error(&self) -> f64 {
        let rows = self.n_rows() as f64;
        let rounded = if self.weight_scale() == 1.0 { 1.0 } else { rows.min(4.0 * rows.sqrt()) };
        self.slack() * rounded
    }

    /// A power of two (or one) that makes all weights whole numbers, as nearly as f64 allows.
    pub fn weight_scale(&self) -> f64 {
        let total: f64 = self.weight.iter().sum();
        if total < MAX_TOTAL && self.weight.iter().all(|w| w.fract() == 0.0) {
            return 1.0;
        }
        (MAX_TOTAL / total).log2().floor().exp2()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.time.len()
    }

    /// Sum of the weights.
    pub fn total_weight(&self) -> f64 {
        self.total_weight
    }

    /// Index in the grid of the time of row `i` (of the time before it, for a row without
    /// weight).
    pub fn time_index(&self, i: usize) -> usize {
        self.grid.partition_point(|&u| u <= self.time[i]).saturating_sub(1)
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

    /// Loss of a leaf, per unit of weight of all rows, straight from the rows;
    /// O(rows · log rows).
    pub fn leaf_loss(&self, rows: &[usize]) -> f64 {
        let mut own: Vec<(usize, usize)> = rows
            .iter()
            .filter(|&&i| self.weight[i] > 0.0)
            .map(|&i| (self.time_index(i), i))
            .collect();
        own.sort_unstable_by(|a, b| {
            let weight = |i: usize| self.weight[i];
            a.0.cmp(&b.0).then(weight(a.1).total_cmp(&weight(b.1))).then(a.1.cmp(&b.1))
        });
        let (plain, censoring) = &self.integrals;
        // Weight beyond each of the leaf's times, as sums from the end.
        let mut beyond = vec![0.0; own.len() + 1];
        for (at, &(_, i)) in own.iter().enumerate().rev() {
            beyond[at] = beyond[at + 1] + self.weight[i];
        }
        let (mut survival, mut happened, mut loss) = (1.0, 0.0, 0.0);
        let mut fit = Fit::default();
        let mut at = 0;
        while at < own.len() {
            let k = own[at].0;
            let end = at + own[at..].iter().take_while(|(time, _)| *time == k).count();
            let weight_of = |wanted: bool| -> f64 {
                let of_kind = own[at..end].iter().filter(|&&(_, i)| self.event[i] == wanted);
                of_kind.map(|&(_, i)| self.weight[i]).sum()
            };
            let (events, censored) = (weight_of(true), weight_of(false));
            if events > 0.0 {
                survival *= (beyond[end] + censored) / beyond[at];
                happened += events * self.inverse_censoring[k];
            }
            let next = own.get(end).map_or(self.grid.len() - 1, |&(time, _)| time);
            let p = happened * (plain[k] - plain[next]);
            let q = beyond[end] * (censoring[k] - censoring[next]);
            match self.curve {
                LeafCurve::KaplanMeier => {
                    loss += survival * survival * p + (1.0 - survival) * (1.0 - survival) * q;
                }
                LeafCurve::BrierOptimal => fit.push(p, q),
            }
            at = end;
        }
        match self.curve {
            LeafCurve::KaplanMeier => loss,
            LeafCurve::BrierOptimal => fit.loss(),
        }
    }

    /// Objective of a partition of the rows into leaves: `leaf_of[row]` in `0..n_leaves`.
    pub fn objective(&self, leaf_of: &[usize], n_leaves: usize) -> f64 {
        let mut leaves = vec![Vec::new(); n_leaves];
        for (row, &leaf) in leaf_of.iter().enumerate() {
            leaves[leaf].push(row);
        }
        let loss: f64 = leaves.iter().map(|rows| self.leaf_loss(rows)).sum();
        loss + self.leaf_penalty * n_leaves as f64
    }
}
