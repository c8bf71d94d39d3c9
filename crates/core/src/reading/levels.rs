//! Equal cells.

use rustc_hash::FxHashMap;

/// Which of the cells are equal.
pub struct Levels {
    /// Number of every cell among the distinct ones, in the order of their first occurrence.
    pub codes: Vec<u32>,
    /// First cell of every distinct one.
    pub first: Vec<u32>,
}

/// The levels of at most 2^32 cells.
pub fn levels(cells: &[&[u8]]) -> Levels {
    let mut known: FxHashMap<&[u8], u32> = FxHashMap::default();
    let mut first = Vec::new();
    let codes = (0u32..)
        .zip(cells)
        .map(|(row, &cell)| {
            *known.entry(cell).or_insert_with(|| {
                first.push(row);
                first.len() as u32 - 1
            })
        })
        .collect();
    Levels { codes, first }
}

#[cfg(test)]
mod tests {
    use super::levels;

    #[test]
    fn levels_are_numbered_as_they_occur() {
        let found = levels(&[b"b", b"a", b"b", b""]);
        assert_eq!((found.codes, found.first), (vec![0, 1, 0, 2], vec![0, 1, 3]));
    }
}
