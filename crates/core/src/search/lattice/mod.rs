//! The itemset lattice: the best tree of depth at most four without a search.
//!
//! Every leaf of such a tree is a sign pattern of at most four columns. The lattice sums
//! the statistics of every positive itemset once, evaluates every cell once, and passes
//! the best splits from level to level: work C(F, d)·2^d leaf losses, O(C(F, d−1)·rows/2^d)
//! row visits. Lanes compute in fixed point and f32 (or f64); [`refine`] then recomputes
//! in exact arithmetic every branch within the proven error bound of the best, so that the
//! result is exact and the same on every backend and number of threads.

mod accumulate;
mod combine;
mod geometry;
mod refine;

pub use refine::Found;

use crate::data::Sample;
use crate::search::{Monitor, Precision, Settings, Stop};
use crate::simd::{Backend, LaneInt, LaneReal, Lanes, portable};
use crate::task::LaneTask;
use accumulate::Rows;
use combine::{Best, MAX_CHANNELS, Problem, View};
use geometry::Geometry;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Deepest tree of one lattice.
pub const MAX_DEPTH: usize = 4;

/// Whether a task with so many channels fits the kernels.
pub fn fits_channels(channels: usize) -> bool {
    channels < MAX_CHANNELS
}

/// Bytes of the tables of a lattice, without the rows.
pub fn table_bytes(n_columns: usize, depth: usize, channels: usize, n_threads: usize) -> usize {
    let level = |m: usize| Geometry::positions(n_columns, m);
    let sums: usize = (1..depth).map(level).sum::<usize>() * channels;
    let best: usize = (1..depth).map(|m| level(m) << m).sum();
    let last = if depth > 1 { level(depth - 1) << (depth - 1) } else { 0 };
    // Eight bytes for the wider lanes; single ones need half.
    8 * (sums + best + last * (n_threads - 1))
}

/// Best trees of depth at most `depth` for each leaf budget in `budgets`
/// (`usize::MAX`: as many leaves as the depth allows), in exact costs.
pub fn solve<T: LaneTask>(
    task: &T,
    sample: &Sample,
    depth: usize,
    budgets: &[usize],
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Vec<Found>, Stop> {
    let most_leaves = budgets.iter().copied().max().unwrap_or(1);
    let depth = depth.min(sample.n_columns()).min(MAX_DEPTH).min(most_leaves - 1);
    let backend = settings.backend.unwrap_or_else(|| Backend::available()[0]);
    let precision = choose_precision(task, sample, depth, settings);
    match precision {
        Precision::Single => {
            let run = match backend {
                #[cfg(target_arch = "x86_64")]
                Backend::Avx512 => avx512_single::<T>,
                #[cfg(target_arch = "x86_64")]
                Backend::Avx2 => avx2_single::<T>,
                _ => portable_single::<T>,
            };
            solve_with(task, sample, depth, budgets, settings, monitor, run)
        }
        Precision::Double => {
            let run = match backend {
                #[cfg(target_arch = "x86_64")]
                Backend::Avx512 => avx512_double::<T>,
                #[cfg(target_arch = "x86_64")]
                Backend::Avx2 => avx2_double::<T>,
                _ => portable_double::<T>,
            };
            solve_with(task, sample, depth, budgets, settings, monitor, run)
        }
    }
}

/// Single lanes unless their proven error is too large to tell trees apart.
pub fn choose_precision<T: LaneTask>(
    task: &T,
    sample: &Sample,
    depth: usize,
    settings: &Settings,
) -> Precision {
    if let Some(precision) = settings.precision {
        return precision;
    }
    let total = sample.total();
    let shift = shifts(task, &total, true);
    let (roundoff, ln_error) = (f32::ROUNDOFF, f32::LN_ERROR);
    let error = task.lane_error(&sample.sums, &shift, 1 << depth, roundoff, ln_error);
    let scale = total[0].max(1) as f64 / (1u64 << shift[0]) as f64;
    if error <= 5e-3 * scale { Precision::Single } else { Precision::Double }
}

/// Low bits each channel drops so that its total fits the lanes.
fn shifts<T: LaneTask>(task: &T, total: &[i64], single: bool) -> Vec<u32> {
    let most = task.max_lane_sum(single);
    let fits = |t: i64, s: u32| (t >> s) + (1 << 20).min(most / 1024) <= most;
    let needed = |&t: &i64| if t <= most { 0 } else { (0..63).find(|&s| fits(t, s)).unwrap_or(63) };
    total.iter().map(needed).collect()
}

/// A part of the work, for one thread.
#[derive(Clone, Copy)]
enum Phase {
    /// Sums of positive itemsets of this size.
    Sums(usize),
    /// The level of the leaves.
    Leaves,
    /// A level above.
    Inner(usize),
}

/// What one thread owns.
struct Worker<I, R> {
    views: [View<I>; 4],
    rows: Rows<I>,
    rows_of: usize,
    scratch: Vec<I>,
    above: Best<R>,
}

type Run<T, I, R> =
    unsafe fn(&Shared<'_, '_, T, I, R>, Phase, &mut Worker<I, R>, &mut [I]) -> Result<(), Stop>;

/// What all threads share.
struct Shared<'a, 'b, T, I, R> {
    problem: &'a Problem<'b, T, I, R>,
    below: &'a Best<R>,
    everything: &'a [u64],
    next: AtomicUsize,
    monitor: &'a Monitor<'a>,
}

macro_rules! backend {
    ($name:ident, $lanes:ty, $features:literal) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        unsafe fn $name<T: LaneTask>(
            shared: &Shared<'_, '_, T, <$lanes as Lanes>::I, <$lanes as Lanes>::R>,
            phase: Phase,
            worker: &mut Worker<<$lanes as Lanes>::I, <$lanes as Lanes>::R>,
            sums: &mut [<$lanes as Lanes>::I],
        ) -> Result<(), Stop> {
            // SAFETY: the features are enabled here and checked by the caller.
            unsafe { run::<$lanes, T>(shared, phase, worker, sums) }
        }
    };
}

