//! Binary data: packs rows into bits, merges identical rows, removes redundant columns.

mod encode;
mod key;
mod quantiles;
mod ranked;
mod ranks;
mod sample;
mod size;
mod transpose;

pub use encode::Questions;
pub use key::random_number;
pub use quantiles::quantile_gaps;
pub use ranked::RankMatrix;
pub use ranks::{Ranks, sort_by_keys};
pub use sample::{Column, Sample};
pub use size::{Smallest, check_size, events_of, rows_of, size};
pub use transpose::column_bitsets;
use transpose::complement;

use crate::error::Error;

/// Number of words of a bitset with room for this many bits, at least one.
#[inline]
pub fn n_words(bits: usize) -> usize {
    bits.div_ceil(64).max(1)
}

/// Positions of the ones of a bitset, ascending.
#[inline]
pub fn ones(words: &[u64]) -> impl Iterator<Item = usize> + Clone + '_ {
    words.iter().enumerate().flat_map(|(w, &word)| {
        let next = |rest: &u64| Some(rest & (rest - 1)).filter(|&rest| rest != 0);
        let words = std::iter::successors(Some(word).filter(|&word| word != 0), next);
        words.map(move |rest| w * 64 + rest.trailing_zeros() as usize)
    })
}

/// Adds a record to the first of these sums.
#[inline(always)]
pub fn add(sums: &mut [i64], record: &[i64]) {
    sums.iter_mut().zip(record).for_each(|(sum, v)| *sum += v);
}

/// A dense 0/1 matrix, row-major, one bit per entry.
#[derive(Clone, Debug)]
pub struct BinaryMatrix {
    n_rows: usize,
    n_features: usize,
    words: usize,
    bits: Vec<u64>,
}

impl BinaryMatrix {
    /// Packs `n_rows × n_features` bytes, row-major; any nonzero byte is true.
    pub fn from_bytes(n_rows: usize, n_features: usize, bytes: &[u8]) -> Result<Self, Error> {
        check_size(n_rows, n_features)?;
        if bytes.len() != n_rows.saturating_mul(n_features) {
            return Err(Error::invalid(
                "features",
                "the matrix does not have rows × columns bytes",
            ));
        }
        let words = n_words(n_features);
        let mut bits = vec![0u64; n_rows * words];
        if n_features > 0 {
            for (row, packed) in bytes.chunks_exact(n_features).zip(bits.chunks_exact_mut(words)) {
                let (wholes, rest) = row.as_chunks();
                let mut last = [0; 64];
                last[..rest.len()].copy_from_slice(rest);
                for (word, bytes) in packed.iter_mut().zip(wholes.iter().chain([&last])) {
                    *word = nonzero(bytes);
                }
            }
        }
        Ok(BinaryMatrix { n_rows, n_features, words, bits })
    }

    /// Bytes of a matrix of this shape.
    pub fn bytes(n_rows: usize, n_features: usize) -> usize {
        n_rows.saturating_mul(n_words(n_features)).saturating_mul(size_of::<u64>())
    }

    /// Negates the features that are `flipped`.
    pub fn negate(&mut self, flipped: &[bool]) {
        let mut mask = vec![0u64; self.words];
        let features = flipped.iter().enumerate().filter(|&(_, &flipped)| flipped);
        features.for_each(|(f, _)| mask[f / 64] |= 1 << (f % 64));
        for row in self.bits.chunks_exact_mut(self.words) {
            row.iter_mut().zip(&mask).for_each(|(word, mask)| *word ^= mask);
        }
    }

    /// Words per row.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Packed features of all rows.
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// The matrix of these rows.
    pub fn take(&self, rows: &[usize]) -> BinaryMatrix {
        let bits = rows.iter().flat_map(|&r| self.row(r)).copied().collect();
        BinaryMatrix { n_rows: rows.len(), bits, ..*self }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Value of feature `f` in row `r`.
    #[inline]
    pub fn get(&self, r: usize, f: usize) -> bool {
        self.bits[r * self.words + f / 64] >> (f % 64) & 1 == 1
    }

    /// Packed features of row `r`.
    #[inline]
    pub fn row(&self, r: usize) -> &[u64] {
        &self.bits[r * self.words..(r + 1) * self.words]
    }
}

/// Returns a bit for each byte: whether the byte is not zero.
fn nonzero(bytes: &[u8; 64]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let (eights, _) = bytes.as_chunks();
    eights.iter().rev().fold(0, |word, &eight| {
        let x = u64::from_le_bytes(eight);
        // Reduce every nonzero byte to its highest bit, move it to the lowest, then gather the
        // bits.
        let ones = ((((x & LOW) + LOW) | x) & !LOW) >> 7;
        (word << 8) | (ones.wrapping_mul(0x0102_0408_1020_4080) >> 56)
    })
}

#[cfg(test)]
mod tests {
    use super::BinaryMatrix;

    #[test]
    fn any_byte_but_zero_is_true() {
        let (n_rows, n_features) = (9, 203);
        let bytes: Vec<u8> = (0..n_rows * n_features)
            .map(|i| if i * i % 7 < 4 { 0 } else { (i % 255 + 1) as u8 })
            .collect();
        let matrix = BinaryMatrix::from_bytes(n_rows, n_features, &bytes).unwrap();
        for (i, &byte) in bytes.iter().enumerate() {
            assert_eq!(matrix.get(i / n_features, i % n_features), byte != 0);
        }
    }
}
