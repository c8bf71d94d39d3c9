//! Forecasts the effort of a search from counts alone.

use super::lattice::{self, Extent, visits, work};
use super::{Precision, Settings};
use crate::data::{Sample, rows_of};
use crate::simd::{Backend, Kind};
use crate::task::LaneTask;

/// Expected cost of a search that runs to the end.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    /// Seconds, to within a factor of about two if nothing can be pruned.
    pub seconds: f64,
    /// The part of the seconds that is proportional to the number of rows.
    pub row_seconds: f64,
    /// Bytes of tables and rows, without the caller's data.
    pub bytes: f64,
    /// Leaf cells to evaluate.
    pub cells: f64,
    /// Rows to visit while summing.
    pub row_visits: f64,
}

impl Forecast {
    /// A forecast for numbers of cells and row visits and the nanoseconds that each takes.
    pub(super) fn new(
        (cells, row_visits): (f64, f64),
        (cell, visit): (f64, f64),
        threads: f64,
        bytes: usize,
    ) -> Self {
        let row_seconds = row_visits * visit * 1e-9 / threads;
        let seconds = cells * cell * 1e-9 / threads + row_seconds;
        Forecast { seconds, row_seconds, bytes: bytes as f64, cells, row_visits }.and_rows(0.0)
    }

    /// Adds seconds that are proportional to the number of rows.
    fn and_rows(self, more: f64) -> Self {
        // Very large depths overflow, and infinity times zero is not a number.
        let finite = |value: f64| if value.is_finite() { value } else { f64::INFINITY };
        let (seconds, row_seconds) = (self.seconds + more, self.row_seconds + more);
        Forecast { seconds: finite(seconds), row_seconds: finite(row_seconds), ..self }
    }
}

/// Nanoseconds per leaf cell and per row visit of each backend on one thread, measured on GBSG2,
/// whas500 and flchain at depths 4 and 5 (benchmarks/records).
fn nanoseconds(backend: Backend, precision: Precision) -> (f64, f64) {
    let (cell, visit) = match backend.kind() {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512(_) => (1.3, 2.0),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2(_) => (2.0, 5.0),
        Kind::Portable(_) => (5.0, 18.0),
    };
    let width = match precision {
        Precision::Short => 0.6,
        Precision::Single => 1.0,
        Precision::Double | Precision::Exact => 2.0,
    };
    (cell * width, visit)
}

/// Factor by which cells and visits take longer with this many channels than with three, measured
/// with up to 20 classes and 8 causes.
fn wide(channels: usize) -> f64 {
    0.4 + 0.2 * channels as f64
}

/// Seconds per row of the caller before and after the search, for merging equal rows and for
/// leaves. The first value is for survival, whose leaves have curves, the second for other tasks.
const PER_ROW: [f64; 2] = [1.2e-6, 0.4e-6];

/// Factor by which visits take longer if the rows (of this size in bytes) are far away: they leave
/// the near caches from 512 KiB on, completely at 16 MiB.
fn far(bytes: usize) -> f64 {
    1.0 + 3.0 * ((bytes as f64 / (512 << 10) as f64).log2() / 5.0).clamp(0.0, 1.0)
}

/// Forecast for trees of the depth of the settings, without pruning; O(rows + depth).
pub fn forecast<T: LaneTask>(task: &T, sample: &Sample, settings: &Settings) -> Forecast {
    Work::new(task, sample, settings).to_depth(settings.limits.max_depth)
}

/// Forecast of searches to any depth.
///
/// A lattice has C(F, d)·2^d cells and visits Σ_r C(k_r, d − 1) rows, where k_r is the number of
/// runs in which row r has a true column. Every level above the deepest lattice splits on each
/// column in turn.
pub struct Work<'a, T> {
    task: &'a T,
    sample: &'a Sample,
    settings: &'a Settings,
    /// Depth beyond which no tree can pay for its splits, or has the rows or columns for them.
    useful: usize,
    /// Number of rows by the number of columns for which they are visited.
    visits: Vec<usize>,
    /// Lanes of the deepest lattice.
    precision: Precision,
}

