//! Every tree that is nearly as good as the best one, of a summed task.

use super::branch::Branch;
use super::solve::{full_leaves, solve};
use super::{Monitor, Settings, Solution, Status, Stop};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::task::{FreeQuestions, LaneTask};
use crate::tree::Tree;

/// Objectives this close to the least one, relative to the larger of 1 and it, reach it.
pub(super) const TOLERANCE: f64 = 1e-9;

/// What a tree costs, and the tree.
pub(super) type Costed<C> = (C, Tree);

/// Trees of a subtree that are kept where leaves are limited, so that not all pairs fit.
pub(super) const MOST: usize = 1 << 20;

/// Trees near the optimum.
#[derive(Clone, Debug)]
pub struct Near {
    /// The best first, or few leaves first where all are near.
    pub trees: Vec<Solution>,
    /// Whether there are no others.
    pub complete: bool,
}

impl Near {
    /// A search that did not end by itself.
    pub(super) fn stopped(first: Solution, status: Status) -> Self {
        Near { trees: vec![Solution { status, ..first }], complete: false }
    }
}

/// All trees whose objective is within `slack` (and 1e-9) of the best one's, at most `limit`, by
/// leaves.
///
/// Columns that split a node's rows in the same way count once, by the first of them. When a
/// limit ends the search or the enumeration, only the best tree is returned.
pub fn near_optimal<T: FreeQuestions>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
    (slack, limit): (f64, usize),
) -> Result<Near, Error> {
    let first = solve(task, features, settings, monitor)?;
    if first.status != Status::Optimal {
        let status = first.status;
        return Ok(Near::stopped(first, status));
    }
    let (statistics, channels) = (task.statistics(), task.channels());
    let sample = Sample::with_kinds(features, statistics, channels, &[], task.events());
    let branch = Branch::new(task, &sample, settings, monitor);
    // Costs are linear in the objective; ties are told apart by a price, of either sign, that is none.
    let unit = (task.objective_of_cost(1 << 40) - task.objective_of_cost(0)) / (1u64 << 40) as f64;
    let tolerance = slack + TOLERANCE * first.objective.abs().max(1.0);
    let ties = task.tie_price().abs().saturating_mul(sample.n_rows() as i64);
    // So far below the largest number that no difference of costs leads beyond it.
    let above = ((tolerance / unit) as i64).min(i64::MAX >> 2) + ties;
    let cut = cost(task, features, &first.tree) + above;
    let leaves = settings.max_leaves.unwrap_or(usize::MAX);
    let most = if settings.max_leaves.is_some() { MOST.max(limit) } else { limit };
    let most = most.saturating_add(1);
    let mut all = Enumeration { branch, task, most, complete: true };
    let objective = |tree: &Tree| task.objective(&tree.partition(features), tree.n_leaves());
    let worst = first.objective + tolerance;
    loop {
        let mut found = match all.trees(&sample, settings.max_depth, leaves, cut) {
            Ok(found) => found,
            Err(stop) => return Ok(Near::stopped(first, Status::from(stop))),
        };
        found.retain(|(_, tree)| objective(tree) <= worst);
        // Among those that were kept too many may have been ties of no interest.
        if all.complete || found.len() > limit {
            let complete = all.complete && found.len() <= limit;
            return Ok(Near { trees: solutions(found, limit, &first, objective), complete });
        }
        (all.most, all.complete) = (all.most.saturating_mul(4), true);
    }
}

/// The trees as solutions, few leaves first, then by the features in preorder.
pub(super) fn solutions<C>(
    mut found: Vec<Costed<C>>,
    limit: usize,
    first: &Solution,
    objective: impl Fn(&Tree) -> f64,
) -> Vec<Solution> {
    found.sort_by(|(_, a), (_, b)| {
        a.n_leaves().cmp(&b.n_leaves()).then_with(|| a.feature.cmp(&b.feature))
    });
    found.truncate(limit);
    let solution = |(_, tree): Costed<C>| {
        let objective = objective(&tree);
        let lower_bound = first.lower_bound.min(objective);
        Solution { tree, objective, lower_bound, ..first.clone() }
    };
    found.into_iter().map(solution).collect()
}

/// Cost of a tree in the units of the search.
pub(super) fn cost<T: LaneTask>(task: &T, features: &BinaryMatrix, tree: &Tree) -> i64 {
    let channels = task.channels();
    let mut sums = vec![0i64; tree.n_leaves() * channels];
    for (leaf, record) in
        tree.partition(features).into_iter().zip(task.statistics().chunks_exact(channels))
    {
        for (sum, v) in sums[leaf * channels..].iter_mut().zip(record) {
            *sum += v;
        }
    }
    let leaves = sums.chunks_exact(channels).map(|sums| task.leaf_cost(sums)).sum::<i64>();
    leaves + (tree.n_leaves() as i64 - 1) * task.split_price()
}

struct Enumeration<'a, T> {
    branch: Branch<'a, T>,
    task: &'a T,
    /// Trees that are kept of any rows.
    most: usize,
    /// Whether none was left out.
    complete: bool,
}

impl<T: LaneTask> Enumeration<'_, T> {
    /// Least cost on these rows.
    fn least(&mut self, sample: &Sample, depth: usize, leaves: usize) -> Result<i64, Stop> {
        let budget = if leaves >= full_leaves(depth) { usize::MAX } else { leaves };
        let answer = self.branch.solve(sample, depth, &[budget], None, i64::MAX, &mut |_, _, _| {});
        answer.stop.map_or(Ok(answer.found[0].cost), Err)
    }

    /// Trees on these rows that cost at most `cut`.
    fn trees(
        &mut self,
        sample: &Sample,
        depth: usize,
        leaves: usize,
        cut: i64,
    ) -> Result<Vec<Costed<i64>>, Stop> {
        let mut found = Vec::new();
        let leaf = self.least(sample, 0, 1)?;
        if leaf <= cut {
            found.push((leaf, Tree::leaf()));
        }
        if depth == 0 || leaves < 2 {
            return Ok(found);
        }
        let price = self.task.split_price();
        let (depth, below) = (depth - 1, leaves - 1);
        for (c, &column) in sample.columns.iter().enumerate() {
            if !self.complete {
                break;
            }
            let [yes, no] = [true, false].map(|value| sample.restrict(c, value));
            let least_no = self.branch.floor(&no).min(self.least(&no, 0, 1)?);
            let a = self.least(&yes, depth, below)?;
            if a.saturating_add(least_no).saturating_add(price) > cut {
                continue;
            }
            let b = self.least(&no, depth, below)?;
            if a.saturating_add(b).saturating_add(price) > cut {
                continue;
            }
            let yes = self.trees(&yes, depth, below, cut - b - price)?;
            let no = self.trees(&no, depth, below, cut - a - price)?;
            for (x, l) in &yes {
                for (y, r) in &no {
                    let fits = x + y + price <= cut && l.n_leaves() + r.n_leaves() <= leaves;
                    if !fits {
                        continue;
                    }
                    if found.len() >= self.most {
                        self.complete = false;
                        return Ok(found);
                    }
                    let (l, r) = if column.flipped { (r, l) } else { (l, r) };
                    found.push((x + y + price, Tree::split(column.feature, l, r)));
                }
            }
        }
        Ok(found)
    }
}
