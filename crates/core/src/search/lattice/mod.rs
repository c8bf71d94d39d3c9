//! The itemset lattice: finds the best tree of depth at most five without a search.
//!
//! Every leaf of such a tree is a sign pattern of at most five columns. The lattice sums the
//! statistics of every positive itemset once, evaluates every cell once, and passes the best splits
//! from level to level. The work is C(F, d)·2^d leaf losses and O(C(F, d−1)·rows/2^d) row visits.
//! Lanes compute in fixed point and f32 (or f64). Then [`refine`] recomputes every branch within
//! the proven error bound of the best in exact arithmetic, so the result is exact and the same on
//! every backend and number of threads.

pub(super) mod above;
pub(super) mod accumulate;
mod budgets;
pub(super) mod combine;
mod effort;
pub(super) mod geometry;
mod implied;
pub(super) mod kernels;
mod losses;
mod memory;
mod rates;
mod refine;
pub(super) mod running;
pub(super) mod runs;
pub(super) mod sums;
pub(super) mod tables;
pub(super) mod tickets;

pub use effort::{effort, mostly_visits, useful_threads, visits, work};
pub use geometry::MAX_DEPTH;
pub use geometry::PREFIX;
pub use memory::{make_sure, refill, room_for};
pub use refine::{Query, Solved};
pub use tables::{Extent, Pool, Share};

use crate::data::{Sample, Smallest, events_of, rows_of};
use crate::search::threads::run_all;
use crate::search::{Monitor, Precision, Settings, Stop};
use crate::simd::{Backend, LaneInt, LaneReal};
use crate::task::{LaneError, LaneTask, ShortLanes};
use above::{Above, Regions};
use budgets::leaf_budgets;
use combine::{MAX_CHANNELS, Problem};
use effort::cells;
use geometry::{Best, Geometry};
use implied::Implied;
use kernels::{CellsOf, Pass, Passes, Shared, SumsOut, SumsPass, Worker};
use rates::Rates;
use runs::runs_of;
use sums::Sums;
use tables::Width;
use tickets::Tickets;

/// Whether the kernels support a task with this many channels that have a cost.
pub fn fits_channels(channels: usize) -> bool {
    channels < MAX_CHANNELS
}

/// The minima that leaves have to be checked for. If a leaf has enough events, it has at least as
/// many rows.
fn counted<T: LaneTask>(settings: &Settings) -> Smallest {
    let Smallest { rows, events } = settings.limits.smallest();
    // With prices, a test that does not split the rows may still make other tests cheaper.
    let any = if T::PRICED { 0 } else { 1 };
    Smallest { rows: if rows > any.max(events) { rows } else { 0 }, events }
}

/// Most channels of a lattice for the task.
pub fn channels<T: LaneTask>(task: &T, settings: &Settings) -> usize {
    let Smallest { rows, events } = counted::<T>(settings);
    task.channels() + 1 + usize::from(rows > 0 && events > 0)
}

/// Best trees with exact costs, found by lanes of this precision.
pub fn solve<T: LaneTask>(
    task: &T,
    sample: &Sample,
    query: Query,
    precision: Precision,
    settings: &Settings,
    share: Share,
    monitor: &Monitor,
) -> Result<Solved, Stop> {
    let (depth, leaves) = (query.levels(sample), query.leaves());
    let n_threads = useful_threads(|| effort(sample, depth), settings);
    let channels = channels(task, settings);
    let extent = Extent { depth, leaves, channels, n_threads, precision };
    share.lend(extent, sample, |tables, room| {
        let query = Query { depth, ..query };
        let lattice = Lattice { task, sample, query, settings, precision, room, monitor };
        let tables = tables.iter_mut();
        match precision {
            Precision::Short => {
                lattice.solve(tables.map(|tables| &mut tables.short), Passes::short())
            }
            Precision::Single => {
                lattice.solve(tables.map(|tables| &mut tables.single), Passes::single())
            }
            Precision::Double | Precision::Exact => {
                lattice.solve(tables.map(|tables| &mut tables.double), Passes::double())
            }
        }
    })
}

/// Up to this many cells, double lanes take less time than distinguishing near ties.
const FEW_CELLS: usize = 1 << 20;

