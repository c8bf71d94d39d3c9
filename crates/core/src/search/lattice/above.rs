//! The table of best splits to which a level offers candidates, from any number of threads.
//!
//! The itemsets with the same first column are a region of the table. A prefix offers to the
//! regions of its first two columns, and the thread that works on it has exclusive access to both.
//! The final table does not depend on the order of offers.

use super::geometry::{Best, Geometry};
use super::memory::room_for;
use super::sums::Prefix;
use crate::search::{Monitor, Stop};
use crate::simd::{LaneReal, prefetch};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The table of a level; each region has a lock.
pub struct Regions<'a, R> {
    table: *mut R,
    len: usize,
    regions: Vec<Region>,
    only: PhantomData<&'a mut [MaybeUninit<R>]>,
}

struct Region {
    range: Range<usize>,
    /// Whether the entries were filled with infinity. The first thread that needs them fills them.
    is_filled: Mutex<bool>,
}

// SAFETY: a thread only writes to regions whose locks it holds.
unsafe impl<R: Send> Sync for Regions<'_, R> {}

impl<R: LaneReal> Regions<'_, R> {
    /// Makes the table of level `m` with `each` entries per position. After a stop it is empty.
    pub fn fill(
        Best(table): &mut Best<R>,
        (geometry, m): (&Geometry, usize),
        each: usize,
        fill: impl FnOnce(&mut Regions<R>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let len = each * if m == 0 { 1 } else { geometry.total(m) };
        room_for(table, len);
        let first_columns = if m < 2 { 1 } else { geometry.n };
        let begin = |f: usize| match f {
            0 => 0,
            _ if f < first_columns => each * geometry.begin(m, f),
            _ => len,
        };
        let region =
            |f: usize| Region { range: begin(f)..begin(f + 1), is_filled: Mutex::new(false) };
        let mut regions = Regions {
            table: table.as_mut_ptr(),
            len,
            regions: (0..first_columns).map(region).collect(),
            only: PhantomData,
        };
        fill(&mut regions)?;
        (0..first_columns).for_each(|f| drop(regions.lock(f)));
        // SAFETY: there is room for this many entries, and each was filled.
        unsafe { table.set_len(len) };
        Ok(())
    }

    /// Access for the only thread. Filling new memory takes long enough to look at the clock.
    pub fn alone(&mut self, monitor: &Monitor) -> Result<Above<'_, R>, Stop> {
        for f in 0..self.regions.len() {
            monitor.check()?;
            drop(self.lock(f));
        }
        Ok(Above { regions: self, is_alone: true, held: None })
    }

    /// Access for one of several threads.
    pub fn shared(&self) -> Above<'_, R> {
        Above { regions: self, is_alone: false, held: None }
    }

    /// Locks a region, even if a thread that held it panicked: after a panic nothing reads the
    /// region.
    fn lock(&self, f: usize) -> MutexGuard<'_, bool> {
        let Region { range, is_filled } = &self.regions[f];
        let mut is_filled = is_filled.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_filled {
            assert!(range.start <= range.end && range.end <= self.len);
            // SAFETY: there is room for these entries, and no other thread has the region.
            let entries = unsafe {
                let first = self.table.add(range.start).cast::<MaybeUninit<R>>();
                std::slice::from_raw_parts_mut(first, range.len())
            };
            entries.fill(MaybeUninit::new(R::INFINITY));
            *is_filled = true;
        }
        is_filled
    }
}

/// Access of one thread to the table.
pub struct Above<'a, R> {
    regions: &'a Regions<'a, R>,
    is_alone: bool,
    held: Option<Held<'a>>,
}

/// The regions that a thread holds.
struct Held<'a> {
    which: (usize, Option<usize>),
    _locks: (MutexGuard<'a, bool>, Option<MutexGuard<'a, bool>>),
}

/// The table, while a thread holds the regions of a prefix.
#[derive(Clone, Copy)]
pub struct Places<'a, R> {
    table: *mut R,
    pub len: usize,
    only: PhantomData<&'a mut R>,
}

