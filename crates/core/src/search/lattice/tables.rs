//! Memory for the tables of lattices, which is reused from one lattice to the next.
//!
//! Memory that is freed and allocated again remains with the allocator of its thread, where no
//! limit counts it. So a search keeps one set of tables per thread until its end, whether threads
//! share a lattice or each has its own.

use super::budgets::slots;
use super::geometry::{Best, Geometry, MAX_DEPTH, PREFIX};
use super::kernels::Worker;
use super::memory::make_sure;
use super::running;
use super::runs::LONGEST;
use super::sums::Sums;
use crate::data::Sample;
use crate::search::Precision;
use crate::simd::{LaneInt, LaneReal, Whole};
use std::sync::{Mutex, MutexGuard};

/// Dimensions that determine the memory of a lattice, in addition to its rows.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub depth: usize,
    /// Most leaves; `usize::MAX` if only the depth limits them.
    pub leaves: usize,
    pub channels: usize,
    pub n_threads: usize,
    pub precision: Precision,
}

impl Extent {
    /// Bytes of a lattice: its tables and its copies of the rows.
    pub fn bytes(self, sample: &Sample) -> usize {
        let element = element(self.precision);
        let of_thread = |thread| self.sizes(sample, thread).bytes(element);
        (0..self.n_threads).map(of_thread).fold(0, usize::saturating_add)
    }

    /// Bytes of the rows of a lattice: for each row a record and two bits per column, and bitsets
    /// of rows.
    pub fn row_bytes(self, sample: &Sample) -> usize {
        let record = (self.channels * element(self.precision)).next_multiple_of(8);
        sample.n_rows() * (record + 2 * sample.n_columns().div_ceil(64) * 8 + 1)
    }

    /// Sizes of the tables of one thread. The first thread has the tables that all share; any other
    /// may copy the rows.
    fn sizes(self, sample: &Sample, thread: usize) -> Sizes {
        let (depth, n, slots) = (self.depth, sample.n_columns(), slots(self.depth, self.leaves));
        let positions = |m: usize| if m > 0 { Geometry::positions(n, m) } else { 1 };
        let of_level =
            |m, entries| if m < depth { positions(m).saturating_mul(entries) } else { 0 };
        let shared = |entries| if thread == 0 { entries } else { 0 };
        let running = running::entries(depth, sample.n_rows(), n, n.min(LONGEST));
        let copies = running::copies(sample.n_rows()) + shared(1);
        Sizes {
            sums: std::array::from_fn(|m| of_level(m + 1, shared(self.channels))),
            best: std::array::from_fn(|m| of_level(m, shared(slots[m] << m))),
            running: running.iter().sum::<usize>().saturating_mul(self.channels),
            // Every copy has at least one word per column.
            rows: self.row_bytes(sample) * copies + 2 * LONGEST * 8 * (n + 2),
        }
    }
}

/// Bytes of an entry.
fn element(precision: Precision) -> usize {
    match precision {
        Precision::Short => 2,
        Precision::Single => 4,
        Precision::Double | Precision::Exact => 8,
    }
}

/// Number of entries of tables, and bytes of rows.
struct Sizes {
    sums: [usize; PREFIX],
    best: [usize; MAX_DEPTH],
    running: usize,
    rows: usize,
}

impl Sizes {
    fn bytes(&self, element: usize) -> usize {
        let entries = self.sums.iter().chain(&self.best).chain([&self.running]).copied();
        // A size that does not fit into a word exceeds every limit.
        let entries = entries.fold(0, usize::saturating_add);
        entries.saturating_mul(element).saturating_add(self.rows)
    }

    /// Sizes with room for both.
    fn or(&self, other: &Sizes) -> Sizes {
        Sizes {
            sums: std::array::from_fn(|m| self.sums[m].max(other.sums[m])),
            best: std::array::from_fn(|m| self.best[m].max(other.best[m])),
            running: self.running.max(other.running),
            rows: self.rows.max(other.rows),
        }
    }
}

/// The tables of one thread.
#[derive(Default)]
pub struct Tables {
    pub short: Width<u16, Whole>,
    pub single: Width<i32, f32>,
    pub double: Width<i64, f64>,
}