/// If the error exceeds the losses of this many rows, single lanes leave many near ties among
/// columns of noise. Double lanes are then faster, unless most of the time goes into cells, because
/// a vector holds only half as many of them.
const ROWS_OF_NEAR_TIES: f64 = 3.0;

/// From this many rows on, exact sums are faster if double lanes leave near ties, too.
const MANY_ROWS: usize = 1 << 13;

/// Chooses short lanes if all sums and losses fit into them. Otherwise single lanes, unless their
/// proven error is too large to distinguish trees, or double lanes have no error and cost little
/// more. Exact sums are used for many rows if double lanes do not distinguish trees, either.
pub fn choose_precision<T: LaneTask>(
    task: &T,
    sample: &Sample,
    depth: usize,
    settings: &Settings,
) -> Precision {
    let serves_exact = (2..=PREFIX).contains(&depth);
    match settings.switches.precision {
        Some(Precision::Exact) if !serves_exact => return Precision::Double,
        None | Some(Precision::Short) if fits_short(task, sample, depth, settings) => {
            return Precision::Short;
        }
        Some(Precision::Short) => return Precision::Single,
        Some(precision) => return precision,
        None => {}
    }
    let error = |single: bool, roundoff: f64, ln_error: f64| {
        let shift = shifts(task, single, sample);
        let error = task.lane_error(&sample.sums, &shift, 1 << depth, roundoff, ln_error);
        let leaf = task.leaf_cost(&sample.total) as f64 / task.lane_unit(&shift);
        let relative = matches!(error, LaneError::Relative { .. });
        (error.of(leaf), task.lane_scale(&sample.sums, &shift), relative)
    };
    let n_rows = sample.n_rows();
    let near_ties = |error: f64, scale: f64| error * n_rows as f64 > ROWS_OF_NEAR_TIES * scale;
    let mostly_visits = || mostly_visits(sample, depth, 1.0);
    let (single, scale, relative) = error(true, f32::ROUNDOFF, f32::LN_ERROR);
    let blurred = single > 5e-3 * scale || (near_ties(single, scale) && mostly_visits());
    let may_be_exact = relative && single > 0.0 && cells(sample.n_columns(), depth) <= FEW_CELLS;
    if !(blurred || may_be_exact) {
        return Precision::Single;
    }
    let many = serves_exact && n_rows >= MANY_ROWS;
    if blurred && !many {
        return Precision::Double;
    }
    let (double, scale, _) = error(false, f64::ROUNDOFF, f64::LN_ERROR);
    // Trees that give most rows the same labels have the same cost, so a small error does not help.
    let ties = near_ties(double, scale) || (T::ONE_SHIFT && double > 0.0);
    if many && ties && mostly_visits() {
        Precision::Exact
    } else if blurred || double == 0.0 {
        Precision::Double
    } else {
        Precision::Single
    }
}

/// Whether short lanes can hold all sums of rows and the losses of all trees.
fn fits_short<T: LaneTask>(task: &T, sample: &Sample, depth: usize, settings: &Settings) -> bool {
    let Some(ShortLanes { lift, price, last }) = task.short() else { return false };
    // The largest number stands for infinity.
    let most = (u16::MAX_SUM - 1).saturating_sub(price.saturating_mul((1 << depth) - 1));
    let sums = sample.total.iter().copied().max().unwrap_or(0).saturating_add(last);
    if sums > most >> lift.min(63) {
        return false;
    }
    let (size, Smallest { rows, events }) = (sample.total_size(), settings.limits.smallest());
    [rows_of(size), events_of(size), rows, events].into_iter().all(|count| count < u16::MAX_SUM)
}

/// Number of low bits that each channel drops so that the sum over any rows, rounded row by row,
/// fits into the lanes.
fn shifts<T: LaneTask>(task: &T, single: bool, sample: &Sample) -> Vec<u32> {
    shifts_of(task, single, &sample.sums)
}

