//! Tables in memory that is asked for once.

/// Ends the search where the system does not have so many bytes: it unwinds, since the tables that
/// would be allocated next could only end the process.
pub fn make_sure(bytes: usize) {
    if Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
        std::panic::resume_unwind(Box::new("out of memory"));
    }
}

/// Makes a table of copies of `value`.
pub fn refill<V: Copy>(table: &mut Vec<V>, len: usize, value: V) {
    table.clear();
    if table.capacity() < len {
        drop(std::mem::take(table));
        // New pages are zero already.
        *table = vec![value; len];
    } else {
        table.resize(len, value);
    }
}

/// Makes an empty table with room for so many. What there is, is given back before more is taken.
pub fn room_for<V>(table: &mut Vec<V>, len: usize) {
    table.clear();
    if table.capacity() < len {
        drop(std::mem::take(table));
        table.reserve_exact(len);
    }
}
