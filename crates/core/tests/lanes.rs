//! Kernels against one another: single lanes against double ones where rounding is of the size of
//! what tells trees apart, and every instruction set at sizes around those of vectors and words.

use bristlecone_core::data::BinaryMatrix;
use bristlecone_core::registry::{self, Column, Columns, Prepared, Problem};
use bristlecone_core::search::{Monitor, Precision, Settings, Solution, Status, solve_brier};
use bristlecone_core::simd::Backend;
use bristlecone_core::survival::Observations;
use bristlecone_core::task::brier::{Brier, LeafCurve};
use bristlecone_oracle::instances::Random;

fn no_limit(search: impl Fn(&Monitor) -> Solution) -> Solution {
    let solution = search(&Monitor::new(None, &|| false));
    assert_eq!(solution.status, Status::Optimal);
    solution
}

/// Numbers of rows and columns around those that fill a vector, several, or a word; with many
/// columns only shallow trees are affordable.
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

fn random_matrix(random: &mut Random, n: usize, columns: usize) -> BinaryMatrix {
    let bytes: Vec<u8> = (0..n * columns).map(|_| random.below(2) as u8).collect();
    BinaryMatrix::from_bytes(n, columns, &bytes).expect("a byte per entry")
}

/// Misclassification of these rows.
fn accuracy(
    (labels, n_classes): (&[i64], usize),
    weights: &[f64],
    n_features: usize,
    leaf_penalty: f64,
    settings: &Settings,
) -> Prepared<'static> {
    let mut columns = Columns::default();
    columns.insert("labels", Column::Codes(labels));
    columns.insert("n_classes", Column::Number(n_classes as f64));
    columns.insert("weight", Column::Numbers(weights));
    let (n_rows, max_leaves) = (labels.len(), settings.most_leaves());
    let problem = Problem { columns, n_rows, n_features, leaf_penalty, max_leaves };
    match registry::prepare("accuracy", &problem).expect("complete") {
        Prepared::Sum(task) => Prepared::Sum(task),
        _ => panic!("a sum task"),
    }
}

#[test]
fn lattices_of_any_size_give_one_tree() {
    for (n, columns, max_depth) in sizes(5) {
        let random = &mut Random::new((1000 * n + columns) as u64);
        let matrix = random_matrix(random, n, columns);
        let n_classes = 2 + random.below(3);
        let labels: Vec<i64> = (0..n).map(|_| random.below(n_classes) as i64).collect();
        let weights: Vec<f64> = (0..n).map(|_| (1 + random.below(3)) as f64).collect();
        let min_leaf = random.pick(&[1, 3]).min(n);
        for max_leaves in [None, Some(5)] {
            let base = Settings { max_depth, max_leaves, min_leaf, ..Settings::default() };
            let task = accuracy((&labels, n_classes), &weights, columns, 0.001, &base);
            let mut found: Vec<Solution> = Vec::new();
            for backend in Backend::available() {
                for precision in [Precision::Single, Precision::Double] {
                    let (backend, precision) = (Some(backend), Some(precision));
                    let settings = Settings { backend, precision, ..base.clone() };
                    found.push(no_limit(|m| task.solve(&matrix, &settings, m).unwrap()));
                }
            }
            let same = |other: &Solution| {
                (&other.tree, other.objective.to_bits())
                    == (&found[0].tree, found[0].objective.to_bits())
            };
            assert!(found.iter().all(same), "{n} rows, {columns} columns: {found:?}");
        }
    }
}

#[test]
fn curve_searches_of_any_size_give_one_objective() {
    for (n, columns, max_depth) in sizes(2) {
        let random = &mut Random::new((1000 * n + columns) as u64);
        let matrix = random_matrix(random, n, columns);
        let n_times = 1 + random.below(2 * n);
        let time: Vec<f64> = (0..n).map(|_| random.below(n_times) as f64).collect();
        let event: Vec<bool> = (0..n).map(|i| i == 0 || random.chance(0.6)).collect();
        let whole = random.chance(0.5);
        let weight = |random: &mut Random| if whole { 1.0 } else { 0.5 + random.unit() };
        let weight: Vec<f64> = (0..n).map(|_| weight(random)).collect();
        let min_leaf = random.pick(&[1, 3]).min(n);
        for curve in [LeafCurve::KaplanMeier, LeafCurve::BrierOptimal] {
            let obs =
                Observations { time: &time, event: &event, weight: Some(&weight), entry: None };
            let task = Brier::new(&obs, 0.001, curve, None).unwrap();
            let objectives: Vec<f64> = Backend::available()
                .map(|backend| {
                    let backend = Some(backend);
                    let settings = Settings { max_depth, min_leaf, backend, ..Settings::default() };
                    no_limit(|m| solve_brier(&task, &matrix, &settings, m).unwrap()).objective
                })
                .collect();
            let same = |other: &f64| (other - objectives[0]).abs() <= 1e-12;
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
        let bytes: Vec<u8> = (0..n * n_features).map(|_| random.below(2) as u8).collect();
        // Two classes of nearly equal large weight in every row: an error more or less and
        // the price of a split are alike, and both are far below the loss.
        let labels: Vec<i64> = (0..2 * n).map(|i| (i / n) as i64).collect();
        let least = 520_000 / (2 * n) - 3;
        let weights: Vec<f64> = labels.iter().map(|_| (least + random.below(7)) as f64).collect();
        let total: f64 = weights.iter().sum();
        let price = random.pick(&[0.25, 1.0 / 3.0, 0.4, 0.6, 2.0 / 3.0]);
        let price = price * (0.98 + 0.04 * random.unit());
        let matrix = BinaryMatrix::from_bytes(2 * n, n_features, &[bytes.clone(), bytes].concat());
        let matrix = matrix.expect("a byte per entry");
        let base = Settings { max_depth: 3, ..Settings::default() };
        let task = accuracy((&labels, 2), &weights, n_features, price / total, &base);
        let [single, double] = [Precision::Single, Precision::Double].map(|precision| {
            let settings = Settings { precision: Some(precision), ..base.clone() };
            let monitor = Monitor::new(None, &|| false);
            let solution = task.solve(&matrix, &settings, &monitor).unwrap();
            assert_eq!(solution.status, Status::Optimal);
            solution.objective
        });
        assert!((single - double).abs() <= 1e-12, "seed {seed}: {single} instead of {double}");
    }
}
