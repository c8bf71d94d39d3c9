//! Tests of switches that must not change the result.

use bristlecone_core::registry::Entry;
use bristlecone_core::search::{Precision, Settings};
use bristlecone_core::simd::Backend;
use bristlecone_oracle::instances::Random;

use crate::harness::{Answer, Case, SCALE, Size, agree, ensure, for_each, for_each_of};
use crate::tasks;

const PRECISIONS: [Option<Precision>; 4] =
    [None, Some(Precision::Single), Some(Precision::Double), Some(Precision::Exact)];

/// Settings with every instruction set of this machine, on one thread and on three.
fn kernels(base: &Settings, precision: Option<Precision>) -> Vec<Settings> {
    let mut all = vec![];
    for backend in Backend::available() {
        for n_threads in [1, 3] {
            let cells_per_thread = Some(64);
            let backend = Some(backend);
            all.push(
                base.with_switches(|s| {
                    s.backend = backend;
                    s.precision = precision;
                    s.cells_per_thread = cells_per_thread;
                })
                .with_resources(|s| s.n_threads = n_threads),
            );
        }
    }
    all
}

/// Settings that must not change the objective, though they may choose another of several equally
/// good trees: one or more for every switch that the searches of the task read.
pub fn same_objective(entry: &Entry, base: &Settings) -> Vec<Settings> {
    let has = |switch| entry.switches.contains(&switch);
    let mut all: Vec<Settings> = vec![];
    for &switch in entry.switches {
        let base = || base.clone();
        match switch {
            // Together with the other two switches, if the task reads them.
            "backend" => {
                let precisions = if has("precision") { &PRECISIONS[..] } else { &PRECISIONS[..1] };
                all.extend(precisions.iter().flat_map(|&p| kernels(&base(), p)));
            }
            "cells_per_thread" | "precision" => assert!(has("backend")),
            "trivial_bound" => all.push(base().with_switches(|s| s.trivial_bound = false)),
            "equivalent_points" => all.push(base().with_switches(|s| s.equivalent_points = false)),
            "look_ahead" => all.push(base().with_switches(|s| s.look_ahead = false)),
            "implied" => {
                all.extend([true, false].map(|v| base().with_switches(|s| s.implied = Some(v))));
            }
            "relax_leaves" => all.push(base().with_switches(|s| s.relax_leaves = true)),
            "cache" => {
                all.push(base().with_switches(|s| s.cache = false));
                if !has("lattice_depth") {
                    all.push(base().with_resources(|s| s.memory_limit = Some(1 << 18)));
                }
            }
            // Branching instead of a lattice, down to single splits, with and without bounds.
            "lattice_depth" => {
                for lattice_depth in [1, 2, 3] {
                    let base = || base().with_switches(|s| s.lattice_depth = lattice_depth);
                    all.push(base());
                    all.push(base().with_switches(|s| s.cache = false));
                    if has("relax_leaves") {
                        all.push(base().with_switches(|s| s.relax_leaves = true));
                    }
                    if has("equivalent_points") {
                        all.push(base().with_switches(|s| s.equivalent_points = false));
                    }
                }
            }
            // Tested separately.
            "planted" => {}
            other => panic!("{other} is not tried"),
        }
    }
    all
}

/// Checks that all settings give the tree and the objective of the first, to the last bit.
fn give_one_tree(case: &Case, settings: &[Settings]) -> Result<(), String> {
    let reference = case.solve(&settings[0])?;
    for settings in &settings[1..] {
        let answer = case.solve(settings)?;
        let same = answer.tree == reference.tree
            && answer.objective.to_bits() == reference.objective.to_bits();
        ensure(same, || format!("{:?} not {:?}: {settings:?}", answer.tree, reference.tree))?;
    }
    Ok(())
}

#[test]
fn kernels_and_threads_do_not_change_the_tree() {
    // Not for Brier scores and fronts, whose lanes add floating-point numbers.
    let check = |case: &Case| {
        let precisions = if case.entry().switches.contains(&"precision") { 3 } else { 1 };
        PRECISIONS[..precisions]
            .iter()
            .try_for_each(|&precision| give_one_tree(case, &kernels(&case.settings(), precision)))
    };
    for_each(&tasks::sums(), 60 * SCALE, check);
    for_each_of(&tasks::sums(), 2 * SCALE, (60, 40, &[2, 3, 4]), check);
}

#[test]
fn threads_do_not_change_a_deep_tree() {
    // Kernels may change it: the order of columns above a lattice depends on its lanes.
    for_each_of(&tasks::sums(), 6 * SCALE, (40, 6, &[5, 6, 7]), |case| {
        kernels(&case.settings(), None).chunks(2).try_for_each(|pair| give_one_tree(case, pair))
    });
}

