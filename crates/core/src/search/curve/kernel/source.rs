//! Where a pass over a node takes its rows from: one by one, or counted in runs.

use super::super::rows::{Code, Rows, Tables};
use crate::simd::reals::{Job, Reals};
use std::marker::PhantomData;

/// Weight of every column in each run of rows with equal [`Code`].
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// `lanes` counters for each code.
    pub(super) counts: Vec<u16>,
    pub(super) lanes: usize,
    /// Weight of each code.
    pub(super) weight: Vec<u16>,
    /// Those with a weight.
    pub(super) codes: Vec<Code>,
    /// Weight of each lane, of use only where it fits.
    pub(super) totals: Vec<u16>,
}

/// Lists the rows and their bits.
pub(super) struct Collect<'a, L> {
    pub(super) rows: &'a Rows,
    pub(super) tables: &'a Tables,
    pub(super) ids: &'a mut Vec<u32>,
    pub(super) bits: &'a mut Vec<u64>,
    /// Number of rows before each word of the mask.
    pub(super) before: &'a mut Vec<u32>,
    /// Columns that have both values, among the first 64.
    pub(super) to: &'a mut u64,
    pub(super) lanes_of: PhantomData<L>,
}

impl<L: Reals> Job for Collect<'_, L> {
    #[inline(always)]
    unsafe fn run(self) {
        let Collect { rows, tables, ids, bits, before, to, .. } = self;
        ids.clear();
        ids.reserve(64 * rows.mask.len() + 16);
        before.clear();
        let mut n = 0;
        for (w, &word) in rows.mask.iter().enumerate() {
            before.push(n as u32);
            // SAFETY: passed on; there is room for the rows and what is written behind them.
            unsafe { n += L::positions(word, 64 * w as u32, ids.as_mut_ptr().add(n)) };
        }
        before.push(n as u32);
        // SAFETY: the first n were written.
        unsafe { ids.set_len(n) };
        let words = tables.words;
        // Never shorter, so that only what is new is cleared.
        bits.resize(bits.len().max(n * words), 0);
        if words > 1 {
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
        *to = any & !all;
    }
}

/// A node's rows, in the order of time.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) ids: &'a [u32],
    /// Lanes of each row, in as many words as in the tables.
    pub(super) bits: &'a [u64],
    pub(super) n_lanes: usize,
    /// Number of the caller's rows.
    pub(super) count: f64,
    pub(super) tables: &'a Tables,
}

impl Node<'_> {
    /// Lanes of the `r`-th row from `first` on, up to the end of a word.
    #[inline(always)]
    pub(super) fn word(&self, r: usize, first: usize) -> u64 {
        self.bits[r * self.tables.words + first / 64] >> (first % 64)
    }
}

/// Rows to count.
#[derive(Clone, Copy)]
pub(super) struct Listed<'a> {
    pub(super) node: Node<'a>,
    pub(super) mask: &'a [u64],
    /// Number of rows before each word of the mask.
    pub(super) before: &'a [u32],
    pub(super) weight: &'a [u16],
}

impl Listed<'_> {
    /// Number of rows before row `id` of the tables.
    #[inline(always)]
    fn rank(&self, id: u32) -> usize {
        let (word, bit) = (id as usize / 64, id % 64);
        let below = self.mask.get(word).map_or(0, |mask| mask & ((1 << bit) - 1));
        self.before[word] as usize + below.count_ones() as usize
    }

    /// Weight in each lane from `first` on, and of all, of the rows from `start` to `stop`.
    ///
    /// # Safety
    /// Needs the instruction set of `L`.
    #[inline(always)]
    unsafe fn count<L: Reals, const V: usize>(
        &self,
        (start, stop): (usize, usize),
        first: usize,
    ) -> ([L::C; V], u16) {
        // SAFETY: passed on.
        unsafe {
            let (mut counts, mut total) = ([L::no_counts(); V], 0u16);
            for r in start..stop {
                let weight = self.weight[self.node.ids[r] as usize];
                let bits = self.node.word(r, first);
                for v in 0..V {
                    let bits = (bits >> (v * L::COUNTERS)) as u32;
                    counts[v] = L::count_where(counts[v], bits, weight);
                }
                total = total.wrapping_add(weight);
            }
            (counts, total)
        }
    }
}