backend!(
    avx512_single,
    crate::simd::avx512::Single,
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt"
);
backend!(
    avx512_double,
    crate::simd::avx512::Double,
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt"
);
backend!(avx2_single, crate::simd::avx2::Single, "avx2,fma,bmi1,popcnt");
backend!(avx2_double, crate::simd::avx2::Double, "avx2,fma,bmi1,popcnt");

unsafe fn portable_single<T: LaneTask>(
    shared: &Shared<'_, '_, T, i32, f32>,
    phase: Phase,
    worker: &mut Worker<i32, f32>,
    sums: &mut [i32],
) -> Result<(), Stop> {
    // SAFETY: portable lanes need no instruction set.
    unsafe { run::<portable::Single, T>(shared, phase, worker, sums) }
}

unsafe fn portable_double<T: LaneTask>(
    shared: &Shared<'_, '_, T, i64, f64>,
    phase: Phase,
    worker: &mut Worker<i64, f64>,
    sums: &mut [i64],
) -> Result<(), Stop> {
    // SAFETY: portable lanes need no instruction set.
    unsafe { run::<portable::Double, T>(shared, phase, worker, sums) }
}

/// One thread's share of a phase: takes (first, second) prefix columns off a counter.
///
/// # Safety
/// The machine must have the instruction set of `L`.
#[inline(always)]
unsafe fn run<L: Lanes, T: LaneTask>(
    shared: &Shared<'_, '_, T, L::I, L::R>,
    phase: Phase,
    worker: &mut Worker<L::I, L::R>,
    sums: &mut [L::I],
) -> Result<(), Stop> {
    let problem = shared.problem;
    // SAFETY: passed on from the caller.
    unsafe {
        match phase {
            Phase::Sums(m) => fill_sums::<L, T>(shared, m, worker, sums),
            Phase::Leaves => match problem.depth {
                1 => leaves::<L, T, 1>(shared, worker),
                2 => leaves::<L, T, 2>(shared, worker),
                3 => leaves::<L, T, 3>(shared, worker),
                _ => leaves::<L, T, 4>(shared, worker),
            },
            Phase::Inner(m) => match m {
                1 => inner::<L, T, 1>(shared, worker),
                2 => inner::<L, T, 2>(shared, worker),
                _ => inner::<L, T, 3>(shared, worker),
            },
        }
    }
}

