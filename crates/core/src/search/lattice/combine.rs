//! The kernel of one level: from the cells of itemsets to the best splits one level up.
//!
//! For a prefix of M − 1 columns and a vector of lanes, each lane h makes the itemset
//! `prefix ∪ {h}` with 2^M sign patterns ("cells"). Inclusion–exclusion over sums of
//! positive itemsets gives the statistics of every cell (SurTree eqs. 16–19, any order).
//! A cell's value is its leaf loss or, above the last level, the better of that and its
//! best split. Leaving out one column of the itemset pairs the cells that differ in it:
//! their summed values are candidates for splitting the smaller itemset on that column.

use super::accumulate::Rows;
use super::budgets::Combination;
use super::geometry::{Geometry, Row};
use crate::data::Smallest;
use crate::simd::{LaneInt, LaneReal, Lanes};
use crate::task::LaneTask;
use std::mem::MaybeUninit;

/// Longest prefix: the columns of a leaf of the deepest tree but the lane.
pub const PREFIX: usize = super::MAX_DEPTH - 1;

/// Sign patterns of the longest prefix; also the most leaves of a child of the root.
pub const PATTERNS: usize = 1 << PREFIX;

/// Everything the kernels read. Levels: 0 is the root, `depth` the leaves.
pub struct Problem<'a, T, I, R> {
    pub task: &'a T,
    pub depth: usize,
    /// Channels of the task, and those for numbers of rows or events that none of these has.
    pub channels: usize,
    /// Channels of the numbers of rows and events, as far as they matter, and the least of a
    /// leaf.
    pub minima: Vec<(usize, i64)>,
    pub smallest: Smallest,
    pub geometry: Geometry,
    pub rows: Rows<I>,
    /// Low bits that the lanes drop, per channel.
    pub shift: Vec<u32>,
    /// Lane totals per channel.
    pub totals: Vec<I>,
    /// Sums of positive itemsets, `[level − 1][channel · total + position]`.
    pub sums: [Vec<I>; PREFIX],
    /// Price of a split in lane units.
    pub price: R,
    /// How leaf budgets of the two sides of a split make a budget: for the cells of level
    /// m, (budget slot, budget slot, slot of the level above).
    pub budgets: [Vec<Combination>; super::MAX_DEPTH + 1],
    /// Budget slots of the best splits of level m.
    pub slots: [usize; super::MAX_DEPTH + 1],
    /// Whether the number of leaves is free: one slot per level, leaf and split in one.
    pub unlimited: bool,
    /// What tests cost, if the task says so.
    pub rates: Rates<R>,
}

/// Price of testing each column per unit of the last channel: alone, and below another one.
/// Rows have room for a vector behind the last column.
#[derive(Clone, Debug, Default)]
pub struct Rates<R> {
    stride: usize,
    alone: Vec<R>,
    /// `[column][other]`: of `column` below `other`.
    below: Vec<R>,
    /// `[other][column]`
    above: Vec<R>,
}

impl<R: LaneReal> Rates<R> {
    /// Of columns with these prices `alone`; `related` are (column, other, price of `column`
    /// below `other`) where that is another.
    pub fn new(alone: &[R], related: impl Iterator<Item = (usize, usize, R)>) -> Self {
        let (n, stride) = (alone.len(), alone.len() + 16);
        let mut rates = Rates {
            stride,
            alone: alone.to_vec(),
            below: vec![R::default(); n * stride],
            above: vec![R::default(); n * stride],
        };
        rates.alone.resize(stride, R::default());
        for (c, &alone) in alone.iter().enumerate() {
            rates.below[c * stride..][..n].fill(alone);
            rates.above[c * stride..][..stride].copy_from_slice(&rates.alone);
        }
        for (c, other, rate) in related {
            rates.below[c * stride + other] = rate;
            rates.above[other * stride + c] = rate;
        }
        rates
    }

    /// Price of `column` below all of the `others`.
    fn of(&self, column: usize, others: impl Iterator<Item = usize>) -> R {
        let below = others.map(|other| self.below[column * self.stride + other]);
        below.fold(self.alone[column], |least, rate| if rate < least { rate } else { least })
    }
}

