//! Binary features from columns of ranks or answers, and their counts.

use super::transpose::transposed;
use super::{BinaryMatrix, check_size, ones};
use crate::error::Error;

/// Rows that are encoded at once: their words stay in the cache.
const ROWS: usize = 4096;

/// So few gaps are faster counted than searched.
const FEW_GAPS: usize = 32;

/// Neighbouring features that ask about one column.
pub enum Questions<'a> {
    /// Whether the rank of a row is at most so much.
    Cuts(&'a [u32], Vec<u32>),
    /// The same of a column with few ranks.
    FewCuts(&'a [u8], Vec<u32>),
    /// Answers of the rows, for so many features that are the same.
    Answers(&'a [bool], usize),
}

impl Questions<'_> {
    fn len(&self) -> usize {
        match self {
            Questions::Cuts(_, gaps) | Questions::FewCuts(_, gaps) => gaps.len(),
            Questions::Answers(_, copies) => *copies,
        }
    }
}

/// The answers to the questions of one column by its rank, as words of a row.
struct Answered {
    /// The gaps, ascending.
    gaps: Vec<u32>,
    /// First word of the row that has an answer, and how many have.
    first: usize,
    words: usize,
    /// The words for a rank above so many gaps.
    masks: Vec<u64>,
}

impl Answered {
    /// Features from number `begin` on.
    fn new(begin: usize, gaps: &[u32]) -> Self {
        let first = begin / 64;
        let words = (begin + gaps.len()).div_ceil(64) - first;
        let mut sorted = gaps.to_vec();
        sorted.sort_unstable();
        let mut masks = vec![0; (sorted.len() + 1) * words];
        for (above, mask) in masks.chunks_exact_mut(words.max(1)).enumerate() {
            for (feature, gap) in (begin - first * 64..).zip(gaps) {
                let holds = sorted.get(above).is_some_and(|least| gap >= least);
                mask[feature / 64] |= u64::from(holds) << (feature % 64);
            }
        }
        Answered { gaps: sorted, first, words, masks }
    }

    /// Sets the answers in rows of so many words.
    fn set(&self, rows: &mut [u64], width: usize, ranks: impl Iterator<Item = u32>) {
        for (row, rank) in rows.chunks_exact_mut(width).zip(ranks) {
            let above: usize = match self.gaps.len() {
                // Counting them has no branch to predict.
                ..=FEW_GAPS => self.gaps.iter().map(|&gap| usize::from(rank > gap)).sum(),
                _ => self.gaps.partition_point(|&gap| gap < rank),
            };
            let mask = &self.masks[above * self.words..][..self.words];
            row[self.first..].iter_mut().zip(mask).for_each(|(word, mask)| *word |= mask);
        }
    }
}

impl BinaryMatrix {
    /// Features of `n_rows` rows, the questions in order.
    pub fn encode(n_rows: usize, questions: &[Questions]) -> Result<Self, Error> {
        let n_features: usize = questions.iter().map(Questions::len).sum();
        check_size(n_rows, n_features)?;
        let words = n_features.div_ceil(64).max(1);
        let mut bits = vec![0u64; n_rows * words];
        let mut begin = 0;
        let prepared: Vec<(&Questions, Answered)> = questions
            .iter()
            .map(|own| {
                let answered = match own {
                    Questions::Cuts(_, gaps) | Questions::FewCuts(_, gaps) => {
                        Answered::new(begin, gaps)
                    }
                    // An answer is a rank of 0 where it is yes, and else of 1.
                    Questions::Answers(_, copies) => Answered::new(begin, &vec![0; *copies]),
                };
                begin += own.len();
                (own, answered)
            })
            .collect();
        for (block, rows) in bits.chunks_mut(ROWS * words).enumerate() {
            let at = block * ROWS..n_rows.min((block + 1) * ROWS);
            for (own, answered) in &prepared {
                match own {
                    Questions::Cuts(ranks, _) => {
                        answered.set(rows, words, ranks[at.clone()].iter().copied());
                    }
                    Questions::FewCuts(ranks, _) => {
                        answered.set(rows, words, ranks[at.clone()].iter().map(|&r| r.into()));
                    }
                    Questions::Answers(answers, _) => {
                        answered.set(rows, words, answers[at.clone()].iter().map(|&a| (!a).into()));
                    }
                }
            }
        }
        Ok(BinaryMatrix { n_rows, n_features, words, bits })
    }

    /// In how many rows, of those `among`, every feature holds.
    pub fn count_true(&self, among: Option<&[bool]>) -> Vec<i64> {
        let mut counts = vec![0; self.n_features];
        for first in (0..self.n_rows).step_by(64) {
            let rows = first..self.n_rows.min(first + 64);
            let shown = among.map_or(u64::MAX, |among| bits_of(&among[rows.clone()]));
            for (word, counts) in counts.chunks_mut(64).enumerate() {
                let columns = transposed(rows.clone().map(|row| self.row(row)[word]));
                for (count, column) in counts.iter_mut().zip(columns) {
                    *count += i64::from((column & shown).count_ones());
                }
            }
        }
        counts
    }

    /// One feature of all rows.
    pub fn column(&self, feature: usize) -> Vec<bool> {
        (0..self.n_rows).map(|r| self.get(r, feature)).collect()
    }

    /// All features, row-major, a byte each.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.n_rows * self.n_features];
        for (r, row) in bytes.chunks_exact_mut(self.n_features.max(1)).enumerate() {
            ones(self.row(r)).for_each(|f| row[f] = 1);
        }
        bytes
    }
}