/// Sums of all positive itemsets of size `m`.
#[inline(always)]
unsafe fn fill_sums<L: Lanes, T: LaneTask>(
    shared: &Shared<'_, '_, T, L::I, L::R>,
    m: usize,
    worker: &mut Worker<L::I, L::R>,
    sums: &mut [L::I],
) -> Result<(), Stop> {
    let problem = shared.problem;
    let (n, total) = (problem.geometry.n, problem.geometry.total(m));
    let stride = worker.scratch.len() / problem.channels;
    let mut keep = |scratch: &[L::I], prefix: &[usize]| {
        let row = problem.geometry.row(prefix);
        for c in 0..problem.channels {
            let from = &scratch[c * stride + row.first..c * stride + n];
            sums[c * total + row.start..][..from.len()].copy_from_slice(from);
        }
    };
    let rows = &problem.rows;
    // SAFETY: the caller's contract; the scratch has the stride that `accumulate` asks for.
    unsafe {
        match m {
            1 => {
                let out = worker.scratch.as_mut_ptr();
                rows.accumulate::<L>(shared.everything, shared.everything, 0, out, stride);
                keep(&worker.scratch, &[]);
            }
            2 => {
                for f in 0..n {
                    shared.monitor.check()?;
                    let (a, out) = (rows.column(f), worker.scratch.as_mut_ptr());
                    rows.accumulate::<L>(a, a, f + 1, out, stride);
                    keep(&worker.scratch, &[f]);
                }
            }
            _ => {
                for f in 0..n {
                    shared.monitor.check()?;
                    worker.restrict(rows, f);
                    for g in f + 1..n {
                        let (a, out) = (worker.rows.column(g), worker.scratch.as_mut_ptr());
                        worker.rows.accumulate::<L>(a, a, g + 1, out, stride);
                        keep(&worker.scratch, &[f, g]);
                    }
                }
            }
        }
    }
    Ok(())
}

/// The level of the leaves: itemsets of `M` = depth columns.
#[inline(always)]
unsafe fn leaves<L: Lanes, T: LaneTask, const M: usize>(
    shared: &Shared<'_, '_, T, L::I, L::R>,
    worker: &mut Worker<L::I, L::R>,
) -> Result<(), Stop> {
    let (problem, monitor) = (shared.problem, shared.monitor);
    let n = problem.geometry.n;
    let stride = worker.scratch.len() / problem.channels;
    let rows = &problem.rows;
    let nothing = Best(Vec::new());
    macro_rules! level {
        ($rows:expr, $a:expr, $b:expr, $first:expr) => {{
            // SAFETY: the caller's contract.
            unsafe {
                let out = worker.scratch.as_mut_ptr();
                $rows.accumulate::<L>($a, $b, $first, out, stride);
                let view = &worker.views[M - 1];
                problem.combine::<L, M, true>(
                    view,
                    &worker.scratch,
                    stride,
                    &nothing,
                    &mut worker.above,
                );
            }
            monitor.count(((n - $first) << M) as u64);
        }};
    }
    if M == 1 {
        level!(rows, shared.everything, shared.everything, 0);
        return Ok(());
    }
    // Work is handed out by the first two columns: (0, 1), (0, 2), …, and by one for M = 2.
    loop {
        let ticket = shared.next.fetch_add(1, Ordering::Relaxed);
        let (f, g) = if M == 2 { (ticket, 0) } else { unrank_pair(ticket, n) };
        if f >= n {
            return Ok(());
        }
        monitor.check()?;
        let [root, one, two, _] = &mut worker.views;
        problem.extend::<0>(root, f, one);
        if M == 2 {
            level!(rows, rows.column(f), rows.column(f), f + 1);
            continue;
        }
        problem.extend::<1>(one, g, two);
        if worker.rows_of != f {
            worker.rows.restrict(rows, f);
            worker.rows_of = f;
        }
        if M == 3 {
            level!(worker.rows, worker.rows.column(g), worker.rows.column(g), g + 1);
            continue;
        }
        for k in g + 1..n {
            let [_, _, two, three] = &mut worker.views;
            problem.extend::<2>(two, k, three);
            level!(worker.rows, worker.rows.column(g), worker.rows.column(k), k + 1);
        }
    }
}