/// Best split of every itemset of a level below the root:
/// `[row start · slots · patterns + (slot · patterns + pattern) · row length + lane]`.
#[derive(Clone, Debug, Default)]
pub struct Best<R>(pub Vec<R>);

/// Position of (slot, pattern, lane) of an itemset row in a [`Best`] of level `m`.
#[inline(always)]
pub fn best_at(
    row: Row,
    slots: usize,
    m: usize,
    slot: usize,
    pattern: usize,
    lane: usize,
) -> usize {
    ((row.start * slots) << m) + ((slot << m) + pattern) * row.len + (lane - row.first)
}

/// Most channels a kernel handles, the numbers of rows and events included.
pub const MAX_CHANNELS: usize = 33;

/// A prefix of columns as the kernels see it: for every subset of its columns, where the
/// itemsets `subset ∪ {lane}` live and what the statistics of the subset sum to.
#[derive(Clone, Debug)]
pub struct View<I> {
    size: usize,
    columns: [usize; PREFIX],
    rows: [Row; PATTERNS],
    /// Sums over the rows where the subset is true, `[channel][subset]`.
    positive: [[I; PATTERNS]; MAX_CHANNELS],
    /// Sums by sign pattern of the prefix, `[channel][pattern]`.
    cells: [[I; PATTERNS]; MAX_CHANNELS],
}

impl<I: LaneInt> View<I> {
    /// The empty prefix.
    pub fn root(geometry: &Geometry, totals: &[I]) -> Self {
        let mut view = View {
            size: 0,
            columns: [0; PREFIX],
            rows: [geometry.row(&[]); PATTERNS],
            positive: [[I::default(); PATTERNS]; MAX_CHANNELS],
            cells: [[I::default(); PATTERNS]; MAX_CHANNELS],
        };
        for (c, &total) in totals.iter().enumerate() {
            view.positive[c][0] = total;
            view.cells[c][0] = total;
        }
        view
    }

    /// First lane beyond the prefix.
    #[inline(always)]
    fn first(&self) -> usize {
        if self.size == 0 { 0 } else { self.columns[self.size - 1] + 1 }
    }
}

