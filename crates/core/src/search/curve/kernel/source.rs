//! The rows of a pass over a node, read one by one or counted in runs.

use super::super::rows::{Rows, Tables};
use crate::simd::{Job, RowLanes, Vector};
use crate::survival::timeline::Code;
use crate::task::brier::passes::{Source, lane_bits};

/// Weight of every column in each run of rows with equal [`Code`].
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// `lanes` counters for each code.
    pub(super) counts: Vec<u16>,
    pub(super) lanes: usize,
    /// Weight of each code.
    pub(super) weight: Vec<u16>,
    /// Codes with a positive weight.
    pub(super) codes: Vec<Code>,
    /// Weight of each lane; only meaningful if it fits.
    pub(super) totals: Vec<u16>,
}

/// Lists the rows of a node and their bits.
pub(super) struct Collect<'a> {
    pub(super) rows: &'a Rows,
    pub(super) tables: &'a Tables,
    pub(super) ids: &'a mut Vec<u32>,
    pub(super) bits: &'a mut Vec<u64>,
    /// Number of rows before each word of the mask.
    pub(super) before: &'a mut Vec<u32>,
}

impl<L: RowLanes> Job<L> for Collect<'_> {
    /// Number of rows, and those of the first 64 columns that have both values.
    type Output = (usize, u64);

    #[inline(always)]
    fn run(self, lanes: L) -> (usize, u64) {
        let Collect { rows, tables, ids, bits, before } = self;
        // The buffer never shrinks, so that only new entries are cleared.
        ids.resize(ids.len().max(64 * rows.mask.len() + 16), 0);
        before.clear();
        let mut n = 0;
        for (w, &word) in rows.mask.iter().enumerate() {
            before.push(n as u32);
            n += lanes.positions(word, 64 * w as u32, &mut ids[n..]);
        }
        before.push(n as u32);
        let words = tables.words;
        bits.resize(bits.len().max(n * words), 0);
        if words > 1 {
            for (r, &id) in ids[..n].iter().enumerate() {
                bits[r * words..][..words].copy_from_slice(tables.row(id));
            }
            return (n, 0);
        }
        let (mut any, mut all) = (0, u64::MAX);
        let (ids, bits) = (&ids[..n], &mut bits[..n]);
        for r in 0..n {
            let row = tables.word(ids[r], 0);
            any |= row;
            all &= row;
            bits[r] = row;
        }
        (n, any & !all)
    }
}

/// A node's rows, in the order of time.
#[derive(Clone, Copy)]
pub(super) struct NodeRows<'a> {
    pub(super) ids: &'a [u32],
    /// Lanes of each row, in as many words as the tables use.
    pub(super) bits: &'a [u64],
    pub(super) n_lanes: usize,
    /// Number of the caller's rows.
    pub(super) count: f64,
    pub(super) tables: &'a Tables,
}

impl NodeRows<'_> {
    /// Lanes of the `r`-th row from `first` on, up to the end of a word.
    #[inline(always)]
    pub(super) fn word(&self, r: usize, first: usize) -> u64 {
        self.bits[r * self.tables.words + first / 64] >> (first % 64)
    }
}

/// The rows to count.
#[derive(Clone, Copy)]
pub(super) struct Listed<'a> {
    pub(super) node: NodeRows<'a>,
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

    /// Weight in each lane from `first` on, and in total, of the rows from `start` to `stop`.
    #[inline(always)]
    fn count<L: RowLanes, const V: usize>(
        &self,
        lanes: L,
        (start, stop): (usize, usize),
        first: usize,
    ) -> ([L::Counts; V], u16) {
        let (mut counts, mut total) = ([lanes.no_counts(); V], 0u16);
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

/// Sums the weights of every lane as whole numbers.
pub(super) struct CountColumns<'a, const V: usize> {
    pub(super) listed: Listed<'a>,
    pub(super) runs: &'a mut Runs,
}

