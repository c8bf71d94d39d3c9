//! The best tree under limits: first a Lagrangian bound, then everything between the bounds.
//!
//! min m(T) subject to low ≤ s(T) ≤ high is bounded from below by L(μ) = min_T m + μ·s − max(μ·low,
//! μ·high) for every μ. The best μ leaves a small gap to the best admissible tree found on the way.
//! Every better tree has a weighted cost within that gap, so only points of subproblems within the
//! gap have to be listed. See docs/maths/fronts.md.

mod listing;

use super::engine::{Engine, Point};
use super::points::Bounds;
use super::weighing::Weights;
use super::{Front, Relaxation};
use crate::data::BinaryMatrix;
use crate::search::certificate::{Certificate, EVALUATED, Verdict};
use crate::search::{Checked, Measured, Settings, Stop};
use crate::task::{ANY, FrontTask, Said};
use crate::tree::Tree;

/// Rounds of improving the multipliers if there are several limits.
const ROUNDS: usize = 40;

/// Depth up to which the search by fronts takes less time than the search without limits would
/// save.
const QUICK: usize = 2;

/// Number of first trees to look for, and the share of the time that they may take.
const STARTS: (usize, f64) = (12, 0.3);

/// Share of the time that the search without limits may take.
const RELAXED: f64 = 0.3;

/// Searches for the best tree at increasing depth.
pub(super) struct Search<'a, 'e, T, const K: usize> {
    engine: &'e mut Engine<'a, T, K>,
    depth: usize,
    /// Whether trees of `depth` are all allowed trees.
    last: bool,
    window: [(i64, i64); K],
    /// An upper bound on component 0 of every tree.
    worst: i64,
    best: Option<Point<K>>,
    /// The tree with the smallest objective. In the units of the search, another tree may cost less
    /// although its objective is no better.
    shown: Option<Point<K>>,
    /// Its objective.
    measured: Measured,
    /// Smallest component 0 of the trees that are within the windows but do not satisfy the limits.
    refused: i64,
    /// Differences that the units do not resolve.
    resolution: f64,
    /// A lower bound on component 0 of every admissible tree.
    lower: i64,
    certificate: Certificate<'a>,
    features: &'a BinaryMatrix,
    /// Whether leaves can take several labels.
    labelled: bool,
    weights: Weights<K>,
}

impl<'a, 'e, T: FrontTask<K>, const K: usize> Search<'a, 'e, T, K> {
    pub fn new(
        engine: &'e mut Engine<'a, T, K>,
        features: &'a BinaryMatrix,
        settings: &Settings,
    ) -> Self {
        let (task, root) = (engine.task, engine.root.clone());
        let sample = &root.sample;
        let reach = task.reach(&root.total[..root.total.len() - 1]);
        let mut weights = Weights { components: [0.0; K], leaf: 0.0 };
        weights.components[0] = 1.0;
        let mut candidates = Vec::new();
        let mut lower = reach[0].0.max(ANY.0);
        if let Some(rounding) = task.refinement() {
            // A tree distinguishes at most all distinct rows.
            let cheapest = |r: usize| {
                candidates.clear();
                task.leaf_candidates(sample.statistics(r), &mut candidates);
                candidates.iter().map(|c| c[0]).min().unwrap_or(0) - rounding
            };
            lower = lower.max((0..sample.n_rows()).map(cheapest).sum());
        }
        candidates.clear();
        task.leaf_candidates(&root.total[..root.total.len() - 1], &mut candidates);
        Search {
            certificate: Certificate::new(engine.monitor, settings, task.least_objective()),
            measured: Measured::NONE,
            features,
            labelled: candidates.len() > 1,
            window: task.window(),
            worst: reach[0].1,
            depth: 0,
            last: false,
            best: None,
            shown: None,
            refused: i64::MAX,
            resolution: task.resolution(settings.limits.allowed()),
            engine,
            lower,
            weights,
        }
    }

    /// Continues where another search for the same trees ended.
    pub fn after(mut self, first: &Front) -> Self {
        let Front { objective, lower_bound, trace, .. } = first;
        self.measured = Measured::plain(*objective);
        self.certificate = self.certificate.after(*objective, *lower_bound, trace);
        self
    }

    /// The best tree of the depth of the settings, with its certificate; without a tree if none is
    /// as good as that of the search before.
    pub fn run(mut self, settings: &Checked, relaxed: &Relaxation) -> (Option<Point<K>>, Verdict) {
        let stop = self.search(settings, relaxed).err();
        (self.shown, self.certificate.finish(stop))
    }

