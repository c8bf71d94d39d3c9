//! Sums over the rows of prefixes, built from those of earlier prefixes.

use super::accumulate::{Picked, Rows, SPARE_LANES};
use super::geometry::Row;
use super::memory::refill;
use super::runs::{LONGEST, Run, Visit};
use super::sums::{Last, Sums};
use crate::search::Stop;
use crate::simd::{LaneInt, Lanes, Vector};
use std::ops::Range;

/// Bitsets over rows with at least this many words are copied as rows before these are visited for
/// every further column.
const MANY_WORDS: usize = 8;

/// Whether sums along the runs of two columns of itemsets of size `m`, and of three, take less time
/// than visiting the rows of each of these columns.
pub fn pays(m: usize, n_rows: usize) -> [bool; 2] {
    let many = match m {
        3 => [0, 100],
        4 => [500, 1500],
        _ => [2000, usize::MAX],
    };
    many.map(|many| n_rows >= many)
}

/// Entries per channel of the sums along the runs of one, two and three columns, in passes over
/// itemsets of size at most `m` over `n` columns.
pub fn entries(m: usize, n_rows: usize, n: usize, longest: usize) -> [usize; 3] {
    if longest < 2 || m < 3 {
        return [n + SPARE_LANES, 0, 0];
    }
    let [two, three] = pays(4, n_rows).map(|pays| pays && m > 3);
    let tables = [1, if two { n } else { 0 }, if three { longest * n } else { longest }];
    tables.map(|tables| tables * (n + SPARE_LANES))
}

/// Most copies of the rows that a thread makes at a time. A column is true in at most half of the
/// rows. The same holds for all columns of a run together, because each only has the rows that it
/// adds.
pub fn copies(n_rows: usize) -> usize {
    let [_, third] = pays(4, n_rows);
    if third { 2 } else { 2 + LONGEST / 2 }
}

/// What is done with the sums of every last column of a prefix.
///
/// It is a trait, because the compiler may not inline a large closure, and would then compile its
/// vectors without the instruction set.
pub trait Then<I> {
    /// Takes the sums of the prefix that ends with `column`.
    fn take(&mut self, column: usize, sums: Last<I>) -> Result<(), Stop>;
}

/// Sums that are kept for the next prefix, which adds its own rows.
#[derive(Default)]
pub struct Running<I> {
    /// Columns, including those behind the last that a vector may reach.
    stride: usize,
    n: usize,
    /// Entries of all channels.
    each: usize,
    /// Along the run of the last column of a prefix, over rows that the earlier columns add.
    last: Vec<I>,
    /// Also along the run of the column before, for every last column.
    second: Vec<I>,
    /// Also along the run of the column before that, for every position in the run of the second
    /// and every last column.
    third: Vec<I>,
    /// Rows that the second column adds: a bitset, or copies if there are many.
    added: Vec<u64>,
    few: Rows<I>,
}

impl<I: LaneInt> Running<I> {
    /// Prepares for itemsets of size `m`.
    pub fn begin(&mut self, sums: &Sums<I>, m: usize) {
        let n = sums.geometry.n;
        (self.n, self.stride, self.each) = (n, n + SPARE_LANES, sums.channels * (n + SPARE_LANES));
        let longest = sums.runs.iter().map(|run| run.len()).max().unwrap_or(1);
        let entries = entries(m, sums.rows.len(), n, longest);
        for (table, entries) in
            [&mut self.last, &mut self.second, &mut self.third].into_iter().zip(entries)
        {
            // Everything that is read was written before.
            if table.len() < entries * sums.channels {
                refill(table, entries * sums.channels, I::default());
            }
        }
    }

    /// Number of entries of the sums.
    pub fn entries(&self) -> usize {
        self.last.capacity() + self.second.capacity() + self.third.capacity()
    }

    /// Bytes of copies of rows.
    pub fn row_bytes(&self) -> usize {
        8 * self.added.capacity() + self.few.bytes()
    }

