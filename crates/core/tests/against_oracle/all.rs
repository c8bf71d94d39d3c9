//! Every optimal tree, against an enumeration of all trees.

use bristlecone_core::search::Solution;
use bristlecone_oracle::instances::Instance;
use bristlecone_oracle::{Limits, Tree};

use crate::harness::{CERTIFIED, Objective, SCALE, ensure, for_each};
use crate::harness::{Question, oracle_tree};

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

/// The trees within the tolerance of the best.
pub fn optimal_trees(
    instance: &Instance,
    limits: &Limits,
    cost: &impl Fn(&[usize]) -> f64,
    tolerance: f64,
) -> Vec<Tree> {
    let mut all = all_trees(&instance.features, &instance.rows(), limits, cost);
    all.retain(|(_, tree)| limits.max_leaves.is_none_or(|most| tree.n_leaves() <= most));
    let least = all.iter().map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
    all.retain(|(cost, _)| *cost <= least + tolerance * least.abs().max(1.0));
    all.into_iter().map(|(_, tree)| tree).collect()
}

/// Whether two lists hold the same trees, and the first is in its promised order.
pub fn same_trees(found: &[Solution], expected: &[Tree]) -> Result<(), String> {
    let order = |tree: &Tree| (tree.n_leaves(), tree.feature.clone());
    let mut expected = expected.to_vec();
    expected.sort_by_key(order);
    let found: Vec<Tree> = found.iter().map(|solution| oracle_tree(&solution.tree)).collect();
    ensure(found == expected, || {
        let features = |trees: &[Tree]| trees.iter().map(|t| t.feature.clone()).collect::<Vec<_>>();
        format!("{:?} instead of {:?}", features(&found), features(&expected))
    })
}

#[test]
fn all_optimal_trees_by_likelihood_are_those_of_the_oracle() {
    for_each(120 * SCALE, (12, 4), &[0, 1, 2, 3], |instance, question| {
        let question = Question { objective: Objective::Likelihood, ..question.clone() };
        let events = instance.sample.n_events(&instance.rows());
        if question.limits.min_leaf > instance.rows().len() || question.min_events > events {
            return Ok(());
        }
        let cost = question.cost(instance);
        let expected = optimal_trees(instance, &question.limits, &cost, CERTIFIED);
        let settings = question.settings();
        let Ok(found) = question.all_optimal(instance, &settings, 1_000_000) else {
            return Ok(());
        };
        same_trees(&found, &expected)?;
        let few = question.all_optimal(instance, &settings, 2).unwrap();
        ensure(few.len() == expected.len().min(2), || format!("{} of the limit of 2", few.len()))
    });
}