/// A level above the leaves: itemsets of `M` < depth columns, sums and best splits known.
#[inline(always)]
unsafe fn inner<L: Lanes, T: LaneTask, const M: usize>(
    shared: &Shared<'_, '_, T, L::I, L::R>,
    worker: &mut Worker<L::I, L::R>,
) -> Result<(), Stop> {
    let problem = shared.problem;
    let n = problem.geometry.n;
    let mut level = |view: &View<L::I>| {
        // SAFETY: the caller's contract.
        unsafe {
            problem.combine::<L, M, false>(view, &[], 0, shared.below, &mut worker.above);
        }
    };
    let [root, one, two, _] = &mut worker.views;
    if M == 1 {
        level(root);
        return Ok(());
    }
    for f in 0..n {
        shared.monitor.check()?;
        problem.extend::<0>(root, f, one);
        if M == 2 {
            level(one);
            continue;
        }
        for g in f + 1..n {
            problem.extend::<1>(one, g, two);
            level(two);
        }
    }
    Ok(())
}

impl<I: LaneInt, R> Worker<I, R> {
    fn restrict(&mut self, rows: &Rows<I>, f: usize) {
        self.rows.restrict(rows, f);
        self.rows_of = f;
    }
}

/// The `ticket`-th pair f < g of `n` columns in lexicographic order; f = n when there is none.
fn unrank_pair(mut ticket: usize, n: usize) -> (usize, usize) {
    for f in 0..n {
        let row = n - f - 1;
        if ticket < row {
            return (f, f + 1 + ticket);
        }
        ticket -= row;
    }
    (n, n)
}

/// Runs all phases and refines.
fn solve_with<T: LaneTask, I: LaneInt, R: LaneReal>(
    task: &T,
    sample: &Sample,
    depth: usize,
    budgets: &[usize],
    settings: &Settings,
    monitor: &Monitor,
    run: Run<T, I, R>,
) -> Result<Vec<Found>, Stop> {
    let mut problem = build(task, sample, depth, budgets, settings);
    let mut best: [Best<R>; 4] = Default::default();
    if depth > 0 {
        let everything = problem.rows.everything();
        let n_threads = settings.n_threads.max(1);
        let stride = problem.geometry.n + 96;
        let worker = |problem: &Problem<T, I, R>| Worker {
            views: std::array::from_fn(|_| View::root(&problem.geometry, &problem.totals)),
            rows: Rows::default(),
            rows_of: usize::MAX,
            scratch: vec![I::default(); stride * problem.channels],
            above: Best(Vec::new()),
        };
        let mut first = worker(&problem);
        let no_splits = Best(Vec::new());
        for m in 1..depth {
            let mut sums = vec![I::default(); problem.channels * problem.geometry.total(m)];
            let shared = Shared {
                problem: &problem,
                below: &no_splits,
                everything: &everything,
                next: AtomicUsize::new(0),
                monitor,
            };
            // SAFETY: `run` was chosen for an available backend.
            unsafe { run(&shared, Phase::Sums(m), &mut first, &mut sums)? };
            problem.sums[m - 1] = sums;
        }
        let table = |m: usize| {
            let positions = if m == 0 { 1 } else { problem.geometry.total(m) };
            Best(vec![R::INFINITY; (positions * problem.slots[m]) << m])
        };
        for level in (1..=depth).rev() {
            let below =
                if level < depth { std::mem::take(&mut best[level]) } else { Best(Vec::new()) };
            let shared = Shared {
                problem: &problem,
                below: &below,
                everything: &everything,
                next: AtomicUsize::new(0),
                monitor,
            };
            first.above = table(level - 1);
            if level == depth {
                first.rows_of = usize::MAX;
                let mut others: Vec<Worker<I, R>> = (1..n_threads)
                    .map(|_| Worker { above: table(level - 1), ..worker(&problem) })
                    .collect();
                let go = |worker: &mut Worker<I, R>| {
                    // SAFETY: as above.
                    unsafe { run(&shared, Phase::Leaves, worker, &mut []) }
                };
                std::thread::scope(|scope| {
                    let handles: Vec<_> =
                        others.iter_mut().map(|worker| scope.spawn(|| go(worker))).collect();
                    let own = go(&mut first);
                    handles
                        .into_iter()
                        .map(|h| h.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
                        .fold(own, Result::and)
                })?;
                for other in &others {
                    first.above.merge(&other.above);
                }
            } else {
                // SAFETY: as above.
                unsafe { run(&shared, Phase::Inner(level), &mut first, &mut [])? };
            }
            best[level - 1] = std::mem::take(&mut first.above);
            if level < depth {
                best[level] = below;
            }
        }
    }
    let error = lane_error(&problem, sample);
    let unit = task.lane_unit(&problem.shift);
    refine::refine(&problem, sample, &best, unit, error, budgets, monitor)
}

/// Error bound of any tree's total in lane units: the task's, and that of adding prices.
fn lane_error<T: LaneTask, I: LaneInt, R: LaneReal>(
    problem: &Problem<T, I, R>,
    sample: &Sample,
) -> f64 {
    let leaves = 1usize << problem.depth;
    let (roundoff, ln_error) = (R::ROUNDOFF, R::LN_ERROR);
    let task = problem.task.lane_error(&sample.sums, &problem.shift, leaves, roundoff, ln_error);
    let price = problem.task.split_price() as f64 / problem.task.lane_unit(&problem.shift);
    if task == 0.0 && (price * 16.0).fract() == 0.0 {
        // Whole costs and prices in sixteenths: every value that can win is exact.
        return 0.0;
    }
    task + 8.0 * roundoff * price * (leaves - 1) as f64
}

/// An exact statistic as the lanes see it.
fn lane_value(exact: i64, shift: u32) -> i64 {
    if shift == 0 { exact } else { (exact + (1 << (shift - 1))) >> shift }
}

fn build<'a, T: LaneTask, I: LaneInt, R: LaneReal>(
    task: &'a T,
    sample: &Sample,
    depth: usize,
    budgets: &[usize],
    settings: &Settings,
) -> Problem<'a, T, I, R> {
    let shift = shifts(task, &sample.total(), size_of::<I>() == 4);
    let count_rows = settings.min_leaf > 1;
    let channels = task.channels() + usize::from(count_rows);
    // Totals of what the lanes add, not of the exact statistics: differences stay exact.
    let mut totals = vec![0i64; channels];
    let mut record = vec![0i64; channels];
    let records = (0..sample.n_rows()).map(|r| {
        for ((lane, &v), &s) in record.iter_mut().zip(sample.statistics(r)).zip(&shift) {
            *lane = lane_value(v, s);
        }
        if count_rows {
            record[channels - 1] = sample.counts[r];
        }
        for (total, v) in totals.iter_mut().zip(&record) {
            *total += v;
        }
        (record.iter().map(|&v| I::from_i64(v)).collect(), sample.row(r))
    });
    let rows = Rows::new(sample.n_columns(), channels, records);
    let unlimited = budgets == [usize::MAX];
    let (combinations, slots) = leaf_budgets(depth, budgets);
    let price = task.split_price() as f64 / task.lane_unit(&shift);
    Problem {
        task,
        depth,
        task_channels: task.channels(),
        channels,
        min_leaf: settings.min_leaf,
        geometry: Geometry::new(sample.n_columns(), depth.min(3)),
        rows,
        shift,
        totals: totals.into_iter().map(I::from_i64).collect(),
        sums: Default::default(),
        price: R::from_f64(price),
        budgets: combinations,
        slots,
        unlimited,
    }
}