/// Tables for lanes of one width.
pub struct Width<I, R> {
    pub sums: Sums<I>,
    pub best: [Best<R>; MAX_DEPTH],
    pub worker: Worker<I>,
}

impl<I: LaneInt, R: LaneReal> Default for Width<I, R> {
    fn default() -> Self {
        Width { sums: Sums::default(), best: Default::default(), worker: Worker::default() }
    }
}

impl<I: LaneInt, R: LaneReal> Width<I, R> {
    fn sizes(&self) -> Sizes {
        Sizes {
            sums: std::array::from_fn(|m| self.sums.levels[m].capacity()),
            best: std::array::from_fn(|m| self.best[m].0.capacity()),
            running: self.worker.running_entries(),
            rows: self.sums.rows.bytes() + self.worker.row_bytes(),
        }
    }
}

impl Tables {
    /// Bytes in use, once there is also room for these sizes of a width.
    fn bytes(&self, more: Option<(Precision, &Sizes)>) -> usize {
        let of_width = |precision: Precision, held: Sizes| match more {
            Some((of, more)) if of == precision => held.or(more).bytes(element(precision)),
            _ => held.bytes(element(precision)),
        };
        of_width(Precision::Short, self.short.sizes())
            + of_width(Precision::Single, self.single.sizes())
            + of_width(Precision::Double, self.double.sizes())
    }
}

/// A set of tables for each thread that worked on a lattice at the same time.
pub struct Pool {
    idle: Mutex<Vec<Box<Tables>>>,
    /// Most bytes of all sets together.
    most: usize,
}

/// Bytes of a pool for one lattice.
#[derive(Clone, Copy)]
pub struct Share<'a> {
    pool: &'a Pool,
    most: usize,
}

impl Pool {
    /// No tables yet.
    pub fn new(most: usize) -> Self {
        Pool { idle: Mutex::default(), most }
    }

    /// Bytes of tables that no search uses.
    pub fn held(&self) -> usize {
        self.idle().iter().map(|tables| tables.bytes(None)).sum()
    }

    /// Frees these tables.
    pub fn clear(&self) {
        self.idle().clear();
    }

    /// Takes this many bytes of the pool.
    pub fn share(&self, most: usize) -> Share<'_> {
        Share { pool: self, most }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Box<Tables>>> {
        self.idle.lock().expect("no panic while locked")
    }

    /// The tables of `n_threads` threads; other tables are freed if there is no room for them.
    fn take(&self, n_threads: usize, most: usize) -> Vec<Box<Tables>> {
        let mut idle = self.idle();
        idle.sort_by_key(|tables| tables.bytes(None));
        let others = idle.len().saturating_sub(n_threads);
        let mut tables = idle.split_off(others);
        // The first thread has the most.
        tables.reverse();
        if idle.iter().map(|tables| tables.bytes(None)).sum::<usize>() + most > self.most {
            idle.clear();
        }
        tables.resize_with(n_threads, Box::default);
        tables
    }
}

