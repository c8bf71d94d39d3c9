//! Tables with a value for every pair of columns, filled by several threads.

use crate::search::{Settings, Stop};
use std::sync::Mutex;

/// Steps, of a nanosecond or so, that are worth a thread of their own.
const STEPS_PER_THREAD: usize = 1 << 17;

/// Threads worth starting for so many steps.
pub fn useful_threads(steps: usize, settings: &Settings) -> usize {
    let worth_one = settings.switches.cells_per_thread.unwrap_or(STEPS_PER_THREAD).max(1);
    settings.threads().min(steps / worth_one).max(1)
}

/// Lets `fill` write the row of every column, with one value for each of the columns before; every
/// thread has a state of its own.
pub fn fill_rows<V: Send, S>(
    mut table: &mut [V],
    n_threads: usize,
    state: impl Fn() -> S + Sync,
    fill: impl Fn(&mut S, usize, &mut [V]) -> Result<(), Stop> + Sync,
) -> Result<(), Stop> {
    let mut rows = Vec::new();
    while !table.is_empty() {
        let (row, rest) = table.split_at_mut(rows.len() + 1);
        rows.push(row);
        table = rest;
    }
    // The longest first.
    let rows = Mutex::new(rows.into_iter().enumerate());
    let next = || rows.lock().expect("no panic while locked").next_back();
    let work = || {
        let mut state = state();
        while let Some((before, row)) = next() {
            fill(&mut state, before + 1, row)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..n_threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        others
            .into_iter()
            .map(|h| h.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .fold(own, Result::and)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_written_once_on_any_number_of_threads() {
        for n_threads in [1, 2, 5] {
            let mut table = vec![0usize; 9 * 8 / 2];
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
    fn a_stop_is_told() {
        let fill =
            |_: &mut (), f: usize, _: &mut [u8]| if f == 3 { Err(Stop::Time) } else { Ok(()) };
        assert_eq!(fill_rows(&mut [0; 10], 2, || (), fill), Err(Stop::Time));
    }
}
