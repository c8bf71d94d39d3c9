//! Positions of the values of itemsets in the tables.
//!
//! An itemset of size m is a sorted list of columns. Its first m − 1 columns are its prefix and
//! determine a row of the tables of level m; the last column is the lane within the row. Rows only
//! contain the lanes beyond the prefix, plus padding for a vector that exceeds the end.

/// Depth of the deepest tree of one lattice.
pub const MAX_DEPTH: usize = 5;

/// Length of the longest prefix: the columns of a leaf of the deepest tree, without the lane.
pub const PREFIX: usize = MAX_DEPTH - 1;

/// Number of sign patterns of the longest prefix; also the most leaves of a child of the root.
pub const PATTERNS: usize = 1 << PREFIX;

/// Lanes of padding behind every row, which no vector exceeds.
pub const PAD: usize = 8;

/// Row positions of the levels below the deepest.
#[derive(Clone, Debug, Default)]
pub struct Geometry {
    /// Number of columns.
    pub n: usize,
    totals: [usize; PREFIX],
    /// Start of the rows of level 3 for every first column, and of level 4 for every pair.
    triples: Vec<usize>,
    quadruples: Vec<usize>,
}

/// A row of a level: `at + lane` is the position of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// Position of the first lane of the row.
    pub start: usize,
    /// First lane.
    pub first: usize,
    /// Number of stored lanes, including padding.
    pub len: usize,
}

impl Geometry {
    /// Lays out the levels up to `levels` (at most [`PREFIX`]) for `n` columns; O(n²).
    pub fn new(n: usize, levels: usize) -> Self {
        let totals = std::array::from_fn(|m| Geometry::positions(n, m + 1));
        let mut geometry = Geometry { n, totals, ..Geometry::default() };
        let mut start = 0;
        for f in 0..n {
            geometry.triples.push(start);
            start += geometry.run(f + 1, n);
        }
        start = 0;
        let pairs = if levels == PREFIX { n } else { 0 };
        for g in (0..pairs).flat_map(|f| f + 1..n) {
            geometry.quadruples.push(start);
            start += geometry.run(g + 1, n);
        }
        geometry
    }

    /// Number of positions of level `m`, for all rows together.
    #[inline(always)]
    pub fn total(&self, m: usize) -> usize {
        self.totals[m - 1]
    }

    /// Number of positions of the rows whose prefixes differ only in the last column, for columns
    /// `first..end`.
    #[inline(always)]
    fn run(&self, first: usize, end: usize) -> usize {
        let rows = end - first;
        rows * (self.n + PAD - first) - rows * (rows + 1) / 2
    }

    /// Number of positions of level `m` for `n` columns, without a layout; `usize::MAX` if there
    /// are more, which fit into no memory.
    pub fn positions(n: usize, m: usize) -> usize {
        // For 2³² columns there are fewer than 2¹²⁸ quadruples before the division by 24.
        let n = n as u128;
        let below = |k: u128| n.saturating_sub(k);
        let pairs = n * below(1) / 2;
        let triples = pairs * below(2) / 3;
        let positions = match m {
            1 => n + PAD as u128,
            2 => pairs + n * PAD as u128,
            3 => triples + pairs * PAD as u128,
            _ => triples * below(3) / 4 + triples * PAD as u128,
        };
        usize::try_from(positions).unwrap_or(usize::MAX)
    }

    /// Index of the pair (f, g), f < g, in row order.
    #[inline(always)]
    fn pair(&self, f: usize, g: usize) -> usize {
        f * self.n - f * (f + 1) / 2 + (g - f - 1)
    }

    /// Position of the first row of level `m` ≥ 2 whose prefix begins with `f`.
    pub fn begin(&self, m: usize, f: usize) -> usize {
        match m {
            2 => self.run(0, f),
            3 => self.triples[f],
            _ if f + 1 < self.n => self.quadruples[self.pair(f, f + 1)],
            _ => self.total(m),
        }
    }

    /// The row of the itemsets `prefix ∪ {lane}`.
    #[inline(always)]
    pub fn row(&self, prefix: &[usize]) -> Row {
        match *prefix {
            [] => Row { start: 0, first: 0, len: self.n + PAD },
            [ref shorter @ .., last] => {
                let first = shorter.last().map_or(0, |&column| column + 1);
                self.row_beside(self.base(shorter), first, last)
            }
        }
    }

