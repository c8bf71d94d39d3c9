//! Single lanes against double ones where rounding is of the size of what tells trees apart.

use bristlecone_core::data::BinaryMatrix;
use bristlecone_core::search::{Monitor, Precision, Settings, Status, solve};
use bristlecone_core::task::accuracy::Accuracy;
use bristlecone_oracle::instances::Random;

#[test]
fn prices_that_round_in_single_lanes_do_not_hide_the_optimum() {
    let seeds = if cfg!(debug_assertions) { 2_000 } else { 20_000 };
    for seed in 0..seeds {
        let random = &mut Random::new(seed);
        let (n, n_features) = (8 + random.below(12), 4 + random.below(2));
        let bytes: Vec<u8> = (0..n * n_features).map(|_| random.below(2) as u8).collect();
        // Two classes of nearly equal large weight in every row: an error more or less and
        // the price of a split are alike, and both are far below the loss.
        let labels: Vec<usize> = (0..2 * n).map(|i| i / n).collect();
        let least = 520_000 / (2 * n) - 3;
        let weights: Vec<f64> = labels.iter().map(|_| (least + random.below(7)) as f64).collect();
        let total: f64 = weights.iter().sum();
        let price = random.pick(&[0.25, 1.0 / 3.0, 0.4, 0.6, 2.0 / 3.0]);
        let price = price * (0.98 + 0.04 * random.unit());
        let matrix = BinaryMatrix::from_bytes(2 * n, n_features, &[bytes.clone(), bytes].concat());
        let matrix = matrix.expect("a byte per entry");
        let task = Accuracy::new(&labels, 2, Some(&weights), price / total, 8).unwrap();
        let [single, double] = [Precision::Single, Precision::Double].map(|precision| {
            let settings =
                Settings { max_depth: 3, precision: Some(precision), ..Settings::default() };
            let monitor = Monitor::new(None, &|| false);
            let solution = solve(&task, &matrix, &settings, &monitor).unwrap();
            assert_eq!(solution.status, Status::Optimal);
            solution.objective
        });
        assert!((single - double).abs() <= 1e-12, "seed {seed}: {single} instead of {double}");
    }
}
