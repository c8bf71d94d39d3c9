//! Columns of ordinal codes, stored so that a node can read its rows in the order of the codes.

use crate::data::sort_by_keys;
use std::borrow::Cow;
use std::ops::Range;

/// Columns with at most this many levels are sorted by counting at every node. The number is small
/// in tests, so that their small samples have columns of both kinds.
const NARROW: usize = if cfg!(test) { 4 } else { 256 };

/// The ranks of a column's values by row, without gaps: 0, 1, 2, …. A binary feature that sends its
/// rows to the left has rank 0 where it is true.
pub enum Codes<'a> {
    /// Any number of levels.
    Ranks(Cow<'a, [u32]>),
    /// At most 256 levels.
    Few(Cow<'a, [u8]>),
}

impl Codes<'_> {
    /// The codes of these rows, in the order of the rows.
    pub(super) fn of_rows(&self, rows: &[u32]) -> Codes<'static> {
        let rows = rows.iter().map(|&row| row as usize);
        match self {
            Codes::Ranks(codes) => Codes::Ranks(rows.map(|row| codes[row]).collect()),
            Codes::Few(codes) => Codes::Few(rows.map(|row| codes[row]).collect()),
        }
    }
}

/// The codes of a column by row, and the order of a wide column.
pub(super) enum Column<'a> {
    /// Few levels: one byte per row, with values in `0..levels`.
    Narrow { codes: Cow<'a, [u8]>, levels: usize },
    /// Many levels. Rows are sorted once by (code, row) and partitioned as the tree grows, so that
    /// each node owns the same range in every wide column.
    Wide { codes: Cow<'a, [u32]>, levels: usize, order: Vec<u32> },
}

impl<'a> Column<'a> {
    fn new(codes: Codes<'a>) -> Self {
        let codes = match codes {
            Codes::Ranks(codes) => codes,
            Codes::Few(codes) => {
                let levels = codes.iter().max().map_or(0, |&most| usize::from(most) + 1);
                return Column::Narrow { codes, levels };
            }
        };
        let levels = codes.iter().max().map_or(0, |&most| most as usize + 1);
        if levels <= NARROW {
            return Column::Narrow {
                codes: codes.iter().map(|&code| code as u8).collect(),
                levels,
            };
        }
        let mut order: Vec<u32> = (0..codes.len() as u32).collect();
        if levels == codes.len() {
            // Every row has its own rank.
            for (row, &code) in codes.iter().enumerate() {
                order[code as usize] = row as u32;
            }
        } else {
            sort_by_keys(&mut order, |row| codes[row as usize].into());
        }
        Column::Wide { codes, levels, order }
    }

    /// Number of codes.
    pub fn levels(&self) -> usize {
        match self {
            Column::Narrow { levels, .. } | Column::Wide { levels, .. } => *levels,
        }
    }

    /// Code of a row.
    #[inline(always)]
    pub fn code(&self, row: u32) -> u32 {
        match self {
            Column::Narrow { codes, .. } => codes[row as usize].into(),
            Column::Wide { codes, .. } => codes[row as usize],
        }
    }
}

/// All columns of the training rows.
pub(super) struct Columns<'a> {
    columns: Vec<Column<'a>>,
    /// Rows, partitioned in the same way as the wide columns, and ascending within each node.
    rows: Vec<u32>,
    goes_left: Vec<bool>,
    scratch: Vec<u32>,
}

impl<'a> Columns<'a> {
    pub fn new(n_rows: usize, columns: Vec<Codes<'a>>) -> Self {
        Columns {
            columns: columns.into_iter().map(Column::new).collect(),
            rows: (0..n_rows as u32).collect(),
            goes_left: vec![false; n_rows],
            scratch: vec![0; n_rows],
        }
    }

    pub fn len(&self) -> usize {
        self.columns.len()
    }

    pub fn column(&self, column: usize) -> &Column<'a> {
        &self.columns[column]
    }

    /// The node of all rows.
    pub fn all(&self) -> Range<usize> {
        0..self.rows.len()
    }

    /// Rows of a node, ascending.
    pub fn rows(&self, node: Range<usize>) -> &[u32] {
        &self.rows[node]
    }

    /// Rows of a node in the order of (code, row) in one column.
    pub fn ordered<'b>(
        &'b self,
        column: usize,
        node: Range<usize>,
        scratch: &'b mut Vec<u32>,
    ) -> &'b [u32] {
        match &self.columns[column] {
            Column::Wide { order, .. } => &order[node],
            Column::Narrow { codes, levels } => {
                scratch.resize(node.len(), 0);
                sort_by_counting(&self.rows[node], codes, *levels, scratch);
                scratch
            }
        }
    }

    /// Moves the rows of a node with code <= `last` before the others, and keeps the order within
    /// both sides. Returns their number. If neither side will be split again, only the rows are
    /// moved, and not the order of the columns.
    pub fn split(&mut self, column: usize, last: u32, node: Range<usize>, again: bool) -> usize {
        let asked = &self.columns[column];
        for &row in &self.rows[node.clone()] {
            self.goes_left[row as usize] = asked.code(row) <= last;
        }
        let left = partition(&mut self.rows[node.clone()], &mut self.scratch, &self.goes_left);
        if again {
            for column in &mut self.columns {
                if let Column::Wide { order, .. } = column {
                    partition(&mut order[node.clone()], &mut self.scratch, &self.goes_left);
                }
            }
        }
        left
    }
}

/// Rows in the order of their codes; rows with equal codes keep their order.
fn sort_by_counting(rows: &[u32], codes: &[u8], levels: usize, out: &mut [u32]) {
    let mut starts = [0u32; 257];
    for &row in rows {
        starts[codes[row as usize] as usize + 1] += 1;
    }
    for level in 0..levels {
        starts[level + 1] += starts[level];
    }
    for &row in rows {
        let at = &mut starts[codes[row as usize] as usize];
        out[*at as usize] = row;
        *at += 1;
    }
}

/// Stable partition; returns the size of the left side.
fn partition(rows: &mut [u32], scratch: &mut [u32], left: &[bool]) -> usize {
    let (mut kept, mut moved) = (0, 0);
    for i in 0..rows.len() {
        // Written to both sides and advanced on one, so that there is no branch to mispredict.
        let row = rows[i];
        let is_left = left[row as usize];
        rows[kept] = row;
        scratch[moved] = row;
        kept += usize::from(is_left);
        moved += usize::from(!is_left);
    }
    rows[kept..].copy_from_slice(&scratch[..moved]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both kinds of columns return the rows of every node in the order of (code, row).
    #[test]
    fn splits_keep_every_column_in_order() {
        let n = 700;
        let code = |r: usize, c: usize| match c {
            0 => (r as u32 * 331) % 700,
            _ => (r as u32 * 37) % 4,
        };
        let ranks = |c: usize| Codes::Ranks((0..n).map(|r| code(r, c)).collect());
        let mut columns = Columns::new(n, vec![ranks(0), ranks(1)]);
        let left = columns.split(1, 1, 0..n, true);
        assert_eq!(left, (0..n).filter(|&r| code(r, 1) <= 1).count());
        let inner = columns.split(0, 349, left..n, true);
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
                let mut scratch = Vec::new();
                let ordered = columns.ordered(c, node.clone(), &mut scratch);
                let found: Vec<_> =
                    ordered.iter().map(|&row| (columns.column(c).code(row), row)).collect();
                assert_eq!(found, expected);
            }
        }
    }
}
