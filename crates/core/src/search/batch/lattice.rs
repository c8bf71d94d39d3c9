//! The itemset lattice with leaf costs from outside.
//!
//! As in `search::lattice`, a tree of depth d is made of cells of at most d columns, and
//! only positive itemsets are summed over rows. Here a worker collects the cells of many
//! prefixes, asks for their costs in one batch, and then offers every pair of cells that
//! differ in one column to the itemset without it. Cells with too few rows cost +∞ and
//! are never handed out, so a task sees no empty cell.

use super::passes::{self, Within};
use super::{Cells, Found, Problem};
use crate::data::Sample;
use crate::search::lattice::accumulate::Rows;
use crate::search::lattice::budgets::{Combination, leaf_budgets};
use crate::search::lattice::combine::{Best, PREFIX, best_at};
use crate::search::lattice::geometry::Geometry;
use crate::search::lattice::make_sure;
use crate::search::threads::run_all;
use crate::search::{Monitor, Settings, Stop};
use std::sync::atomic::AtomicUsize;

/// Deepest tree of one lattice.
pub const MAX_DEPTH: usize = crate::search::lattice::MAX_DEPTH;

/// Cells per batch: enough to make the call negligible, few enough for the cache.
const BATCH: usize = 1 << 15;

/// What a lattice finds.
pub struct Solved {
    /// The best tree for each budget.
    pub found: Vec<Found>,
    /// Least cost for each budget as the tables have it.
    pub lower: Vec<f64>,
    /// Least cost with each column at the root; empty for a single leaf.
    pub root_values: Vec<f64>,
}

/// Tables of one problem. Levels: 0 is the root, `depth` the leaves.
pub struct Lattice<'a> {
    pub problem: &'a Problem<'a>,
    pub sample: &'a Sample,
    pub depth: usize,
    pub geometry: Geometry,
    pub rows: Rows<i64>,
    pub everything: Vec<u64>,
    /// Statistics and, last, the number of rows.
    pub channels: usize,
    totals: Vec<i64>,
    /// Sums of positive itemsets, `[level − 1][channel · total + position]`.
    sums: [Vec<i64>; PREFIX],
    /// Best splits of the cells of each level but the last.
    pub best: [Best<f64>; MAX_DEPTH],
    /// How leaf budgets of two sides make one, and how many each level keeps.
    combinations: [Vec<Combination>; MAX_DEPTH + 1],
    pub slots: [usize; MAX_DEPTH + 1],
    pub unlimited: bool,
}

/// Bytes of a lattice: tables, rows and the tables of further threads.
pub fn bytes(sample: &Sample, depth: usize, most_leaves: usize, threads: usize) -> usize {
    let (n, channels) = (sample.n_columns(), sample.channels + 1);
    let level = |m: usize| Geometry::positions(n, m);
    let budgets = |m: usize| if most_leaves < 1 << depth { 1usize << (depth - m) } else { 1 };
    // In floating point nothing is too large to be compared with a limit.
    let sums: f64 = (1..depth).map(|m| level(m) as f64).sum::<f64>() * channels as f64;
    let of_best = |m: usize| level(m) as f64 * (budgets(m) << m) as f64;
    let best: f64 = (1..depth).map(of_best).sum();
    let last = if depth > 1 { of_best(depth - 1) } else { 0.0 };
    let row = channels * 8 + 2 * n.div_ceil(64) * 8;
    let batch = 8 * BATCH.max(n << depth) * (channels + 8);
    let rows = (sample.n_rows() * row + batch) * (1 + threads);
    ((8.0 * (sums + best + last * (threads - 1) as f64)) as usize).saturating_add(rows)
}

