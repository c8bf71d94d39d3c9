//! What must not change the result does not.

use bristlecone_core::search::{Precision, Settings};
use bristlecone_core::simd::Backend;
use bristlecone_oracle::instances::{Instance, Random};

use crate::harness::{Question, SCALE, agree, ensure, for_each_allowed};

const PRECISIONS: [Option<Precision>; 3] = [None, Some(Precision::Single), Some(Precision::Double)];

/// Every instruction set of this machine, on one thread and on several.
fn kernels(base: &Settings, precision: Option<Precision>) -> Vec<Settings> {
    let mut all = vec![];
    for backend in Backend::available() {
        for n_threads in [1, 3] {
            let cells_per_thread = Some(64);
            let backend = Some(backend);
            all.push(Settings { backend, precision, n_threads, cells_per_thread, ..base.clone() });
        }
    }
    all
}

/// Settings that must not change the objective, but may choose among equally good trees.
pub fn same_objective(base: &Settings) -> Vec<Settings> {
    let mut all: Vec<Settings> = PRECISIONS.iter().flat_map(|&p| kernels(base, p)).collect();
    all.push(Settings { trivial_bound: false, ..base.clone() });
    // Branching where a lattice would do, down to single splits; with and without bounds.
    for lattice_depth in [1, 2, 3] {
        all.push(Settings { lattice_depth, ..base.clone() });
        all.push(Settings { lattice_depth, cache: false, ..base.clone() });
        all.push(Settings { lattice_depth, relax_leaves: true, ..base.clone() });
        all.push(Settings { lattice_depth, equivalent_points: false, ..base.clone() });
    }
    all
}

/// Whether all settings give the first one's tree and objective, to the last bit.
fn give_one_tree(
    instance: &Instance,
    question: &Question,
    settings: &[Settings],
) -> Result<(), String> {
    let reference = question.solution(instance, &settings[0])?;
    for settings in &settings[1..] {
        let solution = question.solution(instance, settings)?;
        let same = solution.tree == reference.tree
            && solution.objective.to_bits() == reference.objective.to_bits();
        ensure(same, || format!("{:?} not {:?}: {settings:?}", solution.tree, reference.tree))?;
    }
    Ok(())
}

#[test]
fn kernels_and_threads_do_not_change_the_tree() {
    let check = |instance: &Instance, question: &Question| {
        PRECISIONS.iter().try_for_each(|&precision| {
            give_one_tree(instance, question, &kernels(&question.settings(), precision))
        })
    };
    for_each_allowed(150 * SCALE, (40, 6), &[0, 1, 2, 3, 4], check);
    for_each_allowed(15 * SCALE, (60, 40), &[2, 3, 4], check);
}

#[test]
fn threads_do_not_change_a_deep_tree() {
    // Here kernels may: the order of columns above a lattice follows its lanes.
    for_each_allowed(50 * SCALE, (40, 6), &[5, 6, 7], |instance, question| {
        kernels(&question.settings(), None)
            .chunks(2)
            .try_for_each(|pair| give_one_tree(instance, question, pair))
    });
}

#[test]
fn no_switch_changes_the_objective() {
    for_each_allowed(150 * SCALE, (40, 6), &[0, 1, 2, 3, 4, 5, 6], |instance, question| {
        let reference = question.solution(instance, &question.settings())?;
        for settings in same_objective(&question.settings()) {
            let solution = question.solution(instance, &settings)?;
            agree("objective", solution.objective, reference.objective, 1e-12)
                .map_err(|message| format!("{message}: {settings:?}"))?;
        }
        Ok(())
    });
}

#[test]
fn order_of_rows_and_features_does_not_change_the_objective() {
    for_each_allowed(200 * SCALE, (40, 6), &[1, 2, 3, 4], |instance, question| {
        let settings = question.settings();
        let reference = question.solution(instance, &settings)?;
        let random = &mut Random::new(instance.rows().len() as u64);
        let rows = random.permutation(instance.rows().len());
        let features = random.permutation(instance.n_features());
        let unmoved: Vec<usize> = (0..instance.n_features()).collect();
        for (rows, features) in [(&rows, &unmoved), (&instance.rows(), &features)] {
            let moved = instance.select(rows, features);
            let solution = question.solution(&moved, &settings)?;
            agree("objective", solution.objective, reference.objective, 1e-12)?;
        }
        Ok(())
    });
}

#[test]
fn idle_columns_do_not_change_the_objective() {
    for_each_allowed(200 * SCALE, (40, 6), &[1, 2, 3, 4], |instance, question| {
        let settings = question.settings();
        let reference = question.solution(instance, &settings)?;
        let mut wider = instance.clone();
        for row in &mut wider.features {
            let negations: Vec<bool> = row.iter().map(|value| !value).collect();
            *row = [negations.as_slice(), &[true], row, &[false]].concat();
        }
        let solution = question.solution(&wider, &settings)?;
        agree("objective", solution.objective, reference.objective, 1e-12)?;
        ensure(solution.n_columns == reference.n_columns, || {
            format!("{} columns instead of {}", solution.n_columns, reference.n_columns)
        })
    });
}

#[test]
fn weights_count_as_repetition() {
    for_each_allowed(200 * SCALE, (20, 6), &[1, 2, 3, 4], |instance, question| {
        let settings = Settings { min_leaf: 1, min_events: 0, ..question.settings() };
        let mut weighted = instance.clone();
        let whole = |w: &f64| 1.0 + (w * 8.0).floor() % 3.0;
        weighted.sample.weight = weighted.sample.weight.iter().map(whole).collect();
        let copies = |i: usize| std::iter::repeat_n(i, weighted.sample.weight[i] as usize);
        let rows: Vec<usize> = weighted.rows().into_iter().flat_map(copies).collect();
        let features: Vec<usize> = (0..instance.n_features()).collect();
        let mut repeated = weighted.select(&rows, &features);
        repeated.sample.weight.fill(1.0);
        let solution = question.solution(&weighted, &settings)?;
        let expected = question.solution(&repeated, &settings)?;
        agree("objective", solution.objective, expected.objective, 1e-12)
    });
}
