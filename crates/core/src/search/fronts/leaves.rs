//! Costs of leaves, and the memory that remains for memos; shared by threads.

use super::curves::Curves;
use crate::data::Smallest;
use crate::task::FrontTask;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Cost of a leaf with too few rows.
pub(super) const NO_LEAF: i64 = i64::MAX;

/// Computes the costs of the labels of leaves.
pub(super) struct Leaves<'a, T, const K: usize> {
    pub task: &'a T,
    pub smallest: Smallest,
    /// Leaves whose first two statistics are not sums.
    pub curves: Option<Curves<'a>>,
    /// Whether weighted costs are linear in the sums. If they are not, a leaf has one label.
    pub linear: bool,
}

impl<T: FrontTask<K>, const K: usize> Leaves<'_, T, K> {
    /// Costs of every label for rows with these sums (size last); empty if there are too few rows.
    #[inline(always)]
    pub fn costs(&self, record: &[i64], out: &mut Vec<[i64; K]>) {
        let (size, sums) = record.split_last().expect("a size");
        out.clear();
        if self.smallest.allows_leaf(*size) {
            self.task.leaf_candidates(sums, out);
        }
    }

    /// The cost of the only label of a leaf; [`NO_LEAF`] if there are too few rows.
    #[inline(always)]
    pub fn cost(&self, record: &[i64], scratch: &mut Vec<[i64; K]>) -> [i64; K] {
        self.costs(record, scratch);
        debug_assert!(scratch.len() <= 1);
        scratch.first().copied().unwrap_or([NO_LEAF; K])
    }
}

/// A number of bytes that all threads share.
pub(super) struct Budget {
    limit: usize,
    used: AtomicUsize,
}

impl Budget {
    pub fn new(limit: usize) -> Self {
        Budget { limit, used: AtomicUsize::new(0) }
    }

    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Takes this many bytes if they are left.
    pub fn take(&self, bytes: usize) -> bool {
        // The method that does this in one call has changed its name in the standard library.
        let mut used = self.used.load(Relaxed);
        while used + bytes <= self.limit {
            match self.used.compare_exchange_weak(used, used + bytes, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => used = now,
            }
        }
        false
    }

    pub fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
    }
}
