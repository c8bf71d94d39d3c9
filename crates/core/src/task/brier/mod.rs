//! Integrated Brier score of survival trees, weighted by the inverse of the censoring
//! distribution (Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024).
//!
//! A curve task: a leaf's loss is not a function of summed statistics, it needs the rows of
//! the leaf in the order of time. See docs/maths/brier.md.

pub mod antitonic;

use super::curve::{CurveTask, LeafCurve, ScalarCurveTask};
use crate::error::Error;
use crate::survival::Observations;
use crate::survival::timeline::Timeline;
use antitonic::Fit;

/// Largest error of an objective that is let pass, a quarter of what an optimum is certified to.
const MOST_ERROR: f64 = 2.5e-10;

/// The objective: mean integrated Brier score per unit of weight + penalty · leaves.
#[derive(Clone, Debug)]
pub struct Brier {
    /// Price of a leaf.
    pub leaf_penalty: f64,
    /// What leaves predict.
    pub curve: LeafCurve,
    /// The rows.
    pub timeline: Timeline,
    /// Loss of a reference model on each row.
    pub reference: Option<Vec<f64>>,
}

impl Brier {
    /// The objective over these rows; O(n log n).
    pub fn new(
        obs: &Observations,
        leaf_penalty: f64,
        curve: LeafCurve,
        reference: Option<&[f64]>,
    ) -> Result<Self, Error> {
        let (timeline, reference) = (Timeline::new(obs)?, reference.map(<[f64]>::to_vec));
        let task = Brier { leaf_penalty, curve, timeline, reference };
        let error = task.error();
        // A comparison with NaN is false.
        if error.is_nan() || error > MOST_ERROR {
            let mean = task.timeline.mean_censoring_weight();
            let reason = format!(
                "heavy rows are censored long before light ones: 1/G is {mean:.1e} in the mean, \
                 and sums over the rows would be off by {error:.1e}, more than {MOST_ERROR:.1e}"
            );
            return Err(Error::invalid("sample_weight", reason));
        }
        Ok(task)
    }

    /// Loss of a leaf, per unit of weight of all rows, straight from the rows;
    /// O(rows · log rows).
    pub fn leaf_loss(&self, rows: &[usize]) -> f64 {
        let Timeline { event, weight, inverse_censoring, grid, .. } = &self.timeline;
        let mut own: Vec<(usize, usize)> = rows
            .iter()
            .filter(|&&i| weight[i] > 0.0)
            .map(|&i| (self.timeline.time_index(i), i))
            .collect();
        own.sort_unstable_by(|a, b| {
            let weight = |i: usize| weight[i];
            a.0.cmp(&b.0).then(weight(a.1).total_cmp(&weight(b.1))).then(a.1.cmp(&b.1))
        });
        let (plain, censoring) = self.timeline.integrals();
        // Weight beyond each of the leaf's times, as sums from the end.
        let mut beyond = vec![0.0; own.len() + 1];
        for (at, &(_, i)) in own.iter().enumerate().rev() {
            beyond[at] = beyond[at + 1] + weight[i];
        }
        let (mut survival, mut happened, mut loss) = (1.0, 0.0, 0.0);
        let mut fit = Fit::default();
        let mut at = 0;
        while at < own.len() {
            let k = own[at].0;
            let end = at + own[at..].iter().take_while(|(time, _)| *time == k).count();
            let weight_of = |wanted: bool| -> f64 {
                let of_kind = own[at..end].iter().filter(|&&(_, i)| event[i] == wanted);
                of_kind.map(|&(_, i)| weight[i]).sum()
            };
            let (events, censored) = (weight_of(true), weight_of(false));
            if events > 0.0 {
                survival *= (beyond[end] + censored) / beyond[at];
                happened += events * inverse_censoring[k];
            }
            let next = own.get(end).map_or(grid.len() - 1, |&(time, _)| time);
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
}

impl CurveTask for Brier {
    fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    fn curve(&self) -> LeafCurve {
        self.curve
    }
}

impl ScalarCurveTask for Brier {
    fn leaf_penalty(&self) -> f64 {
        self.leaf_penalty
    }

    fn reference(&self) -> Option<&[f64]> {
        self.reference.as_deref()
    }

    fn objective(&self, leaf_of: &[usize], n_leaves: usize) -> f64 {
        let mut leaves = vec![Vec::new(); n_leaves];
        for (row, &leaf) in leaf_of.iter().enumerate() {
            leaves[leaf].push(row);
        }
        let loss: f64 = leaves.iter().map(|rows| self.leaf_loss(rows)).sum();
        loss + self.leaf_penalty * n_leaves as f64
    }

    /// A few units of the mean of 1/G over time.
    fn slack(&self) -> f64 {
        2.0 * f64::EPSILON * self.timeline.mean_censoring_weight()
    }

    /// The slack, and where weights are rounded to whole numbers as much for every row, or for
    /// four times the root of many.
    fn error(&self) -> f64 {
        let (rows, whole) = (self.timeline.n_rows() as f64, self.timeline.weight_scale() == 1.0);
        self.slack() * if whole { 1.0 } else { rows.min(4.0 * rows.sqrt()) }
    }
}
