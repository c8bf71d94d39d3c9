//! Bounds are valid at any time, and so are the results of stopped searches.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bristlecone_core::registry;
use bristlecone_core::search::Status;
use bristlecone_oracle::Limits;

use crate::harness::{Case, SCALE, Size, Until, ensure, for_each, for_each_of};
use crate::promises::{keeps_promises, stopped};
use crate::switches::same_objective;
use crate::tasks;

/// How often something happened with each task.
#[derive(Default)]
struct Tally(Cell<BTreeMap<&'static str, u64>>);

impl Tally {
    fn count(&self, case: &Case, happened: bool) {
        let mut counts = self.0.take();
        *counts.entry(case.question.task).or_default() += u64::from(happened);
        self.0.set(counts);
    }

    /// Whether it happened less than `often` times with the task of a case.
    fn less_than(&self, often: u64, case: &Case) -> bool {
        let counts = self.0.take();
        let less = counts.get(case.question.task).is_none_or(|&n| n < often);
        self.0.set(counts);
        less
    }

    /// Asserts that it happened at least `often` times with each task.
    fn assert_often(self, tasks: &[&'static str], often: u64) {
        let counts = self.0.into_inner();
        let all = tasks.iter().all(|task| counts.get(task).is_some_and(|&n| n >= often));
        assert!(all, "less than {often} times: {counts:?}");
    }
}

#[test]
fn an_interrupted_search_gives_a_tree_and_a_bound() {
    let interrupted = Tally::default();
    let check = |case: &Case| {
        let (base, optimum) = (case.settings(), case.optimum());
        let has = |switch| case.entry().switches.contains(&switch);
        let mut all = vec![base.clone()];
        if has("lattice_depth") {
            all.push(base.with_switches(|s| s.lattice_depth = 2));
            // Threads divide the splits of the root among themselves.
            let branching = base.with_switches(|s| {
                s.lattice_depth = 1;
                s.cells_per_thread = Some(usize::MAX);
            });
            all.push(branching.with_resources(|s| s.n_threads = 3));
        }
        if has("relax_leaves") {
            all.push(base.with_switches(|s| {
                s.lattice_depth = 2;
                s.relax_leaves = true;
            }));
        }
        for patience in [0, 1, 2, 5, 10, 30, 100] {
            for settings in &all {
                let status = stopped(case, settings, optimum, Until::Asked(patience))?;
                ensure(status.is_none_or(|s| s == Status::Interrupted), || format!("{status:?}"))?;
                interrupted.count(case, status.is_some());
            }
        }
        let status = stopped(case, &base, optimum, Until::Now)?;
        ensure(status.is_none_or(|s| s == Status::TimeLimit), || format!("{status:?}"))
    };
    for_each(&tasks::one_tree(), 60 * SCALE, check);
    for_each_of(&tasks::sums(), 4 * SCALE, (40, 6, &[5, 6]), check);
    interrupted.assert_often(&tasks::one_tree(), 2 * SCALE);
}

#[test]
fn an_interrupted_size_path_gives_trees_and_bounds() {
    let interrupted = Tally::default();
    let check = |case: &Case| {
        let optima = case.by_leaves(&case.question.limits);
        let lattices = case.entry().switches.contains(&"lattice_depth");
        let branching = case.settings().with_switches(|s| s.lattice_depth = 2);
        let settings = if lattices { branching } else { case.settings() };
        for patience in [0, 2, 10, 30] {
            let path = case.path(&settings, Until::Asked(patience))?;
            ensure(!path.is_empty(), || "an empty path".into())?;
            for (k, answer) in path.iter().enumerate() {
                let limits = Limits { max_leaves: Some(k + 1), ..case.question.limits.clone() };
                let optimum = optima[k.min(optima.len() - 1)];
                keeps_promises(case, &limits, optimum, answer, &[])?;
                interrupted.count(case, answer.status != Status::Optimal);
            }
        }
        Ok(())
    };
    const SIZE: Size = (30, 6, &[2, 3, 4, 5]);
    let sums: Vec<_> =
        tasks::tasks_with("path").into_iter().filter(|task| *task != "brier").collect();
    for_each_of(&sums, 6 * SCALE, SIZE, check);
    for_each_of(&["brier"], 10 * SCALE, (20, 5, &[2, 3]), check);
    interrupted.assert_often(&tasks::tasks_with("path"), 2 * SCALE);
}

#[test]
fn a_search_short_of_memory_gives_a_tree_and_a_bound() {
    let short = Tally::default();
    let check = |case: &Case| {
        let optimum = case.optimum();
        for bytes in [0, 1_000, 3_000, 10_000, 30_000, 100_000] {
            let settings = case.settings().with_resources(|s| s.memory_limit = Some(bytes));
            let status = stopped(case, &settings, optimum, Until::End)?;
            ensure(status.is_none_or(|s| s == Status::MemoryLimit), || format!("{status:?}"))?;
            short.count(case, status.is_some());
        }
        Ok(())
    };
    for_each(&tasks::one_tree(), 30 * SCALE, check);
    for_each_of(&tasks::sums(), 3 * SCALE, (40, 6, &[5, 6]), check);
    short.assert_often(&tasks::sums(), SCALE);
}

#[test]
fn the_bound_moves_where_first_questions_are_taken_one_by_one() {
    let (moved, open) = (Cell::new(0), Cell::new(0));
    for_each_of(registry::SUMS, 9 * SCALE, (60, 12, &[4]), |case| {
        let mut case = case.clone();
        (case.question.min_events, case.question.parameters.prior) = (0, 0.0);
        let settings = case.settings().with_switches(|s| {
            s.lattice_depth = 2;
            s.relax_leaves = true;
        });
        let answer = case.solve(&settings)?;
        let first = answer.trace[0].lower_bound;
        let last = answer.trace[answer.trace.len() - 1].objective;
        let rises = |low: f64, high: f64| high > low + 1e-6;
        if rises(first, last) && answer.nodes > 1000 {
            open.set(open.get() + 1);
            let between = |bound| rises(first, bound) && rises(bound, last);
            let some = answer.trace.iter().any(|point| between(point.lower_bound));
            moved.set(moved.get() + u64::from(some));
        }
        Ok(())
    });
    let (moved, open) = (moved.get(), open.get());
    assert!(3 * moved > open && open > 10, "{moved} of {open} bounds moved");
}

/// Number of panics to expect with each task.
const PANICS: u64 = 40;

#[test]
fn a_planted_optimum_survives_and_a_planted_impossibility_panics() {
    let missed = Tally::default();
    for_each(&tasks::one_tree(), 50 * SCALE, |case| {
        let optimum = case.optimum();
        let size = case.size(&case.solve(&case.settings())?)?;
        let below = if size < 1e6 { (1e-8 * size).max(f64::MIN_POSITIVE) } else { 1.0 };
        for settings in same_objective(&case.entry(), &case.settings()) {
            let planted = |objective: f64| {
                let settings = settings.with_switches(|s| s.planted = Some(objective));
                catch_unwind(AssertUnwindSafe(|| case.solve(&settings)))
            };
            planted(optimum).map_err(|_| format!("missed with {settings:?}"))??;
            if missed.less_than(PANICS, case) {
                // If there is no tree, every objective is too small.
                let impossible = optimum.min(1e6) - below;
                let found = planted(impossible).is_err();
                ensure(found, || format!("better than the best, not missed: {settings:?}"))?;
                missed.count(case, true);
            }
        }
        Ok(())
    });
    missed.assert_often(&tasks::one_tree(), PANICS);
}
