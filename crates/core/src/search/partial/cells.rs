//! Cells of itemsets: all sign patterns of their columns.

use super::{MOST_DEPTH, Table};
use crate::search::{Monitor, Stop};

/// Number of sign patterns of the largest itemsets.
pub(super) const PATTERNS: usize = 1 << MOST_DEPTH;

/// Number of cells between two checks of the clock.
const CELLS_PER_CHECK: u64 = 1 << 14;

/// Receives an itemset and the sums of its cells, `[pattern][channel]`; bit i of a pattern is the
/// value of the i-th column. After an error, no further itemset is visited.
pub(super) type Visit<'a> = dyn FnMut(&[usize], &[Vec<i64>]) -> Result<(), Stop> + 'a;

/// Visits every itemset of `size` columns, unless the monitor stops it. Counts the cells.
pub(super) fn for_each(
    table: &Table,
    size: usize,
    monitor: &Monitor,
    visit: &mut Visit,
) -> Result<(), Stop> {
    let mut cells = vec![vec![0; table.shape.width()]; 1 << size];
    let mut itemset = Vec::with_capacity(size);
    let mut counted = 0;
    let mut watched = |itemset: &[usize], cells: &[Vec<i64>]| {
        counted += 1 << size;
        if counted >= CELLS_PER_CHECK {
            monitor.count(counted);
            counted = 0;
            monitor.check()?;
        }
        visit(itemset, cells)
    };
    let visited = descend(table, size, &mut itemset, &mut cells, &mut watched);
    monitor.count(counted);
    visited
}

fn descend(
    table: &Table,
    size: usize,
    itemset: &mut Vec<usize>,
    cells: &mut [Vec<i64>],
    visit: &mut Visit,
) -> Result<(), Stop> {
    if itemset.len() == size {
        fill(table, itemset, cells);
        return visit(itemset, cells);
    }
    let first = itemset.last().map_or(0, |c| c + 1);
    for column in first..table.shape.n_features {
        itemset.push(column);
        descend(table, size, itemset, cells, visit)?;
        itemset.pop();
    }
    Ok(())
}

/// Sums of all cells of an itemset, whose columns are ascending.
pub(super) fn fill(table: &Table, itemset: &[usize], cells: &mut [Vec<i64>]) {
    let mut subset = [0; MOST_DEPTH];
    for (pattern, cell) in cells.iter_mut().enumerate() {
        let mut size = 0;
        for (at, &column) in itemset.iter().enumerate() {
            if pattern >> at & 1 == 1 {
                subset[size] = column;
                size += 1;
            }
        }
        cell.copy_from_slice(table.of(&subset[..size]));
    }
    // What remains are the rows in which exactly the columns of the pattern are true.
    for bit in 0..itemset.len() {
        for pattern in 0..cells.len() {
            if pattern >> bit & 1 == 0 {
                let (low, high) = cells.split_at_mut(pattern | 1 << bit);
                low[pattern].iter_mut().zip(&high[0]).for_each(|(sum, v)| *sum -= v);
            }
        }
    }
}

/// Sums of the rows with these values, in columns in any order.
pub(super) fn of_literals(table: &Table, literals: &[(usize, bool)]) -> Vec<i64> {
    let mut sorted = literals.to_vec();
    sorted.sort_unstable();
    let itemset: Vec<usize> = sorted.iter().map(|&(column, _)| column).collect();
    let value = |(at, &(_, value)): (usize, &(usize, bool))| usize::from(value) << at;
    let pattern: usize = sorted.iter().enumerate().map(value).sum();
    let mut cells = vec![vec![0; table.shape.width()]; 1 << itemset.len()];
    fill(table, &itemset, &mut cells);
    cells.swap_remove(pattern)
}
