//! Memory of tables, allocated once.

/// Ends the search if the system does not have this many bytes. It unwinds, because failing to
/// allocate a table later could only abort the process.
pub fn make_sure(bytes: usize) {
    let mut memory = Vec::<u8>::new();
    // The compiler may leave out an allocation that nothing uses.
    if std::hint::black_box(&mut memory).try_reserve_exact(bytes).is_err() {
        std::panic::resume_unwind(Box::new("out of memory"));
    }
}

/// Fills a table with `len` copies of `value`.
pub fn refill<V: Copy>(table: &mut Vec<V>, len: usize, value: V) {
    table.clear();
    if table.capacity() < len {
        drop(std::mem::take(table));
        // New pages already contain zeros.
        *table = vec![value; len];
    } else {
        table.resize(len, value);
    }
}

/// Makes an empty table with room for `len` entries; ends the search if there is no memory. Old
/// memory is freed before new memory is allocated.
pub fn room_for<V>(table: &mut Vec<V>, len: usize) {
    table.clear();
    if table.capacity() < len {
        drop(std::mem::take(table));
        make_sure(len.saturating_mul(size_of::<V>()));
        table.reserve_exact(len);
    }
}