impl<L: RowLanes, const V: usize> Job<L> for CountColumns<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let CountColumns { listed, runs, .. } = self;
        let width = V * L::COUNTERS;
        runs.totals.resize(listed.node.n_lanes.next_multiple_of(width), 0);
        let rows = (0, listed.node.ids.len());
        for (group, totals) in runs.totals.chunks_exact_mut(width).enumerate() {
            store::<L, V>(totals, &listed.count::<L, V>(lanes, rows, group * width).0);
        }
    }
}

/// Sums the weights of every run as whole numbers. If the counts of the parent are given, the rows
/// are those of the sibling, and the result is the difference.
pub(super) struct Count<'a, const V: usize> {
    pub(super) listed: Listed<'a>,
    pub(super) parent: Option<&'a Runs>,
    pub(super) runs: &'a mut Runs,
}

impl<L: RowLanes, const V: usize> Job<L> for Count<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
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
            let mut totals = [lanes.no_counts(); V];
            for (code, &end) in run_end.iter().enumerate() {
                let stop = listed.rank(end);
                let (mut counts, mut total) = listed.count::<L, V>(lanes, (start, stop), first);
                start = stop;
                let at = code * runs.lanes + first;
                if let Some(parent) = parent {
                    let all = &parent.counts[at..][..width];
                    for v in 0..V {
                        let all = lanes.load_all(&all[v * L::COUNTERS..]);
                        counts[v] = all - counts[v];
                    }
                    total = parent.weight[code] - total;
                }
                store::<L, V>(&mut runs.counts[at..][..width], &counts);
                for v in 0..V {
                    totals[v] = totals[v] + counts[v];
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

#[inline(always)]
fn store<L: RowLanes, const V: usize>(to: &mut [u16], counts: &[L::Counts; V]) {
    assert!(to.len() >= V * L::COUNTERS);
    for v in 0..V {
        counts[v].store(&mut to[v * L::COUNTERS..]);
    }
}

/// Reads the rows one by one.
#[derive(Clone, Copy)]
pub(super) struct FromRows<'a> {
    pub(super) node: NodeRows<'a>,
    pub(super) first: usize,
    pub(super) at: usize,
}

impl<L: RowLanes, const V: usize> Source<L, V> for FromRows<'_> {
    #[inline(always)]
    fn next(&mut self, lanes: L) -> Option<(Code, f64, [L::Real; V])> {
        let NodeRows { ids, tables, .. } = self.node;
        let code = tables.code[*ids.get(self.at)? as usize];
        let mut total = 0.0;
        let mut sums = [lanes.splat_real(0.0); V];
        let end = tables.run_end[code as usize];
        while let Some(&id) = ids.get(self.at).filter(|&&id| id < end) {
            let weight = tables.weight[id as usize];
            let bits = self.node.word(self.at, self.first) as u32;
            for v in 0..V {
                sums[v] = L::add_real_where(sums[v], lane_bits::<L>(bits, v), weight);
            }
            total += weight;
            self.at += 1;
        }
        Some((code, total, sums))
    }
}

/// Reads counted runs.
#[derive(Clone, Copy)]
pub(super) struct FromRuns<'a> {
    pub(super) runs: &'a Runs,
    pub(super) first: usize,
    pub(super) at: usize,
}

impl<L: RowLanes, const V: usize> Source<L, V> for FromRuns<'_> {
    #[inline(always)]
    fn next(&mut self, lanes: L) -> Option<(Code, f64, [L::Real; V])> {
        let code = *self.runs.codes.get(self.at)?;
        let counts = &self.runs.counts[code as usize * self.runs.lanes + self.first..][..V * L::N];
        let mut sums = [lanes.splat_real(0.0); V];
        for v in 0..V {
            sums[v] = lanes.load_counts(&counts[v * L::N..]);
        }
        let weight = f64::from(self.runs.weight[code as usize]);
        self.at += 1;
        Some((code, weight, sums))
    }
}
