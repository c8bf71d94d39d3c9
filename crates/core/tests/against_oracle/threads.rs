//! Several threads return the same result as one, to the last bit.

use std::cell::Cell;

use bristlecone_core::error::Error;
use bristlecone_core::search::{Monitor, Precision, Settings, Team};
use bristlecone_core::simd::Backend;

use crate::harness::{Answer, Case, SCALE, Size, ensure, for_each_of};
use crate::tasks;
use crate::watch::Watch;

/// What threads divide among themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// The cells of every lattice.
    Cells,
    /// The splits of the root.
    Questions,
}

impl By {
    fn cells_per_thread(self) -> usize {
        if self == By::Cells { 1 } else { usize::MAX }
    }
}

/// The result of a search except its time, with numbers as bits. The trace is included only if
/// threads divide cells: threads that divide splits find trees in another order.
fn result(case: &Case, by: By, answer: &Answer) -> impl PartialEq + std::fmt::Debug + use<> {
    let point = |objective: f64, bound: f64, nodes| (objective.to_bits(), bound.to_bits(), nodes);
    let end = point(answer.objective, answer.lower_bound, 0);
    // A lattice of one column has too few cells.
    let shares_cells = by == By::Cells && answer.n_columns > 2;
    let in_one_order = shares_cells && tasks::of_cells().contains(&case.question.task);
    let on_the_way: Vec<_> = match in_one_order {
        true => answer.trace.iter().map(|p| point(p.objective, p.lower_bound, p.nodes)).collect(),
        false => vec![],
    };
    (answer.tree.clone(), answer.status, end, on_the_way)
}

/// Numbers of searches on two and on three threads in which more than one of them worked.
#[derive(Default)]
struct Ran([Cell<u64>; 2]);

impl Ran {
    /// Checks that `search` gives one answer on one, two and three threads with all kinds of lanes.
    fn give_one_answer<T: PartialEq + std::fmt::Debug + Send>(
        &self,
        case: &Case,
        base: &Settings,
        by: By,
        search: impl Fn(&Settings, &Monitor) -> Result<T, Error> + Sync,
    ) -> Result<(), String> {
        let lanes = [Precision::Short, Precision::Single, Precision::Double, Precision::Exact];
        let lanes = lanes.map(Some);
        let has_lanes = case.entry().switches.contains(&"precision");
        for backend in Backend::available() {
            for &precision in if has_lanes { &lanes[..] } else { &[None] } {
                let on = |n_threads| {
                    let (backend, cells_per_thread) = (Some(backend), Some(by.cells_per_thread()));
                    let lanes = base.with_switches(|s| {
                        s.backend = backend;
                        s.precision = precision;
                    });
                    let watch = Watch::on(n_threads);
                    let settings = lanes
                        .with_resources(|s| s.n_threads = n_threads)
                        .with_switches(|s| s.cells_per_thread = cells_per_thread);
                    let team = Team::of(n_threads).ok_or("no threads")?;
                    let alone = || search(&settings, &Monitor::new(None, &|| watch.look()));
                    let answer = team.work(alone, || ());
                    Ok::<_, String>((answer.map_err(|e| e.to_string())?, watch.threads()))
                };
                let (one, threads) = on(1)?;
                ensure(threads <= 1, || format!("{threads} threads instead of one"))?;
                for (n, ran) in [2, 3].into_iter().zip(&self.0) {
                    let (several, threads) = on(n)?;
                    ran.set(ran.get() + u64::from(threads >= 2));
                    ensure(several == one, || {
                        format!("{several:?} not {one:?} on {n} threads: {backend:?} {precision:?}")
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Asserts that several threads worked often enough. On a busy machine the first often finishes
    /// before the next one starts, and a small search has no work for a third.
    fn assert_often(&self, task: &str, often: u64) {
        let [two, three] = [self.0[0].get(), self.0[1].get()];
        assert!(two.min(three) > often, "{task}: two threads {two}, three {three} times");
    }
}

impl Case {
    /// Settings for one lattice and for branching above lattices, and what threads divide.
    fn shared(&self) -> Vec<(Settings, By)> {
        let base = self.settings();
        let mut all = vec![(base.clone(), By::Cells)];
        if self.entry().switches.contains(&"lattice_depth") {
            let branching = base.with_switches(|s| s.lattice_depth = base.limits.max_depth - 1);
            all.extend([By::Cells, By::Questions].map(|by| (branching.clone(), by)));
        }
        all
    }
}

/// Number of runs; many if searches often finish before a second thread starts.
fn runs(task: &str) -> u64 {
    match task {
        "brier" => 16 * SCALE,
        "fair-brier" => 4 * SCALE,
        _ => SCALE,
    }
}

#[test]
fn threads_do_not_change_a_search() {
    for task in tasks::one_tree() {
        let ran = Ran::default();
        let rows = if tasks::tasks_with("front").contains(&task) { 30 } else { 40 };
        let size: Size = (rows, 6, &[3, 4, 5]);
        for_each_of(&[task], runs(task).div_ceil(2).max(4), size, |case| {
            // With one lattice, and with branching above lattices.
            case.shared().iter().try_for_each(|(base, by)| {
                ran.give_one_answer(case, base, *by, |settings, monitor| {
                    Ok(result(case, *by, &case.on(settings, monitor)?))
                })
            })
        });
        ran.assert_often(task, SCALE / 4);
    }
}

#[test]
fn threads_that_share_questions_do_not_change_a_search() {
    for task in tasks::sums() {
        let ran = Ran::default();
        for_each_of(&[task], runs(task) * 4, (40, 6, &[3, 4, 5, 6]), |case| {
            // Lattices with few levels leave many splits above them, some of them tied.
            [1, 2, 3].into_iter().try_for_each(|lattice_depth| {
                let base = case.settings().with_switches(|s| s.lattice_depth = lattice_depth);
                ran.give_one_answer(case, &base, By::Questions, |settings, monitor| {
                    Ok(result(case, By::Questions, &case.on(settings, monitor)?))
                })
            })
        });
        ran.assert_often(task, SCALE);
    }
}

#[test]
fn threads_do_not_change_a_size_path() {
    for task in tasks::tasks_with("path") {
        let ran = Ran::default();
        for_each_of(&[task], runs(task).div_ceil(3).max(4), (40, 6, &[3, 4, 5]), |case| {
            case.shared().iter().try_for_each(|(base, by)| {
                ran.give_one_answer(case, base, *by, |settings, monitor| {
                    let path = case.path_on(settings, monitor)?;
                    Ok(path.iter().map(|answer| result(case, *by, answer)).collect::<Vec<_>>())
                })
            })
        });
        ran.assert_often(task, SCALE / 10);
    }
}
