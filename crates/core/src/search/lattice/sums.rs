//! Sums of positive itemsets, and the positions of those of the subsets of a prefix: the part of a
//! lattice that is the same for all tasks.

use super::accumulate::Rows;
use super::geometry::{Geometry, MAX_DEPTH, PAD, PATTERNS, PREFIX, Row};
use super::runs::Run;
use crate::simd::{Job, LaneInt, Lanes, prefetch};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// The rows, and the sums over those in which all columns of an itemset are true.
#[derive(Clone, Debug, Default)]
pub struct Sums<I> {
    pub geometry: Geometry,
    pub channels: usize,
    pub rows: Rows<I>,
    /// The columns, in runs.
    pub runs: Vec<Run>,
    /// Sum over all rows, per channel.
    pub totals: Vec<I>,
    /// `[level − 1][channel · total + position]`
    pub levels: [Vec<I>; PREFIX],
}

impl<I: LaneInt> Sums<I> {
    /// Sum of channel `c` over the rows in which all columns of `itemset` are true.
    pub fn positive(&self, c: usize, itemset: &[usize]) -> I {
        match itemset.split_last() {
            None => self.totals[c],
            Some((&lane, prefix)) => {
                let row = self.geometry.row(prefix);
                let total = self.geometry.total(itemset.len());
                self.levels[itemset.len() - 1][c * total + row.start + (lane - row.first)]
            }
        }
    }

    /// Makes `view` the prefix `shorter`, of `SIZE` columns, with `column` appended.
    #[inline(always)]
    pub fn extend<L: Lanes<I = I>, const SIZE: usize>(
        &self,
        lanes: L,
        shorter: &View<I>,
        column: usize,
        view: &mut View<I>,
    ) {
        lanes.run(Extend::<I, SIZE> { sums: self, shorter, column, view });
    }
}

/// See [`Sums::extend`]. It is compiled as a separate function, because it is the same for all
/// tasks.
struct Extend<'a, I, const SIZE: usize> {
    sums: &'a Sums<I>,
    shorter: &'a View<I>,
    column: usize,
    view: &'a mut View<I>,
}

impl<L: Lanes, const SIZE: usize> Job<L> for Extend<'_, L::I, SIZE> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: L) {
        let Extend { sums, shorter, column, view } = self;
        let (before, prefix) = (&shorter.prefix, &mut view.prefix);
        debug_assert_eq!(before.size, SIZE);
        let half = 1 << SIZE;
        prefix.size = SIZE + 1;
        prefix.columns = before.columns;
        prefix.columns[SIZE] = column;
        prefix.rows[..half].copy_from_slice(&before.rows[..half]);
        prefix.bases[..half].copy_from_slice(&before.bases[..half]);
        let geometry = &sums.geometry;
        let mut at = [0; PATTERNS];
        for s in 0..half {
            let row = before.rows[s];
            at[s] = row.start + (column - row.first);
            // The rows of the longest prefix are in the caller's scratch.
            if SIZE + 1 < PREFIX || s + 1 < half {
                prefix.rows[s + half] = geometry.row_beside(before.bases[s], row.first, column);
            }
        }
        if SIZE + 1 < PREFIX {
            // Two columns and a third form a prefix only if there are itemsets of four.
            prefix.bases[half] = geometry.base(&[column]);
            for bit in 0..if geometry.has_quadruples() { SIZE } else { 0 } {
                prefix.bases[half | 1 << bit] = geometry.base(&[before.columns[bit], column]);
            }
        }
        let cells = view.cells.iter_mut().zip(&shorter.cells);
        for (c, (cells, shorter)) in cells.enumerate() {
            // Sums where a subset and the column are true; later, sums by sign pattern.
            let mut with = [L::I::default(); PATTERNS];
            for s in 0..half {
                let size = s.count_ones() as usize;
                with[s] = sums.levels[size][c * sums.geometry.total(size + 1) + at[s]];
            }
            for bit in 0..SIZE {
                for s in 0..half {
                    if s >> bit & 1 == 0 {
                        with[s] = with[s].minus(with[s | 1 << bit]);
                    }
                }
            }
            for s in 0..half {
                cells[s] = shorter[s].minus(with[s]);
                cells[s + half] = with[s];
            }
        }
    }
}

/// A prefix of columns, and for every subset of these the position of the itemsets `subset ∪
/// {lane}`.
#[derive(Clone, Debug, Default)]
pub struct Prefix {
    pub size: usize,
    pub columns: [usize; PREFIX],
    pub rows: [Row; PATTERNS],
    /// Position of the rows of every subset and one more column.
    pub bases: [usize; PATTERNS],
}

impl Prefix {
    /// First lane beyond the prefix.
    #[inline(always)]
    pub fn first(&self) -> usize {
        if self.size == 0 { 0 } else { self.columns[self.size - 1] + 1 }
    }
}

/// A prefix, and the sums of the statistics for each of its sign patterns.
#[derive(Clone, Debug, Default)]
pub struct View<I> {
    pub prefix: Prefix,
    /// `[channel][pattern]`
    pub cells: Vec<[I; PATTERNS]>,
}

impl<I: LaneInt> View<I> {
    /// Makes this the empty prefix.
    pub fn begin(&mut self, sums: &Sums<I>) {
        self.prefix = Prefix { rows: [sums.geometry.row(&[]); PATTERNS], ..Prefix::default() };
        self.cells.clear();
        self.cells.extend(sums.totals.iter().map(|&total| {
            let mut cells = [I::default(); PATTERNS];
            cells[0] = total;
            cells
        }));
    }
}

