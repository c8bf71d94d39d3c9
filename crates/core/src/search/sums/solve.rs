//! Turns rows and a task into a tree with a certificate: first trees, then shallow trees, then all
//! trees.

use super::nodes::SumNode;
use super::plan::Plan;
use super::probe::probe;
use super::start::SumGrower;
use super::{Problem, SumNodes, SumScale, groups, sample};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::search::branch::Branch;
use crate::search::grow::{self, Shape};
use crate::search::lattice::{self, Query};
use crate::search::nodes::{Allowed, Found, Nodes, cost_of_tree};
use crate::search::resolve::{SolvedAgain, resolved, worth};
use crate::search::root::{About, Search};
use crate::search::{Checked, Measured, Monitor, Settings, Solution, Status, Stop};
use crate::task::{LaneTask, Placed};
use crate::tree::Tree;
use std::borrow::Cow;

/// The best tree for `task` over `features`, or, after a limit, the best tree found and a bound. If
/// the numbers of the search do not resolve the optimum, the search is repeated with finer ones.
///
/// # Errors
///
/// If no numbers resolve it because the values span too wide a range.
pub fn solve<T: LaneTask>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Solution, Error> {
    let search = OverQuestions { task, features };
    let first = search.solve(task, settings, monitor, None)?;
    resolved(&search, task, settings, monitor, first)
}

/// The search over binary features.
struct OverQuestions<'a, T> {
    task: &'a T,
    features: &'a BinaryMatrix,
}

impl<T: LaneTask> SolvedAgain<T> for OverQuestions<'_, T> {
    fn solve(
        &self,
        task: &T,
        settings: &Checked,
        monitor: &Monitor,
        known: Option<Solution>,
    ) -> Result<Solution, Error> {
        solve_once((task, self.task), self.features, settings, monitor, known)
    }

    fn measured(&self, tree: &Tree) -> Measured {
        measured(self.task, self.features, tree)
    }

    fn in_128_bits(&self, _: &Checked) -> Result<Option<Cow<'_, BinaryMatrix>>, Error> {
        Ok(Some(Cow::Borrowed(self.features)))
    }
}

/// Objective of a tree, including the prices of questions.
pub(super) fn measured<T: LaneTask>(task: &T, features: &BinaryMatrix, tree: &Tree) -> Measured {
    let leaf_of = tree.partition(features);
    let rows = Placed::rows(&leaf_of, tree.n_leaves());
    let leaves = task.objective(rows);
    let tests = task.tree_price(tree, rows);
    let Measured { objective, magnitude } = leaves;
    Measured { objective: objective + tests, magnitude: magnitude + tests }
}

/// One search, by the given task or one with the same objective. If a tree is known, finds only
/// trees that are better by enough to matter.
fn solve_once<T: LaneTask>(
    (task, given): (&T, &T),
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
    known: Option<Solution>,
) -> Result<Solution, Error> {
    let rows = sample(task, features)?;
    let about = about(task, &rows, settings);
    let problem = Problem::new(task, &rows, settings, monitor);
    let measure = |tree: &Tree| measured(given, features, tree);
    let allowed = settings.limits.allowed().at_most(usize::MAX, rows.n_rows().max(1));
    let scale = SumScale::new(task, &measure, &rows.total, allowed);
    let leaf = task.leaf_cost(&rows.total);
    let best = match &known {
        None => (leaf, Tree::leaf()),
        Some(known) => {
            let cost = cost(task, features, &known.tree);
            // Costs may be shortfalls, which are larger than the objectives that they stand for.
            let units = measured(task, features, &known.tree).magnitude / task.unit_value();
            let worth = if scale.is_exact() { 0 } else { worth(units, cost) };
            (cost - worth, known.tree.clone())
        }
    };
    let root = SumNodes::new(&problem, settings).node(rows);
    let lower = root.floor().min(best.0);
    // Whether there is a dive depends on the speed of the lanes, so the tree of the search replaces
    // its tree in a tie.
    let mut search = Search::new(&scale, settings, monitor, best, lower);
    if let Some(known) = &known {
        search = search.after(known).keeping_the_first();
        search.offer(leaf, Tree::leaf());
    }
    let mut run = Run { problem: &problem, settings, root: &root, search };
    let stop = run.improve().err();
    Ok(run.search.finish(stop, about))
}

