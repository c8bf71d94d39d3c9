//! Hands out the prefixes of a level to threads.

use super::runs::Run;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Hands out the first two columns of prefixes, by their runs.
pub struct Tickets<'a> {
    next: AtomicUsize,
    /// Size of the itemsets.
    m: usize,
    runs: &'a [Run],
    n_threads: usize,
    order: Order,
}

/// Order in which pairs of runs are handed out.
enum Order {
    /// All pairs of a first run at once, so that no two threads copy the rows of the same column.
    FirstRun,
    /// One by one.
    Pairs,
    /// One by one, mostly without a run of the pair before.
    Apart,
}

impl<'a> Tickets<'a> {
    /// For itemsets of size `m`.
    pub fn new(m: usize, runs: &'a [Run], n_threads: usize) -> Self {
        // The first run has a share of the work of about m divided by this number, which must be
        // small compared with a thread's share.
        let by_first = n_threads == 1 || 4 * m * n_threads <= runs.len();
        let order = if by_first { Order::FirstRun } else { Order::Pairs };
        Tickets { next: AtomicUsize::new(0), m, runs, n_threads, order }
    }

    /// For threads that wait for each other if their prefixes have a column in common.
    pub fn apart(self) -> Self {
        let order = match self.order {
            Order::Pairs => Order::Apart,
            order => order,
        };
        Tickets { order, ..self }
    }

    /// The pairs of runs for one thread, the second run no earlier than the first. If prefixes have
    /// fewer columns, the missing runs are 0.
    pub fn pairs(&self) -> Pairs<'_> {
        Pairs { tickets: self, first: 0, seconds: [0..0, 0..0] }
    }

    /// The next first run, with its second runs; `None` when there are no more.
    fn take(&self) -> Option<(usize, Range<usize>)> {
        let n = self.runs.len();
        loop {
            let ticket = self.next.fetch_add(1, Ordering::Relaxed);
            let (first, second) = match (self.m, &self.order) {
                (1, _) => return (ticket == 0).then_some((0, 0..1)),
                (2, _) => return (ticket < n).then_some((ticket, 0..1)),
                (_, Order::FirstRun) => return (ticket < n).then_some((ticket, ticket..n)),
                _ if ticket >= n * n => return None,
                (_, Order::Pairs) => (ticket / n, ticket % n),
                // Pairs with the same sum modulo n have no run in common.
                (_, Order::Apart) => (ticket % n, (ticket / n + n - ticket % n) % n),
            };
            if first <= second {
                return Some((first, second..second + 1));
            }
        }
    }
}

/// See [`Tickets::pairs`].
pub struct Pairs<'a> {
    tickets: &'a Tickets<'a>,
    first: usize,
    /// Second runs of the last ticket that are left: one range, then the other.
    seconds: [Range<usize>; 2],
}

impl Iterator for Pairs<'_> {
    type Item = (usize, usize);

    // Inlined, it would take registers from the passes.
    #[inline(never)]
    fn next(&mut self) -> Option<(usize, usize)> {
        loop {
            let [now, later] = &mut self.seconds;
            if let Some(second) = now.next().or_else(|| later.next()) {
                return Some((self.first, second));
            }
            let (first, seconds) = self.tickets.take()?;
            // Threads start at different second runs.
            let n_threads = self.tickets.n_threads;
            let middle = seconds.start + first % n_threads * seconds.len() / n_threads;
            self.first = first;
            self.seconds = [middle..seconds.end, seconds.start..middle];
        }
    }
}
