//! The passes over the lattice, compiled once per instruction set.
//!
//! Work is handed out by the runs of the first two columns of the prefix, so any number of threads
//! can share a level and its tables.

#[cfg(test)]
mod tests;

use super::above::Above;
use super::accumulate::Rows;
use super::combine::Problem;
use super::geometry::{Best, MAX_DEPTH};
use super::losses::{LeastChannel, LossOf, Losses};
use super::running::{self, Running, Then};
use super::runs::Visit;
use super::sums::{Last, Sums, View};
use super::tickets::Tickets;
use crate::search::{Monitor, Stop};
use crate::simd::{Backend, FloatLanes, Job, LaneInt, Lanes, Whole, with_token};
use crate::task::LaneTask;
use std::marker::PhantomData;

/// Memory of one thread.
pub struct Worker<I> {
    views: [View<I>; MAX_DEPTH],
    /// The rows that each column of a run adds, and the number of that run.
    added: (usize, Vec<Rows<I>>),
    /// For prefixes of four columns: the rows where the first column is true, and that column.
    one: (usize, Rows<I>),
    /// For prefixes of four columns: the rows where the first two columns are true, and these
    /// columns.
    two: ((usize, usize), Rows<I>),
    running: Running<I>,
}

impl<I: LaneInt> Worker<I> {
    /// Bytes of the copies of rows.
    pub fn row_bytes(&self) -> usize {
        let rows = self.added.1.iter().chain([&self.one.1, &self.two.1]);
        rows.map(Rows::bytes).sum::<usize>() + self.running.row_bytes()
    }

    /// Number of entries of the running sums.
    pub fn running_entries(&self) -> usize {
        self.running.entries()
    }
}

impl<I: LaneInt> Default for Worker<I> {
    fn default() -> Self {
        Worker {
            views: Default::default(),
            added: (usize::MAX, Vec::new()),
            one: (usize::MAX, Rows::default()),
            two: ((usize::MAX, usize::MAX), Rows::default()),
            running: Running::default(),
        }
    }
}

impl<I: LaneInt> Worker<I> {
    /// Prepares for a problem.
    pub fn begin(&mut self, sums: &Sums<I>) {
        self.views.iter_mut().for_each(|view| view.begin(sums));
        self.one.0 = usize::MAX;
        self.two.0 = (usize::MAX, usize::MAX);
    }

    /// Copies the rows that every column of a run adds.
    fn pick(&mut self, rows: &Rows<I>, run: usize, visits: impl Iterator<Item = Visit>) {
        let (picked, added) = &mut self.added;
        if *picked != run {
            for (i, visit) in visits.enumerate() {
                if added.len() == i {
                    added.push(Rows::default());
                }
                added[i].restrict(rows, rows.added(visit));
            }
            *picked = run;
        }
    }

    /// Copies the rows where two columns are true.
    fn restrict_twice(&mut self, rows: &Rows<I>, f: usize, g: usize) {
        let (of_one, one) = &mut self.one;
        if *of_one != f {
            one.restrict(rows, rows.picked(rows.column(f)));
            *of_one = f;
        }
        let (of_two, two) = &mut self.two;
        if *of_two != (f, g) {
            two.restrict(one, one.picked(one.column(g)));
            *of_two = (f, g);
        }
    }
}

/// What all threads share during a pass over the itemsets of a level.
pub struct Pass<'a, I> {
    /// The rows, and the sums of the levels above.
    pub sums: &'a Sums<I>,
    /// Size of the itemsets.
    pub size: usize,
    /// Whether their sums still have to be counted.
    pub counts: bool,
    /// All rows, as a bitset.
    pub everything: &'a [u64],
    /// Hands out work.
    pub tickets: Tickets<'a>,
    /// Stops the pass.
    pub monitor: &'a Monitor<'a>,
}

