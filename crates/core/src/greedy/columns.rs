//! Columns of ordinal codes, kept so that a node reads its rows in the order of the codes.

use std::ops::Range;

/// Columns with at most this many levels are sorted at every node by counting; few in the
/// tests, so that their small samples have columns of both kinds.
const NARROW: usize = if cfg!(test) { 4 } else { 256 };

/// A row and its code in some column.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub code: u32,
    pub row: u32,
}

enum Column {
    /// Few levels: one byte per row, 0..levels.
    Narrow { codes: Vec<u8>, levels: usize },
    /// Many levels: entries sorted once by (code, row) and partitioned as the tree grows, so
    /// that each node owns the same range in every wide column.
    Wide(Vec<Entry>),
}

/// All columns of the training rows.
pub(super) struct Columns {
    columns: Vec<Column>,
    /// Rows, partitioned like the wide columns, ascending within each node.
    rows: Vec<u32>,
    goes_left: Vec<bool>,
    scratch: Vec<Entry>,
    scratch_rows: Vec<u32>,
}

impl Columns {
    /// `code(row, column)` is the rank of the row's value, without gaps: 0, 1, 2, …
    pub fn new(n_rows: usize, n_columns: usize, code: impl Fn(usize, usize) -> u32) -> Self {
        let column = |c: usize| {
            let levels = (0..n_rows).map(|r| code(r, c) as usize + 1).max().unwrap_or(0);
            if levels <= NARROW {
                Column::Narrow { codes: (0..n_rows).map(|r| code(r, c) as u8).collect(), levels }
            } else {
                let mut entries = vec![Entry::default(); n_rows];
                let all = (0..n_rows as u32).map(|row| Entry { code: code(row as usize, c), row });
                sort_by_counting(all, levels, &mut vec![0; levels + 1], &mut entries);
                Column::Wide(entries)
            }
        };
        Columns {
            columns: (0..n_columns).map(column).collect(),
            rows: (0..n_rows as u32).collect(),
            goes_left: vec![false; n_rows],
            scratch: vec![Entry::default(); n_rows],
            scratch_rows: vec![0; n_rows],
        }
    }

    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Rows of a node, ascending.
    pub fn rows(&self, node: Range<usize>) -> &[u32] {
        &self.rows[node]
    }

    /// Rows of a node in the order of (code, row) in one column.
    pub fn ordered(&mut self, column: usize, node: Range<usize>) -> &[Entry] {
        match &self.columns[column] {
            Column::Wide(entries) => &entries[node],
            Column::Narrow { codes, levels } => {
                let rows = &self.rows[node];
                let entries =
                    rows.iter().map(|&row| Entry { code: codes[row as usize].into(), row });
                let out = &mut self.scratch[..rows.len()];
                sort_by_counting(entries, *levels, &mut [0; NARROW + 1], out);
                out
            }
        }
    }

    /// Puts the rows of a node with code <= `last` before the others, keeping the order within
    /// the two sides; returns their number.
    pub fn split(&mut self, column: usize, last: u32, node: Range<usize>) -> usize {
        match &self.columns[column] {
            Column::Wide(entries) => {
                for entry in &entries[node.clone()] {
                    self.goes_left[entry.row as usize] = entry.code <= last;
                }
            }
            Column::Narrow { codes, .. } => {
                for &row in &self.rows[node.clone()] {
                    self.goes_left[row as usize] = u32::from(codes[row as usize]) <= last;
                }
            }
        }
        let side = &self.goes_left;
        for column in &mut self.columns {
            if let Column::Wide(entries) = column {
                partition(&mut entries[node.clone()], &mut self.scratch, |e| side[e.row as usize]);
            }
        }
        partition(&mut self.rows[node], &mut self.scratch_rows, |&row| side[row as usize])
    }
}

/// Stable; `starts` is scratch of at least `levels + 1` zeros.
fn sort_by_counting(
    entries: impl Iterator<Item = Entry> + Clone,
    levels: usize,
    starts: &mut [u32],
    out: &mut [Entry],
) {
    for entry in entries.clone() {
        starts[entry.code as usize + 1] += 1;
    }
    for level in 0..levels {
        starts[level + 1] += starts[level];
    }
    for entry in entries {
        let at = &mut starts[entry.code as usize];
        out[*at as usize] = entry;
        *at += 1;
    }
}

/// Stable partition; returns the size of the left side.
fn partition<T: Copy>(items: &mut [T], scratch: &mut [T], left: impl Fn(&T) -> bool) -> usize {
    let (mut kept, mut moved) = (0, 0);
    for i in 0..items.len() {
        // Written to both sides, advanced on one: no branch to mispredict.
        let (item, is_left) = (items[i], left(&items[i]));
        items[kept] = item;
        scratch[moved] = item;
        kept += usize::from(is_left);
        moved += usize::from(!is_left);
    }
    items[kept..].copy_from_slice(&scratch[..moved]);
    kept
}

/// Dense ranks of finite values and the distinct values, ascending; O(n log n).
pub fn dense_ranks(values: &[f64]) -> (Vec<u32>, Vec<f64>) {
    let mut sorted: Vec<(f64, u32)> = values.iter().copied().zip(0..).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = vec![0; values.len()];
    let mut distinct: Vec<f64> = Vec::new();
    for (value, row) in sorted {
        // Compared as numbers: −0 and 0, apart in the order of bits, are equal.
        if distinct.last() != Some(&value) {
            distinct.push(value);
        }
        ranks[row as usize] = distinct.len() as u32 - 1;
    }
    (ranks, distinct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_dense_and_zeros_equal() {
        let (ranks, distinct) = dense_ranks(&[2.5, -0.0, 7.0, 0.0, 2.5]);
        assert_eq!(ranks, [1, 0, 2, 0, 1]);
        assert_eq!(distinct, [0.0, 2.5, 7.0]);
    }

    /// Both kinds of column give the rows of every node in the order of (code, row).
    #[test]
    fn splits_keep_every_column_in_order() {
        let n = 700;
        let code = |r: usize, c: usize| match c {
            0 => (r as u32 * 331) % 700,
            _ => (r as u32 * 37) % 4,
        };
        let mut columns = Columns::new(n, 2, code);
        let left = columns.split(1, 1, 0..n);
        assert_eq!(left, (0..n).filter(|&r| code(r, 1) <= 1).count());
        let inner = columns.split(0, 349, left..n);
        for (node, inside) in [
            (0..left, (|_, b| b <= 1) as fn(u32, u32) -> bool),
            (left..left + inner, |a, b| b > 1 && a <= 349),
            (left + inner..n, |a, b| b > 1 && a > 349),
        ] {
            let rows: Vec<u32> =
                (0..n).filter(|&r| inside(code(r, 0), code(r, 1))).map(|r| r as u32).collect();
            assert_eq!(columns.rows(node.clone()), rows);
            for c in 0..2 {
                let mut expected: Vec<_> = rows.iter().map(|&r| (code(r as usize, c), r)).collect();
                expected.sort_unstable();
                let found: Vec<_> =
                    columns.ordered(c, node.clone()).iter().map(|e| (e.code, e.row)).collect();
                assert_eq!(found, expected);
            }
        }
    }
}