    fn search(&mut self, settings: &Checked, relaxed: &Relaxation) -> Result<(), Stop> {
        let deepest = settings.limits.max_depth.min(self.engine.root.sample.n_columns());
        let leaf = Bounds { value: f64::INFINITY, window: self.window, leaves: 1 };
        let root = self.engine.root.clone();
        for point in self.engine.points(&root, 0, &leaf)? {
            self.offer(Some(point));
        }
        self.record_best();
        for depth in deepest.min(1)..=deepest {
            if depth == QUICK && deepest > QUICK {
                match self.start(deepest) {
                    // The search may need less.
                    Ok(()) | Err(Stop::Memory) => {}
                    Err(stop) => return Err(stop),
                }
            }
            // One more depth is searched first, whose tree remains if the time is up.
            if depth == deepest.min(QUICK + 2) && depth > QUICK {
                self.relax(settings, relaxed)?;
            }
            if self.best.is_some_and(|best| best.cost[0] <= self.lower) || self.certificate.is_met()
            {
                return Ok(());
            }
            (self.depth, self.last) = (depth, depth == deepest);
            let most = self.worst_of(depth);
            let solved = self.bound(most).and_then(|()| self.list(most));
            // Data that are too large for fronts may fit the search without limits.
            if let (Err(Stop::Memory), true) = (solved, depth <= QUICK) {
                self.relax(settings, relaxed)?;
                if self.certificate.is_met() {
                    return Ok(());
                }
            }
            solved?;
        }
        // Everything better than the best tree, or every tree at all, has been ruled out.
        self.list_all()?;
        self.close();
        Ok(())
    }

    /// An upper bound on component 0 of trees with this many levels.
    fn worst_of(&self, depth: usize) -> i64 {
        let splits = (1i64 << depth.min(20)) - 1;
        self.worst.saturating_add(self.engine.task.price().saturating_mul(splits))
    }

    /// Records that no tree within the windows is better than the best tree.
    fn close(&mut self) {
        let best = self.best.filter(|best| best.cost[0] <= self.refused);
        match best {
            Some(best) if self.resolution > 0.0 => {
                self.certificate.raise(self.bound_of(best.cost[0], best.leaves));
            }
            None if self.refused < i64::MAX => {
                self.certificate.raise(self.bound_of(self.refused, 1));
            }
            _ => self.certificate.close(),
        }
    }

    /// Lower bound on objectives if no component 0 is below this. It allows for what the units do
    /// not resolve, and for the error of evaluating it.
    fn bound_of(&self, cost: i64, leaves: u32) -> f64 {
        let task = self.engine.task;
        let value = task.objective_of(cost, leaves);
        let terms = value.abs() + (value - task.objective_of(0, 1)).abs();
        value - self.resolution - task.ties() - EVALUATED * terms
    }

    /// Records the best tree and the bound in the certificate.
    fn record_best(&mut self) {
        if let Some(best) = self.best {
            self.certificate.settle(self.measured);
            if best.cost[0] <= self.lower {
                self.close();
            }
        }
        // A tree that does not satisfy the limits may have dominated one that does.
        self.certificate.raise(self.bound_of(self.lower.min(self.refused), 1));
        self.certificate.record();
    }

    /// Whether the units resolve the objective of the best tree.
    fn resolves(&self) -> bool {
        self.measured.meets(self.measured.objective - self.resolution)
    }

    /// Measures a tree, from the rows if the task can, and keeps it if it satisfies the limits.
    fn admit(&mut self, point: &Point<K>) -> bool {
        let task = self.engine.task;
        let (tree, labels) = self.engine.plans.tree(point.plan);
        let leaf_of = tree.partition(self.features);
        let labels: Vec<i64> = labels.into_iter().filter(|&label| label >= 0).collect();
        let said = Said { leaf_of: &leaf_of, labels: &labels };
        if !task.admits(&said) {
            return false;
        }
        let of_total = || Measured::plain(task.objective_of(point.cost[0], point.leaves));
        let measured = task.measured(&said).unwrap_or_else(of_total);
        if measured.objective <= self.measured.objective {
            (self.shown, self.measured) = (Some(*point), measured);
        }
        true
    }

    /// Takes a lower bound on component 0 of the trees of the present depth.
    fn raise(&mut self, lower: i64) {
        let grain = self.engine.task.grain();
        let lower = (lower + (grain - 1)).div_euclid(grain) * grain;
        if self.last && lower > self.lower {
            self.lower = lower;
            self.record_best();
        }
    }