    /// Sums over the rows of a bitset.
    #[inline(always)]
    pub fn sum<L: Lanes<I = I>>(&mut self, lanes: L, rows: &Rows<I>, of: &[u64]) -> Last<'_, I> {
        let picked = rows.picked(of);
        rows.accumulate(lanes, picked, 0, &mut self.last, self.stride, false);
        Last::Counted(&self.last, self.stride)
    }

    /// Sums over the rows of two columns along the runs of both. `g` belongs to this run, and `f`
    /// adds `rows`.
    #[inline(always)]
    pub fn beside_one<L: Lanes<I = I>>(
        &mut self,
        lanes: L,
        rows: &Rows<I>,
        f: Visit,
        run: Run,
        g: Visit,
    ) -> Last<'_, I> {
        let Running { stride, n, each, last, third, .. } = self;
        let first = run.first_lane(g.column);
        rows.accumulate(lanes, rows.added(g), first, last, *stride, g.at > 0);
        if f.of == 1 {
            return Last::Counted(last, *stride);
        }
        let sums = &mut third[g.at * *each..][..*each];
        along(lanes, sums, last, (*stride, g.column + 1, *n), f.at > 0);
        Last::Counted(sums, *stride)
    }

    /// The same for two columns and each of the later runs, after the columns for which the sums
    /// are those of a shorter prefix.
    #[inline(always)]
    pub fn beside_two<L: Lanes<I = I>>(
        &mut self,
        lanes: L,
        (known, shorter): (Range<usize>, impl Fn(usize) -> Row),
        rows: &Rows<I>,
        [f, g]: [Visit; 2],
        later: &[Run],
        mut then: impl Then<I>,
    ) -> Result<(), Stop> {
        let Running { stride, n, each, last, second, third, added, few } = self;
        let picked = rows.added(g);
        let copies = picked.a.len() > MANY_WORDS;
        if later.is_empty() {
            // No row is visited.
        } else if copies {
            few.restrict(rows, picked);
        } else {
            added.clear();
            added.extend(picked.a.iter().zip(picked.but).map(|(a, but)| a & !but));
        }
        let later = later.iter().flat_map(|run| run.visits().map(move |k| (k, Some(run))));
        for (visit, run) in known.map(|k| (Visit::alone(k), None)).chain(later) {
            let (k, adds) = (visit.column, visit.at > 0);
            let sums = if let Some(run) = run {
                let first = run.first_lane(k);
                if copies {
                    few.accumulate(lanes, few.added(visit), first, last, *stride, adds);
                } else {
                    let picked = Picked { a: added, ..rows.added(visit) };
                    rows.accumulate(lanes, picked, first, last, *stride, adds);
                }
                let beyond = (*stride, k + 1, *n);
                let mut sums = &last[..*each];
                if g.of > 1 {
                    let along_run = &mut second[k * *each..][..*each];
                    along(lanes, along_run, sums, beyond, g.at > 0);
                    sums = along_run;
                }
                if f.of > 1 {
                    let along_run = &mut third[(g.at * *n + k) * *each..][..*each];
                    along(lanes, along_run, sums, beyond, f.at > 0);
                    sums = along_run;
                }
                Last::Counted(sums, *stride)
            } else {
                Last::Known(shorter(k))
            };
            then.take(k, sums)?;
        }
        Ok(())
    }
}

/// Adds lanes `first..n` of every channel to the sums along a run, or starts the sums with them.
#[inline(always)]
fn along<L: Lanes>(
    lanes: L,
    own: &mut [L::I],
    new: &[L::I],
    (stride, first, n): (usize, usize, usize),
    adds: bool,
) {
    for (own, new) in own.chunks_exact_mut(stride).zip(new.chunks_exact(stride)) {
        for h in (first..n).step_by(L::N) {
            let (own, new) = (&mut own[h..], lanes.load(&new[h..]));
            let sum = if adds { lanes.load(own) + new } else { new };
            sum.store(own);
        }
    }
}
