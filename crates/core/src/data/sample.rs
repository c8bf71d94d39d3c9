//! The data as the search reads them: distinct rows, useful columns, summed statistics.

use super::{
    BinaryMatrix, add, column_bitsets, complement, n_words, ones, random_number, size, sort_by_keys,
};
use crate::tree::Tree;
use rustc_hash::FxHashSet;

/// Up to this many rows are sorted by comparisons.
const FEW: usize = 32;

/// A column of a [`Sample`] and the feature behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Index of the feature in the caller's matrix.
    pub feature: usize,
    /// Whether the column holds the negation of the feature.
    pub flipped: bool,
}

impl Column {
    /// Turns what belongs to the false and the true side of the column into what belongs to those
    /// of the feature, or the reverse.
    pub fn turned<V>(self, [no, yes]: [V; 2]) -> [V; 2] {
        if self.flipped { [yes, no] } else { [no, yes] }
    }

    /// The side of a split on this column where the feature is true: 1, the true side of the
    /// column, unless the column is flipped.
    pub fn true_side(self) -> usize {
        usize::from(!self.flipped)
    }
}

/// Distinct rows over the columns that are worth splitting on, with statistics summed over equal
/// rows.
///
/// Rows are sorted by their bits, so nothing depends on the order of the caller's rows. No column
/// is constant, equal to another or the complement of another, and each is true in at most half of
/// the distinct rows.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Columns, ascending in `feature`.
    pub columns: Vec<Column>,
    /// Statistics per row, `[row][channel]`.
    pub sums: Vec<i64>,
    /// Statistics summed over all rows.
    pub total: Vec<i64>,
    /// Number of the caller's rows merged into each row, and of events among them; see
    /// [`size`](fn@size).
    pub sizes: Vec<i64>,
    /// Index of each row in the first sample, from which this one was restricted; ascending.
    pub ids: Vec<u32>,
    /// Channels per row.
    pub channels: usize,
    /// Features that were tested between the first sample and this one.
    pub tested: Vec<usize>,
    words: usize,
    bits: Vec<u64>,
    /// Kind of each column, if the task distinguishes any. Only columns of the same kind may
    /// replace each other.
    kinds: Vec<u32>,
}

impl Sample {
    /// Merges equal rows and reduces the columns; O(rows · columns).
    ///
    /// `statistics` holds `channels` integers per row of `features`.
    pub fn new(features: &BinaryMatrix, statistics: &[i64], channels: usize) -> Self {
        Sample::with_kinds(features, statistics, channels, &[], &[])
    }

    /// As [`Sample::new`], but only features of the same kind may replace each other; without kinds
    /// all may. `events` says for every row whether its event was observed, and is empty if there
    /// are none.
    pub fn with_kinds(
        features: &BinaryMatrix,
        statistics: &[i64],
        channels: usize,
        kinds: &[u32],
        events: &[bool],
    ) -> Self {
        let n = features.n_rows();
        assert_eq!(statistics.len(), n * channels, "one record of statistics per row");
        let mut order: Vec<u32> = (0..n as u32).collect();
        sort_rows(features, &mut order, 0);
        let (mut distinct, mut sums): (Vec<u32>, Vec<i64>) = (Vec::new(), Vec::new());
        let mut sizes: Vec<i64> = Vec::new();
        for &r in &order {
            let r = r as usize;
            let record = &statistics[r * channels..(r + 1) * channels];
            let one = size(1, events.get(r).is_some_and(|&event| event).into());
            match distinct.last() {
                Some(&last) if features.row(last as usize) == features.row(r) => {
                    let at = sums.len() - channels;
                    add(&mut sums[at..], record);
                    *sizes.last_mut().expect("not empty") += one;
                }
                _ => {
                    distinct.push(r as u32);
                    sums.extend_from_slice(record);
                    sizes.push(one);
                }
            }
        }
        let (columns, words, bits) = useful_columns(features, &distinct, kinds);
        let ids = (0..distinct.len() as u32).collect();
        let kinds = of_columns(kinds, &columns);
        let (total, tested) = (total(&sums, channels), Vec::new());
        Sample { columns, sums, total, sizes, ids, channels, tested, words, bits, kinds }
    }

    /// The rows in which column `c` has the given value, with redundant columns removed again.
    pub fn restrict(&self, c: usize, value: bool) -> Sample {
        let rows: Vec<u32> =
            (0..self.n_rows() as u32).filter(|&r| self.get(r as usize, c) == value).collect();
        let tested = self.tested.iter().copied().chain([self.columns[c].feature]).collect();
        self.of_rows(&rows, tested)
    }

