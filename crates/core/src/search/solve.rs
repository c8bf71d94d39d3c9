//! The entry point: from rows and a task to a certified tree.

use super::branch::Branch;
use super::certificate::{Certificate, Verdict};
use super::lattice::{self, Found};
use super::plan::Plan;
use super::start;
use super::{Monitor, Settings, Solution, Stop};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::task::LaneTask;
use crate::tree::Tree;

impl Settings {
    /// Most leaves of any allowed tree.
    pub fn most_leaves(&self) -> usize {
        full_leaves(self.max_depth).min(self.max_leaves.unwrap_or(usize::MAX))
    }

    /// Rejects impossible settings for `n_rows` rows with these events.
    pub fn check(&self, n_rows: usize, events: &[bool]) -> Result<(), Error> {
        let invalid = |name, reason: &str| Err(Error::invalid(name, reason));
        if n_rows == 0 {
            return invalid("X", "there are no rows");
        }
        if self.min_leaf == 0 {
            return invalid("min_samples_leaf", "must be at least 1");
        }
        if self.min_leaf > n_rows {
            return invalid("min_samples_leaf", "is larger than the number of rows");
        }
        if self.min_events > events.iter().filter(|&&event| event).count() {
            return invalid("min_events_leaf", "is larger than the number of events");
        }
        if self.max_leaves == Some(0) {
            return invalid("max_leaf_nodes", "must be at least 1");
        }
        Ok(())
    }
}

/// A budget of leaves for trees of less depth, `usize::MAX` where it is no limit.
fn leaf_budget(depth: usize, budget: Option<usize>) -> [usize; 1] {
    let most = full_leaves(depth);
    [budget.filter(|&budget| budget < most).unwrap_or(usize::MAX)]
}

/// The best tree for `task` over `features`, or on a limit the best found and a bound.
pub fn solve<T: LaneTask>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Solution, Error> {
    settings.check(features.n_rows(), task.events())?;
    if !lattice::fits_channels(task.channels()) {
        return Err(Error::invalid("y", "too many classes for this search (32 at most)"));
    }
    let sample = sample(task, features);
    let best = Found { cost: task.leaf_cost(&sample.total), tree: Tree::leaf() };
    Ok(Search::new(task, features, &sample, settings, monitor, (best, i64::MIN)).run())
}

/// The best tree with at most k leaves for k = 1, 2, …, from one search; each with its own
/// bound and status.
///
/// The numbers of leaves end at `settings.max_leaves`, at what the depth allows, or at the
/// number of distinct rows.
pub fn solve_path<T: LaneTask>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Vec<Solution>, Error> {
    settings.check(features.n_rows(), task.events())?;
    if !lattice::fits_channels(task.channels()) {
        return Err(Error::invalid("y", "too many classes for this search (32 at most)"));
    }
    let sample = sample(task, features);
    let most = settings.most_leaves().min(sample.n_rows()).max(1);
    let budgets: Vec<usize> = (1..=most).collect();
    let mut branch = Branch::new(task, &sample, settings, monitor);
    // Trees of k leaves have depth k − 1 at most: shallow lattices prove the first entries,
    // and are there when a limit ends the deeper search.
    let mut answer = branch.solve(&sample, 0, &budgets, None, i64::MAX, &mut |_, _, _| {});
    let floor = branch.floor(&sample);
    answer.lower[1..].fill(floor);
    let shallow = (1..settings.max_depth.min(lattice::MAX_DEPTH)).take_while(|&d| d + 1 < most);
    for depth in shallow.chain([settings.max_depth]) {
        let deeper = branch.solve(&sample, depth, &budgets, None, i64::MAX, &mut |_, _, _| {});
        answer.stop = deeper.stop;
        for (k, best) in answer.found.iter_mut().enumerate() {
            if (deeper.found[k].cost, deeper.found[k].tree.n_leaves())
                < (best.cost, best.tree.n_leaves())
            {
                *best = deeper.found[k].clone();
            }
            if k <= depth && deeper.stop.is_none() || depth == settings.max_depth {
                answer.lower[k] = answer.lower[k].max(deeper.lower[k].min(best.cost));
            }
        }
        if answer.stop.is_some() {
            break;
        }
    }
    let path = answer.found.into_iter().zip(answer.lower).enumerate().map(|(k, (best, lower))| {
        let settings = &Settings { max_leaves: Some(k + 1), ..settings.clone() };
        let proven = lower >= best.cost;
        let stop = if proven { None } else { unproven(answer.stop) };
        Search::new(task, features, &sample, settings, monitor, (best, lower)).finish(stop)
    });
    Ok(path.collect())
}