/// The same for records of statistics.
pub fn shifts_of<T: LaneTask>(task: &T, single: bool, records: &[i64]) -> Vec<u32> {
    let (most, channels) = (task.max_lane_sum(single), task.channels());
    let n_rows = (records.len() / channels.max(1)) as i64;
    // Sums of the positive and of the negative values.
    let mut largest = vec![[0i64; 2]; channels];
    for record in records.chunks_exact(channels.max(1)) {
        for (sums, &v) in largest.iter_mut().zip(record) {
            sums[usize::from(v < 0)] += v.abs();
        }
    }
    let fits = |t: i64, s: u32| (t >> s) + n_rows / 2 < most;
    let needed = |t: i64| if t <= most { 0 } else { (1..63).find(|&s| fits(t, s)).unwrap_or(63) };
    let mut shift: Vec<u32> = largest.into_iter().map(|[p, n]| needed(p.max(n))).collect();
    if T::ONE_SHIFT {
        // Counts are small and remain unchanged.
        let costly = &mut shift[..task.loss_channels()];
        costly.fill(costly.iter().copied().max().unwrap_or(0));
    }
    shift
}

/// One lattice.
struct Lattice<'a, T> {
    task: &'a T,
    sample: &'a Sample,
    query: Query<'a>,
    settings: &'a Settings,
    precision: Precision,
    /// Bytes that remain for refinement.
    room: usize,
    monitor: &'a Monitor<'a>,
}

impl<T: LaneTask> Lattice<'_, T> {
    /// Runs all phases, with one thread for each of the tables, and refines the result.
    fn solve<'t, I: LaneInt, R: LaneReal>(
        &self,
        tables: impl Iterator<Item = &'t mut Width<I, R>>,
        passes: Passes<T, I, R>,
    ) -> Result<Solved, Stop> {
        let Lattice { task, sample, query, settings, room, monitor, .. } = *self;
        let backend = settings.backend();
        let mut threads: Vec<&mut Width<I, R>> = tables.collect();
        let mut problem = self.problem(std::mem::take(&mut threads[0].sums));
        let cells = |shared: &Shared<I, R>, worker: &mut Worker<I>, above: &mut Above<R>| {
            (passes.cells)(backend, task, shared, worker, above)
        };
        run(&mut problem, backend, passes.sums, &cells, &mut threads, monitor)?;
        let (best, unit) = (&threads[0].best, unit(task, &problem));
        let solved = refine::refine(task, &problem, sample, best, unit, query, room, monitor);
        threads[0].sums = problem.sums;
        solved
    }

    /// Input of the kernels, which reuses the memory of other sums.
    fn problem<I: LaneInt, R: LaneReal>(&self, sums: Sums<I>) -> Problem<I, R> {
        let Lattice { task, sample, query, settings, precision, .. } = *self;
        let units = match task.short() {
            Some(short) if precision == Precision::Short => (vec![0; sample.channels], short.lift),
            _ => (shifts(task, precision == Precision::Single, sample), 0),
        };
        let least = (counted::<T>(settings), task.minima());
        let problem = problem(sample, query, units, least, sums);
        // With prices, a question that does not split the rows may make others cheaper.
        let switch = settings.switches.implied;
        let may_imply = !T::PRICED && problem.depth == MAX_DEPTH && switch != Some(false);
        let of_rows = || {
            let implied = Implied::of(&problem.sums.rows, problem.sums.geometry.n);
            implied.filter(|implied| switch == Some(true) || implied.pays())
        };
        Problem {
            implied: may_imply.then(of_rows).flatten(),
            smallest: settings.limits.smallest(),
            price: R::from_f64(task.split_price() as f64 / unit(task, &problem)),
            rates: if T::PRICED { rates(task, sample) } else { Rates::default() },
            ..problem
        }
    }
}

/// Cost units per unit of the lanes.
fn unit<T: LaneTask, I, R>(task: &T, problem: &Problem<I, R>) -> f64 {
    task.lane_unit(&problem.shift) / (1u64 << problem.lift) as f64
}

/// Input of the kernels from the rows, in the memory of other sums. Every channel drops `shift`
/// bits or is shifted up by `lift` bits. Leaves have a minimum of rows and events, and of the last
/// channels, which are counts.
pub(super) fn problem<I: LaneInt, R: LaneReal>(
    sample: &Sample,
    query: Query,
    (shift, lift): (Vec<u32>, u32),
    least: (Smallest, &[i64]),
    sums: Sums<I>,
) -> Problem<I, R> {
    let (budgets, slots) = leaf_budgets(query.depth, query.budgets);
    let mut problem = Problem {
        depth: query.depth,
        loss_channels: sample.channels - least.1.len(),
        sums,
        minima: Vec::new(),
        smallest: least.0,
        price: R::default(),
        shift,
        lift,
        budgets,
        slots,
        unlimited: query.budgets == [usize::MAX],
        rates: Rates::default(),
        implied: None,
    };
    fill_rows(&mut problem, sample, least);
    problem
}

