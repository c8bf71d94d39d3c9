//! Trees near the best one, and alternatives to the questions of a tree.

use super::nodes::SumSplit;
use super::solve::{cost, measured};
use super::{Problem, sample, solve};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::search::branch::Branch;
use crate::search::certificate::MEET;
use crate::search::near::{self, Near, Nearness};
use crate::search::nodes::{Allowed, Cost, Listed};
use crate::search::wide::{self, WideSplit};
use crate::search::{Alternative, Checked, Measured, Monitor, Settings, Status, Stop};
use crate::task::wide::Wide;
use crate::task::{FreeQuestions, ScalarTask, Statistics};
use crate::tree::Tree;
use std::sync::Arc;

/// Wide costs distinguish trees whose objective is at least this share of the one that they have
/// digits for: they have 64 bits, and the certified difference takes thirty of them.
const WIDE_DIGITS: f64 = 1.0 / (1 << 24) as f64;

/// At most `limit` trees whose objective is within `slack`, plus the certified difference, of the
/// best one's, by leaves.
///
/// Columns that split a node's rows in the same way count once, as the first of them. If a limit
/// ends the search or the enumeration, only the best tree is returned.
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
    let (allowed, n_rows) = (settings.limits.allowed(), features.n_rows());
    let resolution = task.resolution(allowed);
    if let Some((wide, _)) = resolving(task, features, settings, of_best) {
        let rows = wide::sample(&*wide, features)?;
        let leaves = settings.limits.most_leaves().min(rows.n_rows());
        let of_best = wide::cost(&*wide, features, &first.tree);
        let cut = wide::within(&*wide, of_best, tolerance, leaves);
        let nearness = Nearness { cut, worst, limit, n_rows };
        return Ok(wide::with_branch(&*wide, rows, settings, monitor, |branch, root| {
            near::near_optimal(branch, root, allowed, first, &nearness, objective)
        }));
    }
    let rows = sample(task, features)?;
    // The price that breaks ties, which may be negative, is not part of the objective.
    let ties = task.ties(allowed.leaves.min(rows.n_rows())).saturating_abs();
    // Far enough below the largest number that no difference of costs overflows.
    let above =
        (((tolerance + 2.0 * resolution) / task.unit_value()) as i64).min(i64::MAX >> 2) + ties + 1;
    let cut = cost(task, features, &first.tree) + above;
    let nearness = Nearness { cut, worst, limit, n_rows };
    let problem = Problem::new(task, &rows, settings, monitor);
    let mut branch = problem.branch(settings);
    let root = branch.nodes.node(rows);
    Ok(near::near_optimal(&mut branch, &root, allowed, first, &nearness, objective))
}

/// For every split of `tree` and every question that could replace it, the best whole tree with the
/// other nodes above and beside it unchanged. Also the reason why the list is incomplete, if it is.
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
    if wide.is_some() {
        wide::check_rows(features)?;
    }
    let mut found = Vec::new();
    for split in tree.splits() {
        let others = tree.n_leaves() - split.n_leaves;
        let leaves =
            settings.limits.max_leaves.map_or(usize::MAX, |most| most.saturating_sub(others));
        let depth = settings.limits.max_depth.saturating_sub(split.depth);
        let allowed = Allowed { depth, leaves };
        let place = Place { tree, node: split.node, events: task.events(), allowed };
        let with = |feature: usize, below: &Tree| {
            let whole = tree.with_subtree(place.node, below);
            let (measured, n_leaves) = (measured(task, features, &whole), whole.n_leaves());
            let objective = measured.objective;
            (measured, Alternative { node: place.node, feature, objective, n_leaves })
        };
        let mut here = Vec::new();
        let add = |feature: usize, below: &Tree| here.push(with(feature, below));
        let mut end = match &wide {
            Some((wide, _)) => {
                below_in_wide(&**wide, features, settings, monitor, &place, None, add)
            }
            None => below(task, features, settings, monitor, &place, None, add),
        };
        for (mut of_best, mut best) in here {
            let mut finest: Option<T> = None;
            // The objective that the wide costs have digits for, once they are needed.
            let mut digits_for = wide.as_ref().map(|&(_, known)| known);
            while end.is_ok() && best.objective > task.least_objective(1) {
                let (known, only) = (best.objective, Some(best.feature));
                let finer = match digits_for {
                    None => {
                        let current = finest.as_ref().unwrap_or(task);
                        if !is_coarse(current, settings, of_best.magnitude) {
                            break;
                        }
                        current.finer(known)
                    }
                    Some(digits) if known > 0.0 && known < WIDE_DIGITS * digits => None,
                    Some(_) => break,
                };
                let better = |feature: usize, below: &Tree| {
                    let (measured, other) = with(feature, below);
                    if other.objective < best.objective {
                        (of_best, best) = (measured, other);
                    }
                };
                if let Some(finer) = finer {
                    end = below(&finer, features, settings, monitor, &place, only, better);
                    finest = Some(finer);
                } else {
                    let Some(wide) = task.wide(known) else { break };
                    wide::check_rows(features)?;
                    end = below_in_wide(&*wide, features, settings, monitor, &place, only, better);
                    digits_for = Some(known);
                }
            }
            if end.is_ok() {
                found.push(best);
            }
        }
        if let Err(stop) = end {
            return Ok((found, Some(stop)));
        }
    }
    Ok((found, None))
}