/// The distinct rows with the task's statistics.
fn sample<T: LaneTask>(task: &T, features: &BinaryMatrix) -> Sample {
    let (statistics, channels) = (task.statistics(), task.channels());
    Sample::with_kinds(features, statistics, channels, &task.kinds(), task.events())
}

struct Search<'a, T> {
    task: &'a T,
    features: &'a BinaryMatrix,
    sample: &'a Sample,
    settings: &'a Settings,
    monitor: &'a Monitor<'a>,
    certificate: Certificate<'a>,
    best: Found,
    /// Proven lower bound on the cost.
    lower: i64,
}

impl<'a, T: LaneTask> Search<'a, T> {
    fn new(
        task: &'a T,
        features: &'a BinaryMatrix,
        sample: &'a Sample,
        settings: &'a Settings,
        monitor: &'a Monitor<'a>,
        (best, lower): (Found, i64),
    ) -> Self {
        let certificate = Certificate::new(monitor, settings, task.least_objective());
        Search { task, features, sample, settings, monitor, certificate, best, lower }
    }

    fn run(mut self) -> Solution {
        let branch = Branch::new(self.task, self.sample, self.settings, self.monitor);
        self.lower = branch.floor(self.sample).min(self.best.cost);
        self.record();
        let stop = self.improve();
        self.finish(stop)
    }

    /// The solution with its certificate, from the best tree and bound.
    fn finish(mut self, stop: Option<Stop>) -> Solution {
        let (task, sample, settings) = (self.task, self.sample, self.settings);
        self.certificate.settle(self.objective(&self.best.tree));
        match stop {
            None => self.certificate.close(),
            Some(_) => self.certificate.raise(self.bound(self.lower)),
        }
        let Verdict { objective, lower_bound, status, trace } = self.certificate.finish(stop);
        let depth = settings.max_depth.min(lattice::MAX_DEPTH);
        let precision = lattice::choose_precision(task, sample, depth, settings);
        let backend = settings.backend();
        Solution {
            tree: self.best.tree,
            objective,
            lower_bound,
            status,
            nodes: self.monitor.nodes(),
            n_distinct_rows: sample.n_rows(),
            n_columns: sample.n_columns(),
            trace,
            kernel: format!("{}-{:?}", backend.name(), precision).to_lowercase(),
        }
    }

    /// A greedy tree first, or last where nobody is likely to stop the search; then the search.
    fn improve(&mut self) -> Option<Stop> {
        let (settings, sample, task) = (self.settings, self.sample, self.task);
        let monitor = self.monitor;
        let budget = settings.max_leaves.filter(|&l| l < full_leaves(settings.max_depth));
        let max_depth = settings.max_depth.min(budget.map_or(usize::MAX, |l| l - 1));
        if self.best.cost <= self.lower.saturating_add(task.split_price()) {
            self.lower = self.best.cost;
            return None;
        }
        let plan = Plan::new(task, sample, settings, max_depth, monitor);
        plan.announce();
        let most = budget.unwrap_or(usize::MAX);
        let greedy = |exact| {
            let shape = start::Shape { depth: max_depth, leaves: most, exact };
            start::greedy(task, sample, settings, shape, monitor)
        };
        if plan.is_instant() {
            let stop = self.in_order(max_depth, budget, &plan);
            if stop.is_some() {
                self.offer(greedy(0));
            }
            return stop.filter(|_| self.lower < self.best.cost);
        }
        self.offer(greedy(0));
        let branch = Branch::new(task, sample, settings, monitor);
        let exact = plan.exact_levels().min(branch.lattice_depth(sample));
        // The fewer levels are done even where the more would not be in time.
        for levels in (2..=exact).filter(|_| budget.is_none()) {
            self.offer(greedy(levels));
        }
        if plan.affords_bound()
            && let Some(bound) = branch.groups(sample, settings.most_leaves())
            && bound > self.lower
        {
            self.lower = bound.min(self.best.cost);
            self.record();
        }
        self.in_order(max_depth, budget, &plan)
    }