impl<T: LaneTask, I: LaneInt, R: LaneReal> Problem<'_, T, I, R> {
    /// Sum of channel `c` over the rows where all of `itemset` is true.
    pub fn positive(&self, c: usize, itemset: &[usize]) -> I {
        match itemset.split_last() {
            None => self.totals[c],
            Some((&lane, prefix)) => {
                let row = self.geometry.row(prefix);
                let total = self.geometry.total(itemset.len());
                self.sums[itemset.len() - 1][c * total + row.start + (lane - row.first)]
            }
        }
    }

    /// Makes `view` the prefix `shorter`, of `SIZE` columns, with `column` appended.
    #[inline(always)]
    pub fn extend<const SIZE: usize>(&self, shorter: &View<I>, column: usize, view: &mut View<I>) {
        debug_assert_eq!(shorter.size, SIZE);
        let half = 1 << SIZE;
        view.size = SIZE + 1;
        view.columns = shorter.columns;
        view.columns[SIZE] = column;
        view.rows = shorter.rows;
        for s in 0..half {
            let mut members = [0usize; PREFIX];
            let mut size = 0;
            for bit in 0..SIZE {
                if s >> bit & 1 == 1 {
                    members[size] = shorter.columns[bit];
                    size += 1;
                }
            }
            let row = shorter.rows[s];
            let (level, total) = (&self.sums[size], self.geometry.total(size + 1));
            for c in 0..self.channels {
                view.positive[c][s] = shorter.positive[c][s];
                view.positive[c][s + half] = level[c * total + row.start + (column - row.first)];
            }
            members[size] = column;
            // The rows of the longest prefix are the caller's scratch.
            if size + 1 < PREFIX {
                view.rows[s + half] = self.geometry.row(&members[..=size]);
            }
        }
        for c in 0..self.channels {
            let mut cells = view.positive[c];
            for bit in 0..=SIZE {
                for s in 0..2 * half {
                    if s >> bit & 1 == 0 {
                        cells[s] = cells[s].minus(cells[s | 1 << bit]);
                    }
                }
            }
            view.cells[c] = cells;
        }
    }

    /// Runs the level of itemsets of size `M` for the prefix `view` of M − 1 columns.
    ///
    /// On the level of the leaves, `last` holds the sums of `prefix ∪ {lane}`
    /// (`[channel · stride + lane]`); above it they are in `self.sums`. `below` holds the
    /// best splits of these itemsets, `above` takes candidates for the itemsets of size
    /// M − 1 (for M = 1: one value per slot, the root's).
    ///
    /// # Safety
    /// The machine must have the instruction set of `L`.
    #[inline(always)]
    pub unsafe fn combine<L: Lanes<I = I, R = R>, const M: usize, const LEAVES: bool>(
        &self,
        view: &View<I>,
        last: &[I],
        stride: usize,
        below: &Best<R>,
        above: &mut Best<R>,
    ) {
        debug_assert_eq!(view.size, M - 1);
        let patterns = 1usize << (M - 1);
        let (first, n) = (view.first(), self.geometry.n);
        if first >= n {
            return;
        }
        let mut source = Source { at: [std::ptr::null(); PATTERNS], stride: [0; PATTERNS] };
        for s in 0..patterns {
            if LEAVES && s == patterns - 1 {
                (source.at[s], source.stride[s]) = (last.as_ptr(), stride);
            } else {
                let (row, size) = (view.rows[s], s.count_ones() as usize);
                // Lanes start at `row.first`, so position 0 of the row is virtual.
                let level = self.sums[size].as_ptr();
                source.at[s] = level.wrapping_add(row.start).wrapping_sub(row.first);
                source.stride[s] = self.geometry.total(size + 1);
            }
        }
        let out_slots = self.slots[M - 1];
        let mut least = [[R::INFINITY; PATTERNS]; 2 * PATTERNS];
        let mut h = first;
        // SAFETY: lanes stay within the rows and their padding; the rest is the caller's.
        unsafe {
            if L::Half::N < L::N {
                while h < n && n - h > L::Half::N {
                    self.block::<L, M, LEAVES>(view, &source, h, below, above, &mut least);
                    h += L::N;
                }
                if h < n {
                    self.block::<L::Half, M, LEAVES>(view, &source, h, below, above, &mut least);
                }
            } else {
                while h < n {
                    self.block::<L, M, LEAVES>(view, &source, h, below, above, &mut least);
                    h += L::N;
                }
            }
        }
        // The itemset `prefix` itself, split on any of the lanes.
        for (slot, least) in least.iter().enumerate().take(out_slots) {
            for (pattern, &value) in least.iter().enumerate().take(patterns) {
                let at = if M == 1 {
                    slot
                } else {
                    let row = view.rows[patterns / 2 - 1];
                    best_at(row, out_slots, M - 1, slot, pattern, view.columns[M - 2])
                };
                let place = &mut above.0[at];
                if value < *place {
                    *place = value;
                }
            }
        }
    }

    /// One vector of lanes starting at lane `h`.
    #[inline(always)]
    unsafe fn block<L: Lanes<I = I, R = R>, const M: usize, const LEAVES: bool>(
        &self,
        view: &View<I>,
        source: &Source<I>,
        h: usize,
        below: &Best<R>,
        above: &mut Best<R>,
        least: &mut [[R; PATTERNS]; 2 * PATTERNS],
    ) {
        let patterns = 1usize << (M - 1);
        // SAFETY: lanes stay within rows and padding (see `PAD`); the rest is the caller's.
        unsafe {
            // Cells by pattern of the prefix: lane column true, lane column false.
            let mut yes = [const { MaybeUninit::<[L::Int; PATTERNS]>::uninit() }; MAX_CHANNELS];
            for (c, yes) in yes.iter_mut().enumerate().take(self.task.channels()) {
                yes.write(cells::<L, M>(source, c, h));
            }
            let constants = self.task.lane_constants::<L>(&self.shift);
            let infinity = L::splat_real(R::INFINITY);
            let mut value = [infinity; 2 * PATTERNS];
            for s in 0..patterns {
                let (mut with, mut without) =
                    (self.task.lane_start::<L>(), self.task.lane_start::<L>());
                for c in 0..self.task.channels() {
                    let cell = yes[c].assume_init_ref()[s];
                    with = self.task.lane_fold::<L>(with, c, cell);
                    let other = L::sub(L::splat(view.cells[c][s]), cell);
                    without = self.task.lane_fold::<L>(without, c, other);
                }
                value[2 * s] = self.task.lane_loss::<L>(constants, with);
                value[2 * s + 1] = self.task.lane_loss::<L>(constants, without);
            }
            let weights = if T::PRICED {
                let c = self.task.channels() - 1;
                let mut weights = [infinity; 2 * PATTERNS];
                for s in 0..patterns {
                    let with = yes[c].assume_init_ref()[s];
                    weights[2 * s] = L::to_real(with);
                    let other = L::sub(L::splat(view.cells[c][s]), with);
                    weights[2 * s + 1] = L::to_real(other);
                }
                Some(weights)
            } else {
                None
            };
            let weights = weights.as_ref();
            for &(c, least) in &self.minima {
                let count = if c < self.task.channels() {
                    yes[c].assume_init()
                } else {
                    cells::<L, M>(source, c, h)
                };
                let fewest = L::splat(I::from_i64(least));
                for s in 0..patterns {
                    let other = L::sub(L::splat(view.cells[c][s]), count[s]);
                    value[2 * s] = L::if_less(count[s], fewest, infinity, value[2 * s]);
                    value[2 * s + 1] = L::if_less(other, fewest, infinity, value[2 * s + 1]);
                }
            }
            if LEAVES || self.unlimited {
                if !LEAVES {
                    // One budget for everything: the better of leaf and split.
                    let price = L::splat_real(self.price);
                    for s in 0..patterns {
                        for (no, value) in value[2 * s..2 * s + 2].iter_mut().enumerate() {
                            let pattern = s | (1 - no) << (M - 1);
                            let at = best_at(view.rows[patterns - 1], 1, M, 0, pattern, h);
                            let split = L::load_real(below.0.as_ptr().add(at));
                            *value = L::min_real(*value, L::add_real(split, price));
                        }
                    }
                }
                let (_, _, out) = self.budgets[M][0];
                self.offer::<L, M>(view, h, &value, &value, weights, out, above, least);
            } else {
                let mut by_budget = [[infinity; 2 * PATTERNS]; PATTERNS];
                by_budget[0] = value;
                let price = L::splat_real(self.price);
                for slot in 0..self.slots[M] {
                    for s in 0..patterns {
                        for no in 0..2 {
                            let pattern = s | (1 - no) << (M - 1);
                            let row = view.rows[patterns - 1];
                            let at = best_at(row, self.slots[M], M, slot, pattern, h);
                            let split = L::load_real(below.0.as_ptr().add(at));
                            by_budget[slot + 1][2 * s + no] =
                                L::min_real(value[2 * s + no], L::add_real(split, price));
                        }
                    }
                }
                for &(a, b, out) in &self.budgets[M] {
                    let (a, b) = (&by_budget[a], &by_budget[b]);
                    self.offer::<L, M>(view, h, a, b, weights, out, above, least);
                }
            }
        }
    }

    /// Offers the sums of cells that differ in one column to the itemsets without it:
    /// `a` holds the values where that column is true, `b` where it is false, `weights` what
    /// its price is charged on.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn offer<L: Lanes<I = I, R = R>, const M: usize>(
        &self,
        view: &View<I>,
        h: usize,
        a: &[L::Real; 2 * PATTERNS],
        b: &[L::Real; 2 * PATTERNS],
        weights: Option<&[L::Real; 2 * PATTERNS]>,
        out: usize,
        above: &mut Best<R>,
        least: &mut [[R; PATTERNS]; 2 * PATTERNS],
    ) {
        let patterns = 1usize << (M - 1);
        let slots = self.slots[M - 1];
        let prefix = &view.columns[..M - 1];
        // SAFETY: rows of the level above have lane h and its padding, as have the rates.
        unsafe {
            let lane_rate = prefix.iter().fold(self.lane_rate::<L>(None, h), |least, &other| {
                if T::PRICED {
                    L::min_real(least, self.lane_rate::<L>(Some(other), h))
                } else {
                    least
                }
            });
            let priced = |sum: L::Real, rate: L::Real, with: usize, without: usize| match weights {
                Some(w) if T::PRICED => {
                    L::add_real(sum, L::mul_real(rate, L::add_real(w[with], w[without])))
                }
                _ => sum,
            };
            for group in (0..patterns).step_by(8) {
                let size = (patterns - group).min(8);
                let mut lanes = [L::splat_real(R::INFINITY); 8];
                for (s, lane) in lanes.iter_mut().enumerate().take(size) {
                    let (with, without) = (2 * (group + s), 2 * (group + s) + 1);
                    *lane = priced(L::add_real(a[with], b[without]), lane_rate, with, without);
                }
                let mut across = [R::INFINITY; 8];
                L::min_across(&lanes, size, &mut across);
                for (least, &value) in least[out][group..].iter_mut().zip(&across).take(size) {
                    if value < *least {
                        *least = value;
                    }
                }
            }
            for i in 0..M - 1 {
                let low = (1usize << i) - 1;
                let row = view.rows[(patterns - 1) ^ 1 << i];
                let rate = self.prefix_rate::<L>(prefix, i, h);
                for rest in 0..patterns / 2 {
                    let s = (rest & low) | (rest & !low) << 1;
                    for no in 0..2 {
                        let (with, without) = (2 * (s | 1 << i) + no, 2 * s + no);
                        let sum = L::add_real(a[with], b[without]);
                        let candidate = priced(sum, rate, with, without);
                        let pattern = rest | (1 - no) << (M - 2);
                        let at = best_at(row, slots, M - 1, out, pattern, h);
                        let place = above.0.as_mut_ptr().add(at);
                        L::store_real(place, L::min_real(L::load_real(place), candidate));
                    }
                }
            }
        }
    }
}