impl<R: LaneReal> Above<'_, R> {
    /// Positions in the regions to which a prefix offers: that of its first column and, if the
    /// itemsets above have a prefix, that of its second. Other threads wait for these until
    /// `release`.
    #[inline(always)]
    pub fn places(&mut self, prefix: &Prefix) -> Places<'_, R> {
        if !self.is_alone {
            self.hold(prefix);
        }
        Places { table: self.regions.table, len: self.regions.len, only: PhantomData }
    }

    #[inline(never)]
    fn hold(&mut self, prefix: &Prefix) {
        let which = match prefix.columns[..prefix.size] {
            [f, g, ..] => (f, Some(g)),
            _ => (0, None),
        };
        if self.held.as_ref().is_none_or(|held| held.which != which) {
            self.held = None;
            // Lock the lower column first, so that no two threads wait for each other.
            let first = self.regions.lock(which.0);
            let second = which.1.map(|g| self.regions.lock(g));
            self.held = Some(Held { which, _locks: (first, second) });
        }
    }

    #[inline(never)]
    fn give_back(&mut self) {
        self.held = None;
    }

    /// Releases the regions of the last prefix.
    #[inline(always)]
    pub fn release(&mut self) {
        if !self.is_alone {
            self.give_back();
        }
    }
}

impl<'a, R> Places<'a, R> {
    /// Prefetches the entry at a position.
    #[inline(always)]
    pub fn prefetch(self, at: usize) {
        prefetch(self.table.wrapping_add(at));
    }

    /// `n` entries from a position on.
    ///
    /// # Safety
    ///
    /// They must be in a region of the prefix and in the table, and nothing else may refer to them.
    #[inline(always)]
    pub unsafe fn at(self, at: usize, n: usize) -> &'a mut [R] {
        // SAFETY: all entries of these regions are filled, and no other thread has access.
        unsafe { std::slice::from_raw_parts_mut(self.table.add(at), n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Stop;
    use crate::search::threads::run_all;

    /// Offers a number to the first entries of both regions of every pair of columns.
    fn offer(above: &mut Above<f64>, geometry: &Geometry, which: Range<usize>) {
        for (f, g) in which.flat_map(|f| (f + 1..geometry.n).map(move |g| (f, g))) {
            let prefix = Prefix { size: 2, columns: [f, g, 0, 0], ..Prefix::default() };
            let places = above.places(&prefix);
            for first in [f, g] {
                // SAFETY: every region has a row with its padding.
                let place = unsafe { &mut places.at(2 * geometry.begin(2, first), 1)[0] };
                *place = place.min((geometry.n * f + g) as f64);
            }
            above.release();
        }
    }

    #[test]
    fn threads_that_share_a_table_fill_it_as_one_does() {
        let (n, mut tables) = (9, [Best(vec![7.0; 3]), Best(Vec::new())]);
        let geometry = Geometry::new(n, 3);
        let never = || false;
        let monitor = Monitor::new(None, &never);
        let share = |table: &mut Best<f64>, end: Result<(), Stop>| {
            Regions::fill(table, (&geometry, 2), 2, |regions| {
                let (regions, mut parts) = (&*regions, [0..3, 3..5, 5..n]);
                run_all(&mut parts, &|part| {
                    offer(&mut regions.shared(), &geometry, part.clone());
                    end
                })
            })
        };
        let [alone, shared] = &mut tables;
        let whole = Regions::fill(alone, (&geometry, 2), 2, |regions| {
            offer(&mut regions.alone(&monitor)?, &geometry, 0..n);
            Ok(())
        });
        assert_eq!([whole, share(shared, Ok(()))], [Ok(()); 2]);
        assert_eq!(alone.0, shared.0);
        let stopped = &mut Best(Vec::new());
        assert_eq!(share(stopped, Err(Stop::Interrupt)), Err(Stop::Interrupt));
        assert!(stopped.0.is_empty());
        let offered = tables[0].0.iter().filter(|&&v| v.is_finite()).count();
        assert_eq!((tables[0].0.len(), offered), (2 * geometry.total(2), n));
    }
}
