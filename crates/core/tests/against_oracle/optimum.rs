//! The tree returned is allowed, has the objective reported, and is best.

use bristlecone_core::search::{Settings, Status};
use bristlecone_oracle::accuracy::misclassified;
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::{
    Limits, Tree, admit_tree, best_by_leaves, best_tree, score_tree, survival,
};

use crate::harness::{
    CERTIFIED, Objective, Question, SCALE, agree, agree_on_status, ensure, for_each,
    for_each_allowed, oracle_tree,
};

/// The optimum is the oracle's, the tree has the objective reported and is allowed.
fn equals_oracle(instance: &Instance, question: &Question) -> Result<(), String> {
    let (features, rows) = (&instance.features, &instance.rows());
    let optimum = question.optimum(instance);
    if optimum.is_infinite() {
        let refused = question.solve(instance, &question.settings()).is_err();
        return ensure(refused, || "a tree where none is allowed".into());
    }
    let solution = question.solution(instance, &question.settings())?;
    agree_on_status(&solution, Status::Optimal)?;
    agree("objective", solution.objective, optimum, CERTIFIED)?;
    let tree = oracle_tree(&solution.tree);
    admit_tree(&tree, features, rows, &question.limits)?;
    let score = score_tree(&tree, features, rows, question.cost(instance))?;
    agree("objective of the tree", solution.objective, score, 1e-12)?;
    agree("lower bound", solution.lower_bound, optimum, CERTIFIED)?;
    ensure(solution.lower_bound <= solution.objective, || "bound above objective".into())
}

#[test]
fn optimum_equals_the_oracle() {
    for_each(800 * SCALE, (40, 6), &[0, 1, 2, 3, 4], equals_oracle);
}

#[test]
fn optimum_equals_the_oracle_beyond_one_lattice() {
    for_each(100 * SCALE, (16, 6), &[5, 6, 9], equals_oracle);
    for_each(10 * SCALE, (60, 6), &[5, 6], equals_oracle);
}

#[test]
fn optimum_equals_the_oracle_on_more_columns_than_lanes() {
    for_each(20 * SCALE, (60, 80), &[2], equals_oracle);
    for_each(20 * SCALE, (40, 24), &[3], equals_oracle);
    for_each(5 * SCALE, (14, 20), &[4], equals_oracle);
}

#[test]
fn optimum_equals_the_oracle_on_hundreds_of_rows() {
    for_each(2 * SCALE, (400, 8), &[3, 4], equals_oracle);
}

#[test]
fn every_leaf_budget_equals_the_oracle() {
    for_each(100 * SCALE, (40, 6), &[1, 2, 3, 4], |instance, question| {
        let (features, rows) = (&instance.features, &instance.rows());
        let limits = Limits { max_leaves: None, ..question.limits.clone() };
        let optima = best_by_leaves(features, rows, &limits, question.cost(instance));
        for (k, &optimum) in optima.iter().enumerate().filter(|(_, o)| o.is_finite()) {
            let settings = Settings { max_leaves: Some(k + 1), ..question.settings() };
            let solution = question.solution(instance, &settings)?;
            agree(&format!("with {} leaves", k + 1), solution.objective, optimum, CERTIFIED)?;
            let leaves = oracle_tree(&solution.tree).n_leaves();
            ensure(leaves <= k + 1, || format!("{leaves} leaves for {}", k + 1))?;
        }
        Ok(())
    });
}

#[test]
fn the_size_path_equals_the_oracle_at_every_number_of_leaves() {
    for_each_allowed(100 * SCALE, (30, 6), &[0, 1, 2, 3, 4, 5], |instance, question| {
        let (features, rows, limits) = (&instance.features, &instance.rows(), &question.limits);
        let cost = question.cost(instance);
        let optima = best_by_leaves(features, rows, limits, &cost);
        for lattice_depth in [2, 5] {
            let settings = Settings { lattice_depth, ..question.settings() };
            let path = question.solve_path_until(instance, &settings, &|| false);
            let path = path.map_err(|e| e.to_string())?;
            for (k, solution) in path.iter().enumerate() {
                agree_on_status(solution, Status::Optimal)?;
                let optimum = optima[k.min(optima.len() - 1)];
                agree(&format!("with {} leaves", k + 1), solution.objective, optimum, CERTIFIED)?;
                let tree = oracle_tree(&solution.tree);
                let limits = Limits { max_leaves: Some(k + 1), ..limits.clone() };
                admit_tree(&tree, features, rows, &limits)?;
                let score = score_tree(&tree, features, rows, &cost)?;
                agree("objective of the tree", solution.objective, score, 1e-12)?;
            }
            let last = path.last().ok_or("an empty path")?;
            agree("at the end", last.objective, optima[optima.len() - 1], CERTIFIED)?;
        }
        Ok(())
    });
}

#[test]
fn ties_go_to_the_fewest_leaves() {
    for_each_allowed(200 * SCALE, (40, 6), &[1, 2, 3, 4], |instance, question| {
        let mut plain = instance.clone();
        plain.sample.weight.fill(1.0);
        let question =
            Question { objective: Objective::ACCURACY, leaf_penalty: 0.0, ..question.clone() };
        let errors = |leaf: &[usize]| misclassified(leaf, &plain.labels, &plain.sample.weight);
        let best = best_tree(&plain.features, &plain.rows(), &question.limits, errors);
        let (_, fewest) = best.ok_or("no tree")?;
        let settings = Settings { trivial_bound: false, ..question.settings() };
        let leaves = question.solution(&plain, &settings)?.tree.n_leaves();
        ensure(leaves == fewest.n_leaves(), || {
            format!("{leaves} leaves instead of {}", fewest.n_leaves())
        })
    });
}

/// Labels are the parity of features 5 to 9, which takes 32 leaves. The first of features
/// 0 to 4 that is true tells them too, in 6 leaves, but is wrong about one row.
fn parity_or_list(repeats: usize) -> Instance {
    let random = &mut Random::new(0);
    let mut instance = Instance::random(0, 1, 0).select(&[], &[]);
    for first in 0..6 {
        let rows_before = instance.labels.len();
        for pattern in 0..32 * repeats {
            let bits: Vec<bool> = (0..5).map(|bit| pattern >> bit & 1 == 1).collect();
            let label = bits.iter().filter(|&&bit| bit).count() % 2;
            let exception = first == 5 && instance.labels.len() == rows_before;
            if (label == first % 2) != exception {
                let listed = (0..5).map(|i| i == first || i > first && random.chance(0.5));
                instance.features.push(listed.chain(bits).collect());
                instance.labels.push(label);
            }
        }
    }
    let n = instance.labels.len();
    instance.sample = survival::Sample {
        time: vec![1.0; n],
        event: vec![true; n],
        weight: vec![1.0; n],
        entry: None,
    };
    instance
}

#[test]
fn an_error_costs_more_than_any_number_of_leaves_without_penalty() {
    let instance = parity_or_list(4);
    let question = Question {
        objective: Objective::ACCURACY,
        limits: Limits { max_depth: 5, max_leaves: None, min_leaf: 1 },
        leaf_penalty: 0.0,
        min_events: 0,
        prior: 0.0,
    };
    let parity = (5..10).rev().fold(Tree::leaf(), |tree, bit| Tree::split(bit, &tree, &tree));
    let (features, rows) = (&instance.features, &instance.rows());
    assert_eq!(score_tree(&parity, features, rows, question.cost(&instance)), Ok(0.0));
    assert_eq!(question.solution(&instance, &question.settings()).unwrap().objective, 0.0);
}
