//! Comparisons of kernels: single and double lanes where trees differ by about a rounding error,
//! and all instruction sets at sizes close to those of vectors and words.

use bristlecone_core::search::{Precision, Settings, Status};
use bristlecone_core::simd::Backend;
use bristlecone_oracle::instances::{Instance, Random};

use crate::harness::{Answer, Case, Question};

fn optimal(case: &Case, settings: Settings) -> Answer {
    let answer = case.solve(&settings).expect("an answer");
    assert_eq!(answer.status, Status::Optimal);
    answer
}

/// Numbers of rows and columns close to those that fill vectors or words, and a depth. With many
/// columns the depth is small.
fn sizes(most_depth: usize) -> Vec<(usize, usize, usize)> {
    let columns = (1..=18).chain([31, 32, 33, 47, 48, 49, 63, 64, 65, 66, 127, 128, 129, 193]);
    let depth = |columns: usize| match columns {
        0..=10 => 5,
        11..=18 => 4,
        19..=49 => 3,
        50..=129 => 2,
        _ => 1,
    };
    let rows = [1, 7, 63, 64, 65, 128, 129];
    let size = |(at, columns): (usize, usize)| {
        [rows[at % rows.len()], 65].map(|rows| (rows, columns, depth(columns).min(most_depth)))
    };
    columns.enumerate().flat_map(size).collect()
}

/// Rows with random features, all in one class.
fn random_features(random: &mut Random, n: usize, columns: usize) -> Instance {
    let features: Vec<Vec<bool>> =
        (0..n).map(|_| (0..columns).map(|_| random.below(2) == 1).collect()).collect();
    Instance::of_labels(features, vec![0; n], 2)
}

/// A question with a penalty per leaf.
fn question(task: &'static str, max_depth: usize, leaf_penalty: f64) -> Question {
    Question { leaf_penalty, ..Question::of(task, max_depth) }
}

#[test]
fn lattices_of_any_size_give_one_tree() {
    for (n, columns, max_depth) in sizes(5) {
        let random = &mut Random::new((1000 * n + columns) as u64);
        let mut instance = random_features(random, n, columns);
        instance.n_classes = 2 + random.below(3);
        instance.labels.iter_mut().for_each(|label| *label = random.below(instance.n_classes));
        let weight = &mut instance.sample.weight;
        weight.iter_mut().for_each(|w| *w = (1 + random.below(3)) as f64);
        let mut case = Case::new(&instance, &question("accuracy", max_depth, 0.001));
        case.question.limits.min_leaf = random.pick(&[1, 3]).min(n);
        for max_leaves in [None, Some(5)] {
            case.question.limits.max_leaves = max_leaves;
            let mut found: Vec<Answer> = Vec::new();
            for backend in Backend::available() {
                for precision in [Precision::Short, Precision::Single, Precision::Double] {
                    let (backend, precision) = (Some(backend), Some(precision));
                    let settings = case.settings().with_switches(|s| {
                        s.backend = backend;
                        s.precision = precision;
                    });
                    found.push(optimal(&case, settings));
                }
            }
            let same = |other: &Answer| {
                (&other.tree, other.objective.to_bits())
                    == (&found[0].tree, found[0].objective.to_bits())
            };
            assert!(found.iter().all(same), "{n} rows, {columns} columns: {found:?}");
        }
    }
}