    /// Takes the bound and the tree of the search without limits.
    fn relax(&mut self, settings: &Checked, relaxed: &Relaxation) -> Result<(), Stop> {
        let (task, monitor) = (self.engine.task, self.engine.monitor);
        let stopped = || monitor.check().is_err();
        let inner = monitor.within(&stopped).for_share(RELAXED);
        // This search may still solve what the other rejects.
        let settings = settings.within(self.engine.left());
        let Ok(found) = relaxed(&settings, &inner) else { return Ok(()) };
        monitor.count(inner.nodes());
        self.certificate.raise(found.lower_bound);
        // Least cost of a tree with that objective in the units of this search, which may charge
        // less for splits than the other search.
        let (bound, least) = (found.lower_bound, task.objective_of(0, 1));
        let off = self.resolution + task.ties() + EVALUATED * (bound.abs() + least.abs());
        let cost = task.cost_of(bound - off);
        self.lower = self.lower.max(whole(cost - EVALUATED * cost.abs()));
        self.offer_labellings(&found.tree)?;
        self.record_best();
        monitor.check()
    }

    /// Offers a tree with its best admissible labels.
    fn offer_labellings(&mut self, tree: &Tree) -> Result<(), Stop> {
        let root = self.engine.root.clone();
        for point in self.engine.labellings(&root, tree)? {
            self.offer(Some(point));
        }
        Ok(())
    }

    fn admits(&self, point: &Point<K>) -> bool {
        let bounds =
            Bounds { value: f64::INFINITY, window: self.window, leaves: self.engine.max_leaves };
        bounds.admit(&point.cost, point.leaves)
    }

    fn offer(&mut self, point: Option<Point<K>>) {
        let Some(point) = point.filter(|p| self.admits(p)) else { return };
        let better = |b: &Point<K>| (point.cost[0], point.leaves) < (b.cost[0], b.leaves);
        if self.best.as_ref().is_none_or(better) {
            self.take(point);
        }
    }

    /// Makes this the best tree if it satisfies the limits, and returns whether it does.
    fn take(&mut self, point: Point<K>) -> bool {
        let admitted = self.admit(&point);
        if admitted {
            self.best = Some(point);
            self.record_best();
        } else {
            self.refused = self.refused.min(point.cost[0]);
        }
        admitted
    }

    /// The weighted cost, beyond component 0, that multipliers grant every admissible tree.
    fn allowance(&self, weights: &Weights<K>) -> f64 {
        let side = |k: usize| {
            let (w, (low, high)) = (weights.components[k], self.window[k]);
            w * if w > 0.0 { high as f64 } else { low as f64 }
        };
        let sides: f64 = (1..K).filter(|&k| weights.components[k] != 0.0).map(side).sum();
        let leaves = if weights.leaf > 0.0 {
            weights.leaf * f64::from(self.engine.max_leaves - 1)
        } else {
            0.0
        };
        sides + leaves
    }

    /// How far a point exceeds each limit, in units of the component's size; 0 within the limit.
    fn excess(&self, point: &Point<K>) -> ([f64; K], f64) {
        let mut excess = [0.0; K];
        for k in 1..K {
            let (low, high) = self.window[k];
            let c = point.cost[k];
            let beyond = if c > high { c - high } else { c.min(low) - low };
            excess[k] = beyond as f64 / self.engine.size[k];
        }
        let most = self.engine.max_leaves;
        let leaves = point.leaves.saturating_sub(most);
        (excess, f64::from(leaves) / f64::from(most.min(1024)))
    }

    /// Finds first trees by raising the multipliers until a tree is admissible, then lowering them
    /// by half steps.
    fn start(&mut self, depth: usize) -> Result<(), Stop> {
        let (most, share) = STARTS;
        let monitor = self.engine.monitor;
        let until = monitor.seconds() + share * monitor.remaining();
        let mut weights = self.weights;
        let (mut outside, mut inside) = (weights, None);
        let mut step = 1.0 / 16.0;
        for _ in 0..most {
            let Some(point) = self.descend(weights, depth)? else { break };
            if self.admits(&point) {
                inside = Some(weights);
            } else {
                outside = weights;
            }
            if outside == weights && inside.is_none() {
                let (excess, leaves) = self.excess(&point);
                let norm = (excess.iter().map(|e| e * e).sum::<f64>() + leaves * leaves).sqrt();
                let length = step * self.engine.size[0] / norm;
                for k in 1..K {
                    weights.components[k] += length * excess[k] / self.engine.size[k];
                }
                weights.leaf += length * leaves / f64::from(self.engine.max_leaves.min(1024));
                step *= 4.0;
            } else if let Some(inside) = inside.filter(|inside| *inside != outside) {
                let mean = |a: f64, b: f64| 0.5 * (a + b);
                for k in 1..K {
                    weights.components[k] = mean(outside.components[k], inside.components[k]);
                }
                weights.leaf = mean(outside.leaf, inside.leaf);
            }
            if inside == Some(outside) || monitor.seconds() >= until {
                break;
            }
        }
        Ok(())
    }

