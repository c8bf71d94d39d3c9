//! Trees over every threshold of numeric columns, compared with the oracle, and with a search in
//! which each threshold is a binary feature.

use std::cell::Cell;

use bristlecone_core::data::RankMatrix;
use bristlecone_core::search::{Precision, Settings};
use bristlecone_core::simd::Backend;
use bristlecone_oracle::instances::Random;

use crate::harness::{CERTIFIED, Case, SCALE, Until, agree, ensure, for_each, for_each_of};
use crate::promises::stopped;
use crate::tasks;

/// A case with ranks, and random settings for its search.
fn over_ranks(case: &Case) -> (Case, Settings) {
    let random = &mut Random::new(case.instance.rows().len() as u64 ^ 0x7a5);
    let case = case.of_ranks(1 + random.below(6));
    let backends: Vec<Backend> = Backend::available().collect();
    let settings = case.settings().with_switches(|s| {
        s.backend = Some(random.pick(&backends));
        s.precision = random.pick(&[None, Some(Precision::Single), Some(Precision::Double)]);
        s.cache = random.chance(0.8);
    });
    (case, settings)
}

fn equals_oracle(case: &Case) -> Result<(), String> {
    let (case, settings) = over_ranks(case);
    let stopped = stopped(&case, &settings, case.optimum(), Until::End)?;
    ensure(stopped.is_none(), || format!("{stopped:?}"))
}

#[test]
fn optimum_over_thresholds_equals_the_oracle() {
    for_each(&tasks::tasks_with("over_thresholds"), 400 * SCALE, equals_oracle);
}

#[test]
fn optimum_over_many_thresholds_equals_the_oracle() {
    for_each_of(
        &tasks::tasks_with("over_thresholds"),
        20 * SCALE,
        (40, 24, &[1, 2, 3]),
        equals_oracle,
    );
}

#[test]
fn a_stopped_search_over_thresholds_keeps_its_promises() {
    let n_stopped = Cell::new(0);
    for_each(&tasks::tasks_with("over_thresholds"), 40 * SCALE, |case| {
        let (case, settings) = over_ranks(case);
        let random = &mut Random::new(case.instance.n_features() as u64);
        let patience = random.below(4) as u64;
        let until = random.pick(&[Until::Now, Until::Asked(patience)]);
        let stopped = stopped(&case, &settings, case.optimum(), until)?;
        n_stopped.set(n_stopped.get() + u64::from(stopped.is_some()));
        Ok(())
    });
    assert!(n_stopped.get() > 0);
}

#[test]
fn the_tree_over_thresholds_is_the_same_on_every_kernel_and_number_of_threads() {
    for_each(&tasks::tasks_with("over_thresholds"), 40 * SCALE, |case| {
        let (case, settings) = over_ranks(case);
        let mut first = None;
        for backend in Backend::available() {
            for precision in [Precision::Single, Precision::Double] {
                for n_threads in 1..4 {
                    let settings =
                        settings.with_resources(|s| s.n_threads = n_threads).with_switches(|s| {
                            (s.backend, s.precision) = (Some(backend), Some(precision));
                            s.cells_per_thread = Some(1);
                        });
                    let answer = case.solve(&settings)?;
                    let found = (answer.tree, answer.objective.to_bits());
                    let first = first.get_or_insert_with(|| found.clone());
                    ensure(*first == found, || {
                        format!("{found:?} not {first:?}: {backend:?} {precision:?} {n_threads}")
                    })?;
                }
            }
        }
        Ok(())
    });
}

/// A case with more rows than the oracle can handle, with ties and with columns of two values.
fn long(case: &Case, random: &mut Random) -> Case {
    let n_rows = case.instance.rows().len();
    let n = 60 + random.below(120);
    let rows: Vec<usize> = (0..n).map(|_| random.below(n_rows)).collect();
    let mut ranks = Vec::new();
    let n_columns = 1 + random.below(3);
    for column in 0..n_columns {
        let most = if column == 0 { n } else { random.pick(&[2, 7, n]) };
        let signal = |r: usize| {
            if random.chance(0.5) { rows[r] * most / n_rows } else { random.below(most) }
        };
        let values: Vec<usize> = (0..n).map(signal).collect();
        let mut distinct = values.clone();
        distinct.sort_unstable();
        distinct.dedup();
        ranks.extend(values.iter().map(|v| distinct.binary_search(v).expect("a value") as u32));
    }
    let ranks = RankMatrix::new(n, n_columns, ranks).expect("an entry per row and column");
    let mut long = case.select(&rows, &[]);
    let of_row = |row: usize| (0..ranks.n_questions()).map(|q| ranks.holds(row, q)).collect();
    long.instance.features = (0..n).map(of_row).collect();
    Case { ranks: Some(ranks), ..long }
}

#[test]
fn optimum_over_long_columns_is_that_over_their_thresholds_as_features() {
    let tasks = tasks::tasks_with("over_thresholds");
    for_each_of(&tasks, 8 * SCALE, (40, 3, &[1, 2, 2, 3]), |case| {
        let random = &mut Random::new(case.instance.labels.iter().sum::<usize>() as u64);
        let ranked = long(case, random);
        let (_, settings) = over_ranks(case);
        let over = |case: &Case| case.solve(&settings.with_switches(|s| s.cache = true));
        // The range of repeated rows may be too wide for a certificate in both searches.
        let (one, other) = match (over(&ranked), over(&Case { ranks: None, ..ranked.clone() })) {
            (Err(refusal), _) if refusal.contains("too wide a range") => return Ok(()),
            (one, other) => (one?, other?),
        };
        let size = ranked.size(&other)?;
        agree("objective", one.objective, other.objective, CERTIFIED * size)
    });
}