impl<T: LaneTask, I: LaneInt, R: LaneReal> Problem<'_, T, I, R> {
    /// Prices of the lanes' columns alone, or below `other`.
    #[inline(always)]
    unsafe fn lane_rate<L: Lanes<I = I, R = R>>(&self, other: Option<usize>, h: usize) -> L::Real {
        // SAFETY: rows of rates have room for a vector at every column.
        unsafe {
            match other {
                _ if !T::PRICED => L::splat_real(R::default()),
                None => L::load_real(self.rates.alone.as_ptr().add(h)),
                Some(other) => {
                    L::load_real(self.rates.above.as_ptr().add(other * self.rates.stride + h))
                }
            }
        }
    }

    /// Prices of column `i` of a prefix below the others and each lane's column.
    #[inline(always)]
    unsafe fn prefix_rate<L: Lanes<I = I, R = R>>(
        &self,
        prefix: &[usize],
        i: usize,
        h: usize,
    ) -> L::Real {
        // SAFETY: as above.
        unsafe {
            if !T::PRICED {
                return L::splat_real(R::default());
            }
            let (rates, column) = (&self.rates, prefix[i]);
            let others = prefix.iter().enumerate().filter(|&(j, _)| j != i).map(|(_, &c)| c);
            let below = L::load_real(rates.below.as_ptr().add(column * rates.stride + h));
            L::min_real(below, L::splat_real(rates.of(column, others)))
        }
    }
}

/// For every subset of a prefix, the (virtual) position of lane 0 of its sums.
struct Source<I> {
    at: [*const I; PATTERNS],
    stride: [usize; PATTERNS],
}

/// Statistics of the cells in which the lane's column is true, by pattern of the prefix.
///
/// # Safety
/// As for [`Problem::combine`]; the row of every subset of the prefix has lane `h`.
#[inline(always)]
unsafe fn cells<L: Lanes, const M: usize>(
    source: &Source<L::I>,
    c: usize,
    h: usize,
) -> [L::Int; PATTERNS] {
    let patterns = 1usize << (M - 1);
    // SAFETY: the caller's contract.
    unsafe {
        let mut cell = [L::splat(L::I::default()); PATTERNS];
        for s in 0..patterns {
            cell[s] = L::load(source.at[s].wrapping_add(c * source.stride[s]).wrapping_add(h));
        }
        for bit in 0..M - 1 {
            for s in 0..patterns {
                if s >> bit & 1 == 0 {
                    cell[s] = L::sub(cell[s], cell[s | 1 << bit]);
                }
            }
        }
        cell
    }
}