    /// Shallow trees and a dive where they are nearly free, all trees of less depth where a limit
    /// is near, then the search.
    fn in_order(
        &mut self,
        max_depth: usize,
        budget: Option<usize>,
        plan: &Plan<T>,
    ) -> Option<Stop> {
        let (settings, sample, task) = (self.settings, self.sample, self.task);
        let monitor = self.monitor;
        let mut branch = Branch::new(task, sample, settings, monitor);
        let mut depth = 2;
        if settings.trivial_bound && max_depth > 3 {
            match self.few_leaves(&mut branch, max_depth, budget) {
                Ok(reached) => depth = reached,
                Err(end) => return end,
            }
        }
        // A short search of few levels is over before a dive pays.
        let levels = if max_depth > 4 || !plan.is_instant() { plan.look_ahead() } else { 0 };
        if levels > 0 && budget.is_none() {
            match branch.dive(sample, max_depth, levels) {
                Ok(tree) if self.settles(&branch, &tree) => return None,
                Ok(_) => {}
                Err(stop) => return Some(stop),
            }
        }
        for depth in (depth..max_depth).take_while(|&depth| plan.affords(depth)) {
            let (start, budgets) = (Some(self.best.clone()), leaf_budget(depth, budget));
            let offer = &mut |tree: &Found, _, _| self.offer(tree.clone());
            let mut answer = branch.solve(sample, depth, &budgets, start, i64::MAX, offer);
            if self.settles(&branch, &answer.found.remove(0)) {
                return None;
            }
            if answer.stop.is_some() {
                return answer.stop;
            }
        }
        self.search(max_depth, budget, plan)
    }

    /// Lattices of trees of less depth while one of few leaves may be as good as any; the depth
    /// from which on none was solved, or how the search ends.
    fn few_leaves(
        &mut self,
        branch: &mut Branch<T>,
        max_depth: usize,
        budget: Option<usize>,
    ) -> Result<usize, Option<Stop>> {
        let (settings, sample, task) = (self.settings, self.sample, self.task);
        let monitor = self.monitor;
        let (single_leaf, floor) = (task.leaf_cost(&sample.total), self.lower);
        let mut order: Vec<usize> = Vec::new();
        // The greedy tree aside, whose leaves are not few and which says nothing of a depth.
        let mut best = Found { cost: single_leaf, tree: Tree::leaf() };
        let deepest = if task.pure_leaves() { lattice::MAX_DEPTH } else { 3 };
        for depth in 2..=max_depth.min(deepest) {
            // Deeper ones pay for themselves only when the trivial bound is within reach, or
            // where prices rule out most columns once a good tree is known.
            let near = (best.cost - floor) as f64 <= 0.25 * (single_leaf - floor) as f64;
            if depth > 2 && !near && !T::PRICED {
                return Ok(depth);
            }
            if depth > 3 && budget.is_none() {
                best = branch.probe(sample, depth, &order, best)?;
                if self.settles(branch, &best) {
                    return Err(None);
                }
            }
            if depth == max_depth || depth > branch.lattice_depth(sample) {
                return Ok(depth);
            }
            let (budgets, cutoff) = (leaf_budget(depth, budget), best.cost);
            let mut solved =
                lattice::solve(task, sample, depth, &budgets, cutoff, settings, monitor)?;
            let found = solved.found.remove(0);
            if found.cost < best.cost {
                best = found;
            }
            if self.settles(branch, &best) {
                return Err(None);
            }
            order = (0..sample.n_columns()).collect();
            if let values @ [_, ..] = &solved.root_values[..] {
                order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
            }
        }
        Ok(max_depth.min(deepest) + 1)
    }

