//! Binary data: bit-packed rows, merging of identical rows, reduction of columns.

mod key;
mod sample;
mod size;
mod transpose;

pub use key::random_number;
pub use sample::{Column, Sample};
pub use size::{Smallest, size};
pub use transpose::column_bitsets;

use crate::error::Error;

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
        if bytes.len() != n_rows * n_features {
            return Err(Error::invalid(
                "features",
                "the matrix does not have rows × columns bytes",
            ));
        }
        let words = n_features.div_ceil(64).max(1);
        let mut bits = vec![0u64; n_rows * words];
        if n_features > 0 {
            for (row, packed) in bytes.chunks_exact(n_features).zip(bits.chunks_exact_mut(words)) {
                for (f, &byte) in row.iter().enumerate() {
                    packed[f / 64] |= u64::from(byte != 0) << (f % 64);
                }
            }
        }
        Ok(BinaryMatrix { n_rows, n_features, words, bits })
    }

    /// These rows.
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
