//! Bounds that carry over from the sides of one question to those of others.
//!
//! If the rows A are among the rows B, the best tree on B costs at least as much as the best tree
//! on A plus the finest partition of the rows of B that are not in A: restricted to A it is a tree
//! on A, and refining never increases a cost (docs/maths/branch.md). Thresholds of one column are
//! nested, and levels of a category are disjoint, so one question bounds many others.

use crate::data::{Sample, column_bitsets, n_words};

/// The sides of all questions of a node.
pub struct Subsets {
    /// Rows in which each column is true, as bitsets `[column][words]`.
    bits: Vec<u64>,
    words: usize,
    /// Mask for the last word.
    last: u64,
    /// Cost of the finest partition of either side, `[column][value]`.
    finest: Vec<[i64; 2]>,
    /// Number of rows on the true side.
    ones: Vec<u32>,
    /// The most that rounding takes from a bound.
    slack: i64,
}

impl Subsets {
    /// The sides of the questions of a node whose distinct rows cost `row_cost(row)` alone; O(rows
    /// · columns).
    pub fn new(sample: &Sample, row_cost: impl Fn(u32) -> i64, slack: i64) -> Self {
        let (n_rows, n) = (sample.n_rows(), sample.n_columns());
        let mut bits = Vec::new();
        column_bitsets(n_rows, n, |r| sample.row(r), &mut bits);
        let costs: Vec<i64> = sample.ids.iter().map(|&id| row_cost(id)).collect();
        let all: i64 = costs.iter().sum();
        let mut yes = vec![0i64; n];
        let mut ones = vec![0u32; n];
        for (r, &cost) in costs.iter().enumerate() {
            for c in sample.true_columns(r) {
                yes[c] += cost;
                ones[c] += 1;
            }
        }
        let last = if n_rows.is_multiple_of(64) { u64::MAX } else { (1 << (n_rows % 64)) - 1 };
        Subsets {
            bits,
            words: n_words(n_rows),
            last,
            finest: yes.into_iter().map(|yes| [all - yes, yes]).collect(),
            ones,
            slack,
        }
    }

    /// Number of rows in which a column is true.
    pub fn ones(&self, column: usize) -> u32 {
        self.ones[column]
    }

    /// Raises the bounds `sides[column][value]`, given that every allowed tree on the rows in which
    /// column `c` is `value` costs at least `lower`; O(rows · columns) bit operations.
    pub fn hand_on(&self, c: usize, value: bool, lower: i64, sides: &mut [[i64; 2]]) {
        let own = lower.saturating_sub(self.finest[c][usize::from(value)] + self.slack);
        for (other, bounds) in sides.iter_mut().enumerate() {
            for side in [false, true] {
                let bound = own.saturating_add(self.finest[other][usize::from(side)]);
                let place = &mut bounds[usize::from(side)];
                if bound > *place && other != c && self.among(c, value, other, side) {
                    *place = bound;
                }
            }
        }
    }

    /// Whether the rows where `c` is `value` are among those where `other` is `side`.
    fn among(&self, c: usize, value: bool, other: usize, side: bool) -> bool {
        let column = |c: usize| &self.bits[c * self.words..][..self.words];
        let (flip_a, flip_b) = (if value { 0 } else { u64::MAX }, if side { u64::MAX } else { 0 });
        let outside = |(a, b): (&u64, &u64)| (a ^ flip_a) & (b ^ flip_b);
        let (a, b) = (column(c), column(other));
        let end = self.words - 1;
        outside((&a[end], &b[end])) & self.last == 0
            && a[..end].iter().zip(&b[..end]).all(|words| outside(words) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;

    #[test]
    fn nested_sides_hand_on_and_others_do_not() {
        // Columns r < 20, r < 30 and r % 2 over 70 rows, which further columns make distinct.
        let bytes: Vec<u8> = (0..70u8)
            .flat_map(|r| {
                let own = (0..7).map(move |b| r >> b & 1);
                [u8::from(r < 20), u8::from(r < 30), r % 3 / 2].into_iter().chain(own)
            })
            .collect();
        let matrix = BinaryMatrix::from_bytes(70, 10, &bytes).unwrap();
        let sample = Sample::new(&matrix, &[1; 70], 1);
        let column = |feature| sample.column_of(feature).unwrap();
        let subsets = Subsets::new(&sample, |_| 1, 2);
        assert_eq!(subsets.ones(column(0)), 20);
        let mut sides = vec![[0i64; 2]; sample.n_columns()];
        subsets.hand_on(column(0), true, 120, &mut sides);
        // 100 above the finest partition of its own rows, minus the slack, plus 30 rows.
        assert_eq!(sides[column(1)], [0, 128]);
        assert_eq!(sides[column(2)], [0, 0]);
        subsets.hand_on(column(1), false, 140, &mut sides);
        assert_eq!(sides[column(0)], [148, 0]);
    }
}