#[test]
fn cells_that_repeat_others_do_not_change_a_tree() {
    for_each_of(&tasks::sums(), 12 * SCALE, (60, 10, &[5, 6]), |case| {
        if !case.entry().switches.contains(&"implied") {
            return Ok(());
        }
        kernels(&case.settings(), None).iter().try_for_each(|settings| {
            let pair = [true, false].map(|v| settings.with_switches(|s| s.implied = Some(v)));
            give_one_tree(case, &pair)
        })
    });
}

#[test]
fn neither_lattices_nor_bounds_change_the_tree() {
    // Without a trivial bound, because trees of the start are kept if others are equally good.
    let check = |case: &Case| {
        let base = case.settings().with_switches(|s| s.trivial_bound = false);
        let all = same_objective(&case.entry(), &base);
        give_one_tree(case, &[&[base], &all[..]].concat())
    };
    for_each(&tasks::of_cells(), 60 * SCALE, check);
    for_each_of(&tasks::of_cells(), 6 * SCALE, (40, 6, &[2, 3, 4]), check);
}

#[test]
fn no_switch_changes_the_objective() {
    let check = |case: &Case| {
        let reference = case.solve(&case.settings())?;
        let apart = apart(case, &reference)?;
        for settings in same_objective(&case.entry(), &case.settings()) {
            let answer = case.solve(&settings)?;
            agree("objective", answer.objective, reference.objective, apart)
                .map_err(|message| format!("{message}: {settings:?}"))?;
        }
        Ok(())
    };
    for_each(&tasks::one_tree(), 60 * SCALE, check);
    for_each_of(&tasks::sums(), 3 * SCALE, (40, 6, &[5, 6]), check);
}

/// How much objectives may differ if rows and columns are in another order.
fn apart(case: &Case, answer: &Answer) -> Result<f64, String> {
    Ok(1e-12 * case.size(answer)?)
}

#[test]
fn order_of_rows_and_features_does_not_change_the_objective() {
    for_each(&tasks::one_tree(), 80 * SCALE, |case| {
        let reference = case.solve(&case.settings())?;
        let random = &mut Random::new(case.instance.rows().len() as u64);
        let rows = random.permutation(case.instance.rows().len());
        let features = random.permutation(case.instance.n_features());
        let unmoved: Vec<usize> = (0..case.instance.n_features()).collect();
        for (rows, features) in [(&rows, &unmoved), (&case.instance.rows(), &features)] {
            let answer = case.select(rows, features).solve(&case.settings())?;
            let apart = apart(case, &reference)?;
            agree("objective", answer.objective, reference.objective, apart)?;
        }
        Ok(())
    });
}

#[test]
fn idle_columns_do_not_change_the_objective() {
    // A negation may be cheaper than its feature.
    let unpriced: Vec<_> =
        tasks::one_tree().into_iter().filter(|task| *task != "priced-costs").collect();
    for_each(&unpriced, 80 * SCALE, |case| {
        let reference = case.solve(&case.settings())?;
        let mut wider = case.clone();
        for row in &mut wider.instance.features {
            let negations: Vec<bool> = row.iter().map(|value| !value).collect();
            *row = [negations.as_slice(), &[true], row, &[false]].concat();
        }
        let answer = wider.solve(&case.settings())?;
        agree("objective", answer.objective, reference.objective, apart(case, &reference)?)?;
        ensure(answer.n_columns == reference.n_columns, || {
            format!("{} columns instead of {}", answer.n_columns, reference.n_columns)
        })
    });
}

#[test]
fn weights_count_as_repetition() {
    const SIZE: Size = (16, 5, &[1, 2, 3]);
    // A cost computed outside may depend on other sums than weights.
    for_each_of(&tasks::one_tree(), 20 * SCALE, SIZE, |case| {
        let mut weighted = case.clone();
        (weighted.question.limits.min_leaf, weighted.question.min_events) = (1, 0);
        weighted.question.parameters.fewest = 0;
        let weight = &mut weighted.instance.sample.weight;
        weight.iter_mut().for_each(|w| *w = 1.0 + (*w * 8.0).floor() % 3.0);
        let copies = |(i, w): (usize, &f64)| std::iter::repeat_n(i, *w as usize);
        let rows: Vec<usize> = weight.iter().enumerate().flat_map(copies).collect();
        let features: Vec<usize> = (0..case.instance.n_features()).collect();
        let mut repeated = weighted.select(&rows, &features);
        repeated.instance.sample.weight.fill(1.0);
        let answer = weighted.solve(&weighted.settings())?;
        let expected = repeated.solve(&repeated.settings())?;
        agree("objective", answer.objective, expected.objective, apart(&repeated, &expected)?)
    });
}
