//! Search for curve tasks: the loss of a leaf needs its rows in the order of time.
//!
//! [`rows`] stores the rows of a node, [`kernel`] evaluates all its splits in one pass, and
//! [`node`] provides the nodes of the branch and bound. This file starts a search: greedy trees
//! first, then all depths. See docs/maths/brier.md.

pub mod kernel;
mod neighbours;
mod node;
pub mod rows;
mod start;

pub use neighbours::{alternatives, near_optimal};

use super::branch::{Branch, MemoOf};
use super::grow::{self, Shape};
use super::nodes::{Found, Nodes};
use super::resolve::WORTH;
use super::root::{About, Scale, Search};
use super::{Checked, Measured, Monitor, Settings, Solution, Status, Stop, too_wide};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::task::curve::{Rounding, ScalarCurveTask};
use crate::task::range_of;
use crate::tree::Tree;
use kernel::Kernel;
use node::{CurveNode, CurveNodes};
use rows::Tables;
use start::CurveGrower;
use std::ops::RangeInclusive;

/// Searches of smaller depths, from 2 on, stop before this depth.
const DEEPENING: usize = 6;

/// Levels at the bottom of the second greedy tree that are searched exactly.
const EXACT_LEVELS: usize = 2;

/// Columns per node of the dives after the searches of depth two and three.
const DIVES: [&[usize]; 2] = [&[1, 4], &[16]];

/// Depths for which dives pay off.
const DIVED: RangeInclusive<usize> = 5..=8;

/// Smallest slack of passes. Any value is valid, because bounds are lowered by it; this one makes
/// ties of most costs that differ only by rounding.
const SLACK: f64 = 1e-13;

/// Slack if losses are computed leaf by leaf, as a share of a known objective.
const FINE_SLACK: f64 = 1e-14;

