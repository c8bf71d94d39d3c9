//! Bounds hold at all times, and so does the result of a search that was stopped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use bristlecone_core::search::{Settings, Solution, Status};
use bristlecone_oracle::instances::Instance;
use bristlecone_oracle::{Limits, admit_tree, best_by_leaves, score_tree};

use crate::harness::{
    CERTIFIED, Objective, Question, SCALE, agree, agree_on_status, ensure, for_each_allowed,
    oracle_tree,
};
use crate::switches::same_objective;

/// What a search that may have been stopped early still promises.
fn keeps_its_promises(
    instance: &Instance,
    question: &Question,
    optimum: f64,
    solution: &Solution,
) -> Result<(), String> {
    let tree = oracle_tree(&solution.tree);
    let (features, rows) = (&instance.features, &instance.rows());
    admit_tree(&tree, features, rows, &question.limits)?;
    let score = score_tree(&tree, features, rows, question.cost(instance))?;
    agree("objective of the tree", solution.objective, score, 1e-12)?;
    if solution.status == Status::Optimal {
        agree("objective", solution.objective, optimum, CERTIFIED)
    } else {
        // The oracle adds in another order: its optimum may be a rounding below the truth.
        let bound = solution.lower_bound;
        ensure(bound <= optimum + 1e-14 * optimum.max(1.0), || {
            format!("bound {bound} above {optimum}")
        })
    }
}

#[test]
fn an_interrupted_search_gives_a_tree_and_a_bound() {
    let interrupted = AtomicU64::new(0);
    for_each_allowed(200 * SCALE, (40, 6), &[2, 3, 4, 5, 6], |instance, question| {
        let optimum = question.optimum(instance);
        for patience in [0, 1, 2, 5, 10, 30, 100] {
            for (lattice_depth, relax_leaves) in [(2, false), (2, true), (4, false)] {
                let settings = Settings { lattice_depth, relax_leaves, ..question.settings() };
                let checks = AtomicU64::new(0);
                let stop = || checks.fetch_add(1, Ordering::Relaxed) >= patience;
                let solution = question.solve_until(instance, &settings, &stop);
                let solution = solution.map_err(|e| e.to_string())?;
                keeps_its_promises(instance, question, optimum, &solution)?;
                if solution.status != Status::Optimal {
                    agree_on_status(&solution, Status::Interrupted)?;
                    interrupted.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    });
    assert!(interrupted.load(Ordering::Relaxed) > 100 * SCALE, "hardly any search was interrupted");
}

#[test]
fn an_interrupted_size_path_gives_trees_and_bounds() {
    let interrupted = AtomicU64::new(0);
    for_each_allowed(50 * SCALE, (30, 6), &[2, 3, 4, 5], |instance, question| {
        let (features, rows) = (&instance.features, &instance.rows());
        let cost = question.cost(instance);
        let optima = best_by_leaves(features, rows, &question.limits, cost);
        for patience in [0, 2, 10, 30] {
            let settings = Settings { lattice_depth: 2, ..question.settings() };
            let checks = AtomicU64::new(0);
            let stop = || checks.fetch_add(1, Ordering::Relaxed) >= patience;
            let path = question.solve_path_until(instance, &settings, &stop);
            for (k, solution) in path.map_err(|e| e.to_string())?.iter().enumerate() {
                let mut limited = question.clone();
                limited.limits.max_leaves = Some(k + 1);
                let optimum = optima[k.min(optima.len() - 1)];
                keeps_its_promises(instance, &limited, optimum, solution)?;
                let open = solution.status != Status::Optimal;
                interrupted.fetch_add(u64::from(open), Ordering::Relaxed);
            }
        }
        Ok(())
    });
    assert!(interrupted.load(Ordering::Relaxed) > 50 * SCALE, "hardly any path was interrupted");
}

#[test]
fn a_search_short_of_memory_gives_a_tree_and_a_bound() {
    let short = AtomicU64::new(0);
    for_each_allowed(100 * SCALE, (40, 6), &[2, 3, 4, 5, 6], |instance, question| {
        let optimum = question.optimum(instance);
        for memory_limit in [0, 1_000, 3_000, 10_000, 30_000, 100_000] {
            let memory_limit = Some(memory_limit);
            let settings = Settings { memory_limit, ..question.settings() };
            let solution = question.solution(instance, &settings)?;
            keeps_its_promises(instance, question, optimum, &solution)?;
            if solution.status != Status::Optimal {
                agree_on_status(&solution, Status::MemoryLimit)?;
                short.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    });
    assert!(short.load(Ordering::Relaxed) > 10 * SCALE, "hardly any search lacked memory");
}

#[test]
fn the_trace_never_contradicts_the_optimum() {
    for_each_allowed(200 * SCALE, (40, 6), &[1, 2, 3, 4], |instance, question| {
        let optimum = question.optimum(instance);
        let solution = question.solution(instance, &question.settings())?;
        let tolerance = CERTIFIED * optimum.max(1.0);
        for point in &solution.trace {
            let valid =
                point.lower_bound <= optimum + tolerance && point.objective >= optimum - tolerance;
            ensure(valid, || format!("{point:?} for an optimum of {optimum}"))?;
        }
        ensure(!solution.trace.is_empty(), || "no trace".into())
    });
}

#[test]
fn the_bound_moves_where_first_questions_are_taken_one_by_one() {
    let (moved, open) = (AtomicU64::new(0), AtomicU64::new(0));
    for_each_allowed(60 * SCALE, (60, 12), &[4], |instance, question| {
        let question = question.without_events();
        let settings = Settings { lattice_depth: 2, relax_leaves: true, ..question.settings() };
        let solution = question.solution(instance, &settings)?;
        let first = solution.trace[0].lower_bound;
        let last = &solution.trace[solution.trace.len() - 1];
        let rises = |low: f64, high: f64| high > low + 1e-6;
        if rises(first, last.objective) && solution.nodes > 1000 {
            open.fetch_add(1, Ordering::Relaxed);
            let between = |bound| rises(first, bound) && rises(bound, last.objective);
            let some = solution.trace.iter().any(|point| between(point.lower_bound));
            moved.fetch_add(u64::from(some), Ordering::Relaxed);
        }
        Ok(())
    });
    let (moved, open) = (moved.into_inner(), open.into_inner());
    assert!(3 * moved > open && open > 10, "{moved} of {open} bounds moved");
}

#[test]
fn a_planted_optimum_survives_and_a_planted_impossibility_panics() {
    for_each_allowed(100 * SCALE, (40, 6), &[1, 2, 3, 4], |instance, question| {
        let optimum = question.optimum(instance);
        for switch in same_objective(&question.settings()) {
            question.solution(instance, &Settings { planted: Some(optimum), ..switch })?;
        }
        Ok(())
    });
    let instance = Instance::random(5, 40, 6);
    let question = Question {
        objective: Objective::Likelihood,
        limits: Limits { max_depth: 2, max_leaves: None, min_leaf: 1 },
        leaf_penalty: 0.0,
        min_events: 0,
        prior: 0.0,
    };
    let impossible = question.optimum(&instance) - 1e-6;
    let settings = Settings { planted: Some(impossible), ..question.settings() };
    let solved = catch_unwind(AssertUnwindSafe(|| question.solve(&instance, &settings)));
    assert!(solved.is_err(), "a tree better than the best was not missed");
}
