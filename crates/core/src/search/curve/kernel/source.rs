//! Where a pass over a node takes its rows from: one by one, or counted in runs.

use super::super::rows::{Code, Rows, Tables};
use crate::simd::reals::{Job, Reals};
use std::marker::PhantomData;

/// Weight of every column in each run of rows with equal [`Code`].
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// `lanes` counters per run.
    pub(super) counts: Vec<u16>,
    pub(super) lanes: usize,
    pub(super) code: Vec<Code>,
    pub(super) weight: Vec<f64>,
}

/// Lists the rows, gives a lane to every column, or only to those that split the node where
/// that takes fewer vectors, and collects the lanes' bits.
pub(super) struct Collect<'a, L> {
    pub(super) rows: &'a Rows,
    pub(super) tables: &'a Tables,
    pub(super) ids: &'a mut Vec<u32>,
    pub(super) bits: &'a mut Vec<u64>,
    pub(super) columns: &'a mut Vec<usize>,
    pub(super) lanes_of: PhantomData<L>,
}

impl<L: Reals> Job for Collect<'_, L> {
    #[inline(always)]
    unsafe fn run(self) {
        let Collect { rows, tables, ids, bits, columns: lanes, .. } = self;
        let n_columns = tables.columns.len();
        ids.clear();
        ids.reserve(64 * rows.mask.len() + 16);
        let mut n = 0;
        for (w, &word) in rows.mask.iter().enumerate() {
            // SAFETY: passed on; there is room for the rows and what is written behind them.
            unsafe { n += L::positions(word, 64 * w as u32, ids.as_mut_ptr().add(n)) };
        }
        // SAFETY: the first n were written.
        unsafe { ids.set_len(n) };
        lanes.clear();
        let words = tables.words;
        bits.resize(bits.len().max(n * words), 0);
        if words > 1 {
            lanes.extend(0..n_columns);
            for (bits, &id) in bits.chunks_exact_mut(words).zip(ids.iter()) {
                bits.copy_from_slice(tables.row(id));
            }
            return;
        }
        let (mut any, mut all) = (0, u64::MAX);
        for (bits, &id) in bits.iter_mut().zip(ids.iter()) {
            let row = tables.word(id, 0);
            any |= row;
            all &= row;
            *bits = row;
        }
        let splitting = any & !all;
        let n_splitting = splitting.count_ones() as usize;
        if L::COMPACTS && n_splitting.div_ceil(L::N) < n_columns.div_ceil(L::N) {
            lanes.extend((0..n_columns).filter(|c| splitting >> c & 1 == 1));
            for bits in &mut bits[..n] {
                // SAFETY: passed on.
                *bits = unsafe { L::compact(*bits, splitting) };
            }
        } else {
            lanes.extend(0..n_columns);
        }
    }
}

/// A node's rows, in the order of time.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) ids: &'a [u32],
    /// Lanes of each row, in `words` words.
    pub(super) bits: &'a [u64],
    pub(super) words: usize,
    pub(super) n_lanes: usize,
    /// Number of the caller's rows.
    pub(super) count: f64,
    /// Whether parts of the floor are asked for, and there is one.
    pub(super) floors: bool,
    pub(super) tables: &'a Tables,
}

impl Node<'_> {
    /// Lanes of the `r`-th row from `first` on, up to the end of a word.
    #[inline(always)]
    pub(super) fn word(&self, r: usize, first: usize) -> u64 {
        self.bits[r * self.words + first / 64] >> (first % 64)
    }
}

/// Keeps some of at most 64 lanes.
pub(super) struct Narrow<'a, L> {
    pub(super) keep: u64,
    pub(super) bits: &'a mut [u64],
    pub(super) runs: Option<&'a mut Runs>,
    pub(super) totals: &'a mut [u16],
    pub(super) columns: &'a mut Vec<usize>,
    pub(super) lanes_of: PhantomData<L>,
}

impl<L: Reals> Job for Narrow<'_, L> {
    #[inline(always)]
    unsafe fn run(self) {
        let Narrow { keep, bits, runs, totals, columns, .. } = self;
        let mut lane = 0;
        columns.retain(|_| {
            lane += 1;
            keep >> (lane - 1) & 1 == 1
        });
        // SAFETY: passed on; runs have as many lanes as there are totals.
        unsafe {
            let n = totals.len();
            L::narrow(totals, n, keep);
            for bits in bits {
                *bits = L::compact(*bits, keep);
            }
            if let Some(runs) = runs {
                let used = runs.code.len() * runs.lanes;
                L::narrow(&mut runs.counts[..used], n, keep);
            }
        }
    }
}

/// Sums the weights of every lane, in whole numbers.
pub(super) struct CountColumns<'a, L, const V: usize> {
    pub(super) node: Node<'a>,
    pub(super) weight: &'a [u16],
    pub(super) totals: &'a mut Vec<u16>,
    pub(super) lanes_of: PhantomData<L>,
}

impl<L: Reals, const V: usize> Job for CountColumns<'_, L, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let CountColumns { node, weight, totals, .. } = self;
        let width = V * L::COUNTERS;
        totals.resize(node.n_lanes.next_multiple_of(width), 0);
        for (group, totals) in totals.chunks_exact_mut(width).enumerate() {
            // SAFETY: passed on; there are `width` totals.
            unsafe {
                let mut counts = [L::no_counts(); V];
                for (r, &id) in node.ids.iter().enumerate() {
                    let bits = node.word(r, group * width);
                    for v in 0..V {
                        let bits = (bits >> (v * L::COUNTERS)) as u32;
                        counts[v] = L::count_where(counts[v], bits, weight[id as usize]);
                    }
                }
                for v in 0..V {
                    L::store_counts(totals.as_mut_ptr().add(v * L::COUNTERS), counts[v]);
                }
            }
        }
    }
}