/// Runs all phases: computes the sums of the problem, and finds the best splits of every level in
/// the tables of the first thread.
pub(super) fn run<I: LaneInt, R: LaneReal>(
    problem: &mut Problem<I, R>,
    backend: Backend,
    sums_of: SumsPass<I>,
    cells_of: &CellsOf<'_, I, R>,
    threads: &mut [&mut Width<I, R>],
    monitor: &Monitor,
) -> Result<(), Stop> {
    let (depth, everything, nothing) =
        (problem.depth, problem.sums.rows.everything(), Best(Vec::new()));
    let tables = threads.iter_mut().map(|of| (&mut of.best, &mut of.worker));
    let (mut best, mut workers): (Vec<_>, Vec<_>) = tables.unzip();
    let best = best.swap_remove(0);
    workers.iter_mut().for_each(|worker| worker.begin(&problem.sums));
    for m in 1..depth {
        let mut level = std::mem::take(&mut problem.sums.levels[m - 1]);
        let sums = &problem.sums;
        refill(&mut level, sums.channels * sums.geometry.total(m), I::default());
        let tickets = Tickets::new(m, &sums.runs, workers.len());
        let (size, everything, out) = (m, &everything[..], SumsOut::new(&mut level));
        let pass = Pass { sums, size, counts: true, everything, tickets, monitor };
        run_all(&mut workers, &|worker| sums_of(backend, &pass, &out, worker))?;
        problem.sums.levels[m - 1] = level;
    }
    let mut pass_over = |level: usize, counts: bool, best: &mut [Best<R>]| {
        let (table_above, from) = best[level - 1..].split_first_mut().expect("a table per level");
        let (problem, sums) = (&*problem, &problem.sums);
        let geometry = &sums.geometry;
        let tickets = Tickets::new(level, &sums.runs, workers.len());
        // Copying the rows of a column takes longer than waiting.
        let tickets = if level == 3 && counts { tickets } else { tickets.apart() };
        let everything = &everything[..];
        let pass = Pass { sums, size: level, counts, everything, tickets, monitor };
        let shared = Shared { problem, below: from.first().unwrap_or(&nothing), pass };
        let each = problem.slots[level - 1] << (level - 1);
        Regions::fill(table_above, (geometry, level - 1), each, |regions| {
            if let [worker] = &mut workers[..] {
                return cells_of(&shared, worker, &mut regions.alone(monitor)?);
            }
            let regions = &*regions;
            let pass =
                |worker: &mut &mut Worker<I>| cells_of(&shared, worker, &mut regions.shared());
            run_all(&mut workers, &pass)
        })
    };
    if problem.implied.is_some() {
        // Cells with one column less, as leaves; their table is not used until their level is
        // reached.
        pass_over(PREFIX, true, best)?;
    }
    for level in (1..=depth).rev() {
        pass_over(level, level == depth, best)?;
        if level == MAX_DEPTH
            && let Some(implied) = &problem.implied
        {
            let ([.., fewer, of_prefix], slots) = (&mut *best, problem.slots[PREFIX - 1]);
            implied.fill(&problem.sums.geometry, of_prefix, (fewer, slots), monitor)?;
        }
    }
    Ok(())
}

/// Error bound in lane units for trees of this depth on rows with these statistics: that of the
/// task, plus that of adding prices.
fn lane_error<T: LaneTask, I: LaneInt, R: LaneReal>(
    task: &T,
    problem: &Problem<I, R>,
    records: &[i64],
    depth: usize,
) -> LaneError {
    let leaves = 1usize << depth;
    let (roundoff, ln_error) = (R::ROUNDOFF, R::LN_ERROR);
    match task.lane_error(records, &problem.shift, leaves, roundoff, ln_error) {
        LaneError::Fixed(error) if error > 0.0 => {
            let price = task.split_price() as f64 / unit(task, problem);
            let prices = 2.0 * depth as f64 * roundoff * price * (leaves - 1) as f64;
            LaneError::Fixed(error + prices)
        }
        error => error,
    }
}

