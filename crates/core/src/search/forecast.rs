//! What a search would take, from counts alone.

use super::lattice;
use super::{Precision, Settings};
use crate::data::Sample;
use crate::simd::Backend;
use crate::task::LaneTask;

/// Expected cost of a search that runs to the end.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    /// Seconds, good to a factor of about three.
    pub seconds: f64,
    /// Bytes of tables and rows, without the caller's data.
    pub bytes: f64,
    /// Leaf cells to evaluate.
    pub cells: f64,
    /// Rows to visit while summing.
    pub row_visits: f64,
}

/// Nanoseconds per leaf cell and per row visit of each backend, one thread, measured on
/// GBSG2, whas500 and flchain at depth 4 and 5 (benchmarks/records).
fn nanoseconds(backend: Backend, precision: Precision) -> (f64, f64) {
    let (cell, visit) = match backend {
        Backend::Avx512 => (1.3, 2.0),
        Backend::Avx2 => (2.0, 5.0),
        Backend::Portable => (5.0, 18.0),
    };
    let wider = if precision == Precision::Double { 2.0 } else { 1.0 };
    (cell * wider, visit)
}

/// Forecast for trees of the given depth, before any pruning; O(rows + depth).
///
/// One lattice has C(F, d)·2^d cells and visits Σ_r C(k_r, d − 1) rows, k_r the true
/// columns of row r. Every level above the deepest lattice splits on each column in turn.
pub fn forecast<T: LaneTask>(task: &T, sample: &Sample, settings: &Settings) -> Forecast {
    let n = sample.n_columns();
    let most_leaves = settings.most_leaves();
    let mut depth = settings.max_depth.min(n).min(most_leaves.saturating_sub(1));
    if task.split_price() > task.tie_price() {
        // No more splits than could pay for themselves; see `Branch`.
        let rows = (0..sample.n_rows()).map(|r| task.leaf_cost(sample.statistics(r)));
        let gain = task.leaf_cost(&sample.total).saturating_sub(rows.sum());
        depth = depth.min(usize::try_from(gain / task.split_price()).unwrap_or(0));
    }
    let channels = task.channels() + 1;
    let limit = settings.memory_limit.unwrap_or(super::branch::DEFAULT_BYTES);
    let n_threads = settings.threads();
    let deepest = settings.lattice_depth.clamp(1, lattice::MAX_DEPTH).min(depth);
    let precision = lattice::choose_precision(task, sample, deepest, settings);
    let bytes = |d: usize| lattice::bytes(sample, d, channels, n_threads, precision);
    let reach = (1..=deepest).rev().find(|&d| bytes(d) <= limit).unwrap_or(depth.min(1));
    let backend = settings.backend.unwrap_or_else(|| Backend::available()[0]);
    let (cell, visit) = nanoseconds(backend, precision);
    let (cells, row_visits) = work(sample, depth, reach);
    let threads = n_threads as f64;
    let seconds =
        (cells * cell + row_visits * visit) * 1e-9 / threads + sample.n_rows() as f64 * 1e-6;
    // Hopeless depths overflow, and an overflow times nothing is not a number.
    let seconds = if seconds.is_finite() { seconds } else { f64::INFINITY };
    Forecast { seconds, bytes: bytes(reach) as f64, cells, row_visits }
}

/// Cells and row visits of a search to `depth` with lattices of depth `reach`.
pub(super) fn work(sample: &Sample, depth: usize, reach: usize) -> (f64, f64) {
    let n = sample.n_columns();
    // Columns already split on are gone from the lattices below.
    let above = depth - reach;
    let columns = n.saturating_sub(above);
    let lattices: f64 = (0..above).map(|k| 2.0 * (n - k) as f64).product();
    let cells = lattices * choose(columns, reach) * 2f64.powi(reach as i32);
    let mut trues = vec![0usize; n + 1];
    for r in 0..sample.n_rows() {
        trues[sample.row(r).iter().map(|w| w.count_ones() as usize).sum::<usize>()] += 1;
    }
    let visits = |(k, &rows): (usize, &usize)| rows as f64 * choose(k, reach.saturating_sub(1));
    // Each level splits the rows between two lattices.
    let row_visits =
        trues.iter().enumerate().map(visits).sum::<f64>() * lattices / 2f64.powi(above as i32);
    (cells, row_visits)
}

/// Binomial coefficient.
fn choose(n: usize, k: usize) -> f64 {
    if k > n { 0.0 } else { (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::task::Statistics;
    use crate::task::accuracy::Accuracy;

    #[test]
    fn counts_are_those_of_the_lattice() {
        // Eight rows, three columns, every pattern once.
        let bytes: Vec<u8> = (0..8u8).flat_map(|r| [r & 1, r >> 1 & 1, r >> 2]).collect();
        let matrix = BinaryMatrix::from_bytes(8, 3, &bytes).unwrap();
        let labels = [0, 1, 1, 0, 1, 0, 0, 1];
        let task = Accuracy::new(&labels, 2, None, 0.0, 4).unwrap();
        let sample = Sample::new(&matrix, task.statistics(), 2);
        let settings = Settings { max_depth: 2, ..Settings::default() };
        let forecast = forecast(&task, &sample, &settings);
        assert_eq!(forecast.cells, 3.0 * 4.0);
        assert_eq!(forecast.row_visits, 12.0);
        let deep = Settings { max_depth: 3, lattice_depth: 2, ..Settings::default() };
        // Six lattices of the two other columns.
        assert_eq!(super::forecast(&task, &sample, &deep).cells, 6.0 * 4.0);
    }
}