/// Best trees of depth at most `depth` for each leaf budget (ascending, or `[usize::MAX]`).
pub fn solve(
    problem: &Problem,
    sample: &Sample,
    depth: usize,
    budgets: &[usize],
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Solved, Stop> {
    let most_leaves = budgets.iter().copied().max().unwrap_or(1);
    let depth = depth.min(sample.n_columns()).min(MAX_DEPTH).min(most_leaves - 1);
    let backend = settings.backend();
    make_sure(bytes(sample, depth, most_leaves, settings.threads()));
    let mut lattice = Lattice::new(problem, sample, depth, budgets);
    for m in 1..depth {
        lattice.sums[m - 1] = passes::fill(backend, &lattice, m, monitor)?;
    }
    for level in (1..=depth).rev() {
        let positions = if level == 1 { 1 } else { lattice.geometry.total(level - 1) };
        let entries = (positions * lattice.slots[level - 1]) << (level - 1);
        let next = AtomicUsize::new(0);
        let threads = if level == 1 { 1 } else { settings.threads() };
        let mut workers: Vec<Worker> =
            (0..threads).map(|_| Worker::new(&lattice, level, entries)).collect();
        run_all(&mut workers, &|worker| {
            passes::sweep(backend, &lattice, level, &next, monitor, worker)
        })?;
        let merged = workers.into_iter().map(|worker| worker.above).reduce(|mut a, b| {
            a.0.iter_mut().zip(b.0).for_each(|(a, b)| *a = a.min(b));
            a
        });
        lattice.best[level - 1] = merged.expect("at least one thread");
    }
    lattice.extract(budgets, monitor)
}

impl<'a> Lattice<'a> {
    fn new(problem: &'a Problem, sample: &'a Sample, depth: usize, budgets: &[usize]) -> Self {
        let channels = sample.channels + 1;
        let mut rows = Rows::default();
        rows.fill(sample, channels, |r, record: &mut [i64]| {
            record[..sample.channels].copy_from_slice(sample.statistics(r));
            record[sample.channels] = sample.counts[r];
        });
        let mut totals = sample.total.clone();
        totals.push(sample.counts.iter().sum());
        let (combinations, slots) = leaf_budgets(depth, budgets);
        Lattice {
            problem,
            sample,
            depth,
            geometry: Geometry::new(sample.n_columns(), depth.min(PREFIX)),
            everything: rows.everything(),
            rows,
            channels,
            totals,
            sums: Default::default(),
            best: Default::default(),
            combinations,
            slots,
            unlimited: budgets == [usize::MAX],
        }
    }

    /// Leaf budgets that cells of a level are valued for.
    fn values_per_cell(&self, level: usize) -> usize {
        if self.unlimited || level == self.depth { 1 } else { self.slots[level] + 1 }
    }

    /// Value of a cell for a budget slot, from its leaf cost, price and best split.
    #[inline(always)]
    pub fn value(&self, slot: usize, leaf: f64, price: f64, split: impl Fn(usize) -> f64) -> f64 {
        match slot {
            0 if !self.unlimited => leaf,
            0 => leaf.min(split(0) + price),
            _ => leaf.min(split(slot - 1) + price),
        }
    }

    /// Sum of channel `c` over the rows where all of `itemset` is true.
    fn positive(&self, c: usize, itemset: &[usize]) -> i64 {
        match itemset.split_last() {
            None => self.totals[c],
            Some((&lane, prefix)) => {
                let (row, total) = (self.geometry.row(prefix), self.geometry.total(itemset.len()));
                self.sums[itemset.len() - 1][c * total + row.start + (lane - row.first)]
            }
        }
    }
}

/// A prefix whose cells wait for their costs.
struct Waiting {
    prefix: [usize; PREFIX],
    /// Where its values begin, `[pattern][lane]`.
    at: usize,
}

/// What one thread owns during a pass.
pub struct Worker {
    pub within: Within,
    pub cells: Cells,
    /// Where the value of each cell of the batch goes.
    places: Vec<u32>,
    costs: Vec<f64>,
    waiting: Vec<Waiting>,
    /// Leaf costs and prices of all cells of the waiting prefixes.
    pub leaf: Vec<f64>,
    price: Vec<f64>,
    /// Statistics of the cells of one prefix, `[(channel · patterns + pattern) · lanes + lane]`.
    block: Vec<i64>,
    /// Values of one prefix, `[(slot · patterns + pattern) · lanes + lane]`.
    values: Vec<f64>,
    /// Candidates for the level above.
    above: Best<f64>,
}

impl Worker {
    fn new(lattice: &Lattice, level: usize, entries: usize) -> Self {
        let n = lattice.geometry.n;
        let itemsets = (0..level).fold(1usize, |c, i| c.saturating_mul(n - i) / (i + 1));
        let capacity = itemsets.saturating_mul(1 << level).min(BATCH).max(n << level);
        Worker {
            within: Within::new(lattice),
            cells: Cells::new(lattice.channels - 1, capacity),
            places: vec![0; capacity],
            costs: vec![0.0; capacity],
            waiting: Vec::new(),
            leaf: Vec::new(),
            price: Vec::new(),
            block: Vec::new(),
            values: Vec::new(),
            above: Best(vec![f64::INFINITY; entries]),
        }
    }
}

impl Lattice<'_> {
    /// Puts the cells of `prefix ∪ {lane}` with enough rows into the batch.
    #[inline(always)]
    pub fn collect(&self, level: usize, prefix: &[usize], lanes: usize, worker: &mut Worker) {
        let (half, patterns) = (1usize << (level - 1), 1usize << level);
        let first = self.geometry.n - lanes;
        let Worker { within, cells, places, leaf, price, block, .. } = worker;
        let at = leaf.len();
        leaf.resize(at + patterns * lanes, f64::INFINITY);
        price.resize(at + patterns * lanes, self.problem.penalty);
        block.resize(self.channels * patterns * lanes, 0);
        // Sums by true part of the prefix: of the prefix alone, and with each lane.
        let mut members = [[0usize; PREFIX]; 1 << PREFIX];
        let mut size = [0usize; 1 << PREFIX];
        for s in 0..half {
            for (bit, &column) in prefix.iter().enumerate() {
                if s >> bit & 1 == 1 {
                    members[s][size[s]] = column;
                    size[s] += 1;
                }
            }
        }
        for c in 0..self.channels {
            let mut alone = [0i64; 1 << PREFIX];
            let cell = &mut block[c * patterns * lanes..][..patterns * lanes];
            for s in 0..half {
                let subset = &members[s][..size[s]];
                alone[s] = self.positive(c, subset);
                let from = if level == self.depth && s == half - 1 {
                    &within.sums[c * within.stride + first..][..lanes]
                } else {
                    let row = self.geometry.row(subset);
                    let total = self.geometry.total(size[s] + 1);
                    &self.sums[size[s]][c * total + row.start + (first - row.first)..][..lanes]
                };
                cell[(s | half) * lanes..][..lanes].copy_from_slice(from);
            }
            for bit in 0..level - 1 {
                for s in (0..half).filter(|s| s >> bit & 1 == 0) {
                    let with = s | 1 << bit;
                    alone[s] -= alone[with];
                    let (low, high) = cell.split_at_mut((with | half) * lanes);
                    let less = &mut low[(s | half) * lanes..][..lanes];
                    less.iter_mut().zip(&high[..lanes]).for_each(|(a, b)| *a -= b);
                }
            }
            let (without, with) = cell.split_at_mut(half * lanes);
            for s in 0..half {
                let pairs = without[s * lanes..][..lanes].iter_mut().zip(&with[s * lanes..]);
                pairs.for_each(|(a, b)| *a = alone[s] - b);
            }
        }
        let counts = &block[(self.channels - 1) * patterns * lanes..];
        let begin = cells.len;
        for (i, &count) in counts[..patterns * lanes].iter().enumerate() {
            places[cells.len] = (at + i) as u32;
            cells.len += usize::from(count >= self.problem.min_leaf);
        }
        for c in 0..self.channels - 1 {
            let unit = self.problem.statistics.units[c];
            let cell = &block[c * patterns * lanes..][..patterns * lanes];
            let into = &mut cells.sums[c * cells.capacity..];
            for (sum, &place) in into[begin..cells.len].iter_mut().zip(&places[begin..]) {
                *sum = cell[place as usize - at] as f64 * unit;
            }
        }
        let mut waiting = Waiting { prefix: [0; PREFIX], at };
        waiting.prefix[..prefix.len()].copy_from_slice(prefix);
        worker.waiting.push(waiting);
    }

    /// Asks for the costs of the batch and offers what waited for them.
    #[inline(always)]
    pub fn settle(&self, level: usize, monitor: &Monitor, worker: &mut Worker) -> Result<(), Stop> {
        let len = worker.cells.len;
        if len > 0 {
            let Worker { cells, places, costs, leaf, price, .. } = &mut *worker;
            monitor.count(len as u64);
            self.problem.task.leaf_costs(cells, &mut costs[..len])?;
            self.problem.seen.costs(&costs[..len]);
            for (&place, &cost) in places.iter().zip(&costs[..len]) {
                leaf[place as usize] = cost;
            }
            if level < self.depth && self.problem.task.has_split_costs() {
                self.problem.task.split_costs(cells, &mut costs[..len])?;
                for (&place, &cost) in places.iter().zip(&costs[..len]) {
                    price[place as usize] += cost;
                }
            }
        }
        for i in 0..worker.waiting.len() {
            self.offer(level, i, worker);
        }
        worker.waiting.clear();
        worker.leaf.clear();
        worker.price.clear();
        worker.cells.len = 0;
        Ok(())
    }

    /// Offers the pairs of cells of one waiting prefix that differ in one column to the
    /// itemset without it.
    #[inline(always)]
    fn offer(&self, level: usize, i: usize, worker: &mut Worker) {
        let Worker { waiting, leaf, price, values, above, .. } = worker;
        let Waiting { prefix, at } = waiting[i];
        let prefix = &prefix[..level - 1];
        let (half, patterns) = (1usize << (level - 1), 1usize << level);
        let first = prefix.last().map_or(0, |&c| c + 1);
        let lanes = self.geometry.n - first;
        let size = patterns * lanes;
        let (leaf, price) = (&leaf[at..][..size], &price[at..][..size]);
        let values: &[f64] = if level == self.depth {
            leaf
        } else {
            let slots = self.values_per_cell(level);
            values.resize(slots * size, 0.0);
            let row = self.geometry.row(prefix);
            for slot in 0..slots {
                for p in 0..patterns {
                    let out = &mut values[slot * size + p * lanes..][..lanes];
                    let (leaf, price) = (&leaf[p * lanes..][..lanes], &price[p * lanes..][..lanes]);
                    if slot == 0 && !self.unlimited {
                        out.copy_from_slice(leaf);
                        continue;
                    }
                    let below = if self.unlimited { 0 } else { slot - 1 };
                    let from = best_at(row, self.slots[level], level, below, p, first);
                    let split = &self.best[level].0[from..][..lanes];
                    for l in 0..lanes {
                        out[l] = least(leaf[l], split[l] + price[l]);
                    }
                }
            }
            &values[..slots * size]
        };
        let slots = self.slots[level - 1];
        for &(a, b, out) in &self.combinations[level] {
            let (a, b) = (&values[a * size..][..size], &values[b * size..][..size]);
            // The lane left out: the prefix, split on any of the lanes.
            for s in 0..half {
                let yes = &a[(s | half) * lanes..][..lanes];
                let no = &b[s * lanes..][..lanes];
                let value = yes.iter().zip(no).fold(f64::INFINITY, |m, (x, y)| least(m, x + y));
                let place = match prefix.split_last() {
                    None => out,
                    Some((&lane, shorter)) => {
                        best_at(self.geometry.row(shorter), slots, level - 1, out, s, lane)
                    }
                };
                above.0[place] = least(above.0[place], value);
            }
            for left_out in 0..level - 1 {
                let mut rest = [0; PREFIX];
                rest[..left_out].copy_from_slice(&prefix[..left_out]);
                rest[left_out..level - 2].copy_from_slice(&prefix[left_out + 1..]);
                let row = self.geometry.row(&rest[..level - 2]);
                let low = (1usize << left_out) - 1;
                for p in 0..half {
                    let s = (p & low) | (p & !low) << 1;
                    let yes = &a[(s | 1 << left_out) * lanes..][..lanes];
                    let no = &b[s * lanes..][..lanes];
                    let place = best_at(row, slots, level - 1, out, p, first);
                    let into = &mut above.0[place..][..lanes];
                    for l in 0..lanes {
                        into[l] = least(into[l], yes[l] + no[l]);
                    }
                }
            }
        }
    }
}

/// The lesser of two numbers, in one instruction.
#[inline(always)]
fn least(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}
