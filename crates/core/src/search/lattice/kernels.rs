//! The passes over the lattice, compiled once per instruction set.
//!
//! Work is handed out by the first two columns of the prefix, so any number of threads
//! shares a level and its tables.

use super::above::Above;
use super::accumulate::{Rows, SPARE_LANES};
use super::combine::Problem;
use super::geometry::{Best, MAX_DEPTH};
use super::losses::{LeastChannel, LossOf, Losses};
use super::memory::refill;
use super::sums::{Sums, View};

use crate::search::{Monitor, Stop};
use crate::simd::{Backend, FloatLanes, Job, LaneInt, Lanes, Whole, with_token};
use crate::task::LaneTask;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory that one thread owns.
pub struct Worker<I> {
    views: [View<I>; MAX_DEPTH],
    /// Rows where the first column of the prefix is true, and which column that is.
    one: (usize, Rows<I>),
    /// Rows where the first two are, and which.
    two: ((usize, usize), Rows<I>),
    scratch: Vec<I>,
}

impl<I: LaneInt> Worker<I> {
    /// Bytes of its copies of rows.
    pub fn row_bytes(&self) -> usize {
        self.one.1.bytes() + self.two.1.bytes()
    }
}

impl<I: LaneInt> Default for Worker<I> {
    fn default() -> Self {
        Worker {
            views: Default::default(),
            one: (usize::MAX, Rows::default()),
            two: ((usize::MAX, usize::MAX), Rows::default()),
            scratch: Vec::new(),
        }
    }
}

impl<I: LaneInt> Worker<I> {
    /// Makes ready for a problem.
    pub fn begin(&mut self, sums: &Sums<I>) {
        self.views.iter_mut().for_each(|view| view.begin(sums));
        self.one.0 = usize::MAX;
        self.two.0 = (usize::MAX, usize::MAX);
        let stride = sums.geometry.n + SPARE_LANES;
        refill(&mut self.scratch, stride * sums.channels, I::default());
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

/// State that all threads share while they sum the itemsets of a level.
pub struct Filling<'a, I> {
    /// The rows, and the levels above.
    pub sums: &'a Sums<I>,
    /// Size of the itemsets.
    pub size: usize,
    /// The level; threads write disjoint rows.
    pub out: SumsOut<'a, I>,
    /// All rows, as a bitset.
    pub everything: &'a [u64],
    /// Hands out work.
    pub tickets: Tickets,
    /// When to stop.
    pub monitor: &'a Monitor<'a>,
}

/// State that all threads share while they evaluate the cells of the itemsets of a level.
pub struct Shared<'a, I, R> {
    /// The lattice.
    pub problem: &'a Problem<I, R>,
    /// Size of the itemsets.
    pub size: usize,
    /// Their best splits, where they are not leaves.
    pub below: &'a Best<R>,
    /// All rows, as a bitset.
    pub everything: &'a [u64],
    /// Hands out work.
    pub tickets: Tickets,
    /// When to stop.
    pub monitor: &'a Monitor<'a>,
}

/// A table that threads fill in disjoint places.
pub struct SumsOut<'a, I> {
    table: *mut I,
    len: usize,
    only: PhantomData<&'a mut [I]>,
}

// SAFETY: `fill_sums` hands every row of the table to exactly one thread.
unsafe impl<I: Send> Sync for SumsOut<'_, I> {}

impl<'a, I> SumsOut<'a, I> {
    /// Fills this table.
    pub fn new(table: &'a mut [I]) -> Self {
        SumsOut { table: table.as_mut_ptr(), len: table.len(), only: PhantomData }
    }

    /// Writes a row.
    ///
    /// # Safety
    /// No other thread writes here.
    unsafe fn write(&self, at: usize, row: &[I])
    where
        I: Copy,
    {
        assert!(at <= self.len && row.len() <= self.len - at);
        // SAFETY: it is in the table, which only threads that share `self` may touch, and of
        // these no other does.
        unsafe { self.table.add(at).copy_from_nonoverlapping(row.as_ptr(), row.len()) }
    }
}

