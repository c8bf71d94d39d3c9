//! The passes over the lattice, compiled once per instruction set.
//!
//! Work is handed out by the first two columns of the prefix, so any number of threads
//! shares a level; each keeps its own table of best splits, merged by minimum afterwards.

use super::MAX_DEPTH;
use super::accumulate::Rows;
use super::combine::{Best, Problem, View};
use crate::search::{Monitor, Stop};
use crate::simd::{Backend, LaneInt, LaneReal, Lanes, portable};
use crate::task::LaneTask;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A pass over one level.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// Sums of positive itemsets of this size.
    Sums(usize),
    /// Cells of the itemsets of this size, which may be the leaves.
    Cells(usize),
}

/// What one thread owns.
pub struct Worker<I, R> {
    views: [View<I>; MAX_DEPTH],
    /// Rows where the first column of the prefix is true, and which column that is.
    one: (usize, Rows<I>),
    /// Rows where the first two are, and which.
    two: ((usize, usize), Rows<I>),
    scratch: Vec<I>,
    /// Candidates for the level above.
    pub above: Best<R>,
}

impl<I: LaneInt, R: LaneReal> Worker<I, R> {
    /// A thread's memory for one problem.
    pub fn new<T: LaneTask>(problem: &Problem<T, I, R>, above: Best<R>) -> Self {
        let stride = problem.geometry.n + SCRATCH_LANES;
        Worker {
            views: std::array::from_fn(|_| View::root(&problem.geometry, &problem.totals)),
            one: (usize::MAX, Rows::default()),
            two: ((usize::MAX, usize::MAX), Rows::default()),
            scratch: vec![I::default(); stride * problem.channels],
            above,
        }
    }

    fn stride(&self, channels: usize) -> usize {
        self.scratch.len() / channels
    }

    fn restrict(&mut self, rows: &Rows<I>, f: usize) {
        if self.one.0 != f {
            self.one.1.restrict(rows, f);
            self.one.0 = f;
        }
    }

    fn restrict_twice(&mut self, rows: &Rows<I>, f: usize, g: usize) {
        self.restrict(rows, f);
        if self.two.0 != (f, g) {
            self.two.1.restrict(&self.one.1, g);
            self.two.0 = (f, g);
        }
    }
}

/// Lanes of scratch behind the last column, for vectors that run over it.
const SCRATCH_LANES: usize = 96;

/// What all threads share during a pass.
pub struct Shared<'a, 'b, T, I, R> {
    /// The lattice.
    pub problem: &'a Problem<'b, T, I, R>,
    /// Best splits of the itemsets of this level, where they are not leaves.
    pub below: &'a Best<R>,
    /// Where `Phase::Sums` writes; threads write disjoint rows.
    pub sums: SumsOut<I>,
    /// All rows, as a bitset.
    pub everything: &'a [u64],
    /// Hands out work.
    pub next: AtomicUsize,
    /// When to stop.
    pub monitor: &'a Monitor<'a>,
}

/// A table that threads fill in disjoint places.
pub struct SumsOut<I>(pub *mut I);

// SAFETY: `fill_sums` hands every row of the table to exactly one thread.
unsafe impl<I: Send> Sync for SumsOut<I> {}

/// A pass of one thread.
pub type Pass<T, I, R> =
    unsafe fn(&Shared<'_, '_, T, I, R>, Phase, &mut Worker<I, R>) -> Result<(), Stop>;

/// The single-width pass of a backend.
pub fn single<T: LaneTask>(backend: Backend) -> Pass<T, i32, f32> {
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => avx512_single::<T>,
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => avx2_single::<T>,
        _ => portable_single::<T>,
    }
}

/// The double-width pass of a backend.
pub fn double<T: LaneTask>(backend: Backend) -> Pass<T, i64, f64> {
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => avx512_double::<T>,
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => avx2_double::<T>,
        _ => portable_double::<T>,
    }
}