/// The best tree with at most k leaves for k = 1, 2, …, from one search; each with its own bound
/// and status.
///
/// k ends at `settings.limits.max_leaves`, at the most leaves that the depth allows, or at the
/// number of distinct rows.
///
/// # Errors
///
/// As [`solve`].
pub fn solve_path<T: LaneTask>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Vec<Solution>, Error> {
    let path = path_once(task, features, settings, monitor)?;
    let mut end: Vec<Solution> = Vec::with_capacity(path.len());
    for (k, mut found) in path.into_iter().enumerate() {
        if found.status == Status::Unresolved {
            // The best tree with more leaves is no worse than that with fewer.
            if let Some(smaller) = end.last().filter(|last| last.objective < found.objective) {
                (found.tree, found.objective) = (smaller.tree.clone(), smaller.objective);
            }
            let settings = settings.at_most(k + 1);
            found = resolved(&OverQuestions { task, features }, task, &settings, monitor, found)?;
        }
        end.push(found);
    }
    Ok(end)
}

fn path_once<T: LaneTask>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Vec<Solution>, Error> {
    let rows = sample(task, features)?;
    let about = about(task, &rows, settings);
    let problem = Problem::new(task, &rows, settings, monitor);
    let most = settings.limits.most_leaves().min(rows.n_rows()).max(1);
    let deepest = settings.limits.max_depth;
    let measure = |tree: &Tree| measured(task, features, tree);
    let scale = |k| SumScale::new(task, &measure, &rows.total, Allowed::of(deepest, k));
    let scales: Vec<SumScale<T>> = (1..=most).map(scale).collect();
    let leaf = (task.leaf_cost(&rows.total), Tree::leaf());
    let root = SumNodes::new(&problem, settings).node(rows);
    let lower = root.floor().min(leaf.0);
    let begin =
        |scale| Search::new(scale, settings, monitor, leaf.clone(), lower).keeping_the_first();
    let mut path: Vec<Search<i64>> = scales.iter().map(|scale| begin(scale)).collect();
    path[0].close();
    let mut branch = problem.branch(settings);
    branch.nodes.all_sizes = true;
    // Trees with k leaves have depth at most k − 1. Shallow lattices prove the first entries, which
    // remain if a limit ends the deeper search.
    let shallow =
        (1..settings.limits.max_depth.min(lattice::MAX_DEPTH)).take_while(|&d| d + 1 < most);
    let mut stop = None;
    for depth in shallow.chain([settings.limits.max_depth]) {
        // The largest number of leaves first: its lattice also solves all others.
        for (k, search) in path.iter_mut().enumerate().map(|(at, s)| (at + 1, s)).rev() {
            let last = k <= depth + 1 || depth == settings.limits.max_depth;
            if !search.is_closed() && stop.is_none() {
                let allowed = Allowed::of(depth, k);
                stop = search.at_root(&mut branch, &root, allowed, last).err();
            }
        }
        for k in 1..most {
            let (cost, tree) = path[k - 1].best.clone();
            path[k].offer(cost, tree);
        }
        if stop.is_some() {
            break;
        }
    }
    if stop.is_some() {
        let shape = Shape { depth: deepest, leaves: most, exact: 0, ahead: 0 };
        for &by_impurity in measures(task, &root.sample) {
            let (search, sample) = (&branch.nodes, &root.sample);
            let mut grower = SumGrower { search, sample, by_impurity };
            let first = grower.root();
            let found = grow::greedy_by_leaves(&mut grower, first, shape, monitor);
            for (k, search) in path.iter_mut().enumerate() {
                let Found { cost, tree } = &found[k.min(found.len() - 1)];
                search.offer(*cost, tree.clone());
            }
        }
    }
    Ok(path.into_iter().map(|search| search.finish(stop, about.clone())).collect())
}

/// Whether greedy trees of the rows split by impurity, for each that is worth growing.
fn measures<T: LaneTask>(task: &T, rows: &Sample) -> &'static [bool] {
    if task.impurity(&rows.total).is_some() { &[true, false] } else { &[false] }
}

