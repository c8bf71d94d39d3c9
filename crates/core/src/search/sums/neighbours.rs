//! Trees near the best one, and other questions in the place of those of a tree.

use super::{Problem, SumNodes, sample, solve};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::search::branch::Branch;
use crate::search::near::{self, Near, Nearness, TOLERANCE};
use crate::search::nodes::{Allowed, Cost, Listed};
use crate::search::{Alternative, Checked, Monitor, Status, Stop};
use crate::task::{FreeQuestions, LaneTask};
use crate::tree::Tree;

/// All trees whose objective is within `slack` (and 1e-9) of the best one's, at most `limit`, by
/// leaves.
///
/// Columns that split a node's rows in the same way count once, by the first of them. When a
/// limit ends the search or the enumeration, only the best tree is returned.
pub fn near_optimal<T: FreeQuestions>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
    (slack, limit): (f64, usize),
) -> Result<Near, Error> {
    let first = solve(task, features, settings, monitor)?;
    if first.status != Status::Optimal {
        let status = first.status;
        return Ok(Near::stopped(first, status));
    }
    let rows = sample(task, features)?;
    // Costs are linear in the objective; ties are told apart by a price, of either sign, that is
    // none.
    let unit = (task.objective_of_cost(1 << 40) - task.objective_of_cost(0)) / (1u64 << 40) as f64;
    let tolerance = slack + TOLERANCE * first.objective.abs().max(1.0);
    let ties = task.tie_price().abs().saturating_mul(rows.n_rows() as i64);
    // So far below the largest number that no difference of costs leads beyond it.
    let above = ((tolerance / unit) as i64).min(i64::MAX >> 2) + ties;
    let cut = cost(task, features, &first.tree) + above;
    let nearness = Nearness { cut, worst: first.objective + tolerance, limit };
    let problem = Problem::new(task, &rows, settings, monitor);
    let mut branch = problem.branch(settings);
    let root = branch.nodes.node(rows);
    let objective = |tree: &Tree| task.objective(&tree.partition(features), tree.n_leaves());
    Ok(near::near_optimal(&mut branch, &root, settings, first, &nearness, objective))
}

/// Cost of a tree in the units of the search.
fn cost<T: LaneTask>(task: &T, features: &BinaryMatrix, tree: &Tree) -> i64 {
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

/// For every split of `tree` and every question that could stand there, the best whole tree with
/// the same nodes above and beside it; and why the list is not complete, if it is not.
///
/// `settings` limit the whole trees.
pub fn alternatives<T: FreeQuestions>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
    tree: &Tree,
) -> Result<(Vec<Alternative>, Option<Stop>), Error> {
    tree.check(features.n_features())?;
    let objective = |tree: &Tree| task.objective(&tree.partition(features), tree.n_leaves());
    let mut found = Vec::new();
    for place in tree.splits() {
        let sample = rows_at(task, features, tree, place.node);
        let problem = Problem::new(task, &sample, settings, monitor);
        let mut branch = problem.branch(settings);
        let others = tree.n_leaves() - place.n_leaves;
        let leaves =
            settings.limits.max_leaves.map_or(usize::MAX, |most| most.saturating_sub(others));
        let depth = settings.limits.max_depth.saturating_sub(place.depth);
        let add = |feature: usize, below: &Tree| {
            let whole = tree.with_subtree(place.node, below);
            let (objective, n_leaves) = (objective(&whole), whole.n_leaves());
            found.push(Alternative { node: place.node, feature, objective, n_leaves });
        };
        let allowed = Allowed { depth, leaves };
        if let Err(stop) = with_each_root(&mut branch, sample, allowed, add) {
            return Ok((found, Some(stop)));
        }
    }
    Ok((found, None))
}

/// The rows that reach a node.
fn rows_at<T: LaneTask>(task: &T, features: &BinaryMatrix, tree: &Tree, node: usize) -> Sample {
    let rows: Vec<usize> =
        (0..features.n_rows()).filter(|&r| tree.passes(features, r, node)).collect();
    let channels = task.channels();
    let record = |&r: &usize| task.statistics()[r * channels..(r + 1) * channels].iter().copied();
    let statistics: Vec<i64> = rows.iter().flat_map(record).collect();
    let events: Vec<bool> = match task.events() {
        [] => Vec::new(),
        events => rows.iter().map(|&r| events[r]).collect(),
    };
    Sample::with_kinds(&features.take(&rows), &statistics, channels, &[], &events)
}

/// Hands on the best tree with each feature at the root whose sides can be leaves.
fn with_each_root<T: LaneTask>(
    branch: &mut Branch<SumNodes<T>>,
    sample: Sample,
    allowed: Allowed,
    mut add: impl FnMut(usize, &Tree),
) -> Result<(), Stop> {
    if allowed.depth == 0 || allowed.leaves < 2 {
        return Ok(());
    }
    let node = branch.nodes.node(sample);
    let (open, splits) = branch.nodes.questions(&node);
    for split in splits {
        let known = branch.below(&node, &open, &split, allowed, Cost::MOST)?.known;
        if let Some(tree) = known.tree.filter(|_| known.value < Cost::MOST) {
            add(node.sample.columns[split.column].feature, &tree);
        }
    }
    Ok(())
}