    /// The search itself, from the best tree so far.
    fn search(&mut self, max_depth: usize, budget: Option<usize>, plan: &Plan<T>) -> Option<Stop> {
        let sample = self.sample;
        let settings = &plan.settings(self.settings);
        let mut branch = Branch::new(self.task, sample, settings, self.monitor);
        let budgets = [budget.unwrap_or(usize::MAX)];
        let start = Some(self.best.clone());
        let improved = &mut |tree: &Found, lower: i64, share: f64| {
            self.monitor.advance(share);
            let better = tree.cost < self.best.cost;
            if better {
                self.best = tree.clone();
            }
            if better || lower > self.lower {
                self.lower = self.lower.max(lower.min(self.best.cost));
                self.record();
            }
        };
        let mut answer = branch.solve(sample, max_depth, &budgets, start, i64::MAX, improved);
        // Of equally good trees the search's own is taken: the dive's depends on lanes.
        let last = answer.found.remove(0);
        if last.cost == self.best.cost {
            self.best = last;
        } else {
            self.offer(last);
        }
        self.lower = self.lower.max(answer.lower[0].min(self.best.cost));
        // Limits that left nothing open do not matter.
        if self.lower >= self.best.cost { None } else { unproven(answer.stop) }
    }

    /// Takes a tree of few leaves if it is better, and then whether it attains the cost of the
    /// finest partition, which proves the best tree.
    fn settles(&mut self, branch: &Branch<T>, tree: &Found) -> bool {
        self.offer(tree.clone());
        let finest = branch.is_finest(self.sample, tree);
        if finest {
            self.lower = self.best.cost;
        }
        finest
    }

    fn offer(&mut self, tree: Found) {
        if tree.cost < self.best.cost {
            self.best = tree;
            self.record();
        }
    }

    fn record(&mut self) {
        self.certificate.settle(self.objective(&self.best.tree));
        self.certificate.raise(self.bound(self.lower));
        self.certificate.record();
    }

    /// The objective that corresponds to a bound on the cost, rounded down by more than
    /// the fixed point can be off.
    fn bound(&self, cost: i64) -> f64 {
        // Tasks that charge more than the price promise trees of few leaves.
        let ties = match self.task.tie_price() {
            ..=0 => 0,
            tie => tie * self.most_splits(),
        };
        let value = self.task.objective_of_cost(cost.saturating_sub(ties));
        (value - 1e-9 * value.abs().max(1.0)).max(self.task.least_objective())
    }

    /// Most splits of any tree that may be best.
    fn most_splits(&self) -> i64 {
        let by_price = match self.task.split_price() {
            ..=0 => i64::MAX,
            price => self.task.leaf_cost(&self.sample.total) / price,
        };
        let leaves = i64::try_from(self.settings.most_leaves()).unwrap_or(i64::MAX);
        by_price.min(leaves - 1)
    }

    /// The objective of a tree, from the rows.
    fn objective(&self, tree: &Tree) -> f64 {
        self.task.objective(&tree.partition(self.features), tree.n_leaves())
            + self.task.tree_price(tree, self.features)
    }
}

/// The reason why bounds do not meet: there is one, or the search is wrong.
fn unproven(stop: Option<Stop>) -> Option<Stop> {
    assert!(stop.is_some(), "the search ended by itself and its bounds do not meet");
    stop
}

/// Leaves of a complete tree.
pub(super) fn full_leaves(depth: usize) -> usize {
    1usize.checked_shl(depth as u32).unwrap_or(usize::MAX)
}