/// What all threads share while they evaluate the cells of the itemsets of a level.
pub struct Shared<'a, I, R> {
    /// The lattice.
    pub problem: &'a Problem<I, R>,
    /// Best splits of the itemsets, unless they are leaves.
    pub below: &'a Best<R>,
    pub pass: Pass<'a, I>,
}

/// A table that threads fill at disjoint positions.
pub struct SumsOut<'a, I> {
    table: *mut I,
    len: usize,
    only: PhantomData<&'a mut [I]>,
}

// SAFETY: tickets assign every row of the table to exactly one thread.
unsafe impl<I: Send> Sync for SumsOut<'_, I> {}

impl<'a, I> SumsOut<'a, I> {
    /// Fills the given table.
    pub fn new(table: &'a mut [I]) -> Self {
        SumsOut { table: table.as_mut_ptr(), len: table.len(), only: PhantomData }
    }

    /// Writes a row.
    ///
    /// # Safety
    ///
    /// No other thread may write to it.
    unsafe fn write(&self, at: usize, row: &[I])
    where
        I: Copy,
    {
        assert!(at <= self.len && row.len() <= self.len - at);
        // SAFETY: the row is in the table, to which only threads that share `self` have access, and
        // no other thread writes to this row.
        unsafe { self.table.add(at).copy_from_nonoverlapping(row.as_ptr(), row.len()) }
    }
}

/// Sums of positive itemsets on one thread.
pub type SumsPass<I> =
    fn(Backend, &Pass<'_, I>, &SumsOut<'_, I>, &mut Worker<I>) -> Result<(), Stop>;
/// Evaluates the cells of itemsets on one thread.
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
    /// Short width, for a task in which a leaf costs the least of its channels.
    pub fn short() -> Self {
        Passes {
            sums: |backend, pass, out, worker| {
                let kernel = Keep { pass, out };
                with_token!(backend, token => token.short().run(Sweep { pass, kernel, worker }))
            },
            cells: |backend, task, shared, worker, above| {
                let more = task.short().map_or(0, |short| short.last << short.lift);
                with_token!(backend, token => least_losses(token.short(), more, shared, worker, above))
            },
        }
    }
}

impl<T: LaneTask> Passes<T, i32, f32> {
    /// Single width.
    pub fn single() -> Self {
        Passes {
            sums: |backend, pass, out, worker| {
                let kernel = Keep { pass, out };
                with_token!(backend, token => token.single().run(Sweep { pass, kernel, worker }))
            },
            cells: |backend, task, shared, worker, above| with_token!(backend, token => losses(task, token.single(), shared, worker, above)),
        }
    }
}

impl<T: LaneTask> Passes<T, i64, f64> {
    /// Double width.
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
    pass: &Pass<i64>,
    out: &SumsOut<i64>,
    worker: &mut Worker<i64>,
) -> Result<(), Stop> {
    let kernel = Keep { pass, out };
    with_token!(backend, token => token.double().run(Sweep { pass, kernel, worker }))
}

/// The work of a pass on the itemsets of a level.
pub trait Kernel<L: Lanes> {
    /// Handles the itemsets `prefix ∪ {lane}` for all lanes beyond the prefix of `M − 1` columns,
    /// which has `P` sign patterns. If the pass counts, `last` contains their positive sums.
    fn prefix<const M: usize, const P: usize, const COUNTS: bool>(
        &mut self,
        lanes: L,
        view: &View<L::I>,
        last: Last<L::I>,
    ) -> Result<(), Stop>;

    /// Called after the prefixes with the same first two columns.
    fn release(&mut self) {}

    /// Called after the last prefix.
    fn end<const M: usize, const P: usize, const COUNTS: bool>(
        &mut self,
        _lanes: L,
    ) -> Result<(), Stop> {
        Ok(())
    }
}

/// Stores the sums of all positive itemsets of a size.
struct Keep<'a, 'b, I> {
    pass: &'a Pass<'b, I>,
    out: &'a SumsOut<'b, I>,
}

