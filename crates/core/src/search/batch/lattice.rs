//! The itemset lattice with costs from the caller: a kernel of `search::lattice`.
//!
//! A thread collects the cells of many prefixes, asks for their costs in one batch, and then offers
//! them to the itemsets above in the same way as other tasks. Cells with too few rows cost +∞ and
//! are not part of a batch, so a task never gets an empty cell.

use super::{Cells, Problem};
use crate::data::{Sample, Smallest};
use crate::search::lattice::above::Above;
use crate::search::lattice::combine::{Least, Problem as Tables};
use crate::search::lattice::geometry::{Best, PAD};
use crate::search::lattice::kernels::{Kernel, Shared, Sweep, Worker, fill_double};
use crate::search::lattice::sums::{Last, Prefix, Source, View};
use crate::search::lattice::tables::Width;
use crate::search::lattice::{self, Extent, MAX_DEPTH, Query, Share, make_sure};
use crate::search::nodes::Found;
use crate::search::{Monitor, Precision, Settings, Stop};
use crate::simd::{Lanes, Vector, with_token};

/// Cells per batch: enough to make the call itself negligible, few enough for the cache.
const BATCH: usize = 1 << 15;

/// Result of a lattice.
pub struct Solved {
    /// The best tree for each budget.
    pub found: Vec<Found<f64>>,
    /// Least cost for each budget, read from the tables.
    pub lower: Vec<f64>,
    /// Least cost with each column at the root; empty for a single leaf.
    pub root_values: Vec<f64>,
}

/// The tables of one lattice, filled.
pub struct Lattice<'a> {
    pub problem: &'a Problem<'a>,
    pub sample: &'a Sample,
    pub tables: &'a Tables<i64, f64>,
    /// Best splits of the cells of each level except the last.
    pub best: &'a [Best<f64>; MAX_DEPTH],
}

/// Size of the tables and rows of a lattice for trees with this number of leaves.
fn extent(sample: &Sample, depth: usize, leaves: usize, n_threads: usize) -> Extent {
    let channels = sample.channels + 1;
    Extent { depth, leaves, channels, n_threads, precision: Precision::Double }
}

/// Largest number of cells in a batch.
fn capacity(n_columns: usize, level: usize) -> usize {
    let itemsets = (0..level).fold(1usize, |c, i| c.saturating_mul(n_columns - i) / (i + 1));
    itemsets.saturating_mul(1 << level).min(BATCH).max((n_columns + PAD) << level)
}

/// Bytes of the batches of all threads.
fn batch_bytes(sample: &Sample, depth: usize, n_threads: usize) -> usize {
    let cells = BATCH.max((sample.n_columns() + PAD) << depth);
    n_threads * 8 * cells * (sample.channels + 9)
}

/// Bytes of a lattice: tables, rows and batches.
pub fn bytes(sample: &Sample, depth: usize, leaves: usize, n_threads: usize) -> usize {
    let tables = extent(sample, depth, leaves, n_threads).bytes(sample);
    tables.saturating_add(batch_bytes(sample, depth, n_threads))
}

/// Best trees of depth at most `depth` for each leaf budget (ascending, or `[usize::MAX]`).
pub fn solve(
    problem: &Problem,
    sample: &Sample,
    depth: usize,
    budgets: &[usize],
    settings: &Settings,
    share: Share,
    monitor: &Monitor,
) -> Result<Solved, Stop> {
    let leaves = budgets.iter().copied().max().unwrap_or(1);
    let depth = depth.min(sample.n_columns()).min(MAX_DEPTH).min(leaves - 1);
    let (backend, n_threads) = (settings.backend(), settings.threads());
    share.lend(extent(sample, depth, leaves, n_threads), sample, |threads, _| {
        make_sure(batch_bytes(sample, depth, n_threads));
        let mut threads: Vec<&mut Width<i64, f64>> =
            threads.iter_mut().map(|tables| &mut tables.double).collect();
        let query = Query { depth, budgets, cutoff: i64::MAX };
        let (shift, sums) = (vec![0; sample.channels], std::mem::take(&mut threads[0].sums));
        let counted = Smallest { rows: problem.min_leaf.max(1), events: 0 };
        let mut tables = lattice::problem(sample, query, (shift, 0), (counted, &[]), sums);
        let cells =
            |shared: &Shared<i64, f64>, worker: &mut Worker<i64>, above: &mut Above<f64>| {
                let (pass, kernel) = (&shared.pass, Batch::new(problem, shared, above));
                with_token!(backend, token => token.double().run(Sweep { pass, kernel, worker }))
            };
        lattice::run(&mut tables, backend, fill_double, &cells, &mut threads, monitor)?;
        let best = &threads[0].best;
        let solved = Lattice { problem, sample, tables: &tables, best }.extract(budgets, monitor);
        threads[0].sums = tables.sums;
        solved
    })
}

