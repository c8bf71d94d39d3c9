//! Trees near the best one, and other questions in the place of those of a tree.

use super::solve::{cost, measured};
use super::{Problem, sample, solve};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::search::branch::Branch;
use crate::search::certificate::MEET;
use crate::search::near::{self, Near, Nearness};
use crate::search::nodes::{Allowed, Cost, Listed};
use crate::search::wide;
use crate::search::{Alternative, Checked, Measured, Monitor, Status, Stop};
use crate::task::wide::Wide;
use crate::task::{FreeQuestions, Statistics};
use crate::tree::Tree;
use std::sync::Arc;

/// All trees whose objective is within `slack`, and what is certified, of the best one's, at most
/// `limit`, by leaves.
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
    let of_best = measured(task, features, &first.tree);
    let tolerance = slack + MEET * of_best.magnitude;
    let worst = first.objective + tolerance;
    let objective = |tree: &Tree| measured(task, features, tree).objective;
    let resolution = task.resolution(settings.limits.allowed());
    if let Some(wide) = resolving(task, features, settings, of_best) {
        let rows = wide::sample(&*wide, features)?;
        let leaves = settings.limits.most_leaves().min(rows.n_rows());
        let of_best = wide::cost(&*wide, features, &first.tree);
        let cut = wide::within(&*wide, of_best, tolerance, leaves);
        let nearness = Nearness { cut, worst, limit };
        return Ok(wide::with_branch(&*wide, rows, settings, monitor, |branch, root| {
            near::near_optimal(branch, root, settings, first, &nearness, objective)
        }));
    }
    let rows = sample(task, features)?;
    // Ties are told apart by a price, of either sign, that is none.
    let ties = task.tie_price().abs().saturating_mul(rows.n_rows() as i64);
    // So far below the largest number that no difference of costs leads beyond it.
    let above =
        (((tolerance + 2.0 * resolution) / task.unit_value()) as i64).min(i64::MAX >> 2) + ties + 1;
    let cut = cost(task, features, &first.tree) + above;
    let nearness = Nearness { cut, worst, limit };
    let problem = Problem::new(task, &rows, settings, monitor);
    let mut branch = problem.branch(settings);
    let root = branch.nodes.node(rows);
    Ok(near::near_optimal(&mut branch, &root, settings, first, &nearness, objective))
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
    let of_tree = measured(task, features, tree);
    let wide = resolving(task, features, settings, of_tree);
    if let Some(wide) = &wide {
        wide::sample(&**wide, features)?;
    }
    let objective = |tree: &Tree| measured(task, features, tree).objective;
    let mut found = Vec::new();
    for place in tree.splits() {
        let others = tree.n_leaves() - place.n_leaves;
        let leaves =
            settings.limits.max_leaves.map_or(usize::MAX, |most| most.saturating_sub(others));
        let depth = settings.limits.max_depth.saturating_sub(place.depth);
        let mut add = |feature: usize, below: &Tree| {
            let whole = tree.with_subtree(place.node, below);
            let (objective, n_leaves) = (objective(&whole), whole.n_leaves());
            found.push(Alternative { node: place.node, feature, objective, n_leaves });
        };
        let allowed = Allowed { depth, leaves };
        let end = match &wide {
            Some(wide) => {
                let sample = rows_at(&**wide, task.events(), features, tree, place.node);
                below_each(&**wide, sample, settings, monitor, allowed, &mut add)
            }
            None => {
                let sample = rows_at(task, task.events(), features, tree, place.node);
                let problem = Problem::new(task, &sample, settings, monitor);
                let mut branch = problem.branch(settings);
                let node = branch.nodes.node(sample);
                let column = |c: usize| node.sample.columns[c].feature;
                let add =
                    |split: &super::nodes::SumSplit, tree: &Tree| add(column(split.column), tree);
                with_each_root(&mut branch, &node, allowed, add)
            }
        };
        if let Err(stop) = end {
            return Ok((found, Some(stop)));
        }
    }
    Ok((found, None))
}

/// The task in wide costs, where its own do not resolve trees like this one, or none that is better
/// than a single leaf where this one is without loss.
fn resolving<'a, T: FreeQuestions>(
    task: &'a T,
    features: &BinaryMatrix,
    settings: &Checked,
    of_tree: Measured,
) -> Option<Box<dyn Wide + 'a>> {
    let resolution = task.resolution(settings.limits.allowed());
    let single_leaf = || measured(task, features, &Tree::leaf()).magnitude;
    let enough = if of_tree.magnitude > 0.0 { of_tree.magnitude } else { single_leaf() };
    // Of two trees each may be off by it.
    let coarse = 2.0 * resolution > MEET * enough;
    if coarse { task.wide(of_tree.objective.max(resolution)) } else { None }
}

/// The best tree in wide costs with each feature at the root.
fn below_each(
    task: &dyn Wide,
    sample: Sample,
    settings: &Checked,
    monitor: &Monitor,
    allowed: Allowed,
    mut add: impl FnMut(usize, &Tree),
) -> Result<(), Stop> {
    wide::with_branch(task, sample, settings, monitor, |branch, node| {
        let column = |c: usize| node.sample.columns[c].feature;
        let add = |split: &wide::WideSplit, tree: &Tree| add(column(split.column), tree);
        with_each_root(branch, node, allowed, add)
    })
}

/// The rows that reach a node.
fn rows_at(
    task: &(impl Statistics + ?Sized),
    events: &[bool],
    features: &BinaryMatrix,
    tree: &Tree,
    node: usize,
) -> Sample {
    let rows: Vec<usize> =
        (0..features.n_rows()).filter(|&r| tree.passes(features, r, node)).collect();
    let channels = task.channels();
    let record = |&r: &usize| task.statistics()[r * channels..(r + 1) * channels].iter().copied();
    let statistics: Vec<i64> = rows.iter().flat_map(record).collect();
    let events: Vec<bool> = match events {
        [] => Vec::new(),
        events => rows.iter().map(|&r| events[r]).collect(),
    };
    Sample::with_kinds(&features.take(&rows), &statistics, channels, &[], &events)
}

/// Hands on the best tree with each question at the root whose sides can be leaves.
fn with_each_root<N: Listed<Subtree = Arc<Tree>>>(
    branch: &mut Branch<N>,
    node: &N::Node,
    allowed: Allowed,
    mut add: impl FnMut(&N::Split, &Tree),
) -> Result<(), Stop> {
    if allowed.depth == 0 || allowed.leaves < 2 {
        return Ok(());
    }
    let (open, splits) = branch.nodes.questions(node);
    for split in splits {
        let known = branch.below(node, &open, &split, allowed, Cost::MOST)?.known;
        if let Some(tree) = known.tree.filter(|_| known.value < Cost::MOST) {
            add(&split, &tree);
        }
    }
    Ok(())
}