impl<L: Lanes> Kernel<L> for Keep<'_, '_, L::I> {
    #[inline(always)]
    fn prefix<const M: usize, const P: usize, const COUNTS: bool>(
        &mut self,
        _: L,
        view: &View<L::I>,
        last: Last<L::I>,
    ) -> Result<(), Stop> {
        let Sums { geometry, channels, levels, .. } = self.pass.sums;
        let row = geometry.row(&view.prefix.columns[..M - 1]);
        for c in 0..*channels {
            let from = match last {
                Last::Counted(sums, stride) => &sums[c * stride + row.first..],
                Last::Known(shorter) => {
                    let at = c * geometry.total(M - 1) + shorter.start;
                    &levels[M - 2][at + (row.first - shorter.first)..]
                }
            };
            let from = &from[..geometry.n - row.first];
            // SAFETY: the row belongs to this prefix, which was assigned to this thread only.
            unsafe { self.out.write(c * geometry.total(M) + row.start, from) };
        }
        Ok(())
    }
}

/// Evaluates the cells of all itemsets of a size with the leaf losses of a task.
fn losses<L: FloatLanes<Half: FloatLanes>, T: LaneTask>(
    task: &T,
    lanes: L,
    shared: &Shared<'_, L::I, L::R>,
    worker: &mut Worker<L::I>,
    above: &mut Above<L::R>,
) -> Result<(), Stop> {
    let pass = &shared.pass;
    let shift = &shared.problem.shift;
    let (whole, half) = (LossOf::new(task, lanes, shift), LossOf::new(task, lanes.half(), shift));
    let losses = (whole, half);
    if T::PRICED {
        let kernel = WithLosses::<L, _, true> { shared, above, losses, evaluated: 0 };
        lanes.run(Sweep { pass, kernel, worker })
    } else {
        let kernel = WithLosses::<L, _, false> { shared, above, losses, evaluated: 0 };
        lanes.run(Sweep { pass, kernel, worker })
    }
}

/// The same if a leaf costs the least of its channels; the last channel costs `more` in addition.
fn least_losses<L: Lanes>(
    lanes: L,
    more: i64,
    shared: &Shared<'_, L::I, L::R>,
    worker: &mut Worker<L::I>,
    above: &mut Above<L::R>,
) -> Result<(), Stop> {
    let losses = (LeastChannel::new(lanes, more), LeastChannel::new(lanes.half(), more));
    let kernel = WithLosses::<L, _, false> { shared, above, losses, evaluated: 0 };
    lanes.run(Sweep { pass: &shared.pass, kernel, worker })
}

/// Number of leaves that a thread evaluates before it adds them to the shared count.
const COUNTED_TOGETHER: u64 = 1 << 16;

/// Evaluates the leaf losses of cells. Without prices of questions it is the same for all tasks.
struct WithLosses<'a, 'b, L: Lanes, S, const PRICED: bool> {
    shared: &'a Shared<'a, L::I, L::R>,
    above: &'a mut Above<'b, L::R>,
    /// Losses in whole vectors, and in narrower ones for tails.
    losses: S,
    /// Evaluated leaves that are not yet counted.
    evaluated: u64,
}

impl<L: Lanes, W: Losses<L>, H: Losses<L::Half>, const PRICED: bool> Kernel<L>
    for WithLosses<'_, '_, L, (W, H), PRICED>
{
    #[inline(always)]
    fn prefix<const M: usize, const P: usize, const LEAVES: bool>(
        &mut self,
        lanes: L,
        view: &View<L::I>,
        last: Last<L::I>,
    ) -> Result<(), Stop> {
        let Shared { problem, below, pass } = self.shared;
        let (losses, above) = (&self.losses, &mut *self.above);
        self.evaluated += problem
            .combine::<L, _, _, PRICED, M, P, LEAVES>(lanes, losses, view, last, below, above);
        if self.evaluated >= COUNTED_TOGETHER {
            pass.monitor.count(std::mem::take(&mut self.evaluated));
        }
        Ok(())
    }

    #[inline(always)]
    fn release(&mut self) {
        self.above.release();
    }

    #[inline(always)]
    fn end<const M: usize, const P: usize, const LEAVES: bool>(
        &mut self,
        _lanes: L,
    ) -> Result<(), Stop> {
        self.shared.pass.monitor.count(self.evaluated);
        Ok(())
    }
}

