//! The passes over the lattice, compiled once per instruction set.

use super::lattice::{Lattice, Worker};
use crate::search::lattice::accumulate::{Rows, SPARE_LANES};
use crate::search::lattice::combine::PREFIX;
use crate::search::{Monitor, Stop};
use crate::simd::{Backend, Job, Lanes, with_token};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows of the first columns of a prefix, and sums over the lanes.
pub struct Within {
    one: (usize, Rows<i64>),
    two: ((usize, usize), Rows<i64>),
    /// `[channel · stride + lane]`.
    pub sums: Vec<i64>,
    pub stride: usize,
}

impl Within {
    pub fn new(lattice: &Lattice) -> Self {
        let stride = lattice.geometry.n + SPARE_LANES;
        Within {
            one: (usize::MAX, Rows::default()),
            two: ((usize::MAX, usize::MAX), Rows::default()),
            sums: vec![0; stride * lattice.channels],
            stride,
        }
    }
}

/// The rows where column `f` is true.
fn restricted<'a>(one: &'a mut (usize, Rows<i64>), rows: &Rows<i64>, f: usize) -> &'a Rows<i64> {
    if one.0 != f {
        one.1.restrict(rows, f);
        one.0 = f;
    }
    &one.1
}

/// The rows where columns `f` and `g` are true.
fn restricted_twice<'a>(
    one: &mut (usize, Rows<i64>),
    two: &'a mut ((usize, usize), Rows<i64>),
    rows: &Rows<i64>,
    f: usize,
    g: usize,
) -> &'a Rows<i64> {
    if two.0 != (f, g) {
        two.1.restrict(restricted(one, rows, f), g);
        two.0 = (f, g);
    }
    &two.1
}

impl Lattice<'_> {
    /// Sums of the itemsets `prefix ∪ {lane}` over all lanes beyond the prefix.
    #[inline(always)]
    fn accumulate<L: Lanes<I = i64>>(&self, lanes: L, prefix: &[usize], within: &mut Within) {
        let first = prefix.last().map_or(0, |&c| c + 1);
        let Within { one, two, sums, stride } = within;
        let (rows, a, b) = match *prefix {
            [] => (&self.rows, &self.everything[..], &self.everything[..]),
            [f] => (&self.rows, self.rows.column(f), self.rows.column(f)),
            [f, g] | [f, g, _] => {
                let rows = restricted(one, &self.rows, f);
                (rows, rows.column(g), rows.column(*prefix.last().expect("two columns")))
            }
            [f, g, k, j] => {
                let rows = restricted_twice(one, two, &self.rows, f, g);
                (rows, rows.column(k), rows.column(j))
            }
            _ => unreachable!("no prefix is longer"),
        };
        rows.accumulate(lanes, a, b, first, sums, *stride);
    }
}

/// The prefixes of some number of columns that begin with a given one, in order.
///
/// Not a closure over each prefix: what runs for one must be compiled with the features of
/// the pass around it.
struct Prefixes {
    n: usize,
    size: usize,
    columns: [usize; PREFIX],
    started: bool,
}

impl Prefixes {
    fn new(n: usize, size: usize, first: usize) -> Self {
        let mut columns = [0; PREFIX];
        for (i, column) in columns.iter_mut().enumerate().take(size) {
            *column = first + i;
        }
        Prefixes { n, size, columns, started: false }
    }

    /// The next prefix, if there is one.
    #[inline(always)]
    fn next(&mut self) -> Option<&[usize]> {
        let size = self.size;
        if !std::mem::replace(&mut self.started, true) {
            let fits = size == 0 || self.columns[size - 1] < self.n;
            return fits.then_some(&self.columns[..size]);
        }
        // The last place that has a further column, but not the first; after it, the least.
        let last = (1..size).rev().find(|&i| self.columns[i] + (size - i) < self.n)?;
        self.columns[last] += 1;
        for i in last + 1..size {
            self.columns[i] = self.columns[i - 1] + 1;
        }
        Some(&self.columns[..size])
    }
}

/// Sums of all positive itemsets of size `m`.
pub fn fill(
    backend: Backend,
    lattice: &Lattice,
    m: usize,
    monitor: &Monitor,
) -> Result<Vec<i64>, Stop> {
    with_token!(backend, token => token.double().run(Fill { lattice, m, monitor }))
}

/// The cells of all itemsets of a level.
pub fn sweep(
    backend: Backend,
    lattice: &Lattice,
    level: usize,
    next: &AtomicUsize,
    monitor: &Monitor,
    worker: &mut Worker,
) -> Result<(), Stop> {
    let job = Sweep { lattice, level, next, monitor, worker };
    with_token!(backend, token => token.double().run(job))
}

struct Fill<'a, 'b> {
    lattice: &'a Lattice<'b>,
    m: usize,
    monitor: &'a Monitor<'a>,
}

impl<L: Lanes<I = i64>> Job<L> for Fill<'_, '_> {
    type Output = Result<Vec<i64>, Stop>;

    #[inline(always)]
    fn run(self, lanes: L) -> Self::Output {
        let Fill { lattice, m, monitor } = self;
        let (n, total) = (lattice.geometry.n, lattice.geometry.total(m));
        let mut sums = vec![0; lattice.channels * total];
        let mut within = Within::new(lattice);
        for first in 0..if m == 1 { 1 } else { n } {
            monitor.check()?;
            let mut prefixes = Prefixes::new(n, m - 1, first);
            while let Some(prefix) = prefixes.next() {
                lattice.accumulate(lanes, prefix, &mut within);
                let row = lattice.geometry.row(prefix);
                let n_lanes = n - row.first;
                for c in 0..lattice.channels {
                    let from = &within.sums[c * within.stride + row.first..][..n_lanes];
                    sums[c * total + row.start..][..n_lanes].copy_from_slice(from);
                }
            }
        }
        Ok(sums)
    }
}

struct Sweep<'a, 'b> {
    lattice: &'a Lattice<'b>,
    level: usize,
    next: &'a AtomicUsize,
    monitor: &'a Monitor<'a>,
    worker: &'a mut Worker,
}

impl<L: Lanes<I = i64>> Job<L> for Sweep<'_, '_> {
    type Output = Result<(), Stop>;

    #[inline(always)]
    fn run(self, lanes: L) -> Self::Output {
        let Sweep { lattice, level, next, monitor, worker } = self;
        let n = lattice.geometry.n;
        let tickets = if level == 1 { 1 } else { n };
        loop {
            let first = next.fetch_add(1, Ordering::Relaxed);
            if first >= tickets {
                break;
            }
            monitor.check()?;
            let mut prefixes = Prefixes::new(n, level - 1, first);
            while let Some(prefix) = prefixes.next() {
                let n_lanes = n - prefix.last().map_or(0, |&c| c + 1);
                if n_lanes == 0 {
                    continue;
                }
                if worker.cells.len + (n_lanes << level) > worker.cells.capacity {
                    monitor.check()?;
                    lattice.settle(level, monitor, worker)?;
                }
                if level == lattice.depth {
                    lattice.accumulate(lanes, prefix, &mut worker.within);
                }
                lattice.collect(level, prefix, n_lanes, worker);
                // Prefixes of which no cell has enough rows would pile up.
                if worker.leaf.len() > 4 * worker.cells.capacity {
                    lattice.settle(level, monitor, worker)?;
                }
            }
        }
        lattice.settle(level, monitor, worker)
    }
}
