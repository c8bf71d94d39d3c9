//! Weights on the components of a cost, and what is known about nodes under these weights.

use super::engine::Point;
use super::near::Near;
use super::node::Place;
use crate::search::memo::Memo;
use crate::task::FrontTask;
use crate::task::label_costs::LabelCosts;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Weights of the components of a cost, and a weight for every leaf except the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weights<const K: usize> {
    pub components: [f64; K],
    pub leaf: f64,
}

impl<const K: usize> Weights<K> {
    #[inline(always)]
    pub fn of(&self, cost: &[i64; K]) -> f64 {
        cost.iter().zip(&self.components).map(|(&c, w)| c as f64 * w).sum()
    }

    /// The smallest weighted cost, and its position.
    #[inline(always)]
    pub fn least(&self, costs: &[[i64; K]]) -> Option<(f64, usize)> {
        let mut least = None;
        for (place, cost) in costs.iter().enumerate() {
            let value = self.of(cost);
            if value < least.map_or(f64::INFINITY, |(least, _)| least) {
                least = Some((value, place));
            }
        }
        least
    }
}

/// What is known under one set of weights; other weights invalidate all of it.
pub(super) struct Weighing<const K: usize> {
    pub weights: Weights<K>,
    /// The weighted costs of labels as linear forms, if they are linear.
    pub forms: Option<Vec<Vec<f64>>>,
    /// The weighted costs as a task, once it was needed.
    pub linear: Option<Arc<LabelCosts>>,
    /// Least weighted costs with each column at the root, for the last node that was solved by a
    /// lattice.
    pub by_column: Option<(Place, Vec<f64>)>,
    /// Trees of at most two levels.
    pub near: FxHashMap<Place, Near<K>>,
    /// Bytes of these trees.
    pub near_bytes: usize,
    /// Deeper trees.
    pub memo: Option<Memo<f64, Point<K>>>,
    /// Bytes of the deeper trees.
    pub memo_bytes: usize,
}

impl<const K: usize> Weighing<K> {
    /// Starts empty.
    pub fn new(task: &impl FrontTask<K>, weights: Weights<K>) -> Self {
        Weighing {
            weights,
            forms: task.linear(&weights.components),
            linear: None,
            by_column: None,
            near: FxHashMap::default(),
            near_bytes: 0,
            memo: None,
            memo_bytes: 0,
        }
    }
}