    /// Whether level 4 is laid out.
    pub fn has_quadruples(&self) -> bool {
        !self.quadruples.is_empty()
    }

    /// Position of the first row whose prefix consists of these columns and one more.
    #[inline(always)]
    pub fn base(&self, prefix: &[usize]) -> usize {
        match *prefix {
            [] => 0,
            [f] => self.triples[f],
            [f, g] => self.quadruples[self.pair(f, g)],
            _ => unreachable!("no level has a longer prefix"),
        }
    }

    /// The row for a base, and `column` as the last one of the prefix; the columns beyond the base
    /// begin with `first`.
    #[inline(always)]
    pub fn row_beside(&self, base: usize, first: usize, column: usize) -> Row {
        let start = base + self.run(first, column);
        Row { start, first: column + 1, len: self.n - column - 1 + PAD }
    }
}

/// Best split of every itemset of a level below the root: `[row start · slots · patterns + (slot ·
/// patterns + pattern) · row length + lane]`.
#[derive(Clone, Debug, Default)]
pub struct Best<R>(pub Vec<R>);

impl<R> Best<R> {
    /// Whether the table of level `m` contains all entries of a row, with all lanes of `n` columns
    /// and their padding.
    #[inline(always)]
    pub fn has_row(&self, row: Row, slots: usize, m: usize, n: usize) -> bool {
        has_row(self.0.len(), row, slots, m, n)
    }
}

/// Whether a table of level `m` with `len` entries contains those of a row, with all lanes of `n`
/// columns and their padding.
#[inline(always)]
pub fn has_row(len: usize, row: Row, slots: usize, m: usize, n: usize) -> bool {
    n + PAD <= row.first + row.len && ((row.start + row.len) * slots) << m <= len
}

/// Position of (slot, pattern, lane) of an itemset row in a [`Best`] of level `m`.
#[inline(always)]
pub fn best_at(
    row: Row,
    slots: usize,
    m: usize,
    slot: usize,
    pattern: usize,
    lane: usize,
) -> usize {
    ((row.start * slots) << m) + ((slot << m) + pattern) * row.len + (lane - row.first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_beyond_all_memory_are_not_few() {
        assert_eq!(Geometry::positions(60_000, 4), 540_233_987_250_145_000);
        for n in [300_000, u32::MAX as usize] {
            assert_eq!(Geometry::positions(n, 4), usize::MAX, "{n}");
        }
        assert!(Geometry::positions(u32::MAX as usize, 2) < usize::MAX);
    }

    #[test]
    fn rows_are_disjoint_and_cover_the_level() {
        let geometry = Geometry::new(7, 4);
        let mut taken = vec![false; geometry.total(3)];
        for f in 0..7 {
            for g in f + 1..7 {
                let row = geometry.row(&[f, g]);
                for h in g + 1..7 + PAD {
                    let at = row.start + (h - row.first);
                    assert!(!std::mem::replace(&mut taken[at], true));
                }
            }
        }
        assert!(taken.into_iter().all(|t| t));
        let mut taken = vec![false; geometry.total(4)];
        for f in 0..7 {
            for g in f + 1..7 {
                for k in g + 1..7 {
                    let row = geometry.row(&[f, g, k]);
                    for place in &mut taken[row.start..row.start + row.len] {
                        assert!(!std::mem::replace(place, true));
                    }
                }
            }
        }
        assert!(taken.into_iter().all(|t| t));
        for m in 1..=4 {
            assert_eq!(geometry.total(m), Geometry::positions(7, m));
        }
        for f in 0..7 {
            assert_eq!(geometry.begin(2, f), geometry.row(&[f]).start);
            let end = |m: usize| if f < 6 { geometry.begin(m, f + 1) } else { geometry.total(m) };
            for (g, k) in (f + 1..7).flat_map(|g| (g + 1..7).map(move |k| (g, k))) {
                for (m, row) in [(3, geometry.row(&[f, g])), (4, geometry.row(&[f, g, k]))] {
                    assert!(geometry.begin(m, f) <= row.start && row.start + row.len <= end(m));
                }
            }
        }
    }
}
