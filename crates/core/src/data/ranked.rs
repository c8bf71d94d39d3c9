//! Columns as ranks; the questions are the thresholds between ranks.

use super::{BinaryMatrix, Questions, check_size};
use crate::error::Error;

/// Ranks of the values, column after column.
///
/// The questions of a column are `rank ≤ r` for r = 0, 1, … below its largest rank. They are
/// numbered column by column, so a tree over them is a [`Tree`](crate::tree::Tree) over that number
/// of features.
#[derive(Clone, Debug)]
pub struct RankMatrix {
    n_rows: usize,
    ranks: Vec<u32>,
    /// First question of each column, followed by the number of all questions.
    first: Vec<usize>,
}

impl RankMatrix {
    /// Takes `n_columns × n_rows` ranks, column after column.
    ///
    /// # Errors
    ///
    /// If the number of ranks is wrong, or there are more rows or thresholds than a search can
    /// count.
    pub fn new(n_rows: usize, n_columns: usize, ranks: Vec<u32>) -> Result<Self, Error> {
        check_size(n_rows, n_columns)?;
        if ranks.len() != n_rows.saturating_mul(n_columns) {
            return Err(Error::invalid("ranks", "does not have columns × rows entries"));
        }
        let mut first = vec![0usize];
        for c in 0..n_columns {
            let most = ranks[c * n_rows..][..n_rows].iter().copied().max().unwrap_or(0);
            first.push(first[c] + most as usize);
        }
        let n_questions = first[n_columns];
        if i32::try_from(n_questions).is_err() {
            return Err(Error::invalid("X", format!("has {n_questions} thresholds, 2^31 at most")));
        }
        Ok(RankMatrix { n_rows, ranks, first })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of thresholds of all columns.
    pub fn n_questions(&self) -> usize {
        self.first[self.n_columns()]
    }

    /// Ranks of a column.
    pub fn column(&self, c: usize) -> &[u32] {
        &self.ranks[c * self.n_rows..][..self.n_rows]
    }

    /// Number of the question `rank ≤ r` of a column.
    pub fn question(&self, c: usize, r: u32) -> usize {
        self.first[c] + r as usize
    }

    /// Column of a question, and the largest rank for which it is true.
    pub fn place(&self, question: usize) -> (usize, u32) {
        let c = self.first.partition_point(|&first| first <= question) - 1;
        (c, (question - self.first[c]) as u32)
    }

    /// The questions as binary features.
    ///
    /// # Errors
    ///
    /// If they do not fit into memory.
    pub fn written(&self) -> Result<BinaryMatrix, Error> {
        let questions = (0..self.n_columns()).map(|c| {
            let gaps = 0..(self.first[c + 1] - self.first[c]) as u32;
            Questions::Cuts(self.column(c), gaps.collect())
        });
        BinaryMatrix::encode(self.n_rows, &questions.collect::<Vec<_>>())
    }

    /// Whether a question is true in row `row`.
    pub fn holds(&self, row: usize, question: usize) -> bool {
        let (c, r) = self.place(question);
        self.column(c)[row] <= r
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_numbered_column_by_column() {
        // A constant column has no questions.
        let matrix = RankMatrix::new(3, 3, vec![0, 2, 1, 0, 0, 0, 1, 0, 1]).unwrap();
        assert_eq!((matrix.n_questions(), matrix.n_columns(), matrix.n_rows()), (3, 3, 3));
        let places: Vec<_> = (0..3).map(|q| matrix.place(q)).collect();
        assert_eq!(places, [(0, 0), (0, 1), (2, 0)]);
        assert!(places.iter().enumerate().all(|(q, &(c, r))| matrix.question(c, r) == q));
        let rows: Vec<Vec<bool>> =
            (0..3).map(|row| (0..3).map(|q| matrix.holds(row, q)).collect()).collect();
        assert_eq!(rows, [[true, true, false], [false, false, true], [false, true, false]]);
        let written = matrix.written().unwrap();
        assert!((0..9).all(|at| written.get(at / 3, at % 3) == rows[at / 3][at % 3]));
        assert!(RankMatrix::new(2, 1, vec![0]).is_err());
    }
}
