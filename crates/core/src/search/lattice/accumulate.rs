//! Sums the statistics of the rows of an itemset, with one lane per further column.

use super::memory::{refill, room_for};
use super::runs::Visit;
use crate::data::{column_bitsets, n_words};
use crate::simd::{Job, LaneInt, Lanes, Vector};

/// Number of lanes behind the last column that the last vector may reach.
pub const SPARE_LANES: usize = 16;

/// Rows in the layout of the kernel: a record of statistics followed by the packed columns, and the
/// same columns as bitsets over rows.
#[derive(Clone, Debug, Default)]
pub struct Rows<I> {
    /// `[row]` records of `record` words, with the statistics first.
    data: Vec<u64>,
    record: usize,
    stats_words: usize,
    channels: usize,
    n_rows: usize,
    /// Number of words of a column's bitset.
    words: usize,
    columns: Vec<u64>,
    /// An empty bitset.
    nothing: Vec<u64>,
    n_columns: usize,
    marker: std::marker::PhantomData<I>,
}

impl<I: LaneInt> Rows<I> {
    /// Replaces `self` by `n_rows` rows over `n_columns` columns. `row(r)` returns the packed
    /// columns of row r, and `record(r, _)` writes its `channels` statistics. O(rows · (channels +
    /// columns)).
    pub fn fill<'a>(
        &mut self,
        (n_rows, n_columns, words): (usize, usize, usize),
        channels: usize,
        row: impl Fn(usize) -> &'a [u64],
        mut record: impl FnMut(usize, &mut [I]),
    ) {
        (self.n_rows, self.n_columns, self.channels) = (n_rows, n_columns, channels);
        self.stats_words = (channels * size_of::<I>()).div_ceil(8);
        self.record = self.stats_words + words;
        self.words = n_words(self.n_rows);
        // One spare word, because the kernel reads eight bytes from any byte of the columns.
        refill(&mut self.data, self.n_rows * self.record + 1, 0);
        let mut statistics = vec![I::default(); channels];
        let (at, records) = (self.stats_words, self.data.chunks_exact_mut(self.record));
        for (r, into) in records.take(self.n_rows).enumerate() {
            record(r, &mut statistics);
            // SAFETY: the record has room for `channels` integers; u64 is aligned for I.
            unsafe {
                let into = into.as_mut_ptr().cast::<I>();
                into.copy_from_nonoverlapping(statistics.as_ptr(), channels);
            }
            into[at..].copy_from_slice(row(r));
        }
        self.transpose();
    }

    /// Replaces `self` by some of the rows of `other`.
    pub fn restrict(&mut self, other: &Rows<I>, picked: Picked) {
        let Picked { a, b, but } = picked;
        let words = || a.iter().zip(b).zip(but).map(|((a, b), but)| a & b & !but);
        self.channels = other.channels;
        self.n_columns = other.n_columns;
        self.stats_words = other.stats_words;
        self.record = other.record;
        self.n_rows = words().map(|word| word.count_ones() as usize).sum();
        self.words = n_words(self.n_rows);
        room_for(&mut self.data, self.n_rows * self.record + 1);
        // Copies a record of known length without a function call.
        macro_rules! copy {
            ($($record:literal)*) => {
                match self.record {
                    $($record => copy_rows(&mut self.data, other.data.as_chunks::<$record>().0, words()),)*
                    record => {
                        for_each_bit(words(), |r| {
                            self.data.extend_from_slice(&other.data[r * record..(r + 1) * record]);
                        });
                    }
                }
            };
        }
        copy!(2 3 4 5 6 7 8);
        self.data.push(0);
        self.transpose();
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.n_rows
    }

    /// Bytes in use or kept for later.
    pub fn bytes(&self) -> usize {
        8 * (self.data.capacity() + self.columns.capacity())
    }

    /// Rows in which column `c` is true, as a bitset.
    #[inline(always)]
    pub fn column(&self, c: usize) -> &[u64] {
        &self.columns[c * self.words..(c + 1) * self.words]
    }

    /// All rows, as a bitset.
    pub fn everything(&self) -> Vec<u64> {
        let mut all = vec![u64::MAX; self.words];
        all[self.words - 1] = self.last_word();
        all
    }

    /// The bits of the last word of a bitset that stand for rows.
    fn last_word(&self) -> u64 {
        let rest = self.words * 64 - self.n_rows;
        if rest == 64 { 0 } else { u64::MAX >> rest }
    }

    fn transpose(&mut self) {
        let (data, record, at) = (&self.data, self.record, self.stats_words);
        let row = |r: usize| &data[r * record + at..(r + 1) * record];
        room_for(&mut self.columns, self.n_columns * self.words);
        column_bitsets(self.n_rows, self.n_columns, row, &mut self.columns);
        refill(&mut self.nothing, self.words, 0);
    }

    /// Selects the rows of a bitset.
    #[inline(always)]
    pub fn picked<'a>(&'a self, rows: &'a [u64]) -> Picked<'a> {
        Picked { a: rows, b: rows, but: &self.nothing }
    }

    /// Selects the rows that a column adds to the previous one of its run.
    #[inline(always)]
    pub fn added(&self, visit: Visit) -> Picked<'_> {
        let picked = self.picked(self.column(visit.column));
        let but = visit.inner.map_or(picked.but, |inner| self.column(inner));
        Picked { but, ..picked }
    }

    /// Sums over some rows, with one lane for every column from `first` on: `out[channel · stride +
    /// column]`. The sums are added to `out` or replace it. Lanes behind the last column that a
    /// vector reaches are zero; there must be [`SPARE_LANES`] of them.
    #[inline(always)]
    pub fn accumulate<L: Lanes<I = I>>(
        &self,
        lanes: L,
        picked: Picked,
        first: usize,
        out: &mut [I],
        stride: usize,
        adds: bool,
    ) {
        lanes.run(Accumulate { rows: self, picked, first, out, stride, adds });
    }

    /// See [`Rows::accumulate`].
    #[inline(always)]
    fn sum<L: Lanes<I = I>>(
        &self,
        lanes: L,
        picked: Picked,
        first: usize,
        out: &mut [I],
        stride: usize,
        adds: bool,
    ) {
        let Picked { a, b, .. } = picked;
        assert!(a[self.words - 1] & b[self.words - 1] & !self.last_word() == 0);
        assert!(stride >= self.n_columns + SPARE_LANES && out.len() >= self.channels * stride);
        let most = if L::N == 16 { 3 } else { 4 };
        let mut h = first;
        while h < self.n_columns {
            let vectors = (self.n_columns - h).div_ceil(L::N).min(most);
            let mut c = 0;
            while c < self.channels {
                let group = (self.channels - c).min(3);
                macro_rules! pass {
                    ($nv:literal) => {
                        // SAFETY: as asserted. The vectors start before the last column, and from
                        // `c` on there are as many channels.
                        unsafe {
                            match group {
                                1 => self.pass::<L, $nv, 1>(lanes, picked, h, c, out, stride, adds),
                                2 => self.pass::<L, $nv, 2>(lanes, picked, h, c, out, stride, adds),
                                _ => self.pass::<L, $nv, 3>(lanes, picked, h, c, out, stride, adds),
                            }
                        }
                    };
                }
                match vectors {
                    1 => pass!(1),
                    2 => pass!(2),
                    3 => pass!(3),
                    _ => pass!(4),
                }
                c += group;
            }
            h += vectors * L::N;
        }
        for c in 0..self.channels {
            lanes.splat(I::default()).store(&mut out[c * stride + self.n_columns..]);
        }
    }

    /// One sweep over the rows for `NV` vectors of lanes and `CH` channels.
    ///
    /// # Safety
    ///
    /// All picked rows must exist. The last vector must start before the last column and end within
    /// `stride`, `channel + CH` must not exceed the number of channels, and `out` must have a
    /// stride for each of these.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn pass<L: Lanes<I = I>, const NV: usize, const CH: usize>(
        &self,
        lanes: L,
        picked: Picked,
        h: usize,
        channel: usize,
        out: &mut [I],
        stride: usize,
        adds: bool,
    ) {
        let n = self.words;
        let (a, b, but) = (&picked.a[..n], &picked.b[..n], &picked.but[..n]);
        let mut acc = [[lanes.splat(I::default()); CH]; NV];
        if adds {
            for v in 0..NV {
                for c in 0..CH {
                    // SAFETY: as the caller promises, the vector ends within the stride of the
                    // channel.
                    acc[v][c] =
                        unsafe { lanes.load_at(out, (channel + c) * stride + h + v * L::N) };
                }
            }
        }
        let base = self.data.as_ptr().cast::<u8>();
        let record = self.record * 8;
        let bits_at = self.stats_words * 8 + h / 8;
        for w in 0..self.words {
            let mut rest = a[w] & b[w] & !but[w];
            while rest != 0 {
                let row = (w * 64 + rest.trailing_zeros() as usize) * record;
                rest &= rest - 1;
                // SAFETY: the row exists. Eight bytes from any of its columns on end within the
                // next record or the spare word, and its statistics lie within words.
                let (bits, statistics) = unsafe {
                    let row = base.add(row);
                    let bits = row.add(bits_at).cast::<u64>().read_unaligned() >> (h % 8);
                    (bits, &*row.cast::<I>().add(channel).cast::<[I; CH]>())
                };
                for v in 0..NV {
                    for c in 0..CH {
                        acc[v][c] = L::add_where(acc[v][c], bits >> (v * L::N), statistics[c]);
                    }
                }
            }
        }
        for v in 0..NV {
            for c in 0..CH {
                // SAFETY: as the caller promises, the vector ends within the stride of the channel.
                unsafe { acc[v][c].store_at(out, (channel + c) * stride + h + v * L::N) };
            }
        }
    }
}

