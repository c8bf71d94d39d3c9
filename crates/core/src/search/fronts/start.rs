//! First trees: those of a search without limits, with labels that satisfy the limits.
//!
//! Without the limits, the faster searches can solve the problem. Their bound holds under the
//! limits, too, and their tree may be admissible with other labels.

use super::engine::{Engine, Point};
use super::node::FrontNode;
use super::points::Bounds;
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::search::{Checked, Monitor, Solution, Stop, curve, solve};
use crate::survival::Observations;
use crate::task::accuracy::Accuracy;
use crate::task::brier::Brier;
use crate::task::curve::LeafCurve;
use crate::task::label_costs::LabelCosts;
use crate::task::likelihood::Likelihood;
use crate::task::{ANY, FrontTask};
use crate::tree::{LEAF, Tree};

/// The best tree without the limits, for the same objective.
pub type Relaxation<'a> = dyn Fn(&Checked, &Monitor) -> Result<Solution, Error> + 'a;

/// [`Parity`](crate::task::parity::Parity) without its limit.
pub fn without_parity<'a>(
    positive: &'a [bool],
    weights: Option<&'a [f64]>,
    leaf_penalty: f64,
    features: &'a BinaryMatrix,
) -> Box<Relaxation<'a>> {
    Box::new(move |settings, monitor| {
        let labels: Vec<usize> = positive.iter().map(|&p| usize::from(p)).collect();
        let task = Accuracy::new(&labels, 2, weights, leaf_penalty, settings.limits.most_leaves())?;
        solve(&task, features, settings, monitor)
    })
}

/// [`Capacity`](crate::task::capacity::Capacity) without its limits.
pub fn without_capacity<'a>(
    rewards: &'a [f64],
    n_labels: usize,
    weights: Option<&'a [f64]>,
    leaf_penalty: f64,
    features: &'a BinaryMatrix,
) -> Box<Relaxation<'a>> {
    Box::new(move |settings, monitor| {
        let most_leaves = settings.limits.most_leaves();
        let task = LabelCosts::of_rewards(rewards, n_labels, weights, leaf_penalty, most_leaves)?;
        solve(&task, features, settings, monitor)
    })
}

/// The tasks of fair survival without their limit: the Brier score or the likelihood.
pub fn without_fairness<'a>(
    obs: Observations<'a>,
    brier: bool,
    prior: f64,
    leaf_penalty: f64,
    features: &'a BinaryMatrix,
) -> Box<Relaxation<'a>> {
    Box::new(move |settings, monitor| {
        if brier {
            let task = Brier::new(&obs, leaf_penalty, LeafCurve::KaplanMeier, None)?;
            return curve::solve(&task, features, settings, monitor);
        }
        solve(&Likelihood::with_prior(&obs, prior, leaf_penalty)?, features, settings, monitor)
    })
}

/// Number of labellings of a subtree that are kept.
const LABELLINGS: usize = 128;

impl<T: FrontTask<K>, const K: usize> Engine<'_, T, K> {
    /// Labellings of the leaves of a tree, by ascending weighted cost. If there are many, some are
    /// left out.
    pub fn labellings(&mut self, root: &FrontNode<K>, tree: &Tree) -> Result<Vec<Point<K>>, Stop> {
        let records = self.leaf_records(root, tree);
        self.labellings_at(root, tree, 0, &records)
    }

    fn labellings_at(
        &mut self,
        root: &FrontNode<K>,
        tree: &Tree,
        node: usize,
        records: &[Vec<i64>],
    ) -> Result<Vec<Point<K>>, Stop> {
        let all = Bounds { value: f64::INFINITY, window: [ANY; K], leaves: u32::MAX };
        if tree.feature[node] == LEAF {
            return self.leaf_points(&records[node], &all);
        }
        let Some((c, [no, yes])) = root.sample.split_of(tree, node) else {
            return Ok(Vec::new());
        };
        let sides = [
            self.labellings_at(root, tree, yes, records)?,
            self.labellings_at(root, tree, no, records)?,
        ];
        let mut gathered = self.gather(Vec::new());
        self.combine(root, c, &sides, &all, &mut gathered)?;
        self.settle(root, &mut gathered)?;
        gathered.points.truncate(LABELLINGS);
        Ok(gathered.points)
    }
}