/// The sums of `prefix ∪ {lane}`, on the level that a pass counts.
#[derive(Clone, Copy)]
pub enum Last<'a, I> {
    /// `[channel · stride + lane]`, and the stride.
    Counted(&'a [I], usize),
    /// The sums of a shorter prefix.
    Known(Row),
}

/// For every subset of a prefix, the sums of `subset ∪ {lane}`.
pub struct Source<'a, I, const P: usize> {
    /// Address of lane 0 of the first channel. It may lie before the start of the row.
    begin: [*const I; P],
    /// Distance from one channel to the next, by the size of the subset.
    stride: [usize; MAX_DEPTH],
    channels: usize,
    /// First lane that all of them contain.
    first: usize,
    end: usize,
    only: PhantomData<&'a [I]>,
}

impl<'a, I: LaneInt, const P: usize> Source<'a, I, P> {
    /// For a prefix with `P` sign patterns. On the level of the leaves, `last` contains the sums of
    /// the prefix itself, `[channel · stride + lane]`.
    #[inline(always)]
    pub fn new(sums: &'a Sums<I>, view: &View<I>, last: Option<Last<'a, I>>) -> Self {
        let (channels, first, end) = (sums.channels, view.prefix.first(), sums.geometry.n + PAD);
        let (mut begin, mut stride) = ([std::ptr::null(); P], [0; MAX_DEPTH]);
        let mut place = |s: usize, row: Row, level: usize| {
            let size = s.count_ones() as usize;
            let (table, total) = (&sums.levels[level], sums.geometry.total(level + 1));
            debug_assert!(row.first <= first && end <= row.first + row.len);
            debug_assert!(row.start + row.len <= total && channels * total <= table.len());
            // The sums of the next prefix follow, and are mostly not in the cache.
            if P > 4 && 2 << size == P {
                for c in 0..channels.min(4) {
                    prefetch(table.as_ptr().wrapping_add(row.start + row.len + c * total));
                }
            }
            begin[s] = table.as_ptr().wrapping_add(row.start).wrapping_sub(row.first);
            stride[size] = total;
        };
        for s in 0..P - 1 {
            place(s, view.prefix.rows[s], s.count_ones() as usize);
        }
        let whole = (P - 1).count_ones() as usize;
        match last {
            Some(Last::Counted(last, of_last)) => {
                assert!(end <= of_last && channels * of_last <= last.len());
                (begin[P - 1], stride[whole]) = (last.as_ptr(), of_last);
            }
            Some(Last::Known(row)) => place(P - 1, row, whole - 1),
            None => place(P - 1, view.prefix.rows[P - 1], whole),
        }
        Source { begin, stride, channels, first, end, only: PhantomData }
    }

    /// Statistics of the cells in which the lane's column is true, by pattern of the prefix.
    #[inline(always)]
    pub fn cells<L: Lanes<I = I>, const M: usize>(
        &self,
        lanes: L,
        c: usize,
        h: usize,
    ) -> [L::Int; P] {
        assert!(c < self.channels && self.first <= h && h + L::N <= self.end);
        // SAFETY: the channel has these lanes, as asserted.
        unsafe { self.cells_at::<L, M>(lanes, c, h) }
    }

    /// The same for the first channels, as many as `cells` has room for.
    #[inline(always)]
    pub fn all_cells<'b, L: Lanes<I = I>, const M: usize>(
        &self,
        lanes: L,
        h: usize,
        cells: &'b mut [MaybeUninit<[L::Int; P]>],
    ) -> &'b [[L::Int; P]] {
        assert!(cells.len() <= self.channels && self.first <= h && h + L::N <= self.end);
        for (c, cells) in cells.iter_mut().enumerate() {
            // SAFETY: the channel has these lanes, as asserted.
            cells.write(unsafe { self.cells_at::<L, M>(lanes, c, h) });
        }
        // SAFETY: all entries were written.
        unsafe { std::slice::from_raw_parts(cells.as_ptr().cast::<[L::Int; P]>(), cells.len()) }
    }

    /// The cells of channel `c` from lane `h` on.
    ///
    /// # Safety
    ///
    /// The channel must have these lanes.
    #[inline(always)]
    unsafe fn cells_at<L: Lanes<I = I>, const M: usize>(
        &self,
        lanes: L,
        c: usize,
        h: usize,
    ) -> [L::Int; P] {
        let from: [usize; M] = std::array::from_fn(|size| h + c * self.stride[size]);
        let mut cell = [lanes.splat(I::default()); P];
        for s in 0..P {
            let at = self.begin[s].wrapping_add(from[s.count_ones() as usize]);
            // SAFETY: rows come from the geometry, which places every row with its padding within
            // the tables of its level (checking every prefix would cost a few per cent; tests check
            // it), and the sums of the prefix itself were checked to have these lanes of every
            // channel.
            cell[s] = unsafe { lanes.load_at(std::slice::from_raw_parts(at, L::N), 0) };
        }
        for bit in 0..M - 1 {
            for s in 0..P {
                if s >> bit & 1 == 0 {
                    cell[s] = cell[s] - cell[s | 1 << bit];
                }
            }
        }
        cell
    }
}