    /// The rows at these positions, which are ascending. `tested` lists the features tested above
    /// them.
    pub fn of_rows(&self, rows: &[u32], tested: Vec<usize>) -> Sample {
        let bits = rows.iter().flat_map(|&r| self.row(r as usize)).copied().collect();
        let (n_rows, n_features) = (rows.len(), self.n_columns());
        let matrix = BinaryMatrix { n_rows, n_features, words: self.words, bits };
        let all: Vec<u32> = (0..n_rows as u32).collect();
        let (columns, words, bits) = useful_columns(&matrix, &all, &self.kinds);
        let kinds = of_columns(&self.kinds, &columns);
        let sums: Vec<i64> =
            rows.iter().flat_map(|&r| self.statistics(r as usize)).copied().collect();
        Sample {
            columns: columns
                .iter()
                .map(|inner| {
                    let outer = self.columns[inner.feature];
                    Column { feature: outer.feature, flipped: outer.flipped != inner.flipped }
                })
                .collect(),
            total: total(&sums, self.channels),
            sums,
            sizes: rows.iter().map(|&r| self.sizes[r as usize]).collect(),
            ids: rows.iter().map(|&r| self.ids[r as usize]).collect(),
            channels: self.channels,
            tested,
            words,
            bits,
            kinds,
        }
    }

    /// The same rows with one more statistic.
    pub fn with_channel(&self, value: impl Fn(&[i64]) -> i64) -> Sample {
        let records = self.sums.chunks_exact(self.channels);
        let sums: Vec<i64> = records.flat_map(|r| r.iter().copied().chain([value(r)])).collect();
        let channels = self.channels + 1;
        Sample { total: total(&sums, channels), sums, channels, ..self.clone() }
    }

    /// The same rows with other statistics: `of_id` returns those of a row of the first sample.
    pub fn with_statistics<'a>(
        &self,
        channels: usize,
        of_id: impl Fn(usize) -> &'a [i64],
    ) -> Sample {
        let sums: Vec<i64> = self.ids.iter().flat_map(|&id| of_id(id as usize)).copied().collect();
        Sample { total: total(&sums, channels), sums, channels, ..self.clone() }
    }

    /// Rows and events of row `r`; see [`size`](fn@size).
    #[inline]
    pub fn size(&self, r: usize) -> i64 {
        self.sizes[r]
    }

    /// Rows and events of all rows.
    pub fn total_size(&self) -> i64 {
        self.sizes.iter().sum()
    }

    /// Identifies the rows among those of the first sample.
    pub fn key(&self) -> u128 {
        self.ids.iter().fold(0, |sum: u128, &r| sum.wrapping_add(random_number(u64::from(r))))
    }

    /// Number of distinct rows.
    pub fn n_rows(&self) -> usize {
        self.sizes.len()
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// Words per packed row.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Packed columns of row `r`.
    #[inline]
    pub fn row(&self, r: usize) -> &[u64] {
        &self.bits[r * self.words..(r + 1) * self.words]
    }

    /// Value of column `c` in row `r`.
    #[inline]
    pub fn get(&self, r: usize, c: usize) -> bool {
        self.bits[r * self.words + c / 64] >> (c % 64) & 1 == 1
    }

    /// Column of a feature, if it has one.
    pub fn column_of(&self, feature: usize) -> Option<usize> {
        self.columns.binary_search_by_key(&feature, |column| column.feature).ok()
    }

    /// The split at a node of a tree for these rows: the column, and the nodes of the rows where it
    /// is false and where it is true. `None` if the feature is the same in all rows.
    pub fn split_of(&self, tree: &Tree, node: usize) -> Option<(usize, [usize; 2])> {
        let c = self.column_of(tree.feature[node] as usize)?;
        let (with, without) = (tree.left[node] as usize, tree.right[node] as usize);
        Some((c, self.columns[c].turned([without, with])))
    }

    /// Columns that are true in row `r`.
    #[inline]
    pub fn true_columns(&self, r: usize) -> impl Iterator<Item = usize> + '_ {
        ones(self.row(r))
    }

    /// Statistics of row `r`.
    #[inline]
    pub fn statistics(&self, r: usize) -> &[i64] {
        &self.sums[r * self.channels..(r + 1) * self.channels]
    }
}

/// Sorts rows that are equal in the words before `word` by their remaining bits; O(rows · words).
fn sort_rows(features: &BinaryMatrix, rows: &mut [u32], word: usize) {
    let rest = |row: u32| &features.row(row as usize)[word..];
    if rows.len() <= FEW {
        return rows.sort_unstable_by(|&a, &b| rest(a).cmp(rest(b)));
    }
    sort_by_keys(rows, |row| rest(row)[0]);
    if word + 1 < features.words {
        for run in rows.chunk_by_mut(|&a, &b| rest(a)[0] == rest(b)[0]) {
            sort_rows(features, run, word + 1);
        }
    }
}