    /// Offers a tree with a low weighted cost.
    fn descend(&mut self, weights: Weights<K>, depth: usize) -> Result<Option<Point<K>>, Stop> {
        self.engine.set_weights(weights);
        let root = self.engine.root.clone();
        let point = self.engine.dive(&root, depth)?;
        self.offer(point);
        if let Some(point) = point.filter(|point| self.labelled && !self.admits(point)) {
            let (tree, _) = self.engine.plans.tree(point.plan);
            self.offer_labellings(&tree)?;
        }
        Ok(point)
    }

    /// Least weighted cost over all trees, its tree, and the bound on component 0 that follows.
    fn evaluate(&mut self, weights: Weights<K>) -> Result<(Option<Point<K>>, f64), Stop> {
        self.engine.set_weights(weights);
        let root = self.engine.root.clone();
        let least = self.engine.least(&root, self.depth, f64::INFINITY)?;
        self.offer(least.tree);
        if let Some(point) = least.tree.filter(|point| self.labelled && !self.admits(point)) {
            let (tree, _) = self.engine.plans.tree(point.plan);
            self.offer_labellings(&tree)?;
        }
        let bound = least.value - self.allowance(&weights) - self.engine.rounding();
        Ok((least.tree, bound))
    }

    /// Improves the multipliers, and with them the bound on component 0.
    fn bound(&mut self, most: i64) -> Result<(), Stop> {
        let limits = (1..K).filter(|&k| self.window[k] != ANY).count();
        let budget = self.engine.max_leaves != u32::MAX;
        if limits == 1 && !budget {
            let side = (1..K).find(|&k| self.window[k] != ANY).expect("one limit");
            return self.bound_one(side, most);
        }
        let mut weights = self.weights;
        let mut best = f64::NEG_INFINITY;
        let mut step = 1.0;
        for _ in 0..ROUNDS {
            let (point, bound) = self.evaluate(weights)?;
            if bound > best {
                (best, self.weights) = (bound, weights);
                self.raise(whole(best));
            } else {
                step *= 0.7;
            }
            let Some(point) = point else { break };
            let (excess, leaves) = self.excess(&point);
            let norm = excess.iter().map(|e| e * e).sum::<f64>() + leaves * leaves;
            let target = self.best.as_ref().map_or(most, |b| b.cost[0]) as f64;
            if norm == 0.0 || best > target {
                break;
            }
            let length = step * (target - bound).max(1.0) / norm;
            for k in 1..K {
                weights.components[k] += length * excess[k] / self.engine.size[k];
            }
            weights.leaf += length * leaves / f64::from(self.engine.max_leaves.min(1024));
        }
        Ok(())
    }

    /// For one limit: the two trees on either side of it determine the next multiplier, until it is
    /// the best one.
    fn bound_one(&mut self, side: usize, most: i64) -> Result<(), Stop> {
        let mut weights = Weights { components: [0.0; K], leaf: 0.0 };
        weights.components[0] = 1.0;
        let (point, bound) = self.evaluate(weights)?;
        self.weights = weights;
        self.raise(whole(bound));
        let Some(mut outside) = point else { return Ok(()) };
        let (low, high) = self.window[side];
        let sign = match outside.cost[side] {
            c if c > high => 1.0,
            c if c < low => -1.0,
            _ => return Ok(()),
        };
        let edge = if sign > 0.0 { high } else { low };
        let beyond = |p: &Point<K>| sign * (p.cost[side] - edge) as f64;
        let mut inside = self.best.filter(|p| beyond(p) <= 0.0 && p.cost[0] >= outside.cost[0]);
        let mut best = bound;
        let mut slope = 0.0;
        for _ in 0..ROUNDS {
            slope = match &inside {
                Some(p) => (p.cost[0] - outside.cost[0]) as f64 / (beyond(&outside) - beyond(p)),
                None if slope == 0.0 => self.engine.size[0] / self.engine.size[side],
                None => 4.0 * slope,
            };
            weights.components[side] = sign * slope;
            let (point, bound) = self.evaluate(weights)?;
            let Some(point) = point else { break };
            if bound > best {
                (best, self.weights) = (bound, weights);
                self.raise(whole(best));
            }
            if best > most as f64 {
                break;
            }
            let line = outside.cost[0] as f64 + slope * sign * outside.cost[side] as f64;
            let value = self.engine.value(&point);
            let settled = inside.is_some() && value >= line - self.engine.rounding();
            if beyond(&point) > 0.0 {
                outside = point;
            } else {
                inside = Some(point);
            }
            if settled {
                break;
            }
        }
        Ok(())
    }
}

/// The smallest whole number at or above a bound.
fn whole(bound: f64) -> i64 {
    bound.clamp(i64::MIN as f64 / 4.0, i64::MAX as f64 / 4.0).ceil() as i64
}