macro_rules! backend {
    ($name:ident, $lanes:ty, $i:ty, $r:ty $(, $features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        pub(super) unsafe fn $name<T: LaneTask>(
            shared: &Shared<'_, '_, T, $i, $r>,
            phase: Phase,
            worker: &mut Worker<$i, $r>,
        ) -> Result<(), Stop> {
            // SAFETY: the features are enabled here and checked by the caller.
            unsafe { run::<$lanes, T>(shared, phase, worker) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use crate::simd::{avx2, avx512};

    backend!(
        avx512_single,
        avx512::Single,
        i32,
        f32,
        "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt"
    );
    backend!(
        avx512_double,
        avx512::Double,
        i64,
        f64,
        "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt"
    );
    backend!(avx2_single, avx2::Single, i32, f32, "avx2,fma,bmi1,popcnt");
    backend!(avx2_double, avx2::Double, i64, f64, "avx2,fma,bmi1,popcnt");
}
#[cfg(target_arch = "x86_64")]
use x86::*;

backend!(portable_single, portable::Single, i32, f32);
backend!(portable_double, portable::Double, i64, f64);

/// # Safety
/// The machine must have the instruction set of `L`.
#[inline(always)]
unsafe fn run<L: Lanes, T: LaneTask>(
    shared: &Shared<'_, '_, T, L::I, L::R>,
    phase: Phase,
    worker: &mut Worker<L::I, L::R>,
) -> Result<(), Stop> {
    // SAFETY: passed on from the caller.
    unsafe {
        match phase {
            Phase::Sums(m) => fill_sums::<L, T>(shared, m, worker),
            Phase::Cells(m) => {
                let leaves = m == shared.problem.depth;
                match (m, leaves) {
                    (1, true) => sweep::<L, T, 1, true>(shared, worker),
                    (2, true) => sweep::<L, T, 2, true>(shared, worker),
                    (3, true) => sweep::<L, T, 3, true>(shared, worker),
                    (4, true) => sweep::<L, T, 4, true>(shared, worker),
                    (_, true) => sweep::<L, T, 5, true>(shared, worker),
                    (1, false) => sweep::<L, T, 1, false>(shared, worker),
                    (2, false) => sweep::<L, T, 2, false>(shared, worker),
                    (3, false) => sweep::<L, T, 3, false>(shared, worker),
                    (_, false) => sweep::<L, T, 4, false>(shared, worker),
                }
            }
        }
    }
}

/// The next prefix of at most two columns for a level of itemsets of size `m`; columns that
/// the level does not have are 0. `None` when there is no more.
fn take(next: &AtomicUsize, m: usize, n: usize) -> Option<(usize, usize)> {
    let ticket = next.fetch_add(1, Ordering::Relaxed);
    match m {
        1 => (ticket == 0).then_some((0, 0)),
        2 => (ticket < n).then_some((ticket, 0)),
        _ => {
            let mut rest = ticket;
            for f in 0..n {
                if rest < n - f - 1 {
                    return Some((f, f + 1 + rest));
                }
                rest -= n - f - 1;
            }
            None
        }
    }
}

/// Sums of all positive itemsets of size `m`.
#[inline(always)]
unsafe fn fill_sums<L: Lanes, T: LaneTask>(
    shared: &Shared<'_, '_, T, L::I, L::R>,
    m: usize,
    worker: &mut Worker<L::I, L::R>,
) -> Result<(), Stop> {
    let (problem, rows) = (shared.problem, &shared.problem.rows);
    let (n, total) = (problem.geometry.n, problem.geometry.total(m));
    let stride = worker.stride(problem.channels);
    let keep = |scratch: &[L::I], prefix: &[usize]| {
        let row = problem.geometry.row(prefix);
        for c in 0..problem.channels {
            let from = &scratch[c * stride + row.first..c * stride + n];
            // SAFETY: the row belongs to this prefix, which only this thread was given.
            unsafe {
                let to = shared.sums.0.add(c * total + row.start);
                to.copy_from_nonoverlapping(from.as_ptr(), from.len());
            }
        }
    };
    while let Some((f, g)) = take(&shared.next, m, n) {
        shared.monitor.check()?;
        // SAFETY: the caller's contract; the scratch has the stride that `accumulate` asks.
        unsafe {
            match m {
                1 => {
                    let (all, out) = (shared.everything, worker.scratch.as_mut_ptr());
                    rows.accumulate::<L>(all, all, 0, out, stride);
                    keep(&worker.scratch, &[]);
                }
                2 => {
                    let (a, out) = (rows.column(f), worker.scratch.as_mut_ptr());
                    rows.accumulate::<L>(a, a, f + 1, out, stride);
                    keep(&worker.scratch, &[f]);
                }
                3 => {
                    worker.restrict(rows, f);
                    let (a, out) = (worker.one.1.column(g), worker.scratch.as_mut_ptr());
                    worker.one.1.accumulate::<L>(a, a, g + 1, out, stride);
                    keep(&worker.scratch, &[f, g]);
                }
                _ => {
                    worker.restrict_twice(rows, f, g);
                    for k in g + 1..n {
                        let (a, out) = (worker.two.1.column(k), worker.scratch.as_mut_ptr());
                        worker.two.1.accumulate::<L>(a, a, k + 1, out, stride);
                        keep(&worker.scratch, &[f, g, k]);
                    }
                }
            }
        }
    }
    Ok(())
}

/// The cells of all itemsets of size `M`: of the leaves, whose sums are accumulated on the
/// way, or of a level above, whose sums and best splits are known.
#[inline(always)]
unsafe fn sweep<L: Lanes, T: LaneTask, const M: usize, const LEAVES: bool>(
    shared: &Shared<'_, '_, T, L::I, L::R>,
    worker: &mut Worker<L::I, L::R>,
) -> Result<(), Stop> {
    let (problem, rows) = (shared.problem, &shared.problem.rows);
    let n = problem.geometry.n;
    let stride = worker.stride(problem.channels);
    macro_rules! cells {
        ($rows:expr, $a:expr, $b:expr, $first:expr) => {{
            // SAFETY: the caller's contract.
            unsafe {
                if LEAVES {
                    let out = worker.scratch.as_mut_ptr();
                    $rows.accumulate::<L>($a, $b, $first, out, stride);
                }
                problem.combine::<L, M, LEAVES>(
                    &worker.views[M - 1],
                    &worker.scratch,
                    stride,
                    shared.below,
                    &mut worker.above,
                );
            }
            if LEAVES {
                shared.monitor.count(((n - $first) << M) as u64);
            }
        }};
    }
    while let Some((f, g)) = take(&shared.next, M, n) {
        shared.monitor.check()?;
        if M == 1 {
            cells!(rows, shared.everything, shared.everything, 0);
            continue;
        }
        let [root, one, two, ..] = &mut worker.views;
        problem.extend::<0>(root, f, one);
        if M == 2 {
            cells!(rows, rows.column(f), rows.column(f), f + 1);
            continue;
        }
        problem.extend::<1>(one, g, two);
        if LEAVES && M == 5 {
            worker.restrict_twice(rows, f, g);
        } else if LEAVES {
            worker.restrict(rows, f);
        }
        if M == 3 {
            cells!(worker.one.1, worker.one.1.column(g), worker.one.1.column(g), g + 1);
            continue;
        }
        for k in g + 1..n {
            let [_, _, two, three, _] = &mut worker.views;
            problem.extend::<2>(two, k, three);
            if M == 4 {
                cells!(worker.one.1, worker.one.1.column(g), worker.one.1.column(k), k + 1);
                continue;
            }
            shared.monitor.check()?;
            for j in k + 1..n {
                let [_, _, _, three, four] = &mut worker.views;
                problem.extend::<3>(three, j, four);
                cells!(worker.two.1, worker.two.1.column(k), worker.two.1.column(j), j + 1);
            }
        }
    }
    Ok(())
}