/// Sums of each channel.
fn total(sums: &[i64], channels: usize) -> Vec<i64> {
    let mut total = vec![0; channels];
    for record in sums.chunks_exact(channels.max(1)) {
        total.iter_mut().zip(record).for_each(|(total, v)| *total += v);
    }
    total
}

/// Kinds of the given columns.
fn of_columns(kinds: &[u32], columns: &[Column]) -> Vec<u32> {
    if kinds.is_empty() { Vec::new() } else { columns.iter().map(|c| kinds[c.feature]).collect() }
}

/// Drops constant, duplicate and complementary features (the first of each kind stays) and
/// orients the rest so that each is true for at most half of the rows. Returns them with the
/// words per row and the rows' bits.
fn useful_columns(
    features: &BinaryMatrix,
    rows: &[u32],
    kinds: &[u32],
) -> (Vec<Column>, usize, Vec<u64>) {
    let n = rows.len();
    let words = n_words(n);
    let f_count = features.n_features();
    let mut bitsets = Vec::new();
    column_bitsets(n, f_count, |i| features.row(rows[i] as usize), &mut bitsets);
    let mut seen: FxHashSet<(u32, &[u64])> = FxHashSet::default();
    let mut columns = Vec::new();
    let mut chosen: Vec<&[u64]> = Vec::new();
    for (f, bitset) in bitsets.chunks_exact_mut(words).enumerate() {
        let ones: usize = bitset.iter().map(|w| w.count_ones() as usize).sum();
        if ones == 0 || ones == n {
            continue;
        }
        // A column and its complement have one canonical form. If both are true in half of the
        // rows, it is the one that is false in the first row.
        let flipped = 2 * ones > n || (2 * ones == n && bitset[0] & 1 == 1);
        if flipped {
            complement(bitset, n);
        }
        let bitset: &[u64] = bitset;
        if seen.insert((kinds.get(f).copied().unwrap_or(0), bitset)) {
            columns.push(Column { feature: f, flipped });
            chosen.push(bitset);
        }
    }
    let mut bits = Vec::new();
    column_bitsets(columns.len(), n, |c| chosen[c], &mut bits);
    let words = n_words(columns.len());
    (columns, words, bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_merge_and_idle_columns_go() {
        // Feature 1 is the complement of feature 0, 2 repeats 0, 3 is constant, and 4 is mostly
        // true.
        let rows = [[1u8, 0, 1, 1, 1], [0, 1, 0, 1, 1], [0, 1, 0, 1, 1], [0, 1, 0, 1, 0]];
        let matrix = BinaryMatrix::from_bytes(4, 5, &rows.concat()).unwrap();
        let sample = Sample::new(&matrix, &[1, 10, 100, 1000], 1);
        assert_eq!(
            sample.columns,
            [Column { feature: 0, flipped: false }, Column { feature: 4, flipped: true }]
        );
        assert_eq!(sample.n_rows(), 3);
        assert_eq!(sample.total, [1111]);
        assert_eq!(sample.total_size(), 4);
        let merged = (0..3).find(|&r| sample.size(r) == 2).unwrap();
        assert_eq!(sample.statistics(merged), [110]);
    }

    #[test]
    fn rows_are_sorted_by_their_bits() {
        let (n, n_features) = (3000, 200);
        let byte = |r: usize, f: usize| u8::from((r % 700 * (f / 40 + 1) + f * f) % 9 < 4);
        let bytes: Vec<u8> =
            (0..n).flat_map(|r| (0..n_features).map(move |f| byte(r, f))).collect();
        let matrix = BinaryMatrix::from_bytes(n, n_features, &bytes).unwrap();
        let mut rows: Vec<u32> = (0..n as u32).collect();
        sort_rows(&matrix, &mut rows, 0);
        assert!(rows.windows(2).all(|w| matrix.row(w[0] as usize) <= matrix.row(w[1] as usize)));
        rows.sort_unstable();
        assert!(rows.into_iter().eq(0..n as u32));
    }

    #[test]
    fn the_sample_does_not_depend_on_the_order_of_rows() {
        let bytes: Vec<u8> = (0..70 * 66).map(|i| u8::from((i * i + i / 7) % 3 == 0)).collect();
        let stats: Vec<i64> = (0..70).collect();
        let forward = Sample::new(&BinaryMatrix::from_bytes(70, 66, &bytes).unwrap(), &stats, 1);
        let reversed: Vec<u8> = bytes.chunks(66).rev().flatten().copied().collect();
        let stats: Vec<i64> = (0..70).rev().collect();
        let backward =
            Sample::new(&BinaryMatrix::from_bytes(70, 66, &reversed).unwrap(), &stats, 1);
        assert_eq!(forward.bits, backward.bits);
        assert_eq!(forward.sums, backward.sums);
    }
}
