//! Bit-matrix transposition: packed rows to column bitsets.

use super::n_words;

/// Column bitsets (`[column][n_words(rows)]`) of packed rows; `row(r)` returns row `r`.
pub fn column_bitsets<'a>(
    n_rows: usize,
    n_columns: usize,
    row: impl Fn(usize) -> &'a [u64],
    out: &mut Vec<u64>,
) {
    let words = n_words(n_rows);
    out.clear();
    out.resize(n_columns * words, 0);
    for w in 0..n_rows.div_ceil(64) {
        let rows = w * 64..n_rows.min(w * 64 + 64);
        for group in 0..n_columns.div_ceil(64) {
            let block = transposed(rows.clone().map(|r| row(r)[group]));
            let columns = (n_columns - group * 64).min(64);
            for (c, &word) in block.iter().enumerate().take(columns) {
                out[(group * 64 + c) * words + w] = word;
            }
        }
    }
}

/// Negates a column of `n_rows` rows.
pub fn complement(column: &mut [u64], n_rows: usize) {
    column.iter_mut().for_each(|word| *word = !*word);
    if let (rest @ 1.., Some(last)) = (n_rows % 64, column.last_mut()) {
        *last &= (1 << rest) - 1;
    }
}

/// Transposes at most 64 rows of at most 64 bits.
pub fn transposed(rows: impl Iterator<Item = u64>) -> [u64; 64] {
    let mut block = [0; 64];
    block.iter_mut().zip(rows).for_each(|(word, row)| *word = row);
    transpose(&mut block);
    block
}

/// Transposes a 64 × 64 bit matrix in place by swapping smaller and smaller quadrants.
fn transpose(block: &mut [u64; 64]) {
    swap::<32>(block, 0x0000_0000_ffff_ffff);
    swap::<16>(block, 0x0000_ffff_0000_ffff);
    swap::<8>(block, 0x00ff_00ff_00ff_00ff);
    swap::<4>(block, 0x0f0f_0f0f_0f0f_0f0f);
    swap::<2>(block, 0x3333_3333_3333_3333);
    swap::<1>(block, 0x5555_5555_5555_5555);
}

/// Swaps the upper right with the lower left quadrant of every square of twice this width; `mask`
/// selects the left quadrants. The width is constant, so the compiler uses vectors.
#[inline(always)]
fn swap<const WIDTH: usize>(block: &mut [u64; 64], mask: u64) {
    for square in block.chunks_exact_mut(2 * WIDTH) {
        let (upper, lower) = square.split_at_mut(WIDTH);
        for (upper, lower) in upper.iter_mut().zip(lower) {
            let swapped = ((*upper >> WIDTH) ^ *lower) & mask;
            *upper ^= swapped << WIDTH;
            *lower ^= swapped;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitsets_hold_the_columns() {
        let (n_rows, n_columns) = (131, 70);
        let bit = |r: usize, c: usize| (r * 7 + c * 13 + r * c) % 5 < 2;
        let rows: Vec<[u64; 2]> = (0..n_rows)
            .map(|r| {
                let mut row = [0u64; 2];
                for c in 0..n_columns {
                    row[c / 64] |= u64::from(bit(r, c)) << (c % 64);
                }
                row
            })
            .collect();
        let mut out = Vec::new();
        column_bitsets(n_rows, n_columns, |r| &rows[r], &mut out);
        for c in 0..n_columns {
            for r in 0..n_rows {
                assert_eq!(out[c * 3 + r / 64] >> (r % 64) & 1 == 1, bit(r, c));
            }
        }
    }
}
