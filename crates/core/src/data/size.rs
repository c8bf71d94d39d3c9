//! Number of rows and events of a leaf, their minimum, and the largest data that can be counted.

use crate::error::Error;

/// Bits that hold the number of rows.
const ROW_BITS: u32 = 32;

/// Most rows. Rows with an event are counted in the bits of an i64 that [`ROW_BITS`] leaves.
const MOST_ROWS: usize = (1 << 31) - 1;

/// Most columns. Their numbers have 32 bits, and the largest number stands for none.
const MOST_COLUMNS: usize = u32::MAX as usize - 1;

/// Rejects data that are too large for the types that count them.
///
/// # Errors
///
/// If there are too many rows or columns; the message names which.
pub fn check_size(n_rows: usize, n_columns: usize) -> Result<(), Error> {
    for (n, most, what) in [(n_rows, MOST_ROWS, "rows"), (n_columns, MOST_COLUMNS, "columns")] {
        if n > most {
            return Err(Error::invalid("X", format!("has {n} {what}, {most} at most")));
        }
    }
    Ok(())
}

/// A number of rows, and of events among them, in one integer. The sizes of parts add up, and the
/// size of a remainder is a difference. See [`check_size`].
pub fn size(rows: i64, events: i64) -> i64 {
    rows + (events << ROW_BITS)
}

/// Rows of a [`size`](fn@size).
#[inline(always)]
pub fn rows_of(size: i64) -> i64 {
    size & ((1 << ROW_BITS) - 1)
}

/// Events of a [`size`](fn@size).
#[inline(always)]
pub fn events_of(size: i64) -> i64 {
    size >> ROW_BITS
}

/// Minimum number of rows and events of a leaf; weights do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smallest {
    /// Number of the caller's rows.
    pub rows: i64,
    /// Number of rows with an event.
    pub events: i64,
}

impl Smallest {
    /// Whether rows of this [`size`] may form a leaf.
    #[inline(always)]
    pub fn allows_leaf(self, size: i64) -> bool {
        rows_of(size) >= self.rows && events_of(size) >= self.events
    }

    /// Whether rows of this [`size`] may be split, judged by the counts alone.
    #[inline(always)]
    pub fn allows_split(self, size: i64) -> bool {
        let twice = |least: i64| least.saturating_mul(2);
        Smallest { rows: twice(self.rows), events: twice(self.events) }.allows_leaf(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_to_be_counted_is_named() {
        let refusal =
            |n_rows, n_columns| check_size(n_rows, n_columns).err().map(|e| e.to_string());
        assert_eq!(refusal(MOST_ROWS, MOST_COLUMNS), None);
        assert_eq!(
            refusal(1 << 31, 1).as_deref(),
            Some("X has 2147483648 rows, 2147483647 at most")
        );
        assert_eq!(
            refusal(1, 1 << 32).as_deref(),
            Some("X has 4294967296 columns, 4294967294 at most")
        );
        // All rows may have events.
        let all = size(MOST_ROWS as i64, MOST_ROWS as i64);
        let most = MOST_ROWS as i64;
        assert!(Smallest { rows: most, events: most }.allows_leaf(all));
        assert!(!Smallest { rows: most, events: most + 1 }.allows_leaf(all));
    }

    #[test]
    fn rows_and_events_are_counted_apart() {
        let smallest = Smallest { rows: 5, events: 2 };
        assert!(smallest.allows_leaf(size(5, 2)));
        assert!(!smallest.allows_leaf(size(4, 4)));
        assert!(!smallest.allows_leaf(size(900, 1)));
        assert!(smallest.allows_leaf(size(900, 3) - size(895, 1)));
        assert_eq!(rows_of(size(900, 3) - size(895, 1)), 5);
        assert!(smallest.allows_split(size(10, 4)) && !smallest.allows_split(size(10, 3)));
    }
}