/// Leaf budgets kept on each level, and how those of two children combine.
///
/// With a free number of leaves there is one slot per level. Otherwise the value slots of
/// level m stand for at most 1, 2, … leaves, of which the first is the leaf itself, so that
/// the best splits have one slot fewer.
#[allow(clippy::type_complexity)]
fn leaf_budgets(depth: usize, budgets: &[usize]) -> ([Vec<(usize, usize, usize)>; 5], [usize; 5]) {
    let mut combinations: [Vec<(usize, usize, usize)>; 5] = Default::default();
    let mut slots = [0; 5];
    let most = budgets.iter().copied().max().unwrap_or(1);
    if budgets == [usize::MAX] {
        for m in 1..=depth {
            combinations[m] = vec![(0, 0, 0)];
            slots[m - 1] = 1;
        }
        return (combinations, slots);
    }
    // An itemset of level m leaves at least one leaf to each of its m siblings above.
    let cap = |m: usize| (1usize << (depth - m)).min(most.saturating_sub(m)).max(1);
    for m in 0..depth {
        slots[m] = cap(m) - 1;
    }
    for m in 1..=depth {
        for a in 1..=cap(m) {
            for b in 1..=cap(m) {
                if a + b <= cap(m - 1) {
                    combinations[m].push((a - 1, b - 1, a + b - 2));
                }
            }
        }
    }
    (combinations, slots)
}