/// A greedy tree whose last `exact` levels are searched, and whose splits look levels `ahead`.
fn grown<T: LaneTask>(
    nodes: &SumNodes<T>,
    sample: &Sample,
    allowed: Allowed,
    [exact, ahead]: [usize; 2],
    by_impurity: bool,
) -> Found {
    let shape = Shape { depth: allowed.depth, leaves: allowed.budget(), exact, ahead };
    let mut grower = SumGrower { search: nodes, sample, by_impurity };
    let first = grower.root();
    grow::greedy(&mut grower, first, shape, nodes.problem.monitor)
}

/// Cost of a tree in the units of the search.
pub(super) fn cost<T: LaneTask>(task: &T, features: &BinaryMatrix, tree: &Tree) -> i64 {
    cost_of_tree(task, features, tree, |feature, tested, sums| match feature {
        None => task.leaf_cost(sums),
        Some(feature) => task.split_price() + task.feature_price(feature, tested, sums),
    })
}

/// The description that solutions carry.
fn about<T: LaneTask>(task: &T, rows: &Sample, settings: &Settings) -> About {
    let depth = settings.limits.max_depth.min(lattice::MAX_DEPTH);
    let precision = lattice::choose_precision(task, rows, depth, settings);
    let kernel = format!("{}-{precision:?}", settings.backend().name()).to_lowercase();
    About { n_distinct_rows: rows.n_rows(), n_columns: rows.n_columns(), kernel }
}

/// A search for one number of leaves.
struct Run<'a, T> {
    problem: &'a Problem<'a, T>,
    settings: &'a Settings,
    root: &'a SumNode,
    search: Search<'a, i64>,
}

impl<'a, T: LaneTask> Run<'a, T> {
    /// Runs the greedy trees first, or last if the search is unlikely to be stopped, and the search.
    fn improve(&mut self) -> Result<(), Stop> {
        let Run { problem, settings, root, .. } = *self;
        let Problem { task, monitor, .. } = *problem;
        let sample = &root.sample;
        let allowed = settings.limits.allowed();
        if self.search.best.0 <= self.search.lower.saturating_add(task.split_price()) {
            self.search.record();
            self.search.close();
            return Ok(());
        }
        let plan = Plan::new(task, sample, settings, allowed.depth, monitor);
        // Before the first report, so that its receiver does not have to make a forecast.
        plan.announce();
        self.search.record();
        let nodes = problem.branch(settings).nodes;
        let every = measures(task, sample);
        // A short search only needs the tree by cost.
        let (later, first) = match (plan.is_instant(), plan.is_watched()) {
            (true, _) => (every, &[][..]),
            (_, true) => (&[][..], every),
            _ => every.split_at(every.len() - 1),
        };
        let end = self.start_with(first, &nodes, allowed, &plan);
        if end.is_err() {
            later.iter().for_each(|&by| self.offer(grown(&nodes, sample, allowed, [0; 2], by)));
        }
        end
    }

    /// Runs greedy trees by these measures with fewer and more exact levels, unless there are none,
    /// and the search.
    fn start_with(
        &mut self,
        first: &[bool],
        nodes: &SumNodes<T>,
        allowed: Allowed,
        plan: &Plan<T>,
    ) -> Result<(), Stop> {
        if first.is_empty() {
            return self.in_order(allowed, plan);
        }
        let Run { problem, settings, root, .. } = *self;
        let (task, sample) = (problem.task, &root.sample);
        let exact = plan.exact_levels().min(nodes.lattice_depth(sample, usize::MAX));
        // Fewer levels are searched even if more would not finish in time.
        for levels in [0].into_iter().chain(2..=exact) {
            for &by_impurity in first {
                self.offer(grown(nodes, sample, allowed, [levels, 0], by_impurity));
            }
        }
        if plan.affords_bound() && settings.switches.equivalent_points {
            let row_cost = |id| problem.bounds.row_cost(id);
            let bound = groups::bound(task, sample, settings.limits.most_leaves(), row_cost);
            self.search.raise(bound.unwrap_or(i64::MIN));
        }
        self.in_order(allowed, plan)
    }

