//! Turns columns of ranks or answers into binary features, and counts the features.

use super::transpose::transposed;
use super::{BinaryMatrix, check_size, column_bitsets, complement, n_words, ones};
use crate::error::Error;
use rustc_hash::FxHashMap;

/// Rows that are encoded together, few enough for their words to stay in the cache.
const ROWS: usize = 4096;

/// With at most this many gaps, those below a rank are counted if a table would not stay in the
/// cache.
const FEW_GAPS: usize = 16;

/// Most ranks of a table that stays in the cache. The number is small in tests, so that their small
/// samples have columns of both kinds.
const SHORT_TABLE: usize = if cfg!(test) { 8 } else { 4096 };

/// Neighbouring features that belong to one column.
pub enum Questions<'a> {
    /// Thresholds: whether the rank of a row is at most the given gap.
    Cuts(&'a [u32], Vec<u32>),
    /// The same for a column with few ranks.
    FewCuts(&'a [u8], Vec<u32>),
    /// Ready answers of the rows, repeated for this number of identical features.
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

/// Number of gaps below each rank of a column.
enum Above {
    /// The gaps, filled up with gaps above all ranks.
    Counted([u32; FEW_GAPS]),
    /// The number for every rank; ranks beyond the end have the last one.
    Listed(Vec<u32>),
}

impl Above {
    /// For gaps in ascending order.
    fn new(gaps: impl ExactSizeIterator<Item = u32> + Clone) -> Self {
        let largest = gaps.clone().last().unwrap_or(0);
        if gaps.len() <= FEW_GAPS && largest as usize >= SHORT_TABLE {
            let mut few = [u32::MAX; FEW_GAPS];
            few.iter_mut().zip(gaps).for_each(|(place, gap)| *place = gap);
            return Above::Counted(few);
        }
        let (n_gaps, mut above) = (gaps.len() as u32, Vec::new());
        (0..n_gaps).zip(gaps).for_each(|(passed, gap)| above.resize(gap as usize + 1, passed));
        above.push(n_gaps);
        Above::Listed(above)
    }
}

/// The answers of one column for every rank, as words of a row.
struct Answered {
    /// First word of the row that contains an answer, and the number of such words.
    first: usize,
    words: usize,
    above: Above,
    /// The words of a rank that is above this number of gaps.
    masks: Vec<u64>,
}

impl Answered {
    /// For features that start at number `begin`.
    fn new(begin: usize, gaps: &[u32]) -> Self {
        let first = begin / 64;
        let words = (begin + gaps.len()).div_ceil(64) - first;
        let place = |k: usize| begin - first * 64 + k;
        let mut held = vec![0u64; words];
        (0..gaps.len()).for_each(|k| held[place(k) / 64] |= 1 << (place(k) % 64));
        let mut order: Vec<usize> = (0..gaps.len()).collect();
        order.sort_by_key(|&k| gaps[k]);
        let mut masks = Vec::with_capacity((gaps.len() + 1) * words);
        masks.extend_from_slice(&held);
        // The higher the rank, the fewer features are true.
        for &k in &order {
            held[place(k) / 64] &= !(1 << (place(k) % 64));
            masks.extend_from_slice(&held);
        }
        Answered { first, words, above: Above::new(order.into_iter().map(|k| gaps[k])), masks }
    }

    /// Sets the answers in rows of `width` words.
    fn set(&self, rows: &mut [u64], width: usize, ranks: impl Iterator<Item = u32>) {
        match &self.above {
            Above::Counted(gaps) => {
                let below = |rank| gaps.iter().map(|&gap| u32::from(gap < rank)).sum();
                self.set_masks(rows, width, ranks.map(below));
            }
            Above::Listed(above) => {
                let last = above.len() - 1;
                let listed = ranks.map(|rank| above[last.min(rank as usize)]);
                self.set_masks(rows, width, listed);
            }
        }
    }

    /// As `set`, for the numbers of gaps below the rank of every row.
    fn set_masks(&self, rows: &mut [u64], width: usize, above: impl Iterator<Item = u32>) {
        for (row, above) in rows.chunks_exact_mut(width).zip(above) {
            let mask = &self.masks[above as usize * self.words..][..self.words];
            row[self.first..].iter_mut().zip(mask).for_each(|(word, mask)| *word |= mask);
        }
    }
}

impl BinaryMatrix {
    /// Bytes that [`encode`](Self::encode) takes: the features, and those of every rank.
    pub fn bytes_to_encode(n_rows: usize, questions: &[Questions]) -> usize {
        let of_ranks = |own: &Questions| match own {
            Questions::Answers(..) => 0,
            _ => BinaryMatrix::bytes(own.len() + 1, own.len() + 64),
        };
        let n_features = questions.iter().map(Questions::len).sum();
        let of_ranks = questions.iter().map(of_ranks).fold(0, usize::saturating_add);
        BinaryMatrix::bytes(n_rows, n_features).saturating_add(of_ranks)
    }

    /// The features of `n_rows` rows, in the order of the questions.
    pub fn encode(n_rows: usize, questions: &[Questions]) -> Result<Self, Error> {
        let n_features: usize = questions.iter().map(Questions::len).sum();
        check_size(n_rows, n_features)?;
        let words = n_words(n_features);
        let mut bits = vec![0u64; n_rows * words];
        let mut begin = 0;
        let (mut cuts, mut few_cuts, mut flags) = (Vec::new(), Vec::new(), Vec::new());
        for own in questions {
            match own {
                Questions::Cuts(ranks, gaps) => cuts.push((*ranks, Answered::new(begin, gaps))),
                Questions::FewCuts(ranks, gaps) => {
                    few_cuts.push((*ranks, Answered::new(begin, gaps)));
                }
                Questions::Answers(answers, copies) => {
                    flags.extend((begin..begin + copies).map(|feature| (feature, *answers)));
                }
            }
            begin += own.len();
        }
        for (block, rows) in bits.chunks_mut(ROWS * words).enumerate() {
            let at = block * ROWS..n_rows.min((block + 1) * ROWS);
            for (ranks, answered) in &cuts {
                answered.set(rows, words, ranks[at.clone()].iter().copied());
            }
            for (ranks, answered) in &few_cuts {
                answered.set(rows, words, ranks[at.clone()].iter().map(|&rank| rank.into()));
            }
        }
        for of_word in flags.chunk_by(|one, next| one.0 / 64 == next.0 / 64) {
            set_flags(&mut bits, words, of_word);
        }
        Ok(BinaryMatrix { n_rows, n_features, words, bits })
    }

    /// Number of rows, of those in `among`, in which each feature is true.
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

    /// For every feature, the first feature that divides the rows in the same way: an equal one or
    /// its complement.
    pub fn first_alike(&self) -> Vec<usize> {
        let words = n_words(self.n_rows);
        let mut columns = Vec::new();
        column_bitsets(self.n_rows, self.n_features, |r| self.row(r), &mut columns);
        let mut first: FxHashMap<&[u64], usize> = FxHashMap::default();
        let columns = columns.chunks_exact_mut(words).enumerate();
        let alike = columns.map(|(feature, column)| {
            if column[0] & 1 == 1 {
                complement(column, self.n_rows);
            }
            *first.entry(column).or_insert(feature)
        });
        alike.collect()
    }

    /// One feature of all rows.
    pub fn column(&self, feature: usize) -> Vec<bool> {
        (0..self.n_rows).map(|r| self.get(r, feature)).collect()
    }

    /// All features as bytes, row by row.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.n_rows * self.n_features];
        for (r, row) in bytes.chunks_exact_mut(self.n_features.max(1)).enumerate() {
            ones(self.row(r)).for_each(|f| row[f] = 1);
        }
        bytes
    }
}

/// Sets features whose answers are given and that share a word of a row. Each column is packed 64
/// rows at a time.
fn set_flags(bits: &mut [u64], width: usize, flags: &[(usize, &[bool])]) {
    let word = flags[0].0 / 64;
    for (block, rows) in bits.chunks_mut(64 * width).enumerate() {
        let at = 64 * block..64 * block + rows.len() / width;
        let mut columns = [0; 64];
        for &(feature, answers) in flags {
            columns[feature % 64] = bits_of(&answers[at.clone()]);
        }
        let answered = transposed(columns.into_iter());
        rows.chunks_exact_mut(width).zip(answered).for_each(|(row, own)| row[word] |= own);
    }
}

/// Packs at most 64 answers; the first is the lowest bit.
fn bits_of(answers: &[bool]) -> u64 {
    // The multiplication moves the lowest bit of every byte into the highest byte, in order.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let pack =
        |bytes: [bool; 8]| u64::from_le_bytes(bytes.map(u8::from)).wrapping_mul(GATHER) >> 56;
    let (eights, rest) = answers.as_chunks::<8>();
    let mut last = [false; 8];
    last[..rest.len()].copy_from_slice(rest);
    let bytes = eights.iter().copied().chain([last]).map(pack).enumerate().take(8);
    bytes.fold(0, |bits, (k, byte)| bits | byte << (8 * k))
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
            let others: Vec<bool> = (0..n).map(|i| i * i % 7 < 3).collect();
            let gaps: Vec<u32> = (0..70).map(|k| k * 5 % 13).collect();
            let n = n as usize;
            let questions = [
                Questions::Cuts(&ranks, vec![5, 0, 12]),
                Questions::Answers(&answers, 2),
                Questions::FewCuts(&few, gaps.clone()),
                Questions::Answers(&others, 60),
                Questions::Cuts(&ranks, gaps.clone()),
            ];
            let found = BinaryMatrix::encode(n, &questions).unwrap();
            let row = |i: usize| {
                let all = gaps.iter().map(|&gap| ranks[i] <= gap);
                let first = [5, 0, 12].map(|gap| ranks[i] <= gap);
                let many: Vec<bool> = all.collect();
                [first.as_slice(), &[answers[i]; 2], &many, &[others[i]; 60], &many].concat()
            };
            let expected: Vec<u8> = (0..n).flat_map(row).map(u8::from).collect();
            let width = 65 + 2 * gaps.len();
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
        assert!(empty.first_alike().is_empty());
    }

    #[test]
    fn features_are_alike_if_equal_or_complements() {
        for n in [1, 63, 64, 65, 200] {
            let holds = |f: usize, i: usize| match f {
                0 => i.is_multiple_of(3),
                1 => i.is_multiple_of(2),
                2 => !i.is_multiple_of(3),
                3 => true,
                4 => i.is_multiple_of(2),
                5 => false,
                _ => i.is_multiple_of(3) != (i == n - 1),
            };
            let bytes: Vec<u8> = (0..7 * n).map(|k| u8::from(holds(k % 7, k / 7))).collect();
            let found = BinaryMatrix::from_bytes(n, 7, &bytes).unwrap().first_alike();
            let alike = |f: usize, g: usize| {
                let same = (0..n).filter(|&i| holds(f, i) == holds(g, i)).count();
                same == 0 || same == n
            };
            for (f, &first) in found.iter().enumerate() {
                assert_eq!(first, (0..=f).find(|&g| alike(f, g)).unwrap());
            }
        }
    }
}