impl Lattice<'_> {
    /// Value of a cell for a budget slot, from its leaf cost, its price and its best split.
    pub fn value(&self, slot: usize, leaf: f64, price: f64, split: impl Fn(usize) -> f64) -> f64 {
        match slot {
            0 if !self.tables.unlimited => leaf,
            0 => leaf.min(split(0) + price),
            _ => leaf.min(split(slot - 1) + price),
        }
    }
}

/// A prefix whose cells wait for their costs.
struct Waiting {
    prefix: Prefix,
    /// Start of its values, `[pattern · width + lane]`.
    at: usize,
    /// Number of lanes, a multiple of the vector length.
    width: usize,
}

/// The cells that one thread collects during a pass.
struct Batch<'a, 'b> {
    problem: &'a Problem<'a>,
    shared: &'a Shared<'a, i64, f64>,
    above: &'a mut Above<'b, f64>,
    cells: Cells,
    /// Position of the value of each cell of the batch.
    places: Vec<u32>,
    costs: Vec<f64>,
    waiting: Vec<Waiting>,
    /// Leaf costs and prices of all cells of the waiting prefixes.
    leaf: Vec<f64>,
    price: Vec<f64>,
    /// Statistics of the cells of one prefix, `[(channel · patterns + pattern) · width + lane]`.
    block: Vec<i64>,
}

impl<'a, 'b> Batch<'a, 'b> {
    fn new(
        problem: &'a Problem,
        shared: &'a Shared<i64, f64>,
        above: &'a mut Above<'b, f64>,
    ) -> Self {
        let capacity = capacity(shared.problem.sums.geometry.n, shared.pass.size);
        Batch {
            problem,
            shared,
            above,
            cells: Cells::new(shared.problem.loss_channels, capacity),
            places: vec![0; capacity],
            costs: vec![0.0; capacity],
            waiting: Vec::new(),
            leaf: Vec::new(),
            price: Vec::new(),
            block: Vec::new(),
        }
    }
}

