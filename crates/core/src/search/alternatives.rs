//! What other questions would do in the place of those of a tree.

use super::branch::Branch;
use super::lattice::Found;
use super::solve::full_leaves;
use super::{Monitor, Settings, Stop};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::task::{FreeQuestions, LaneTask};
use crate::tree::Tree;

/// The best tree with another question at one node of a tree, and best subtrees below it.
#[derive(Clone, Copy, Debug)]
pub struct Alternative {
    /// The node.
    pub node: usize,
    /// The question; of those that split the node's rows in the same way the first.
    pub feature: usize,
    /// Objective of the whole tree.
    pub objective: f64,
    /// Its leaves.
    pub n_leaves: usize,
}

/// For every split of `tree` and every question that could stand there, the best whole tree with
/// the same nodes above and beside it; and why the list is not complete, if it is not.
///
/// `settings` limit the whole trees.
pub fn alternatives<T: FreeQuestions>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
    tree: &Tree,
) -> Result<(Vec<Alternative>, Option<Stop>), Error> {
    settings.check(features.n_rows(), task.events())?;
    tree.check(features.n_features())?;
    let objective = |tree: &Tree| task.objective(&tree.partition(features), tree.n_leaves());
    let mut found = Vec::new();
    for place in tree.splits() {
        let sample = rows_at(task, features, tree, place.node);
        let mut branch = Branch::new(task, &sample, settings, monitor);
        let others = tree.n_leaves() - place.n_leaves;
        let leaves = settings.max_leaves.map_or(usize::MAX, |most| most.saturating_sub(others));
        for c in 0..sample.n_columns() {
            let depth = settings.max_depth.saturating_sub(place.depth);
            let below = match with_root(&mut branch, &sample, c, (depth, leaves)) {
                Ok(below) => below,
                Err(stop) => return Ok((found, Some(stop))),
            };
            if let Some(below) = below {
                let whole = tree.with_subtree(place.node, &below.tree);
                found.push(Alternative {
                    node: place.node,
                    feature: sample.columns[c].feature,
                    objective: objective(&whole),
                    n_leaves: whole.n_leaves(),
                });
            }
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

/// The best tree of at most so much depth and so many leaves with this column at the root; none
/// where its sides cannot be leaves.
fn with_root<T: LaneTask>(
    branch: &mut Branch<T>,
    sample: &Sample,
    c: usize,
    (depth, leaves): (usize, usize),
) -> Result<Option<Found>, Stop> {
    if depth == 0 || leaves < 2 {
        return Ok(None);
    }
    let depth = depth - 1;
    let most = full_leaves(depth);
    let sides = [true, false].map(|value| sample.restrict(c, value));
    let enough = leaves >= most.saturating_mul(2);
    let budgets: Vec<usize> =
        if enough { vec![usize::MAX] } else { (1..=most.min(leaves - 1)).collect() };
    let mut best_of = |side: &Sample| {
        let answer = branch.solve(side, depth, &budgets, None, i64::MAX, &mut |_, _, _| {});
        answer.stop.map_or(Ok(answer.found), Err)
    };
    let (yes, no) = (best_of(&sides[0])?, best_of(&sides[1])?);
    let pairs: Vec<(&Found, &Found)> = if enough {
        vec![(&yes[0], &no[0])]
    } else {
        let share = |k: usize| (leaves - 1).checked_sub(k + 1).map(|rest| (k, rest));
        let last = budgets.len() - 1;
        (0..budgets.len())
            .filter_map(share)
            .map(|(k, rest)| (&yes[k], &no[rest.min(last)]))
            .collect()
    };
    let allowed = |found: &&(&Found, &Found)| found.0.cost < i64::MAX && found.1.cost < i64::MAX;
    let best = pairs.iter().filter(allowed).min_by_key(|(a, b)| a.cost + b.cost);
    Ok(best.map(|(a, b)| branch.joined(sample, c, a, b)))
}