/// Whether the resolution, which applies to each of two trees, exceeds the certified difference.
fn is_coarse(task: &impl ScalarTask, settings: &Settings, magnitude: f64) -> bool {
    2.0 * task.resolution(settings.limits.allowed()) > MEET * magnitude
}

/// The task in wide costs, if its own costs do not distinguish trees like this one, or, for a tree
/// without loss, trees better than a single leaf; and the objective that these have digits for.
fn resolving<'a, T: FreeQuestions>(
    task: &'a T,
    features: &BinaryMatrix,
    settings: &Checked,
    of_tree: Measured,
) -> Option<(Box<dyn Wide + 'a>, f64)> {
    let resolution = task.resolution(settings.limits.allowed());
    let single_leaf = || measured(task, features, &Tree::leaf()).magnitude;
    let enough = if of_tree.magnitude > 0.0 { of_tree.magnitude } else { single_leaf() };
    let coarse = is_coarse(task, settings, enough);
    let known = of_tree.objective.max(resolution);
    if coarse { Some((task.wide(known)?, known)) } else { None }
}

/// A node of a tree, and the limits on what may replace it.
struct Place<'a> {
    tree: &'a Tree,
    node: usize,
    /// Which rows of the whole sample have events, if leaves need a minimum of events.
    events: &'a [bool],
    allowed: Allowed,
}

/// The best tree with each feature, or with one feature only, at its root.
fn below<T: FreeQuestions>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
    place: &Place,
    only: Option<usize>,
    mut add: impl FnMut(usize, &Tree),
) -> Result<(), Stop> {
    let sample = rows_at(task, features, place);
    let problem = Problem::new(task, &sample, settings, monitor);
    let mut branch = problem.branch(settings);
    let all = if only.is_none() { branch.nodes.each_root(&sample, place.allowed)? } else { None };
    if let Some(found) = all {
        for (column, found) in sample.columns.iter().zip(found) {
            monitor.check()?;
            found.iter().for_each(|found| add(column.feature, &found.tree));
        }
        return Ok(());
    }
    let node = branch.nodes.node(sample);
    let feature = |split: &SumSplit| node.sample.columns[split.column].feature;
    let wanted = |split: &SumSplit| only.is_none_or(|only| only == feature(split));
    let add = |split: &SumSplit, tree: &Tree| add(feature(split), tree);
    with_each_root(&mut branch, &node, place.allowed, wanted, add)
}

/// The same in wide costs.
fn below_in_wide(
    task: &dyn Wide,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
    place: &Place,
    only: Option<usize>,
    mut add: impl FnMut(usize, &Tree),
) -> Result<(), Stop> {
    let sample = rows_at(task, features, place);
    wide::with_branch(task, sample, settings, monitor, |branch, node| {
        let feature = |split: &WideSplit| node.sample.columns[split.column].feature;
        let wanted = |split: &WideSplit| only.is_none_or(|only| only == feature(split));
        let add = |split: &WideSplit, tree: &Tree| add(feature(split), tree);
        with_each_root(branch, node, place.allowed, wanted, add)
    })
}

/// The rows that reach the node.
fn rows_at(task: &(impl Statistics + ?Sized), features: &BinaryMatrix, place: &Place) -> Sample {
    let passes = |&r: &usize| place.tree.passes(features, r, place.node);
    let rows: Vec<usize> = (0..features.n_rows()).filter(passes).collect();
    let channels = task.channels();
    let record = |&r: &usize| task.statistics()[r * channels..(r + 1) * channels].iter().copied();
    let statistics: Vec<i64> = rows.iter().flat_map(record).collect();
    let events: Vec<bool> = match place.events {
        [] => Vec::new(),
        events => rows.iter().map(|&r| events[r]).collect(),
    };
    Sample::with_kinds(&features.take(&rows), &statistics, channels, &[], &events)
}

/// Calls `found` with the best tree for each requested question at the root whose sides can be
/// leaves.
fn with_each_root<N: Listed<Subtree = Arc<Tree>>>(
    branch: &mut Branch<N>,
    node: &N::Node,
    allowed: Allowed,
    wanted: impl Fn(&N::Split) -> bool,
    mut add: impl FnMut(&N::Split, &Tree),
) -> Result<(), Stop> {
    if allowed.depth == 0 || allowed.leaves < 2 {
        return Ok(());
    }
    let (open, splits) = branch.nodes.questions(node, None)?;
    for split in splits.into_iter().filter(wanted) {
        let known = branch.below(node, &open, &split, allowed, Cost::MOST)?.known;
        if let Some(tree) = known.tree.filter(|_| known.value < Cost::MOST) {
            add(&split, &tree);
        }
    }
    Ok(())
}