#[test]
fn sums_at_the_limit_of_short_lanes_give_one_tree() {
    for seed in 0..400 {
        let random = &mut Random::new(seed);
        let (n, columns, max_depth) =
            (6 + random.below(30), 3 + random.below(7), 1 + random.below(4));
        let mut instance = random_features(random, n, columns);
        instance.labels.iter_mut().for_each(|label| *label = random.below(2));
        // Whole weights; with the bits of prices, their sum is about the largest number of a lane.
        let leaves = 1usize << max_depth;
        let most = (1 << 16) / leaves + random.below(5) - 2;
        let weight = &mut instance.sample.weight;
        weight.iter_mut().for_each(|w| *w = 1.0 + random.below(2 * most / n) as f64);
        let of_class = |weight: &[f64], label: usize| {
            let labels = instance.labels.iter().zip(weight);
            labels.filter(|&(&l, _)| l != label).map(|(_, &w)| w).sum::<f64>()
        };
        let larger = usize::from(of_class(weight, 0) < of_class(weight, 1));
        let missing = most as f64 - of_class(weight, larger);
        let heavy = (0..n).find(|&i| instance.labels[i] != larger);
        if let Some(i) = heavy.filter(|_| missing > -(n as f64)) {
            weight[i] = (weight[i] + missing).max(1.0);
        }
        let penalty = random.pick(&[0.0, 0.01, 1.0 / 3.0]);
        let mut case = Case::new(&instance, &question("accuracy", max_depth, penalty));
        case.question.limits.min_leaf = random.pick(&[1, 3]).min(n);
        for backend in Backend::available() {
            let [short, double] = [Precision::Short, Precision::Double].map(|precision| {
                let answer = optimal(
                    &case,
                    case.settings().with_switches(|s| {
                        (s.backend, s.precision) = (Some(backend), Some(precision));
                    }),
                );
                (answer.tree, answer.objective.to_bits())
            });
            assert_eq!(short, double, "seed {seed}, {backend:?}");
        }
    }
}

#[test]
fn curve_searches_of_any_size_give_one_objective() {
    for (n, columns, max_depth) in sizes(2) {
        let random = &mut Random::new((1000 * n + columns) as u64);
        let mut instance = random_features(random, n, columns);
        let n_times = 1 + random.below(2 * n);
        let whole = random.chance(0.5);
        for i in 0..n {
            instance.sample.time[i] = random.below(n_times) as f64;
            instance.sample.event[i] = i == 0 || random.chance(0.6);
            instance.sample.weight[i] = if whole { 1.0 } else { 0.5 + random.unit() };
        }
        let mut case = Case::new(&instance, &question("brier", max_depth, 0.001));
        case.question.limits.min_leaf = random.pick(&[1, 3]).min(n);
        for curve in ["kaplan-meier", "brier-optimal"] {
            case.question.parameters.curve = curve;
            let with = |backend| case.settings().with_switches(|s| s.backend = Some(backend));
            let objective = |backend| optimal(&case, with(backend)).objective;
            let objectives: Vec<f64> = Backend::available().map(objective).collect();
            let same = |other: &f64| (other - objectives[0]).abs() <= 1e-12 * objectives[0];
            assert!(objectives.iter().all(same), "{n} rows, {columns} columns: {objectives:?}");
        }
    }
}

#[test]
fn prices_that_round_in_single_lanes_do_not_hide_the_optimum() {
    let seeds = if cfg!(debug_assertions) { 2_000 } else { 20_000 };
    for seed in 0..seeds {
        let random = &mut Random::new(seed);
        let (n, n_features) = (8 + random.below(12), 4 + random.below(2));
        // Every distinct row has two classes with large, nearly equal weights. One more error costs
        // about as much as a split, and both are far below the loss.
        let half = random_features(random, n, n_features).features;
        let features = [half.clone(), half].concat();
        let mut instance = Instance::of_labels(features, (0..2 * n).map(|i| i / n).collect(), 2);
        let least = 520_000 / (2 * n) - 3;
        let weight = &mut instance.sample.weight;
        weight.iter_mut().for_each(|w| *w = (least + random.below(7)) as f64);
        let price = random.pick(&[0.25, 1.0 / 3.0, 0.4, 0.6, 2.0 / 3.0]);
        let price = price * (0.98 + 0.04 * random.unit()) / instance.sample.total_weight();
        let case = Case::new(&instance, &question("accuracy", 3, price));
        let [single, double] = [Precision::Single, Precision::Double].map(|precision| {
            optimal(&case, case.settings().with_switches(|s| s.precision = Some(precision)))
                .objective
        });
        assert!(
            (single - double).abs() <= 1e-12 * double,
            "seed {seed}: {single} instead of {double}"
        );
    }
}