impl<L: Lanes<I = i64, R = f64>> Kernel<L> for Batch<'_, '_> {
    #[inline(always)]
    fn prefix<const M: usize, const P: usize, const LEAVES: bool>(
        &mut self,
        lanes: L,
        view: &View<i64>,
        last: Last<i64>,
    ) -> Result<(), Stop> {
        let n_lanes = self.shared.problem.sums.geometry.n - view.prefix.first();
        if self.cells.len + (n_lanes << M) > self.cells.capacity {
            self.shared.pass.monitor.check()?;
            self.settle::<L, M, P, LEAVES>(lanes)?;
        }
        self.collect::<L, M, P, LEAVES>(lanes, view, last);
        // Otherwise prefixes without any cell that has enough rows would pile up.
        if self.leaf.len() > 4 * self.cells.capacity {
            self.settle::<L, M, P, LEAVES>(lanes)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn end<const M: usize, const P: usize, const LEAVES: bool>(
        &mut self,
        lanes: L,
    ) -> Result<(), Stop> {
        self.settle::<L, M, P, LEAVES>(lanes)
    }
}

impl Batch<'_, '_> {
    /// Adds the cells of `prefix ∪ {lane}` with enough rows to the batch.
    #[inline(always)]
    fn collect<L: Lanes<I = i64, R = f64>, const M: usize, const P: usize, const LEAVES: bool>(
        &mut self,
        lanes: L,
        view: &View<i64>,
        last: Last<i64>,
    ) {
        const { assert!(L::N <= PAD) };
        let Tables { sums, minima, loss_channels, .. } = self.shared.problem;
        let (first, n) = (view.prefix.first(), sums.geometry.n);
        let width = (n - first).next_multiple_of(L::N);
        let Batch { cells, places, leaf, price, block, .. } = self;
        let (at, size) = (leaf.len(), 2 * P * width);
        leaf.resize(at + size, f64::INFINITY);
        price.resize(at + size, self.problem.penalty);
        block.resize(sums.channels * size, 0);
        let source = Source::<_, P>::new(sums, view, LEAVES.then_some(last));
        for (c, block) in block.chunks_exact_mut(size).enumerate().take(sums.channels) {
            for h in (first..n).step_by(L::N) {
                let yes = source.cells::<L, M>(lanes, c, h);
                for s in 0..P {
                    let no = lanes.splat(view.cells[c][s]) - yes[s];
                    no.store(&mut block[s * width + h - first..]);
                    yes[s].store(&mut block[(s | P) * width + h - first..]);
                }
            }
        }
        let &(c, least) = minima.first().expect("numbers of rows");
        let (counts, begin) = (&block[c * size..][..size], cells.len);
        for (pattern, counts) in counts.chunks_exact(width).enumerate() {
            for (lane, &count) in counts[..n - first].iter().enumerate() {
                places[cells.len] = (at + pattern * width + lane) as u32;
                cells.len += usize::from(count >= least);
            }
        }
        for c in 0..*loss_channels {
            let (unit, block) = (self.problem.statistics.units[c], &block[c * size..][..size]);
            let into = &mut cells.sums[c * cells.capacity..][begin..cells.len];
            for (sum, &place) in into.iter_mut().zip(&places[begin..]) {
                *sum = block[place as usize - at] as f64 * unit;
            }
        }
        self.waiting.push(Waiting { prefix: view.prefix.clone(), at, width });
    }

    /// Asks for the costs of the batch, and offers the cells that waited for them.
    #[inline(always)]
    fn settle<L: Lanes<I = i64, R = f64>, const M: usize, const P: usize, const LEAVES: bool>(
        &mut self,
        lanes: L,
    ) -> Result<(), Stop> {
        let Batch { problem, shared, above, cells, places, costs, waiting, leaf, price, .. } = self;
        let len = cells.len;
        if len > 0 {
            let (places, costs) = (&places[..len], &mut costs[..len]);
            shared.pass.monitor.count(len as u64);
            problem.task.leaf_costs(cells, costs)?;
            problem.seen.costs(costs);
            for (&place, &cost) in places.iter().zip(&*costs) {
                leaf[place as usize] = cost;
            }
            if !LEAVES && problem.task.has_split_costs() {
                problem.task.split_costs(cells, costs)?;
                for (&place, &cost) in places.iter().zip(&*costs) {
                    price[place as usize] += cost;
                }
            }
        }
        let n = shared.problem.sums.geometry.n;
        for Waiting { prefix, at, width } in waiting.drain(..) {
            let (tables, mut least) = (shared.problem, Least::default());
            let mut offers =
                tables.offers::<M, P, LEAVES>(&prefix, shared.below, above, &mut least);
            let first = prefix.first();
            for h in (first..n).step_by(L::N) {
                let place = |s: usize, no: usize| at + (s + (1 - no) * P) * width + h - first;
                let of = |from: &[f64], s, no| lanes.load_real(&from[place(s, no)..]);
                let mut value: [[L::Real; 2]; P] =
                    std::array::from_fn(|s| [of(leaf, s, 0), of(leaf, s, 1)]);
                let price = |s, no| of(price, s, no);
                // SAFETY: lanes start beyond the prefix, and a vector is no longer than the
                // padding.
                unsafe { offers.block::<L, false, M, LEAVES>(lanes, h, &mut value, price, None) };
            }
            offers.end::<M>(0..P);
        }
        above.release();
        leaf.clear();
        price.clear();
        cells.len = 0;
        Ok(())
    }
}