/// Rows that are in two bitsets but not in a third one.
#[derive(Clone, Copy)]
pub struct Picked<'a> {
    pub a: &'a [u64],
    pub b: &'a [u64],
    pub but: &'a [u64],
}

/// See [`Rows::accumulate`]. It is compiled as a separate function, because it is the same for all
/// tasks.
struct Accumulate<'a, I> {
    rows: &'a Rows<I>,
    picked: Picked<'a>,
    first: usize,
    out: &'a mut [I],
    stride: usize,
    adds: bool,
}

impl<L: Lanes> Job<L> for Accumulate<'_, L::I> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let Accumulate { rows, picked, first, out, stride, adds } = self;
        rows.sum(lanes, picked, first, out, stride, adds);
    }
}

/// Appends the records, of `W` words each, of the rows in a bitset.
fn copy_rows<const W: usize>(
    into: &mut Vec<u64>,
    records: &[[u64; W]],
    words: impl Iterator<Item = u64>,
) {
    for_each_bit(words, |r| into.extend_from_slice(&records[r]));
}

/// Calls `f` with the position of every set bit.
#[inline(always)]
fn for_each_bit(words: impl Iterator<Item = u64>, mut f: impl FnMut(usize)) {
    for (w, mut rest) in words.enumerate() {
        while rest != 0 {
            f(w * 64 + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}