/// Sums of positive itemsets on one thread.
pub type SumsPass<I> = fn(Backend, &Filling<'_, I>, &mut Worker<I>) -> Result<(), Stop>;
/// Work on the cells of itemsets on one thread.
pub type CellsOf<'a, I, R> =
    dyn Fn(&Shared<'_, I, R>, &mut Worker<I>, &mut Above<R>) -> Result<(), Stop> + Sync + 'a;
type LossesPass<T, I, R> =
    fn(Backend, &T, &Shared<'_, I, R>, &mut Worker<I>, &mut Above<R>) -> Result<(), Stop>;

/// The passes of one thread, by width.
pub struct Passes<T, I, R> {
    /// Sums of positive itemsets.
    pub sums: SumsPass<I>,
    /// Cells of itemsets, with the leaf losses of a task.
    pub cells: LossesPass<T, I, R>,
}

impl<T: LaneTask> Passes<T, u16, Whole> {
    /// In short width, for a task whose leaves cost the least of their channels.
    pub fn short() -> Self {
        Passes {
            sums: |backend, filling, worker| {
                let job = FillSums { filling, worker };
                with_token!(backend, token => token.short().run(job))
            },
            cells: |backend, task, shared, worker, above| {
                let more = task.short().map_or(0, |short| short.last << short.lift);
                with_token!(backend, token => least_losses(token.short(), more, shared, worker, above))
            },
        }
    }
}

impl<T: LaneTask> Passes<T, i32, f32> {
    /// In single width.
    pub fn single() -> Self {
        Passes {
            sums: |backend, filling, worker| {
                let job = FillSums { filling, worker };
                with_token!(backend, token => token.single().run(job))
            },
            cells: |backend, task, shared, worker, above| with_token!(backend, token => losses(task, token.single(), shared, worker, above)),
        }
    }
}

impl<T: LaneTask> Passes<T, i64, f64> {
    /// In double width.
    pub fn double() -> Self {
        Passes {
            sums: fill_double,
            cells: |backend, task, shared, worker, above| with_token!(backend, token => losses(task, token.double(), shared, worker, above)),
        }
    }
}

/// Sums of positive itemsets in double width.
pub fn fill_double(
    backend: Backend,
    filling: &Filling<i64>,
    worker: &mut Worker<i64>,
) -> Result<(), Stop> {
    with_token!(backend, token => token.double().run(FillSums { filling, worker }))
}

/// Work of a pass on the cells of a level.
pub trait Kernel<L: Lanes> {
    /// Those of `prefix ∪ {lane}` for all lanes beyond the prefix of `M − 1` columns, which has `P`
    /// sign patterns: on the level of the leaves `last` holds their positive sums and the stride
    /// of channels.
    fn prefix<const M: usize, const P: usize, const LEAVES: bool>(
        &mut self,
        lanes: L,
        view: &View<L::I>,
        last: (&[L::I], usize),
        above: &mut Above<L::R>,
    ) -> Result<(), Stop>;

    /// After the last prefix.
    fn end<const M: usize, const P: usize, const LEAVES: bool>(
        &mut self,
        _lanes: L,
        _above: &mut Above<L::R>,
    ) -> Result<(), Stop> {
        Ok(())
    }
}

/// Hands out the prefixes of a level to threads.
pub struct Tickets {
    next: AtomicUsize,
    /// Size of the itemsets.
    m: usize,
    /// Number of columns.
    n: usize,
    n_threads: usize,
    order: Order,
}

/// Order in which prefixes of two columns are handed out.
enum Order {
    /// All of a first column at once: no two threads pick out the rows of the same column.
    FirstColumn,
    /// One by one.
    Pairs,
    /// One by one, most of them without a column of the one before.
    Apart,
}

impl Tickets {
    /// For itemsets of size `m` over `n` columns.
    pub fn new(m: usize, n: usize, n_threads: usize) -> Self {
        // The first column has m of n parts of the work, which must be little beside a thread's.
        let by_first = n_threads == 1 || 4 * m * n_threads <= n;
        let order = if by_first { Order::FirstColumn } else { Order::Pairs };
        Tickets { next: AtomicUsize::new(0), m, n, n_threads, order }
    }

    /// For threads that wait for each other where their prefixes have a column in common.
    pub fn apart(self) -> Self {
        let order = match self.order {
            Order::Pairs => Order::Apart,
            order => order,
        };
        Tickets { order, ..self }
    }

    /// The prefixes of at most two columns of one thread.
    fn prefixes(&self) -> Prefixes<'_> {
        Prefixes { tickets: self, first: 0, seconds: [0..0, 0..0] }
    }

    /// The next prefix of at most two columns, a range for the second, where the level has `m`;
    /// columns that it does not have are 0. `None` when there is no more.
    fn take(&self) -> Option<(usize, Range<usize>)> {
        let n = self.n;
        loop {
            let ticket = self.next.fetch_add(1, Ordering::Relaxed);
            let pair = |f: usize, g: usize| Some((f, g..g + 1));
            match (self.m, &self.order) {
                (1, _) => return (ticket == 0).then_some((0, 0..1)),
                (2, _) => return (ticket < n).then_some((ticket, 0..1)),
                (_, Order::FirstColumn) => return (ticket < n).then_some((ticket, ticket + 1..n)),
                (_, Order::Pairs | Order::Apart) if ticket >= n * n => return None,
                (_, Order::Pairs) if ticket / n < ticket % n => {
                    return pair(ticket / n, ticket % n);
                }
                (_, Order::Apart) => {
                    // Pairs of the same sum modulo n have no column in common.
                    let (sum, f) = (ticket / n, ticket % n);
                    let g = (sum + n - f) % n;
                    if f < g {
                        return pair(f, g);
                    }
                }
                _ => {}
            }
        }
    }
}

/// See [`Tickets::prefixes`].
struct Prefixes<'a> {
    tickets: &'a Tickets,
    first: usize,
    /// Second columns of the last ticket that are left, one range after the other.
    seconds: [Range<usize>; 2],
}

impl Iterator for Prefixes<'_> {
    type Item = (usize, usize);

    // Inline, it takes registers from the passes.
    #[inline(never)]
    fn next(&mut self) -> Option<(usize, usize)> {
        loop {
            let [now, later] = &mut self.seconds;
            if let Some(second) = now.next().or_else(|| later.next()) {
                return Some((self.first, second));
            }
            let (first, seconds) = self.tickets.take()?;
            // Threads begin at different second columns.
            let n_threads = self.tickets.n_threads;
            let middle = seconds.start + first % n_threads * seconds.len() / n_threads;
            self.first = first;
            self.seconds = [middle..seconds.end, seconds.start..middle];
        }
    }
}

