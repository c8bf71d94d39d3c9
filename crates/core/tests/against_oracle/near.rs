//! Trees near the optimum and other questions at a split, against an enumeration of all trees.

use bristlecone_core::search::{Alternative, Near, Solution};
use bristlecone_oracle::instances::Instance;
use bristlecone_oracle::{Limits, Tree};

use crate::harness::{CERTIFIED, Question, SCALE, agree, ensure, for_each, oracle_tree};

/// All trees on the rows with their costs; of the features that split a node's rows in the
/// same way only the first.
fn all_trees(
    features: &[Vec<bool>],
    rows: &[usize],
    limits: &Limits,
    cost: &impl Fn(&[usize]) -> f64,
) -> Vec<(f64, Tree)> {
    let mut all = vec![(cost(rows), Tree::leaf())];
    if limits.max_depth == 0 {
        return all;
    }
    let below = Limits { max_depth: limits.max_depth - 1, ..limits.clone() };
    let mut seen: Vec<Vec<usize>> = vec![];
    for feature in 0..features[rows[0]].len() {
        let (yes, no): (Vec<usize>, Vec<usize>) =
            rows.iter().partition(|&&row| features[row][feature]);
        if yes.len().min(no.len()) < limits.min_leaf.max(1) || seen.contains(&yes) {
            continue;
        }
        let no_trees = all_trees(features, &no, &below, cost);
        for (a, l) in all_trees(features, &yes, &below, cost) {
            let joined = no_trees.iter().map(|(b, r)| (a + b, Tree::split(feature, &l, r)));
            all.extend(joined);
        }
        seen.extend([yes, no]);
    }
    all
}

/// The trees within the slack of the best.
pub fn near_trees(
    instance: &Instance,
    limits: &Limits,
    cost: &impl Fn(&[usize]) -> f64,
    slack: f64,
) -> Vec<Tree> {
    let mut all = all_trees(&instance.features, &instance.rows(), limits, cost);
    all.retain(|(_, tree)| limits.max_leaves.is_none_or(|most| tree.n_leaves() <= most));
    let least = all.iter().map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
    all.retain(|(cost, _)| *cost <= least + slack + CERTIFIED * least.abs().max(1.0));
    all.into_iter().map(|(_, tree)| tree).collect()
}

/// Slacks to ask for: none, some, and enough for any tree.
pub const SLACKS: [f64; 3] = [0.0, 0.0317, 1e6];

/// Whether a list holds these trees, in its promised order.
pub fn same_trees(found: &Near, expected: &[Tree]) -> Result<(), String> {
    let order = |tree: &Tree| (tree.n_leaves(), tree.feature.clone());
    let mut expected = expected.to_vec();
    expected.sort_by_key(order);
    let trees = |found: &[Solution]| found.iter().map(|s| oracle_tree(&s.tree)).collect();
    let found_trees: Vec<Tree> = trees(&found.trees);
    ensure(found.complete, || "not complete".into())?;
    ensure(found_trees == expected, || {
        let features = |trees: &[Tree]| trees.iter().map(|t| t.feature.clone()).collect::<Vec<_>>();
        format!("{:?} instead of {:?}", features(&found_trees), features(&expected))
    })
}

/// Whether a list of at most two trees says that it is one.
pub fn says_that_trees_are_left_out(few: &Near, all: usize) -> Result<(), String> {
    let expected = (all.min(2), all <= 2);
    ensure((few.trees.len(), few.complete) == expected, || {
        format!("{} trees, complete {}, of {all}", few.trees.len(), few.complete)
    })
}