/// At most 64 answers, the first lowest.
fn bits_of(answers: &[bool]) -> u64 {
    answers.iter().rev().fold(0, |bits, &answer| bits << 1 | u64::from(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_those_of_the_columns() {
        for n in [0, 1, 63, 64, 65, 5000] {
            let ranks: Vec<u32> = (0..n).map(|i| i * 7 % 13).collect();
            let few: Vec<u8> = ranks.iter().map(|&rank| rank as u8).collect();
            let answers: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
            let gaps: Vec<u32> = (0..70).map(|k| k * 5 % 13).collect();
            let n = n as usize;
            let questions = [
                Questions::Cuts(&ranks, vec![5, 0, 12]),
                Questions::Answers(&answers, 2),
                Questions::FewCuts(&few, gaps.clone()),
                Questions::Cuts(&ranks, gaps.clone()),
            ];
            let found = BinaryMatrix::encode(n, &questions).unwrap();
            let row = |i: usize| {
                let all = gaps.iter().map(|&gap| ranks[i] <= gap);
                let first = [5, 0, 12].map(|gap| ranks[i] <= gap);
                let many: Vec<bool> = all.collect();
                [first.as_slice(), &[answers[i]; 2], &many, &many].concat()
            };
            let expected: Vec<u8> = (0..n).flat_map(row).map(u8::from).collect();
            let width = 5 + 2 * gaps.len();
            assert_eq!(found.to_bytes(), expected);
            assert_eq!(found.bits, BinaryMatrix::from_bytes(n, width, &expected).unwrap().bits);
            let odd: Vec<bool> = (0..n).map(|i| i % 2 == 1).collect();
            for feature in 0..width {
                let column = found.column(feature);
                let holds = |i: usize| expected[i * width + feature] == 1;
                assert!(column.iter().enumerate().all(|(i, &yes)| yes == holds(i)));
                for among in [None, Some(odd.as_slice())] {
                    let count = (0..n).filter(|&i| among.is_none_or(|a| a[i]) && holds(i)).count();
                    assert_eq!(found.count_true(among)[feature], count as i64);
                }
            }
        }
        let empty = BinaryMatrix::encode(3, &[]).unwrap();
        assert!(empty.to_bytes().is_empty() && empty.count_true(None).is_empty());
    }
}
