//! Integrated Brier score of survival trees, weighted by the inverse probability of censoring
//! (Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024).
//!
//! This is a curve task: the loss of a leaf is not a function of summed statistics, but needs the
//! rows of the leaf in the order of time. See docs/maths/brier.md.

pub mod antitonic;
pub mod exact;
pub mod passes;

use super::curve::{CurveTask, LeafCurve, ScalarCurveTask};
use crate::error::Error;
use crate::precise::Precise;
use crate::survival::Observations;
use crate::survival::timeline::{Code, Timeline};

/// The objective: mean integrated Brier score per unit of weight + penalty · leaves.
#[derive(Clone, Debug)]
pub struct Brier {
    /// Price of a leaf.
    pub leaf_penalty: f64,
    /// Curve that leaves predict.
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
        Ok(Brier { leaf_penalty, curve, timeline, reference })
    }

    /// Loss of a leaf per unit of weight of all rows, computed from its rows; O(rows of all
    /// leaves).
    pub fn leaf_loss(&self, rows: &[usize]) -> f64 {
        let mut own = vec![1; self.timeline.n_rows()];
        rows.iter().for_each(|&row| own[row] = 0);
        exact::leaf_loss(&self.timeline, self.curve, &self.leaves(&own, 2)[0])
    }

    /// For every leaf, its rows with positive weight in the order of time, as (position in time,
    /// weight). `leaf_of[row]` is in `0..n_leaves`.
    pub fn leaves(&self, leaf_of: &[usize], n_leaves: usize) -> Vec<Vec<(Code, f64)>> {
        let mut leaves = vec![Vec::new(); n_leaves];
        for row in self.timeline.order.iter().map(|&row| row as usize) {
            leaves[leaf_of[row]].push((self.timeline.code(row), self.timeline.weight[row]));
        }
        leaves
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
        let leaves = self.leaves(leaf_of, n_leaves);
        let losses = leaves.iter().map(|rows| exact::leaf_loss(&self.timeline, self.curve, rows));
        let loss = Precise::of(losses);
        loss.plus((self.leaf_penalty * n_leaves as f64).into()).value()
    }
}
