//! Tables with one value per pair of columns, filled by several threads.

use crate::search::threads::{self, run_all};
use crate::search::{Settings, Stop};
use std::sync::Mutex;

/// Number of steps (of about a nanosecond) that justify a thread.
const STEPS_PER_THREAD: usize = 1 << 17;

/// Number of pairs.
pub fn pairs(n_columns: usize) -> usize {
    n_columns * n_columns.saturating_sub(1) / 2
}

/// Position of the pair of `f` and an earlier column `g`.
#[inline(always)]
pub fn place(f: usize, g: usize) -> usize {
    pairs(f) + g
}

/// Number of threads worth starting for this many steps.
pub fn useful_threads(steps: usize, settings: &Settings) -> usize {
    threads::useful_threads(|| steps as f64, STEPS_PER_THREAD, settings)
}

/// Calls `fill` to write the row of every column, which has one value for each earlier column.
/// Every thread has its own state.
pub fn fill_rows<V: Send, S: Send>(
    mut table: &mut [V],
    n_threads: usize,
    state: impl Fn() -> S,
    fill: impl Fn(&mut S, usize, &mut [V]) -> Result<(), Stop> + Sync,
) -> Result<(), Stop> {
    let mut rows = Vec::new();
    while !table.is_empty() {
        let (row, rest) = table.split_at_mut(rows.len() + 1);
        rows.push(row);
        table = rest;
    }
    // The longest rows first.
    let rows = Mutex::new(rows.into_iter().enumerate());
    let next = || rows.lock().expect("no panic while locked").next_back();
    let mut states: Vec<S> = (0..n_threads).map(|_| state()).collect();
    run_all(&mut states, &|state| {
        while let Some((before, row)) = next() {
            fill(state, before + 1, row)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_written_once_on_any_number_of_threads() {
        for n_threads in [1, 2, 5] {
            let mut table = vec![0usize; pairs(9)];
            let fill = |_: &mut (), f: usize, row: &mut [usize]| {
                row.iter_mut().enumerate().for_each(|(g, value)| *value += 10 * f + g);
                Ok(())
            };
            fill_rows(&mut table, n_threads, || (), fill).unwrap();
            let pairs = (1..9).flat_map(|f| (0..f).map(move |g| 10 * f + g));
            assert_eq!(table, pairs.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_stop_is_reported() {
        let fill =
            |_: &mut (), f: usize, _: &mut [u8]| if f == 3 { Err(Stop::Time) } else { Ok(()) };
        assert_eq!(fill_rows(&mut [0; 10], 2, || (), fill), Err(Stop::Time));
    }
}