/// All itemsets of a size.
pub struct Sweep<'a, 'b, I, K> {
    pub pass: &'a Pass<'b, I>,
    pub kernel: K,
    pub worker: &'a mut Worker<I>,
}

impl<L: Lanes, K: Kernel<L>> Job<L> for Sweep<'_, '_, L::I, K> {
    type Output = Result<(), Stop>;

    #[inline(always)]
    fn run(self, lanes: L) -> Result<(), Stop> {
        macro_rules! level {
            ($m:literal, $counts:literal) => {
                sweep::<L, K, $m, { 1 << ($m - 1) }, $counts>(lanes, self)
            };
        }
        match (self.pass.size, self.pass.counts) {
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

/// Visits all itemsets of size `M`, whose sums are counted on the way or known.
///
/// If two columns of a prefix belong to one run, the one with more rows does not change a sum,
/// which is that of a shorter prefix. Otherwise only the rows that each column adds along its run
/// are visited.
#[inline(always)]
fn sweep<L: Lanes, K: Kernel<L>, const M: usize, const P: usize, const COUNTS: bool>(
    lanes: L,
    Sweep { pass, mut kernel, worker }: Sweep<'_, '_, L::I, K>,
) -> Result<(), Stop> {
    let Pass { sums, everything, tickets, monitor, .. } = pass;
    let (rows, runs, n) = (&sums.rows, &sums.runs[..], sums.geometry.n);
    if COUNTS {
        worker.running.begin(sums, M);
        worker.added.0 = usize::MAX;
    }
    macro_rules! prefix {
        ($view:expr, $last:expr) => {{
            let last = if COUNTS { $last } else { Last::Counted(&[], 0) };
            evaluate::<L, K, M, P, COUNTS>(lanes, &mut kernel, $view, last, n)?;
        }};
    }
    macro_rules! extended {
        ($size:literal, $shorter:expr, $view:expr) => {{
            let (shorter, view, kernel) = (&*$shorter, &mut *$view, &mut kernel);
            Extended::<L, K, $size, M, P, COUNTS> { lanes, sums, shorter, view, kernel }
        }};
    }
    let [second, third] = running::pays(M, rows.len());
    for (a, b) in tickets.pairs() {
        monitor.check()?;
        if M == 1 {
            prefix!(&worker.views[0], worker.running.sum(lanes, rows, everything));
            kernel.release();
            continue;
        }
        let picks = COUNTS && (M == 3 || M == 4) && a != b;
        if picks {
            worker.pick(rows, a, runs[a].visits().map(|f| f.along(third)));
        }
        for f in runs[a].visits() {
            let at = f.at;
            let (f, of_f) = (f.column, f.along(third));
            let [root, one, ..] = &mut worker.views;
            sums.extend::<L, 0>(lanes, root, f, one);
            if M == 2 {
                prefix!(one, worker.running.sum(lanes, rows, rows.column(f)));
                kernel.release();
                continue;
            }
            for g in runs[b].visits().filter(|g| g.column > f) {
                let (g, of_g) = (g.column, g.along(second));
                monitor.check()?;
                if COUNTS && M == 5 {
                    worker.restrict_twice(rows, f, g);
                }
                let Worker { views, added: (_, added), two: (_, of_two), running, .. } = worker;
                let [_, one, two, three, four] = views;
                sums.extend::<L, 1>(lanes, one, g, two);
                let (run, added) = (runs[b], if picks { &added[at] } else { rows });
                // Of two columns of one run, the one with more rows does not change a sum.
                let known = |shorter: &[usize]| sums.geometry.row(shorter);
                match (M, COUNTS) {
                    (3, _) => prefix!(
                        two,
                        if a == b {
                            Last::Known(known(&[run.both(f, g)]))
                        } else {
                            running.beside_one(lanes, added, of_f, run, of_g)
                        }
                    ),
                    (4, false) => {
                        let mut then = extended!(2, two, three);
                        for k in g + 1..n {
                            then.take(k, Last::Counted(&[], 0))?;
                        }
                    }
                    (4, true) => {
                        let (end, later) = if a == b { (n, runs.len()) } else { (run.end, b + 1) };
                        let shorter = |k| {
                            known(&if a == b { [run.both(f, g), k] } else { [f, run.both(g, k)] })
                        };
                        let (known, both) = ((g + 1..end, shorter), [of_f, of_g]);
                        running.beside_two(
                            lanes,
                            known,
                            added,
                            both,
                            &runs[later..],
                            extended!(2, two, three),
                        )?;
                    }
                    _ => {
                        let further = runs.iter().enumerate().skip(b);
                        let further = further.flat_map(|(c, third)| {
                            third.visits().map(move |visit| (c, third, visit))
                        });
                        for (c, third, k) in further.filter(|(.., k)| k.column > g) {
                            monitor.check()?;
                            let (k, both) = (k.column, [Visit::alone(g), k.along(second)]);
                            sums.extend::<L, 2>(lanes, two, k, three);
                            let apart = a != b && b != c;
                            let (end, later) =
                                if apart { (third.end, c + 1) } else { (n, runs.len()) };
                            let shorter = |j| {
                                known(&match () {
                                    () if a == b => [run.both(f, g), k, j],
                                    () if b == c => [f, run.both(g, k), j],
                                    () => [f, g, third.both(k, j)],
                                })
                            };
                            let (known, later) = ((k + 1..end, shorter), &runs[later..]);
                            let then = extended!(3, three, four);
                            running.beside_two(lanes, known, of_two, both, later, then)?;
                        }
                    }
                }
                kernel.release();
            }
        }
    }
    kernel.end::<M, P, COUNTS>(lanes)
}

/// Appends the last column to a prefix of `SIZE` columns, and passes the result to the kernel.
struct Extended<
    'a,
    L: Lanes,
    K,
    const SIZE: usize,
    const M: usize,
    const P: usize,
    const COUNTS: bool,
> {
    lanes: L,
    sums: &'a Sums<L::I>,
    shorter: &'a View<L::I>,
    view: &'a mut View<L::I>,
    kernel: &'a mut K,
}

impl<L: Lanes, K: Kernel<L>, const SIZE: usize, const M: usize, const P: usize, const COUNTS: bool>
    Then<L::I> for Extended<'_, L, K, SIZE, M, P, COUNTS>
{
    #[inline(always)]
    fn take(&mut self, column: usize, last: Last<L::I>) -> Result<(), Stop> {
        let Extended { lanes, sums, shorter, view, kernel } = self;
        sums.extend::<L, SIZE>(*lanes, shorter, column, view);
        evaluate::<L, K, M, P, COUNTS>(*lanes, kernel, view, last, sums.geometry.n)
    }
}

/// Passes a prefix to the kernel if a column follows it.
#[inline(always)]
fn evaluate<L: Lanes, K: Kernel<L>, const M: usize, const P: usize, const COUNTS: bool>(
    lanes: L,
    kernel: &mut K,
    view: &View<L::I>,
    last: Last<L::I>,
    n_columns: usize,
) -> Result<(), Stop> {
    if view.prefix.first() < n_columns {
        kernel.prefix::<M, P, COUNTS>(lanes, view, last)?;
    }
    Ok(())
}
