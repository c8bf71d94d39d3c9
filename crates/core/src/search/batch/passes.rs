//! The passes over the lattice, compiled once per instruction set.

use super::lattice::{Lattice, Worker};
use crate::search::lattice::accumulate::Rows;
use crate::search::lattice::combine::PREFIX;
use crate::search::{Monitor, Stop};
use crate::simd::{Backend, Lanes, portable};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lanes of scratch behind the last column, for vectors that run over it.
const SCRATCH_LANES: usize = 96;

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
        let stride = lattice.geometry.n + SCRATCH_LANES;
        Within {
            one: (usize::MAX, Rows::default()),
            two: ((usize::MAX, usize::MAX), Rows::default()),
            sums: vec![0; stride * lattice.channels],
            stride,
        }
    }

    fn one(&mut self, rows: &Rows<i64>, f: usize) -> &Rows<i64> {
        if self.one.0 != f {
            self.one.1.restrict(rows, f);
            self.one.0 = f;
        }
        &self.one.1
    }

    fn two(&mut self, rows: &Rows<i64>, f: usize, g: usize) -> &Rows<i64> {
        if self.two.0 != (f, g) {
            self.one(rows, f);
            self.two.1.restrict(&self.one.1, g);
            self.two.0 = (f, g);
        }
        &self.two.1
    }
}

impl Lattice<'_> {
    /// Sums of the itemsets `prefix ∪ {lane}` over all lanes beyond the prefix.
    ///
    /// # Safety
    /// The machine must have the instruction set of `L`.
    #[inline(always)]
    unsafe fn accumulate<L: Lanes<I = i64>>(&self, prefix: &[usize], within: &mut Within) {
        let first = prefix.last().map_or(0, |&c| c + 1);
        let stride = within.stride;
        let out = within.sums.as_mut_ptr();
        // SAFETY: the scratch has the stride that `Rows::accumulate` asks for.
        unsafe {
            match *prefix {
                [] => {
                    let all = &self.everything;
                    self.rows.accumulate::<L>(all, all, first, out, stride);
                }
                [f] => {
                    let a = self.rows.column(f);
                    self.rows.accumulate::<L>(a, a, first, out, stride);
                }
                [f, g] => {
                    let rows = within.one(&self.rows, f);
                    rows.accumulate::<L>(rows.column(g), rows.column(g), first, out, stride);
                }
                [f, g, k] => {
                    let rows = within.one(&self.rows, f);
                    rows.accumulate::<L>(rows.column(g), rows.column(k), first, out, stride);
                }
                [f, g, k, j] => {
                    let rows = within.two(&self.rows, f, g);
                    rows.accumulate::<L>(rows.column(k), rows.column(j), first, out, stride);
                }
                _ => unreachable!("no prefix is longer"),
            }
        }
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

type Fill = unsafe fn(&Lattice, usize, &Monitor) -> Result<Vec<i64>, Stop>;
type Sweep = unsafe fn(&Lattice, usize, &AtomicUsize, &Monitor, &mut Worker) -> Result<(), Stop>;

macro_rules! backends {
    ($(($fill:ident, $sweep:ident, $lanes:ty $(, $features:literal)?)),*) => {$(
        $(#[target_feature(enable = $features)])?
        unsafe fn $fill(lattice: &Lattice, m: usize, monitor: &Monitor) -> Result<Vec<i64>, Stop> {
            // SAFETY: the features are enabled here and checked by the caller.
            unsafe { fill_sums::<$lanes>(lattice, m, monitor) }
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn $sweep(
            lattice: &Lattice,
            level: usize,
            next: &AtomicUsize,
            monitor: &Monitor,
            worker: &mut Worker,
        ) -> Result<(), Stop> {
            // SAFETY: the features are enabled here and checked by the caller.
            unsafe { sweep_level::<$lanes>(lattice, level, next, monitor, worker) }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use crate::simd::{avx2, avx512};

    backends!(
        (
            fill_avx512,
            sweep_avx512,
            avx512::Double,
            "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt"
        ),
        (fill_avx2, sweep_avx2, avx2::Double, "avx2,fma,bmi1,popcnt")
    );

    pub(super) fn fill(backend: Backend) -> Option<Fill> {
        match backend {
            Backend::Avx512 => Some(fill_avx512),
            Backend::Avx2 => Some(fill_avx2),
            Backend::Portable => None,
        }
    }

    pub(super) fn sweep(backend: Backend) -> Option<Sweep> {
        match backend {
            Backend::Avx512 => Some(sweep_avx512),
            Backend::Avx2 => Some(sweep_avx2),
            Backend::Portable => None,
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    use super::*;

    pub(super) fn fill(_: Backend) -> Option<Fill> {
        None
    }

    pub(super) fn sweep(_: Backend) -> Option<Sweep> {
        None
    }
}

backends!((fill_portable, sweep_portable, portable::Double));

pub fn fill(backend: Backend) -> Fill {
    x86::fill(backend).unwrap_or(fill_portable)
}

pub fn sweep(backend: Backend) -> Sweep {
    x86::sweep(backend).unwrap_or(sweep_portable)
}

/// Sums of all positive itemsets of size `m`.
///
/// # Safety
/// The machine must have the instruction set of `L`.
#[inline(always)]
unsafe fn fill_sums<L: Lanes<I = i64>>(
    lattice: &Lattice,
    m: usize,
    monitor: &Monitor,
) -> Result<Vec<i64>, Stop> {
    let (n, total) = (lattice.geometry.n, lattice.geometry.total(m));
    let mut sums = vec![0; lattice.channels * total];
    let mut within = Within::new(lattice);
    for first in 0..if m == 1 { 1 } else { n } {
        monitor.check()?;
        let mut prefixes = Prefixes::new(n, m - 1, first);
        while let Some(prefix) = prefixes.next() {
            // SAFETY: the caller's contract.
            unsafe { lattice.accumulate::<L>(prefix, &mut within) };
            let row = lattice.geometry.row(prefix);
            let lanes = n - row.first;
            for c in 0..lattice.channels {
                let from = &within.sums[c * within.stride + row.first..][..lanes];
                sums[c * total + row.start..][..lanes].copy_from_slice(from);
            }
        }
    }
    Ok(sums)
}

/// The cells of all itemsets of a level.
///
/// # Safety
/// The machine must have the instruction set of `L`.
#[inline(always)]
unsafe fn sweep_level<L: Lanes<I = i64>>(
    lattice: &Lattice,
    level: usize,
    next: &AtomicUsize,
    monitor: &Monitor,
    worker: &mut Worker,
) -> Result<(), Stop> {
    let n = lattice.geometry.n;
    let tickets = if level == 1 { 1 } else { n };
    loop {
        let first = next.fetch_add(1, Ordering::Relaxed);
        if first >= tickets {
            break;
        }
        let mut prefixes = Prefixes::new(n, level - 1, first);
        while let Some(prefix) = prefixes.next() {
            let lanes = n - prefix.last().map_or(0, |&c| c + 1);
            if lanes == 0 {
                continue;
            }
            if worker.cells.len + (lanes << level) > worker.cells.capacity {
                monitor.check()?;
                lattice.settle(level, monitor, worker)?;
            }
            if level == lattice.depth {
                // SAFETY: the caller's contract.
                unsafe { lattice.accumulate::<L>(prefix, &mut worker.within) };
            }
            lattice.collect(level, prefix, lanes, worker);
            // Prefixes of which no cell has enough rows would pile up.
            if worker.leaf.len() > 4 * worker.cells.capacity {
                lattice.settle(level, monitor, worker)?;
            }
        }
    }
    lattice.settle(level, monitor, worker)
}