/// Sums the weights of every run, in whole numbers.
pub(super) struct Count<'a, L, const V: usize> {
    pub(super) node: Node<'a>,
    pub(super) weight: &'a [u16],
    pub(super) runs: &'a mut Runs,
    pub(super) totals: &'a mut Vec<u16>,
    pub(super) lanes_of: PhantomData<L>,
}

impl<L: Reals, const V: usize> Job for Count<'_, L, V> {
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: passed on.
        unsafe { count_runs::<L, V>(self.node, self.weight, self.runs, self.totals) }
    }
}

/// # Safety
/// Needs the instruction set of `L`.
#[inline(always)]
unsafe fn count_runs<L: Reals, const V: usize>(
    node: Node,
    weight: &[u16],
    runs: &mut Runs,
    totals: &mut Vec<u16>,
) {
    let Node { ids, tables, .. } = node;
    let width = V * L::COUNTERS;
    runs.lanes = node.n_lanes.next_multiple_of(width);
    let most = ids.len().min(2 * tables.plain.len());
    runs.counts.resize(runs.counts.len().max(most * runs.lanes), 0);
    totals.resize(runs.lanes, 0);
    let mut first = 0;
    while first < runs.lanes {
        runs.code.clear();
        runs.weight.clear();
        let mut r = 0;
        // SAFETY: passed on.
        let mut sums = [unsafe { L::no_counts() }; V];
        while r < ids.len() {
            let code = tables.code[ids[r] as usize];
            let end = tables.run_end[code as usize];
            let mut total = 0u32;
            // SAFETY: passed on; there is room for `most` runs.
            unsafe {
                let mut counts = [L::no_counts(); V];
                while let Some(&id) = ids.get(r).filter(|&&id| id < end) {
                    let weight = weight[id as usize];
                    let bits = node.word(r, first);
                    for v in 0..V {
                        let bits = (bits >> (v * L::COUNTERS)) as u32;
                        counts[v] = L::count_where(counts[v], bits, weight);
                    }
                    total += u32::from(weight);
                    r += 1;
                }
                let to = &mut runs.counts[runs.code.len() * runs.lanes + first..][..width];
                for v in 0..V {
                    L::store_counts(to.as_mut_ptr().add(v * L::COUNTERS), counts[v]);
                    sums[v] = L::add_counts(sums[v], counts[v]);
                }
            }
            runs.code.push(code);
            runs.weight.push(f64::from(total));
        }
        let to = &mut totals[first..][..width];
        for v in 0..V {
            // SAFETY: passed on; there are `width` totals.
            unsafe { L::store_counts(to.as_mut_ptr().add(v * L::COUNTERS), sums[v]) }
        }
        first += width;
    }
}

/// Runs of rows with equal [`Code`], one after the other.
pub(super) trait Source<L: Reals, const V: usize> {
    /// Code, total weight and weight per column of the next run.
    ///
    /// # Safety
    /// Needs the instruction set of `L`.
    unsafe fn next(&mut self) -> Option<(Code, f64, [L::V; V])>;
}

/// From the rows.
#[derive(Clone, Copy)]
pub(super) struct FromRows<'a> {
    pub(super) node: Node<'a>,
    pub(super) first: usize,
    pub(super) at: usize,
}

impl<L: Reals, const V: usize> Source<L, V> for FromRows<'_> {
    #[inline(always)]
    unsafe fn next(&mut self) -> Option<(Code, f64, [L::V; V])> {
        let Node { ids, tables, .. } = self.node;
        let code = tables.code[*ids.get(self.at)? as usize];
        let mut total = 0.0;
        // SAFETY: passed on.
        let mut sums = [unsafe { L::splat(0.0) }; V];
        let end = tables.run_end[code as usize];
        while let Some(&id) = ids.get(self.at).filter(|&&id| id < end) {
            let weight = tables.weight[id as usize];
            let bits = self.node.word(self.at, self.first) as u32;
            for v in 0..V {
                // SAFETY: passed on.
                sums[v] = unsafe { L::add_where(sums[v], lanes::<L>(bits, v), weight) };
            }
            total += weight;
            self.at += 1;
        }
        Some((code, total, sums))
    }
}

/// From counted runs.
#[derive(Clone, Copy)]
pub(super) struct FromRuns<'a> {
    pub(super) runs: &'a Runs,
    pub(super) first: usize,
    pub(super) at: usize,
}

impl<L: Reals, const V: usize> Source<L, V> for FromRuns<'_> {
    #[inline(always)]
    unsafe fn next(&mut self) -> Option<(Code, f64, [L::V; V])> {
        let code = *self.runs.code.get(self.at)?;
        let counts = &self.runs.counts[self.at * self.runs.lanes + self.first..][..V * L::N];
        // SAFETY: passed on; the slice holds V·N counters.
        let sums = unsafe {
            let mut sums = [L::splat(0.0); V];
            for v in 0..V {
                sums[v] = L::load_counts(counts.as_ptr().add(v * L::N));
            }
            sums
        };
        let weight = self.runs.weight[self.at];
        self.at += 1;
        Some((code, weight, sums))
    }
}

/// The bits of the `v`-th vector's lanes.
#[inline(always)]
pub(super) fn lanes<L: Reals>(bits: u32, v: usize) -> u32 {
    bits >> (v * L::N) & ((1 << L::N) - 1)
}