/// The best tree for `task`, or, after a limit, the best tree found and a bound.
pub fn solve(
    task: &dyn ScalarCurveTask,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Solution, Error> {
    Prepared::new(task, features, settings)?.solve(settings, monitor, None)
}

/// The best tree with at most k leaves for k = 1, 2, …, each with its own bound and status.
///
/// k ends at `settings.limits.max_leaves`, at the most leaves that the depth allows, or at the
/// number of distinct rows.
pub fn solve_path(
    task: &dyn ScalarCurveTask,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Vec<Solution>, Error> {
    let mut prepared = Prepared::new(task, features, settings)?;
    let most = settings.limits.most_leaves().min(prepared.tables.n_groups).max(1);
    let mut path: Vec<Solution> = Vec::new();
    for k in 1..=most {
        let settings = settings.with_limits(|s| s.max_leaves = Some(k));
        path.push(prepared.solve(&settings, monitor, path.last())?);
    }
    Ok(path)
}

/// Data in the form that all searches share.
pub(super) struct Prepared<'a> {
    task: &'a dyn ScalarCurveTask,
    features: &'a BinaryMatrix,
    settings: &'a Checked,
    /// All rows.
    pub root: CurveNode,
    pub tables: Tables,
    memo: Option<MemoOf<CurveNodes<'a>>>,
    kernel: Kernel,
    /// Costs that differ by less than this are taken as equal.
    slack: f64,
    rounding: Rounding,
}

/// Converts costs to objectives, for trees with at most this many leaves.
struct CurveScale<'b, 'a> {
    prepared: &'b Prepared<'a>,
    most_leaves: f64,
}

impl Scale<f64> for CurveScale<'_, '_> {
    fn least(&self) -> f64 {
        0.0
    }

    fn objective(&self, _cost: f64, tree: &Tree) -> Measured {
        Measured::plain(self.prepared.objective(tree))
    }

    fn at_most(&self, cost: f64, _tree: &Tree) -> Option<f64> {
        Some(self.prepared.rounding.above(cost))
    }

    /// At every question, the search may have kept a tree that is worse by the slack, twice.
    fn bound(&self, lower: f64) -> f64 {
        let Prepared { slack, rounding, .. } = *self.prepared;
        rounding.below(lower - 2.0 * self.most_leaves * slack).max(0.0)
    }
}

impl<'a> Prepared<'a> {
    /// Prepares for passes over nodes, which are fast.
    pub fn new(
        task: &'a dyn ScalarCurveTask,
        features: &'a BinaryMatrix,
        settings: &'a Checked,
    ) -> Result<Self, Error> {
        let slack = 2.0 * f64::EPSILON * task.timeline().extent.most_loss;
        Prepared::with(task, features, settings, (slack.max(SLACK), false))
    }

    /// Prepares for losses that are computed leaf by leaf, if passes cannot resolve what is better
    /// than a known objective.
    fn leaf_by_leaf(&self, known: f64) -> Result<Self, Error> {
        let slack = FINE_SLACK * known;
        Prepared::with(self.task, self.features, self.settings, (slack, true))
    }

    fn with(
        task: &'a dyn ScalarCurveTask,
        features: &'a BinaryMatrix,
        settings: &'a Checked,
        (slack, leaf_by_leaf): (f64, bool),
    ) -> Result<Self, Error> {
        let kernel = Kernel {
            backend: settings.backend(),
            curve: task.curve(),
            min_leaf: settings.limits.least_rows(),
        };
        let floors = settings.switches.equivalent_points;
        let reference = task.reference();
        let (rows, mut tables) = Tables::new(task, features, floors, reference, leaf_by_leaf)?;
        let (timeline, n_floors) = (task.timeline(), tables.n_floors);
        let depth = settings.limits.max_depth.min(tables.n_groups);
        let passes = Rounding::of_passes(timeline, task.curve(), depth, n_floors);
        let rounding = match &mut tables.exact {
            Some(exact) => {
                exact.passes = Some(passes);
                Rounding::of_leaves(timeline, depth, n_floors)
            }
            None => passes,
        };
        let memo = settings.switches.cache.then(|| MemoOf::<CurveNodes>::new(settings.bytes()));
        let root = CurveNode { rows, leaf: kernel.leaf(&tables) };
        Ok(Prepared { task, features, settings, root, tables, memo, kernel, slack, rounding })
    }

    /// Objective of a tree, computed from the rows.
    pub fn objective(&self, tree: &Tree) -> f64 {
        self.task.objective(&tree.partition(self.features), tree.n_leaves())
    }

    /// An upper bound on the cost of trees with an objective of at most `worst`.
    pub fn cost_above(&self, worst: f64) -> f64 {
        self.rounding.above(worst) + self.slack
    }

    /// A branch and bound over the nodes of these data.
    pub fn branch<'b>(
        &'b self,
        settings: &'b Settings,
        monitor: &'b Monitor<'b>,
    ) -> Branch<'b, CurveNodes<'b>> {
        let Prepared { tables, kernel, task, memo, .. } = self;
        let costs = (task.leaf_penalty(), self.slack);
        let nodes = CurveNodes::new(tables, settings, monitor, *kernel, costs);
        Branch { nodes, memo: memo.as_ref(), monitor }
    }

    /// The best tree with its certificate; `smaller` is a known tree with fewer leaves. If passes
    /// over nodes do not resolve the optimum, all further losses are computed leaf by leaf.
    ///
    /// # Errors
    ///
    /// If that does not resolve the optimum, either.
    pub fn solve(
        &mut self,
        settings: &Settings,
        monitor: &Monitor,
        smaller: Option<&Solution>,
    ) -> Result<Solution, Error> {
        let mut found = self.solve_once(settings, monitor, (smaller, false));
        let mut known = f64::INFINITY;
        // A tree that is much better than the known one determines the next slack.
        while self.is_unresolved(&found, settings) && found.objective < 0.5 * known {
            known = found.objective;
            *self = self.leaf_by_leaf(known)?;
            found = self.solve_once(settings, monitor, (Some(&found), true));
        }
        if found.status == Status::Unresolved {
            let weights = self.task.timeline().weight.iter().copied().enumerate();
            let widest = ("sample_weight", range_of(weights));
            return Err(too_wide(widest, found.objective, found.lower_bound));
        }
        Ok(found)
    }

    /// Whether the result of a search is uncertain only because its sums are rounded.
    fn is_unresolved(&self, found: &Solution, settings: &Settings) -> bool {
        match found.status {
            Status::Unresolved => true,
            // There is no bound to compare with in this case.
            Status::ReferenceOptimal => !self.resolves(found.objective, settings),
            _ => false,
        }
    }

    /// Whether this objective can be distinguished from objectives that are no better.
    fn resolves(&self, objective: f64, settings: &Settings) -> bool {
        Measured::plain(objective).meets(self.scale(settings).bound(objective))
    }

    /// The same data, computed precisely enough to distinguish trees near this one.
    pub fn seeing(self, tree: &Tree, settings: &Settings) -> Result<Self, Error> {
        let objective = self.objective(tree);
        // The bound for a loss of zero is zero, so it does not show whether passes resolve a tiny
        // loss.
        let resolves = objective > 0.0 && self.resolves(objective, settings);
        if resolves { Ok(self) } else { self.leaf_by_leaf(objective) }
    }

    fn scale(&self, settings: &Settings) -> CurveScale<'_, 'a> {
        let mut most = settings.limits.most_leaves().min(self.tables.n_groups) as f64;
        let price = self.task.leaf_penalty();
        if price > 0.0 {
            // Trees with more leaves cost more than a single leaf.
            most =
                most.min(((self.root.leaf - self.tables.free_floor).max(0.0) / price).ceil() + 1.0);
        }
        CurveScale { prepared: self, most_leaves: most }
    }

    /// One search. If the first tree is known to be better than most, looks only for trees that are
    /// better by enough to matter.
    fn solve_once(
        &self,
        settings: &Settings,
        monitor: &Monitor,
        (first, again): (Option<&Solution>, bool),
    ) -> Solution {
        let scale = self.scale(settings);
        let leaf = self.root.leaf + self.task.leaf_penalty();
        let best = match first {
            Some(first) if again => ((1.0 - WORTH) * first.objective, first.tree.clone()),
            _ => (leaf, Tree::leaf()),
        };
        let mut search = Search::new(&scale, settings, monitor, best, 0.0)
            .with_slack(self.slack)
            .trusting_reference(self.task.reference().is_some());
        match first {
            Some(first) if again => {
                search = search.after(first).keeping_the_first();
                search.offer(leaf, Tree::leaf());
            }
            Some(smaller) => search.offer(smaller.objective, smaller.tree.clone()),
            None => {}
        }
        let stop = self.run(&mut search, settings, monitor).err();
        let about = About {
            n_distinct_rows: self.tables.about.len(),
            n_columns: self.tables.columns.len(),
            kernel: format!("{}-double", self.kernel.backend.name()),
        };
        search.finish(stop, about)
    }

    /// Greedy trees first, then all depths.
    fn run(
        &self,
        search: &mut Search<f64>,
        settings: &Settings,
        monitor: &Monitor,
    ) -> Result<(), Stop> {
        let (root, proves) = (&self.root, self.task.reference().is_none());
        let mut branch = self.branch(settings, monitor);
        let allowed = branch.nodes.useful(root, settings.limits.allowed());
        let free = branch.nodes.bound_of(root.leaf, self.tables.free_floor, root.rows.count);
        search.lower = free.min(search.best.0);
        search.record();
        if allowed.leaves == 1 {
            if proves {
                search.close();
            }
            return Ok(());
        }
        let greedy = |branch: &mut _, exact, ahead| {
            let shape = Shape { depth: allowed.depth, leaves: allowed.budget(), exact, ahead };
            grow::greedy(&mut CurveGrower(branch), root.clone(), shape, monitor)
        };
        for exact in [0, EXACT_LEVELS].into_iter().filter(|&exact| exact < allowed.depth) {
            // The first tree is useful under any limit.
            if exact > 0 {
                monitor.check()?;
            }
            let found = greedy(&mut branch, exact, 0);
            search.offer(found.cost, found.tree);
        }
        let is_full = settings.limits.allowed().is_full();
        let dives = is_full && DIVED.contains(&allowed.depth);
        let widths = if dives { DIVES } else { [&[][..]; 2] };
        // Smaller depths cost little, and their best tree rules out most of the deeper trees. So do
        // dives, if there are many levels.
        for depth in 2..allowed.depth.min(DEEPENING) {
            let shallower = allowed.at_most(depth, usize::MAX);
            search.at_root(&mut branch, root, shallower, false)?;
            if depth == 2 && !is_full && allowed.depth >= *DIVED.start() {
                let found = greedy(&mut branch, EXACT_LEVELS, EXACT_LEVELS);
                search.offer(found.cost, found.tree);
            }
            for &width in widths.get(depth - 2).copied().unwrap_or_default() {
                let mut hear = |found: &Found<f64>| search.offer(found.cost, found.tree.clone());
                let found = start::dive(&mut branch, root, allowed.depth, width, &mut hear)?;
                search.offer(found.cost, found.tree);
            }
        }
        // Bounds that rely on the reference model are not bounds on the optimum.
        search.at_root(&mut branch, root, allowed, proves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survival::Observations;
    use crate::task::brier::Brier;
    use crate::task::curve::LeafCurve;
    use bristlecone_oracle::instances::Random;

    /// Covers data where passes show which leaves matter, and data where they show nothing: beside
    /// weights of 2^40, passes round weights of about 1 by more than a thousandth.
    #[test]
    fn leaf_by_leaf_finds_what_passes_find() {
        let mut by_passes = [0, 0];
        for seed in 0..200 {
            let random = &mut Random::new(seed);
            let (n, columns) = (10 + random.below(60), 2 + random.below(5));
            let bytes: Vec<u8> = (0..n * columns).map(|_| u8::from(random.chance(0.4))).collect();
            let features = BinaryMatrix::from_bytes(n, columns, &bytes).unwrap();
            let time: Vec<f64> = (0..n).map(|_| 1.0 + random.below(20) as f64).collect();
            let event: Vec<bool> = (0..n).map(|_| random.chance(0.6)).collect();
            let range = random.below(5) as f64;
            let weight = |_| {
                (1.0 + random.below(100) as f64 / 7.0)
                    * 1024f64.powf(range * random.below(2) as f64)
            };
            let weight: Vec<f64> = (0..n).map(weight).collect();
            let obs = Observations {
                time: &time,
                event: &event,
                weight: Some(&weight),
                ..Observations::default()
            };
            let curve = match random.chance(0.3) {
                true => LeafCurve::BrierOptimal,
                false => LeafCurve::KaplanMeier,
            };
            let task = Brier::new(&obs, random.below(3) as f64 * 1e-3, curve, None).unwrap();
            let depth = 1 + random.below(3);
            let settings = Settings::default().with_limits(|s| s.max_depth = depth);
            let settings = settings.checked(n, n).unwrap();
            let never = || false;
            let monitor = Monitor::new(None, &never);
            let mut prepared = Prepared::new(&task, &features, &settings).unwrap();
            let expected = prepared.solve(&settings, &monitor, None).unwrap();
            let exact = prepared.leaf_by_leaf(expected.objective).unwrap();
            let passes = exact.tables.exact.as_ref().and_then(|exact| exact.passes).unwrap();
            by_passes[usize::from(passes.absolute.is_finite())] += 1;
            let found = exact.solve_once(&settings, &monitor, (None, false));
            let difference = (found.objective - expected.objective).abs();
            assert!(difference <= 2e-9 * expected.objective, "seed {seed}");
            assert_eq!(found.status, Status::Optimal, "seed {seed}");
            // For any loss of the reference model, two leaves are no better than the bound of their
            // split.
            let losses = vec![random.below(3) as f64; n];
            let task = Brier::new(&obs, 1e-3, curve, Some(&losses)).unwrap();
            let prepared = Prepared::new(&task, &features, &settings).unwrap();
            let exact = prepared.leaf_by_leaf(expected.objective).unwrap();
            let mut branch = exact.branch(&settings, &monitor);
            let (_, candidates) = branch.nodes.all_splits(&exact.root);
            for candidate in candidates {
                let settled = branch.nodes.settled(&exact.root, candidate);
                assert!(candidate.bound <= settled.leaves * (1.0 + 1e-12), "seed {seed}");
            }
        }
        assert!(by_passes.iter().all(|&n| n > 20), "{by_passes:?}");
    }
}