/// Whether alternatives are all there are, each with the least cost of such trees.
pub fn same_alternatives(
    instance: &Instance,
    limits: &Limits,
    cost: &impl Fn(&[usize]) -> f64,
    tree: &Tree,
    found: &[Alternative],
) -> Result<(), String> {
    let mut expected = Vec::new();
    let features = &instance.features;
    let depths = tree.depths()?;
    let is_leaf = |&node: &usize| tree.feature[node] < 0;
    let leaves: Vec<usize> = (0..depths.len()).filter(is_leaf).collect();
    let rows_of = tree.leaves(features, &instance.rows())?;
    for node in (0..depths.len()).filter(|node| !is_leaf(node)) {
        // In preorder the nodes below follow.
        let after = (node + 1..depths.len()).find(|&n| depths[n] <= depths[node]);
        let below = node..after.unwrap_or(depths.len());
        let inside = |leaf: &usize| below.contains(&leaves[*leaf]);
        let rows: Vec<usize> = {
            let mut rows = (0..leaves.len())
                .filter(inside)
                .map(|l| &rows_of[l][..])
                .collect::<Vec<_>>()
                .concat();
            rows.sort_unstable();
            rows
        };
        let n_below = (0..leaves.len()).filter(inside).count();
        let others: f64 =
            (0..leaves.len()).filter(|leaf| !inside(leaf)).map(|leaf| cost(&rows_of[leaf])).sum();
        let most = limits.max_leaves.map(|most| most + n_below - tree.n_leaves());
        let max_depth = limits.max_depth - depths[node];
        let limits = Limits { max_depth, max_leaves: None, min_leaf: limits.min_leaf };
        let mut least: Vec<(i64, f64)> = vec![];
        for (cost, subtree) in all_trees(features, &rows, &limits, cost) {
            let root = subtree.feature[0];
            if root < 0 || !cost.is_finite() || most.is_some_and(|most| subtree.n_leaves() > most) {
                continue;
            }
            match least.iter_mut().find(|(feature, _)| *feature == root) {
                Some((_, value)) => *value = value.min(cost),
                None => least.push((root, cost)),
            }
        }
        least.sort_by_key(|(feature, _)| *feature);
        expected.extend(least.into_iter().map(|(root, value)| (node, root, value + others)));
    }
    let names = |found: &[Alternative]| -> Vec<(usize, i64)> {
        found.iter().map(|a| (a.node, a.feature as i64)).collect()
    };
    let known: Vec<(usize, i64)> = expected.iter().map(|(node, root, _)| (*node, *root)).collect();
    ensure(names(found) == known, || format!("{:?} instead of {known:?}", names(found)))?;
    for (alternative, (node, root, value)) in found.iter().zip(&expected) {
        agree(&format!("feature {root} at {node}"), alternative.objective, *value, CERTIFIED)?;
    }
    Ok(())
}

/// Whether no tree is allowed.
fn refused(instance: &Instance, question: &Question) -> bool {
    question.optimum(instance).is_infinite()
}

#[test]
fn near_optimal_trees_are_those_of_the_oracle() {
    for_each(200 * SCALE, (12, 4), &[0, 1, 2, 3], |instance, question| {
        if refused(instance, question) {
            return Ok(());
        }
        let (cost, settings) = (question.cost(instance), question.settings());
        for slack in SLACKS {
            let expected = near_trees(instance, &question.limits, &cost, slack);
            if expected.len() > 3000 {
                continue;
            }
            let of = |limit| question.near_optimal(instance, &settings, (slack, limit)).unwrap();
            same_trees(&of(1_000_000), &expected)?;
            if question.limits.max_leaves.is_none() {
                says_that_trees_are_left_out(&of(2), expected.len())?;
            }
        }
        Ok(())
    });
}

#[test]
fn alternatives_are_those_of_the_oracle() {
    for_each(200 * SCALE, (14, 4), &[1, 2, 3], |instance, question| {
        if refused(instance, question) {
            return Ok(());
        }
        let (cost, settings) = (question.cost(instance), question.settings());
        let tree = question.solution(instance, &settings)?.tree;
        let found = question.alternatives(instance, &settings, &tree).map_err(|e| e.to_string())?;
        same_alternatives(instance, &question.limits, &cost, &oracle_tree(&tree), &found)
    });
}