    /// Searches shallow trees and a dive if they are nearly free, all trees of smaller depth if a
    /// limit is near, then the full depth.
    fn in_order(&mut self, allowed: Allowed, plan: &Plan<T>) -> Result<(), Stop> {
        let Run { problem, settings, root, .. } = *self;
        let mut branch = problem.branch(settings);
        let mut depth = 2;
        if settings.switches.trivial_bound && allowed.depth > 3 {
            depth = self.few_leaves(&mut branch, allowed)?;
            if self.search.is_closed() {
                return Ok(());
            }
        }
        // A short search with few levels ends before a dive pays off.
        let pays = allowed.depth > 4 || !plan.is_instant();
        let levels = if pays { plan.look_ahead() } else { 0 };
        if levels > 0 && !allowed.is_full() {
            self.offer(grown(&branch.nodes, &root.sample, allowed, [levels; 2], false));
        } else if levels > 0 {
            for width in plan.widths(levels) {
                let tree = branch.nodes.dive(&root.sample, allowed.depth, levels, width)?;
                if self.settles(&tree) {
                    return Ok(());
                }
            }
        }
        for depth in (depth..allowed.depth).take_while(|&depth| plan.affords(depth)) {
            let shallower = allowed.at_most(depth, usize::MAX);
            self.search.at_root(&mut branch, root, shallower, false)?;
            if self.is_settled() {
                return Ok(());
            }
        }
        branch.nodes = SumNodes::new(problem, &plan.settings(settings));
        self.search.at_root(&mut branch, root, allowed, true)
    }

    /// Runs lattices for smaller depths while a tree with few leaves may be as good as any. Returns
    /// the first depth that was not solved; closes the search if a tree is proven optimal.
    fn few_leaves(
        &mut self,
        branch: &mut Branch<SumNodes<T>>,
        allowed: Allowed,
    ) -> Result<usize, Stop> {
        let Run { problem, root, .. } = *self;
        let (single_leaf, floor) = (branch.nodes.leaf(root).value, self.search.lower);
        let mut order: Vec<usize> = Vec::new();
        // Ignores the greedy tree, which may have many leaves: its cost says nothing about a depth.
        let mut best = Found { cost: single_leaf, tree: Tree::leaf() };
        let (gap_of_leaf, mut gap_before) = ((single_leaf - floor) as f64, f64::INFINITY);
        let deepest = if problem.task.pure_leaves() { lattice::MAX_DEPTH } else { 3 };
        for depth in 2..=allowed.depth.min(deepest) {
            // Deeper lattices only pay off if the trivial bound is within reach, or if prices rule
            // out most columns once a good tree is known.
            let gap = (best.cost - floor) as f64;
            if depth > 2 && gap > 0.25 * gap_of_leaf && !T::PRICED {
                return Ok(depth);
            }
            // Another level is unlikely to close a gap that the last one did not even halve.
            let closing = gap < 0.5 * gap_before || T::PRICED;
            gap_before = gap;
            if depth > 3 && allowed.is_full() && closing {
                best = probe(branch, root, depth, &order, best)?;
                if self.settles(&best) {
                    return Ok(depth);
                }
            }
            let budget = allowed.at_most(depth, usize::MAX).budget();
            if depth == allowed.depth || depth > branch.nodes.lattice_depth(&root.sample, budget) {
                return Ok(depth);
            }
            let query = Query { depth, budgets: &[budget], cutoff: best.cost };
            let mut solved = branch.nodes.lattice(&root.sample, query)?;
            let found = solved.found.remove(0);
            if found.cost < best.cost {
                best = found;
            }
            if self.settles(&best) {
                return Ok(depth);
            }
            order = (0..root.sample.n_columns()).collect();
            if let values @ [_, ..] = &solved.root_values[..] {
                order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
            }
        }
        Ok(allowed.depth.min(deepest) + 1)
    }

    /// Takes a tree with few leaves if it is better. Returns whether the best tree attains the cost
    /// of the finest partition, which proves it optimal.
    fn settles(&mut self, tree: &Found) -> bool {
        self.offer(tree.clone());
        let finest = self.problem.is_finest(self.root, tree.cost, &tree.tree);
        if finest {
            self.search.close();
        }
        finest
    }

    /// Whether the best tree attains the cost of the finest partition, which proves it optimal.
    fn is_settled(&mut self) -> bool {
        let (cost, tree) = &self.search.best;
        let finest = self.problem.is_finest(self.root, *cost, tree);
        if finest {
            self.search.close();
        }
        finest
    }

    fn offer(&mut self, Found { cost, tree }: Found) {
        self.search.offer(cost, tree);
    }
}