impl Share<'_> {
    /// Has a lattice solved in the tables of its threads, with the bytes that remain.
    pub fn lend<V>(
        self,
        extent: Extent,
        sample: &Sample,
        solve: impl FnOnce(&mut [Box<Tables>], usize) -> V,
    ) -> V {
        let mut tables = self.pool.take(extent.n_threads, self.most);
        let mut bytes = 0;
        for (thread, tables) in tables.iter().enumerate() {
            bytes += tables.bytes(Some((extent.precision, &extent.sizes(sample, thread))));
        }
        if bytes > self.most {
            // The tables were for lattices of other shapes.
            tables.iter_mut().for_each(|tables| **tables = Tables::default());
            bytes = extent.bytes(sample);
        }
        make_sure(bytes.saturating_sub(tables.iter().map(|tables| tables.bytes(None)).sum()));
        let found = solve(&mut tables, self.most.saturating_sub(bytes));
        self.pool.idle().append(&mut tables);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::search::lattice::{Query, channels, choose_precision, solve};
    use crate::search::{Monitor, Settings};
    use crate::task::Statistics;
    use crate::task::accuracy::Accuracy;

    /// Random labels and columns.
    fn instance(n_rows: usize, n_columns: usize) -> (Accuracy, Sample) {
        let mut state = 7u64;
        let mut bit = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 62 & 1) as u8
        };
        let bytes: Vec<u8> = (0..n_rows * n_columns).map(|_| bit()).collect();
        let labels: Vec<usize> = (0..n_rows).map(|_| usize::from(bit())).collect();
        let task = Accuracy::new(&labels, 2, None, 0.0, 32).unwrap();
        let matrix = BinaryMatrix::from_bytes(n_rows, n_columns, &bytes).unwrap();
        let sample = Sample::new(&matrix, task.statistics(), 2);
        (task, sample)
    }

    /// Solves one lattice in the tables of a pool; returns the result, and the memory that was
    /// forecast.
    fn solved(
        pool: &Pool,
        (task, sample): &(Accuracy, Sample),
        (depth, leaves): (usize, usize),
        n_threads: usize,
        precision: Precision,
        room: usize,
    ) -> (i64, usize) {
        let settings = Settings::default().with_resources(|s| s.n_threads = n_threads);
        let settings = settings.with_switches(|s| {
            (s.precision, s.cells_per_thread) = (Some(precision), Some(1));
        });
        let never = || false;
        let monitor = Monitor::new(None, &never);
        let (budgets, share) = ([leaves], pool.share(room));
        let query = Query { depth, budgets: &budgets, cutoff: i64::MAX };
        let chosen = choose_precision(task, sample, query.levels(sample), &settings);
        let solved = solve(task, sample, query, chosen, &settings, share, &monitor);
        let found = solved.unwrap().found;
        let channels = channels(task, &settings);
        let extent = Extent { depth, leaves, channels, n_threads, precision };
        (found[0].cost, extent.bytes(sample))
    }

    #[test]
    fn a_lattice_takes_what_it_says() {
        let instance = instance(100, 30);
        let shapes = [(5, usize::MAX), (5, 20), (4, usize::MAX), (4, 9)];
        for precision in [Precision::Short, Precision::Single, Precision::Double] {
            for (shape, n_threads) in shapes.into_iter().flat_map(|shape| [(shape, 1), (shape, 2)])
            {
                let pool = Pool::new(usize::MAX);
                let (_, said) = solved(&pool, &instance, shape, n_threads, precision, 1 << 30);
                let held = pool.held();
                assert!(held <= said, "{shape:?} {n_threads} {held} {said}");
                assert!(3 * held >= 2 * said, "{shape:?} {n_threads} {held} {said}");
            }
        }
    }

    #[test]
    fn a_lattice_beyond_all_memory_is_not_small() {
        for n_columns in [50_000, 90_000] {
            // Enough rows that all columns differ.
            let (_, sample) = instance(40, n_columns);
            assert_eq!(sample.n_columns(), n_columns);
            for (precision, leaves) in [Precision::Single, Precision::Double]
                .into_iter()
                .flat_map(|p| [(p, usize::MAX), (p, 30)])
            {
                let of = |depth| {
                    Extent { depth, leaves, channels: 34, n_threads: 64, precision }.bytes(&sample)
                };
                assert!(of(5) == usize::MAX || of(5) / of(4) > n_columns / 10);
                assert!(of(4) > of(3) && of(3) > of(2), "{n_columns}");
            }
        }
    }

    #[test]
    fn tables_of_other_shapes_neither_add_up_nor_change_what_is_found() {
        let instances = [instance(400, 12), instance(60, 28), instance(200, 20)];
        let shapes = [(4, usize::MAX), (3, usize::MAX), (4, 6), (5, usize::MAX), (2, usize::MAX)];
        let (room, pool) = (900 << 10, Pool::new(2000 << 10));
        for turn in 0..60 {
            let (instance, shape) = (&instances[turn % 3], shapes[turn * turn % 5]);
            let n_threads = 1 + turn % 2;
            let lanes = [Precision::Double, Precision::Short, Precision::Single];
            let precision = lanes[(turn % 7).min(2)];
            let of = |pool: &Pool, room| solved(pool, instance, shape, n_threads, precision, room);
            let (cost, said) = of(&pool, room);
            assert_eq!(cost, of(&Pool::new(usize::MAX), usize::MAX / 2).0);
            // More than the limit is used only if the caller asked for it anyway.
            assert!(pool.held() <= (2000 << 10).max(room + said), "{turn}");
        }
    }
}
