//! How many rows and events a leaf has, and how many it must have.

/// Bits that hold the number of rows.
const ROW_BITS: u32 = 32;

/// So many rows, of which so many with an event, as one number: sizes of parts add up, and the
/// size of what is left over is a difference. There are less than 2³² rows of either kind.
pub fn size(rows: i64, events: i64) -> i64 {
    rows + (events << ROW_BITS)
}

/// Rows of a [`size`](fn@size).
#[inline(always)]
pub fn rows_of(size: i64) -> i64 {
    size & ((1 << ROW_BITS) - 1)
}

/// Fewest rows and events of a leaf; weights do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smallest {
    /// Rows of the caller.
    pub rows: i64,
    /// Rows with an event.
    pub events: i64,
}

impl Smallest {
    /// Whether rows of this [`size`] may be a leaf.
    #[inline(always)]
    pub fn allows_leaf(self, size: i64) -> bool {
        rows_of(size) >= self.rows && size >> ROW_BITS >= self.events
    }

    /// Whether rows of this [`size`] may be split, as far as counts can tell.
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