impl<'a, T: LaneTask> Work<'a, T> {
    /// Counts rows and columns; O(rows).
    pub fn new(task: &'a T, sample: &'a Sample, settings: &'a Settings) -> Self {
        let mut useful = sample.n_columns().min(settings.limits.most_leaves().saturating_sub(1));
        if task.split_price() > task.tie_price() {
            // At most the number of splits that could pay for themselves; see `Branch`.
            let rows = (0..sample.n_rows()).map(|r| task.part_cost(sample.statistics(r)));
            let gain = task.leaf_cost(&sample.total).saturating_sub(rows.sum());
            useful = useful.min(usize::try_from(gain / task.split_price()).unwrap_or(0));
        }
        let deepest = settings.switches.lattice_depth.clamp(1, lattice::MAX_DEPTH);
        let deepest = deepest.min(useful).min(settings.limits.max_depth);
        let precision = lattice::choose_precision(task, sample, deepest, settings);
        Work { task, sample, settings, useful, visits: visits(sample), precision }
    }

    /// Distinct rows.
    pub fn n_rows(&self) -> usize {
        self.sample.n_rows()
    }

    /// Forecast of a search to this depth.
    pub fn to_depth(&self, depth: usize) -> Forecast {
        self.on_threads(depth, self.settings.threads())
    }

    /// Forecast of a search to this depth on `n_threads` threads.
    pub fn on_threads(&self, depth: usize, n_threads: usize) -> Forecast {
        let Work { task, sample, settings, precision, .. } = *self;
        let depth = depth.min(self.useful);
        let channels = lattice::channels(task, settings);
        let limit = settings.bytes();
        let deepest = settings.switches.lattice_depth.clamp(1, lattice::MAX_DEPTH).min(depth);
        let extent = |depth: usize| {
            let leaves = settings.limits.allowed().at_most(depth, usize::MAX).budget();
            Extent { depth, leaves, channels, n_threads, precision }
        };
        let bytes = |depth: usize| extent(depth).bytes(sample);
        let reach = (1..=deepest).rev().find(|&d| bytes(d) <= limit).unwrap_or(depth.min(1));
        let backend = settings.backend();
        let (cell, visit) = nanoseconds(backend, precision);
        let (cell, visit) = (cell * wide(channels), visit * wide(channels));
        let visit = visit * far(extent(depth).row_bytes(sample));
        let (cells, row_visits) = work(&self.visits, sample.n_columns(), depth, reach);
        // Above lattices every thread has its own questions.
        let threads = match depth > reach {
            true => n_threads.min(sample.n_columns()),
            false => lattice::useful_threads(|| cells + row_visits, settings).min(n_threads),
        } as f64;
        let forecast = Forecast::new((cells, row_visits), (cell, visit), threads, bytes(reach));
        let per_row = PER_ROW[usize::from(task.events().is_empty())];
        forecast.and_rows(rows_of(sample.total_size()) as f64 * per_row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::task::Statistics;
    use crate::task::accuracy::Accuracy;
    use bristlecone_oracle::instances::Random;

    #[test]
    fn cells_of_more_classes_take_longer() {
        let mut random = Random::new(0);
        let bytes: Vec<u8> = (0..6000).map(|_| random.below(2) as u8).collect();
        let matrix = BinaryMatrix::from_bytes(100, 60, &bytes).unwrap();
        let settings = Settings::default().with_limits(|s| s.max_depth = 3);
        let [two, ten] = [2, 10].map(|n_classes| {
            let labels: Vec<usize> = (0..100).map(|row| row % n_classes).collect();
            let task = Accuracy::new(&labels, n_classes, None, 0.0, 8).unwrap();
            let sample = Sample::new(&matrix, task.statistics(), n_classes);
            forecast(&task, &sample, &settings)
        });
        assert_eq!((two.cells, two.row_visits), (ten.cells, ten.row_visits));
        assert!(ten.seconds > 1.5 * two.seconds);
    }

    #[test]
    fn counts_are_those_of_the_lattice() {
        // Eight rows, three columns, every pattern once.
        let bytes: Vec<u8> = (0..8u8).flat_map(|r| [r & 1, r >> 1 & 1, r >> 2]).collect();
        let matrix = BinaryMatrix::from_bytes(8, 3, &bytes).unwrap();
        let labels = [0, 1, 1, 0, 1, 0, 0, 1];
        let task = Accuracy::new(&labels, 2, None, 0.0, 4).unwrap();
        let sample = Sample::new(&matrix, task.statistics(), 2);
        let settings = Settings::default().with_limits(|s| s.max_depth = 2);
        let forecast = forecast(&task, &sample, &settings);
        assert_eq!(forecast.cells, 3.0 * 4.0);
        assert_eq!(forecast.row_visits, 12.0);
        let deep = Settings::default()
            .with_limits(|s| s.max_depth = 3)
            .with_switches(|s| s.lattice_depth = 2);
        // Six lattices of the two other columns.
        assert_eq!(super::forecast(&task, &sample, &deep).cells, 6.0 * 4.0);
    }
}
