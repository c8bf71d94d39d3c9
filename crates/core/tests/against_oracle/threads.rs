//! Several threads find what one finds, to the last bit.

use std::cell::Cell;

use bristlecone_core::search::{Precision, Settings, Solution};
use bristlecone_core::simd::Backend;
use bristlecone_oracle::instances::Instance;

use crate::harness::{Question, SCALE, ensure, for_each_allowed};
use crate::watch::Watch;

/// Everything that a search tells but for the time it took, bits for numbers.
fn told(solution: &Solution) -> impl PartialEq + std::fmt::Debug + use<> {
    let point = |objective: f64, bound: f64, nodes| (objective.to_bits(), bound.to_bits(), nodes);
    let trace: Vec<_> =
        solution.trace.iter().map(|p| point(p.objective, p.lower_bound, p.nodes)).collect();
    let end = point(solution.objective, solution.lower_bound, solution.nodes);
    (solution.tree.clone(), solution.status, end, trace)
}

/// How often two and three threads ran.
#[derive(Default)]
struct Ran([Cell<u64>; 2]);

impl Ran {
    /// `search` on one, two and three threads for every kind of lanes.
    fn give_one_answer<T: PartialEq + std::fmt::Debug>(
        &self,
        base: &Settings,
        search: impl Fn(&Settings, &(dyn Fn() -> bool + Sync)) -> Result<T, String>,
    ) -> Result<(), String> {
        for backend in Backend::available() {
            for precision in [Precision::Single, Precision::Double] {
                let on = |n_threads| {
                    let (backend, precision) = (Some(backend), Some(precision));
                    let cells_per_thread = Some(1);
                    let lanes = Settings { backend, precision, ..base.clone() };
                    let watch = Watch::default();
                    let settings = Settings { n_threads, cells_per_thread, ..lanes };
                    let answer = search(&settings, &|| watch.look())?;
                    Ok::<_, String>((answer, watch.threads()))
                };
                let (one, threads) = on(1)?;
                ensure(threads <= 1, || format!("{threads} threads instead of one"))?;
                for (n, ran) in [2, 3].into_iter().zip(&self.0) {
                    let (several, threads) = on(n)?;
                    ran.set(ran.get() + u64::from(threads >= n));
                    ensure(several == one, || {
                        format!("{several:?} not {one:?} on {n} threads: {backend:?} {precision:?}")
                    })?;
                }
            }
        }
        Ok(())
    }

    fn assert_often(&self, often: u64) {
        let ran = [self.0[0].get(), self.0[1].get()];
        assert!(
            ran.iter().all(|&ran| ran > often),
            "two threads {}, three {} times",
            ran[0],
            ran[1]
        );
    }
}

#[test]
fn threads_do_not_change_a_search() {
    let ran = Ran::default();
    for_each_allowed(6 * SCALE, (40, 6), &[3, 4, 5], |instance: &Instance, question: &Question| {
        // With one lattice, and with branching above lattices.
        let above = question.limits.max_depth - 1;
        [5, above].into_iter().try_for_each(|lattice_depth| {
            let base = Settings { lattice_depth, ..question.settings() };
            ran.give_one_answer(&base, |settings, interrupted| {
                let solution = question.solve_until(instance, settings, interrupted);
                Ok(told(&solution.map_err(|e| e.to_string())?))
            })
        })
    });
    ran.assert_often(4 * SCALE);
}

#[test]
fn threads_do_not_change_a_size_path() {
    let ran = Ran::default();
    for_each_allowed(3 * SCALE, (40, 6), &[3, 4, 5], |instance, question| {
        ran.give_one_answer(&question.settings(), |settings, interrupted| {
            let path = question.solve_path_until(instance, settings, interrupted);
            Ok(path.map_err(|e| e.to_string())?.iter().map(told).collect::<Vec<_>>())
        })
    });
    ran.assert_often(SCALE);
}
