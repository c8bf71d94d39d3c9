use crate::data::{BinaryMatrix, Sample};
use crate::search::lattice::{Pool, Query, choose_precision, solve};
use crate::search::{Monitor, Precision, Settings};
use crate::task::Statistics;
use crate::task::accuracy::Accuracy;

/// Six numbers with four or five thresholds each, and labels; columns in this order.
fn instance(n_rows: usize, order: impl Fn(usize) -> usize) -> (Accuracy, Sample) {
    let mut state = 11u64;
    let mut random = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % n) as usize
    };
    let (mut bytes, mut labels) = (vec![0; n_rows * 27], Vec::new());
    for row in bytes.chunks_exact_mut(27) {
        let numbers: [usize; 6] = std::array::from_fn(|_| random(6));
        for k in 0..27 {
            row[order(k)] = u8::from(numbers[k % 6] <= k / 6);
        }
        labels.push(usize::from(numbers[0] + numbers[1] * numbers[4] > 5 + random(4)));
    }
    let task = Accuracy::new(&labels, 2, None, 0.0, 32).unwrap();
    let matrix = BinaryMatrix::from_bytes(n_rows, 27, &bytes).unwrap();
    let sample = Sample::new(&matrix, task.statistics(), 2);
    (task, sample)
}

/// Sums along runs equal the sums over the rows of every column, for any neighbours.
#[test]
fn the_order_of_columns_changes_no_cost() {
    for (n_rows, deepest) in [(80, 5), (700, 5), (2500, 5), (9000, 4)] {
        // The thresholds of a number are neighbours in one instance and never in the other.
        let nested = instance(n_rows, |k| k % 6 * 5 - (k % 6).saturating_sub(3) + k / 6);
        let apart = instance(n_rows, |k| k);
        for depth in 2..=deepest {
            for (precision, n_threads) in [
                (Precision::Short, 1),
                (Precision::Single, 2),
                (Precision::Double, 1),
                (Precision::Double, 2),
            ] {
                let settings = Settings::default()
                    .with_resources(|s| s.n_threads = n_threads)
                    .with_switches(|s| {
                        (s.precision, s.cells_per_thread) = (Some(precision), Some(1));
                    });
                let never = || false;
                let monitor = Monitor::new(None, &never);
                let cost = |(task, sample): &(Accuracy, Sample)| {
                    let query = Query { depth, budgets: &[usize::MAX], cutoff: i64::MAX };
                    let pool = Pool::new(usize::MAX);
                    let precision = choose_precision(task, sample, depth, &settings);
                    let share = pool.share(usize::MAX / 2);
                    let solved = solve(task, sample, query, precision, &settings, share, &monitor);
                    solved.unwrap().found[0].cost
                };
                assert_eq!(cost(&nested), cost(&apart), "{n_rows} {depth} {precision:?}");
            }
        }
    }
}
