//! Near-optimal trees and alternative splits, compared with an enumeration of all trees.

use std::cell::Cell;

use bristlecone_core::search::{Alternative, Near};
use bristlecone_oracle::{Limits, Real, Tree};

use crate::harness::{
    CERTIFIED, Case, EVALUATED, SCALE, Size, agree, ensure, for_each_of, oracle_tree,
};
use crate::tasks;

/// Slacks of searches: none, some, and enough for any tree.
const SLACKS: [f64; 3] = [0.0, 0.0317, 1e6];

/// The trees within the slack of the optimum, in the documented order.
fn near_trees(case: &Case, slack: f64, size: f64) -> Vec<Tree> {
    let all = case.trees(&case.instance.rows(), &case.question.limits);
    let least = all.iter().map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
    let most = least + slack + CERTIFIED * size;
    let near = all.into_iter().filter(|(cost, _)| *cost <= most).map(|(_, tree)| tree);
    let mut near: Vec<Tree> = near.collect();
    near.sort_by_key(|tree| (tree.n_leaves(), tree.feature.clone()));
    near
}

/// Checks that a list contains these trees, with the right objectives.
fn same_trees(case: &Case, found: &Near, expected: &[Tree]) -> Result<(), String> {
    let trees: Vec<Tree> = found.trees.iter().map(|s| oracle_tree(&s.tree)).collect();
    ensure(found.complete, || "not complete".into())?;
    ensure(trees == expected, || {
        let features = |trees: &[Tree]| trees.iter().map(|t| t.feature.clone()).collect::<Vec<_>>();
        format!("{:?} instead of {:?}", features(&trees), features(expected))
    })?;
    for solution in found.trees.iter().step_by(1 + found.trees.len() / 16) {
        let answer = solution.clone().into();
        let score = case.score(&case.question.limits, &answer)?;
        let apart = EVALUATED * case.size(&answer)?;
        agree("objective of a tree", solution.objective, score, apart)?;
    }
    Ok(())
}

/// Checks that a list of at most two trees has the fewest leaves, and reports if it is complete.
fn has_the_smallest(few: &Near, all: &[Tree]) -> Result<(), String> {
    let found: Vec<Tree> = few.trees.iter().map(|s| oracle_tree(&s.tree)).collect();
    let leaves = |trees: &[Tree]| trees.iter().map(Tree::n_leaves).collect::<Vec<_>>();
    let expected = (leaves(&all[..all.len().min(2)]), all.len() <= 2);
    let is_so = (leaves(&found), few.complete) == expected;
    ensure(is_so && found.iter().all(|tree| all.contains(tree)), || {
        format!("{:?}, complete {}, of {all:?}", few.trees, few.complete)
    })
}

#[test]
fn near_optimal_trees_are_those_of_the_oracle() {
    let cut = Cell::new(0);
    const SIZE: Size = (12, 4, &[0, 1, 2, 3]);
    let check = |case: &Case| {
        let size = case.size(&case.solve(&case.settings())?)?;
        for slack in SLACKS {
            let expected = near_trees(case, slack, size);
            same_trees(case, &case.near_optimal((slack, 1_000_000))?, &expected)?;
            cut.set(cut.get() + u64::from(expected.len() > 2));
            has_the_smallest(&case.near_optimal((slack, 2))?, &expected)?;
        }
        Ok(())
    };
    for_each_of(&tasks::tasks_with("near_optimal"), 30 * SCALE, SIZE, check);
    for_each_of(&["likelihood", "brier"], 60 * SCALE, SIZE, check);
    assert!(cut.get() > 20 * SCALE, "hardly any list was cut: {}", cut.get());
}

/// Checks that no alternative is missing, and that each has the least cost of its trees.
fn same_alternatives(case: &Case, tree: &Tree, found: &[Alternative]) -> Result<(), String> {
    let (limits, cost) = (&case.question.limits, case.leaf_cost());
    let mut expected = Vec::new();
    let depths = tree.depths()?;
    let is_leaf = |&node: &usize| tree.feature[node] < 0;
    let leaves: Vec<usize> = (0..depths.len()).filter(is_leaf).collect();
    let rows_of = tree.leaves(&case.instance.features, &case.instance.rows())?;
    for node in (0..depths.len()).filter(|node| !is_leaf(node)) {
        // In preorder the descendants of a node follow it.
        let after = (node + 1..depths.len()).find(|&n| depths[n] <= depths[node]);
        let below = node..after.unwrap_or(depths.len());
        let (inside, outside): (Vec<usize>, Vec<usize>) =
            (0..leaves.len()).partition(|&leaf| below.contains(&leaves[leaf]));
        let mut rows = inside.iter().map(|&l| &rows_of[l][..]).collect::<Vec<_>>().concat();
        rows.sort_unstable();
        let others: Real = outside.iter().map(|&leaf| cost(&rows_of[leaf])).sum();
        let others = others.to_f64();
        let limits = Limits {
            max_depth: limits.max_depth - depths[node],
            max_leaves: limits.max_leaves.map(|most| most + inside.len() - tree.n_leaves()),
            min_leaf: limits.min_leaf,
        };
        let mut least: Vec<(i64, f64, Tree)> = vec![];
        for (cost, subtree) in case.trees(&rows, &limits) {
            let root = subtree.feature[0];
            match least.iter_mut().find(|(feature, ..)| *feature == root) {
                Some((_, value, _)) if *value <= cost => {}
                Some(better) => *better = (root, cost, subtree),
                None if root >= 0 => least.push((root, cost, subtree)),
                None => {}
            }
        }
        least.sort_by_key(|(feature, ..)| *feature);
        for (root, value, subtree) in least {
            let objective = value + others;
            let mut parts = subtree.leaves(&case.instance.features, &rows)?;
            parts.extend(outside.iter().map(|&leaf| rows_of[leaf].clone()));
            expected.push((node, root, objective, case.terms_of(&parts, &[]).max(objective.abs())));
        }
    }
    let names: Vec<(usize, i64)> = found.iter().map(|a| (a.node, a.feature as i64)).collect();
    let known: Vec<(usize, i64)> = expected.iter().map(|&(node, root, ..)| (node, root)).collect();
    ensure(names == known, || format!("{names:?} instead of {known:?}"))?;
    for (alternative, (node, root, value, size)) in found.iter().zip(&expected) {
        let what = format!("feature {root} at {node}");
        agree(&what, alternative.objective, *value, CERTIFIED * size)?;
    }
    Ok(())
}

#[test]
fn alternatives_are_those_of_the_oracle() {
    let asked = Cell::new(0);
    const SIZE: Size = (14, 4, &[1, 2, 3]);
    let check = |case: &Case| {
        let (tree, _) = case.solve(&case.settings())?.tree.ok_or("no tree")?;
        asked.set(asked.get() + u64::from(tree.n_leaves() > 2));
        same_alternatives(case, &tree, &case.alternatives(&tree)?)
    };
    for_each_of(&tasks::tasks_with("alternatives"), 30 * SCALE, SIZE, check);
    for_each_of(&["likelihood", "brier"], 60 * SCALE, SIZE, check);
    assert!(asked.get() > 10 * SCALE, "hardly any tree of several splits: {}", asked.get());
}