/// Sums the weights of every lane, in whole numbers.
pub(super) struct CountColumns<'a, L, const V: usize> {
    pub(super) listed: Listed<'a>,
    pub(super) runs: &'a mut Runs,
    pub(super) lanes_of: PhantomData<L>,
}

impl<L: Reals, const V: usize> Job for CountColumns<'_, L, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let CountColumns { listed, runs, .. } = self;
        let width = V * L::COUNTERS;
        runs.totals.resize(listed.node.n_lanes.next_multiple_of(width), 0);
        let rows = (0, listed.node.ids.len());
        for (group, totals) in runs.totals.chunks_exact_mut(width).enumerate() {
            // SAFETY: passed on.
            unsafe { store::<L, V>(totals, &listed.count::<L, V>(rows, group * width).0) }
        }
    }
}

/// Sums the weights of every run, in whole numbers; where the parent's are given the rows are
/// those of the sibling, and the rest is what is wanted.
pub(super) struct Count<'a, L, const V: usize> {
    pub(super) listed: Listed<'a>,
    pub(super) parent: Option<&'a Runs>,
    pub(super) runs: &'a mut Runs,
    pub(super) lanes_of: PhantomData<L>,
}

impl<L: Reals, const V: usize> Job for Count<'_, L, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let Count { listed, parent, runs, .. } = self;
        let run_end = &listed.node.tables.run_end;
        let width = V * L::COUNTERS;
        runs.lanes = listed.node.n_lanes.next_multiple_of(width);
        runs.counts.resize(run_end.len() * runs.lanes, 0);
        runs.weight.resize(run_end.len(), 0);
        runs.totals.resize(runs.lanes, 0);
        for first in (0..runs.lanes).step_by(width) {
            runs.codes.clear();
            let mut start = 0;
            // SAFETY: passed on; all slices hold `width` counters.
            unsafe {
                let mut totals = [L::no_counts(); V];
                for (code, &end) in run_end.iter().enumerate() {
                    let stop = listed.rank(end);
                    let (mut counts, mut total) = listed.count::<L, V>((start, stop), first);
                    start = stop;
                    let at = code * runs.lanes + first;
                    if let Some(parent) = parent {
                        let all = &parent.counts[at..][..width];
                        for v in 0..V {
                            let all = L::load_all(all.as_ptr().add(v * L::COUNTERS));
                            counts[v] = L::sub_counts(all, counts[v]);
                        }
                        total = parent.weight[code] - total;
                    }
                    store::<L, V>(&mut runs.counts[at..][..width], &counts);
                    for v in 0..V {
                        totals[v] = L::add_counts(totals[v], counts[v]);
                    }
                    runs.weight[code] = total;
                    if total > 0 {
                        runs.codes.push(code as Code);
                    }
                }
                store::<L, V>(&mut runs.totals[first..][..width], &totals);
            }
        }
    }
}

/// # Safety
/// Needs the instruction set of `L`.
#[inline(always)]
unsafe fn store<L: Reals, const V: usize>(to: &mut [u16], counts: &[L::C; V]) {
    assert!(to.len() >= V * L::COUNTERS);
    for v in 0..V {
        // SAFETY: passed on; there is room.
        unsafe { L::store_counts(to.as_mut_ptr().add(v * L::COUNTERS), counts[v]) }
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
        let code = *self.runs.codes.get(self.at)?;
        let counts = &self.runs.counts[code as usize * self.runs.lanes + self.first..][..V * L::N];
        // SAFETY: passed on; the slice holds V·N counters.
        let sums = unsafe {
            let mut sums = [L::splat(0.0); V];
            for v in 0..V {
                sums[v] = L::load_counts(counts.as_ptr().add(v * L::N));
            }
            sums
        };
        let weight = f64::from(self.runs.weight[code as usize]);
        self.at += 1;
        Some((code, weight, sums))
    }
}

/// The bits of the `v`-th vector's lanes.
#[inline(always)]
pub(super) fn lanes<L: Reals>(bits: u32, v: usize) -> u32 {
    bits >> (v * L::N) & ((1 << L::N) - 1)
}
