//! Summing the statistics of the rows of an itemset, one lane per further column.

use crate::data::{Sample, column_bitsets};
use crate::simd::{LaneInt, Lanes};

/// Rows as the kernel reads them: a record of statistics followed by the packed columns,
/// and the same columns as bitsets over rows.
#[derive(Clone, Debug, Default)]
pub struct Rows<I> {
    /// `[row]` records of `record` words; statistics first.
    data: Vec<u64>,
    record: usize,
    stats_words: usize,
    channels: usize,
    n_rows: usize,
    /// Words per column bitset.
    pub words: usize,
    columns: Vec<u64>,
    n_columns: usize,
    marker: std::marker::PhantomData<I>,
}

impl<I: LaneInt> Rows<I> {
    /// The rows of `sample` over its columns, with the `channels` statistics of row `r` that
    /// `record(r, _)` writes. O(rows · (channels + columns)).
    pub fn new(sample: &Sample, channels: usize, mut record: impl FnMut(usize, &mut [I])) -> Self {
        let (n_rows, n_columns) = (sample.n_rows(), sample.n_columns());
        let mut out = Rows { channels, n_rows, n_columns, ..Rows::default() };
        out.stats_words = (channels * size_of::<I>()).div_ceil(8);
        out.record = out.stats_words + sample.words();
        out.words = n_rows.div_ceil(64).max(1);
        // One spare word: the kernel reads eight bytes from any byte of the columns.
        out.data = vec![0; n_rows * out.record + 1];
        let mut statistics = vec![I::default(); channels];
        for (r, into) in out.data.chunks_exact_mut(out.record).take(n_rows).enumerate() {
            record(r, &mut statistics);
            // SAFETY: the record has room for `channels` integers; u64 is aligned for I.
            unsafe {
                let into = into.as_mut_ptr().cast::<I>();
                into.copy_from_nonoverlapping(statistics.as_ptr(), channels);
            }
            into[out.stats_words..].copy_from_slice(sample.row(r));
        }
        out.transpose();
        out
    }

    /// Replaces `self` by the rows of `other` in which column `c` is true.
    pub fn restrict(&mut self, other: &Rows<I>, c: usize) {
        self.channels = other.channels;
        self.n_columns = other.n_columns;
        self.stats_words = other.stats_words;
        self.record = other.record;
        self.data.clear();
        for_each_bit(other.column(c), other.column(c), |r| {
            self.data.extend_from_slice(&other.data[r * other.record..(r + 1) * other.record]);
        });
        self.n_rows = self.data.len() / self.record;
        self.words = self.n_rows.div_ceil(64).max(1);
        self.data.push(0);
        self.transpose();
    }

    /// Rows in which column `c` is true.
    #[inline(always)]
    pub fn column(&self, c: usize) -> &[u64] {
        &self.columns[c * self.words..(c + 1) * self.words]
    }

    /// All rows.
    pub fn everything(&self) -> Vec<u64> {
        let mut all = vec![u64::MAX; self.words];
        let rest = self.words * 64 - self.n_rows;
        if rest > 0 {
            all[self.words - 1] = if rest == 64 { 0 } else { u64::MAX >> rest };
        }
        all
    }

    fn transpose(&mut self) {
        let (data, record, at) = (&self.data, self.record, self.stats_words);
        let row = |r: usize| &data[r * record + at..(r + 1) * record];
        column_bitsets(self.n_rows, self.n_columns, row, &mut self.columns);
    }

    /// Sums over the rows in both `a` and `b`, for every column `first..` one lane:
    /// `out[channel · stride + column]`. Lanes from the last column to the end of `out`'s
    /// stride that a vector reaches are zero.
    ///
    /// # Safety
    /// The machine must have the instruction set of `L`, `a` and `b` have `self.words`
    /// words, and `stride` is at least the number of columns plus 80.
    #[inline(always)]
    pub unsafe fn accumulate<L: Lanes<I = I>>(
        &self,
        a: &[u64],
        b: &[u64],
        first: usize,
        out: *mut I,
        stride: usize,
    ) {
        let most = if L::N == 16 { 3 } else { 4 };
        let mut h = first;
        while h < self.n_columns {
            let vectors = (self.n_columns - h).div_ceil(L::N).min(most);
            let mut c = 0;
            while c < self.channels {
                let group = (self.channels - c).min(3);
                // SAFETY: the caller's contract.
                unsafe {
                    macro_rules! pass {
                        ($nv:literal) => {
                            match group {
                                1 => self.pass::<L, $nv, 1>(a, b, h, c, out, stride),
                                2 => self.pass::<L, $nv, 2>(a, b, h, c, out, stride),
                                _ => self.pass::<L, $nv, 3>(a, b, h, c, out, stride),
                            }
                        };
                    }
                    match vectors {
                        1 => pass!(1),
                        2 => pass!(2),
                        3 => pass!(3),
                        _ => pass!(4),
                    }
                }
                c += group;
            }
            h += vectors * L::N;
        }
        for c in 0..self.channels {
            // SAFETY: the stride has room for a vector behind the last column.
            unsafe { L::store(out.add(c * stride + self.n_columns), L::splat(I::default())) };
        }
    }

    /// One sweep over the rows for `NV` vectors of lanes and `CH` channels.
    #[inline(always)]
    unsafe fn pass<L: Lanes<I = I>, const NV: usize, const CH: usize>(
        &self,
        a: &[u64],
        b: &[u64],
        h: usize,
        channel: usize,
        out: *mut I,
        stride: usize,
    ) {
        // SAFETY: row indices come from bitsets over `n_rows`; reads of eight bytes from a
        // record end within the next record or the spare word; the rest is the caller's.
        unsafe {
            let mut acc = [[L::splat(I::default()); CH]; NV];
            let base = self.data.as_ptr().cast::<u8>();
            let record = self.record * 8;
            let bits_at = self.stats_words * 8 + h / 8;
            for w in 0..self.words {
                let mut rest = a.get_unchecked(w) & b.get_unchecked(w);
                while rest != 0 {
                    let row = base.add((w * 64 + rest.trailing_zeros() as usize) * record);
                    rest &= rest - 1;
                    let bits = row.add(bits_at).cast::<u64>().read_unaligned() >> (h % 8);
                    let statistics = row.cast::<I>().add(channel);
                    for (v, acc) in acc.iter_mut().enumerate() {
                        for (c, acc) in acc.iter_mut().enumerate() {
                            *acc = L::add_where(*acc, bits >> (v * L::N), *statistics.add(c));
                        }
                    }
                }
            }
            for (v, acc) in acc.iter().enumerate() {
                for (c, &acc) in acc.iter().enumerate() {
                    L::store(out.add((channel + c) * stride + h + v * L::N), acc);
                }
            }
        }
    }
}

/// Calls `f` with the position of every bit set in both `a` and `b`.
#[inline(always)]
pub fn for_each_bit(a: &[u64], b: &[u64], mut f: impl FnMut(usize)) {
    for (w, (&x, &y)) in a.iter().zip(b).enumerate() {
        let mut rest = x & y;
        while rest != 0 {
            f(w * 64 + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}