/// An exact statistic in the units of the lanes.
pub(super) fn lane_value(exact: i64, shift: u32) -> i64 {
    if shift == 0 { exact } else { (exact + (1 << (shift - 1))) >> shift }
}

/// Takes the rows of a sample, with the counts that are not channels of the task.
fn fill_rows<I: LaneInt, R>(
    problem: &mut Problem<I, R>,
    sample: &Sample,
    (counted, least): (Smallest, &[i64]),
) {
    let Problem { depth, loss_channels, shift, lift, sums, minima, .. } = problem;
    let (loss_channels, lift) = (*loss_channels, *lift);
    minima.extend((loss_channels..).zip(least.iter().copied()));
    let mut further: Vec<fn(i64) -> i64> = Vec::new();
    let counts = [(rows_of as fn(i64) -> i64, counted.rows), (events_of, counted.events)];
    for (number, least) in counts.into_iter().filter(|&(_, least)| least > 0) {
        let holds = |&c: &usize| {
            let same = |r: usize| sample.statistics(r)[c] == number(sample.size(r));
            shift[c] == 0 && lift == 0 && (0..sample.n_rows()).all(same)
        };
        let channel = (0..loss_channels).rev().find(holds).unwrap_or_else(|| {
            further.push(number);
            sample.channels + further.len() - 1
        });
        minima.push((channel, least));
    }
    sums.channels = sample.channels + further.len();
    sums.geometry = Geometry::new(sample.n_columns(), (*depth).min(PREFIX));
    // Totals of what the lanes add, not of the exact statistics, so that differences are exact.
    let mut totals = vec![0i64; sums.channels];
    let size = (sample.n_rows(), sample.n_columns(), sample.words());
    sums.rows.fill(
        size,
        sums.channels,
        |r| sample.row(r),
        |r, record| {
            let statistics = sample.statistics(r).iter().zip(&*shift);
            let statistics = statistics.map(|(&v, &s)| lane_value(v, s) << lift);
            let numbers = further.iter().map(|number| number(sample.size(r)));
            for ((lane, total), v) in
                record.iter_mut().zip(&mut totals).zip(statistics.chain(numbers))
            {
                *lane = I::from_i64(v);
                *total += v;
            }
        },
    );
    sums.runs = runs_of(sample.n_columns(), (0..sample.n_rows()).map(|r| sample.row(r)));
    sums.totals = totals.into_iter().map(I::from_i64).collect();
}

/// Prices of the columns of a sample, in lane units.
fn rates<T: LaneTask, R: LaneReal>(task: &T, sample: &Sample) -> Rates<R> {
    let feature = |c: usize| sample.columns[c].feature;
    let rate = |c: usize, tested: &[usize]| task.lane_rate(feature(c), tested);
    let alone: Vec<f64> = (0..sample.n_columns()).map(|c| rate(c, &sample.tested)).collect();
    let of_column = |c: usize| {
        let others = task.relatives(feature(c)).iter().filter_map(|&f| sample.column_of(f));
        others.map(move |other| (c, other))
    };
    let related = (0..sample.n_columns())
        .flat_map(of_column)
        .map(|(c, other)| (c, other, R::from_f64(rate(c, &[feature(other)]).min(alone[c]))));
    let lanes: Vec<R> = alone.iter().map(|&rate| R::from_f64(rate)).collect();
    Rates::new(&lanes, related)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::search::Limits;
    use crate::task::Statistics;
    use crate::task::accuracy::Accuracy;

    #[test]
    fn lanes_are_short_where_they_hold_every_tree() {
        // A tree of depth three has at most seven splits, and each split costs an eighth.
        let most = (u16::MAX as u64 - 1 - 7) / 8;
        let features = BinaryMatrix::from_bytes(2, 1, &[0, 1]).unwrap();
        let limits = Limits { max_depth: 3, ..Limits::default() };
        let settings = Settings { limits, ..Settings::default() };
        for (weight, precision) in [(most, Precision::Short), (most + 1, Precision::Single)] {
            let weights = [weight as f64, 1.0];
            let task = Accuracy::new(&[0, 1], 2, Some(&weights[..]), 0.0, 8).unwrap();
            let sample = Sample::new(&features, task.statistics(), 2);
            assert_eq!(choose_precision(&task, &sample, 3, &settings), precision, "{weight}");
        }
    }
}