/// Sums of all positive itemsets of a size.
struct FillSums<'a, 'b, I> {
    filling: &'a Filling<'b, I>,
    worker: &'a mut Worker<I>,
}

impl<L: Lanes> Job<L> for FillSums<'_, '_, L::I> {
    type Output = Result<(), Stop>;

    #[inline(always)]
    fn run(self, lanes: L) -> Result<(), Stop> {
        let FillSums { filling, worker } = self;
        let (sums, rows, m) = (filling.sums, &filling.sums.rows, filling.size);
        let (n, total) = (sums.geometry.n, sums.geometry.total(m));
        let stride = worker.stride(sums.channels);
        let keep = |scratch: &[L::I], prefix: &[usize]| {
            let row = sums.geometry.row(prefix);
            for c in 0..sums.channels {
                let from = &scratch[c * stride + row.first..c * stride + n];
                // SAFETY: the row belongs to this prefix, which only this thread was given.
                unsafe { filling.out.write(c * total + row.start, from) };
            }
        };
        for (f, g) in filling.tickets.prefixes() {
            filling.monitor.check()?;
            match m {
                1 => {
                    let all = filling.everything;
                    rows.accumulate(lanes, all, all, 0, &mut worker.scratch, stride);
                    keep(&worker.scratch, &[]);
                }
                2 => {
                    let a = rows.column(f);
                    rows.accumulate(lanes, a, a, f + 1, &mut worker.scratch, stride);
                    keep(&worker.scratch, &[f]);
                }
                3 => {
                    worker.restrict(rows, f);
                    let (rows, out) = (&worker.one.1, &mut worker.scratch);
                    rows.accumulate(lanes, rows.column(g), rows.column(g), g + 1, out, stride);
                    keep(&worker.scratch, &[f, g]);
                }
                _ => {
                    worker.restrict_twice(rows, f, g);
                    for k in g + 1..n {
                        let (rows, out) = (&worker.two.1, &mut worker.scratch);
                        rows.accumulate(lanes, rows.column(k), rows.column(k), k + 1, out, stride);
                        keep(&worker.scratch, &[f, g, k]);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The cells of all itemsets of a size, with the leaf losses of a task.
fn losses<L: FloatLanes<Half: FloatLanes>, T: LaneTask>(
    task: &T,
    lanes: L,
    shared: &Shared<'_, L::I, L::R>,
    worker: &mut Worker<L::I>,
    above: &mut Above<L::R>,
) -> Result<(), Stop> {
    let shift = &shared.problem.shift;
    let (whole, half) = (LossOf::new(task, lanes, shift), LossOf::new(task, lanes.half(), shift));
    let losses = (whole, half);
    if T::PRICED {
        let kernel = WithLosses::<L, _, true> { shared, losses, evaluated: 0 };
        lanes.run(Sweep { shared, kernel, worker, above })
    } else {
        let kernel = WithLosses::<L, _, false> { shared, losses, evaluated: 0 };
        lanes.run(Sweep { shared, kernel, worker, above })
    }
}

/// The cells of all itemsets of a size, where a leaf costs the least of its channels; the last
/// channel costs `more` on top.
fn least_losses<L: Lanes>(
    lanes: L,
    more: i64,
    shared: &Shared<'_, L::I, L::R>,
    worker: &mut Worker<L::I>,
    above: &mut Above<L::R>,
) -> Result<(), Stop> {
    let losses = (LeastChannel::new(lanes, more), LeastChannel::new(lanes.half(), more));
    let kernel = WithLosses::<L, _, false> { shared, losses, evaluated: 0 };
    lanes.run(Sweep { shared, kernel, worker, above })
}

/// Leaves that a thread evaluates before it adds them to the count that all threads share.
const COUNTED_TOGETHER: u64 = 1 << 16;

/// Evaluates leaf losses where it meets cells: the same for all tasks but for prices of questions.
struct WithLosses<'a, L: Lanes, S, const PRICED: bool> {
    shared: &'a Shared<'a, L::I, L::R>,
    /// In whole vectors, and in those for tails.
    losses: S,
    /// Leaves that are not counted yet.
    evaluated: u64,
}

impl<L: Lanes, W: Losses<L>, H: Losses<L::Half>, const PRICED: bool> Kernel<L>
    for WithLosses<'_, L, (W, H), PRICED>
{
    #[inline(always)]
    fn prefix<const M: usize, const P: usize, const LEAVES: bool>(
        &mut self,
        lanes: L,
        view: &View<L::I>,
        last: (&[L::I], usize),
        above: &mut Above<L::R>,
    ) -> Result<(), Stop> {
        let Shared { problem, below, monitor, .. } = self.shared;
        let losses = &self.losses;
        problem.combine::<L, _, _, PRICED, M, P, LEAVES>(lanes, losses, view, last, below, above);
        if LEAVES {
            self.evaluated += ((problem.sums.geometry.n - view.prefix.first()) << M) as u64;
            if self.evaluated >= COUNTED_TOGETHER {
                monitor.count(std::mem::take(&mut self.evaluated));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn end<const M: usize, const P: usize, const LEAVES: bool>(
        &mut self,
        _lanes: L,
        _above: &mut Above<L::R>,
    ) -> Result<(), Stop> {
        self.shared.monitor.count(self.evaluated);
        Ok(())
    }
}

/// The cells of all itemsets of a size.
pub struct Sweep<'a, 'b, L: Lanes, K> {
    pub shared: &'a Shared<'a, L::I, L::R>,
    pub kernel: K,
    pub worker: &'a mut Worker<L::I>,
    pub above: &'a mut Above<'b, L::R>,
}

impl<L: Lanes, K: Kernel<L>> Job<L> for Sweep<'_, '_, L, K> {
    type Output = Result<(), Stop>;

    #[inline(always)]
    fn run(self, lanes: L) -> Result<(), Stop> {
        let Sweep { shared, mut kernel, worker, above } = self;
        macro_rules! level {
            ($m:literal, $leaves:literal) => {
                sweep::<L, K, $m, { 1 << ($m - 1) }, $leaves>(
                    lanes,
                    shared,
                    &mut kernel,
                    worker,
                    above,
                )
            };
        }
        match (shared.size, shared.size == shared.problem.depth) {
            (1, true) => level!(1, true),
            (2, true) => level!(2, true),
            (3, true) => level!(3, true),
            (4, true) => level!(4, true),
            (_, true) => level!(5, true),
            (1, false) => level!(1, false),
            (2, false) => level!(2, false),
            (3, false) => level!(3, false),
            (_, false) => level!(4, false),
        }
    }
}

/// The cells of all itemsets of size `M`: of the leaves, whose sums are accumulated on the
/// way, or of a level above, whose sums and best splits are known.
#[inline(always)]
fn sweep<L: Lanes, K: Kernel<L>, const M: usize, const P: usize, const LEAVES: bool>(
    lanes: L,
    shared: &Shared<'_, L::I, L::R>,
    kernel: &mut K,
    worker: &mut Worker<L::I>,
    above: &mut Above<L::R>,
) -> Result<(), Stop> {
    let sums = &shared.problem.sums;
    let (rows, n) = (&sums.rows, sums.geometry.n);
    let stride = worker.stride(sums.channels);
    macro_rules! cells {
        ($rows:expr, $a:expr, $b:expr, $first:expr) => {{
            if $first == n {
                continue;
            }
            if LEAVES {
                $rows.accumulate(lanes, $a, $b, $first, &mut worker.scratch, stride);
            }
            let (view, last) = (&worker.views[M - 1], (&worker.scratch[..], stride));
            kernel.prefix::<M, P, LEAVES>(lanes, view, last, above)?;
        }};
    }
    for (f, g) in shared.tickets.prefixes() {
        shared.monitor.check()?;
        if M == 1 {
            cells!(rows, shared.everything, shared.everything, 0);
            above.release();
            continue;
        }
        let [root, one, two, ..] = &mut worker.views;
        sums.extend::<L, 0>(lanes, root, f, one);
        if M == 2 {
            cells!(rows, rows.column(f), rows.column(f), f + 1);
            above.release();
            continue;
        }
        sums.extend::<L, 1>(lanes, one, g, two);
        if LEAVES && M == 5 {
            worker.restrict_twice(rows, f, g);
        } else if LEAVES {
            worker.restrict(rows, f);
        }
        if M == 3 {
            cells!(worker.one.1, worker.one.1.column(g), worker.one.1.column(g), g + 1);
            above.release();
            continue;
        }
        for k in g + 1..n {
            let [_, _, two, three, _] = &mut worker.views;
            sums.extend::<L, 2>(lanes, two, k, three);
            if M == 4 {
                cells!(worker.one.1, worker.one.1.column(g), worker.one.1.column(k), k + 1);
                continue;
            }
            shared.monitor.check()?;
            for j in k + 1..n {
                let [_, _, _, three, four] = &mut worker.views;
                sums.extend::<L, 3>(lanes, three, j, four);
                cells!(worker.two.1, worker.two.1.column(k), worker.two.1.column(j), j + 1);
            }
        }
        above.release();
    }
    kernel.end::<M, P, LEAVES>(lanes, above)
}
