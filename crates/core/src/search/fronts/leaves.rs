//! Costs of leaves, and the memory that is left to remember them: shared by threads.

use super::curves::Curves;
use crate::data::Smallest;
use crate::task::FrontTask;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Cost of rows that are too few for a leaf.
pub(super) const NO_LEAF: i64 = i64::MAX;

/// The costs of the labels of leaves.
pub(super) struct Leaves<'a, T, const K: usize> {
    pub task: &'a T,
    pub smallest: Smallest,
    /// Leaves whose first two statistics are no sums.
    pub curves: Option<Curves<'a>>,
    /// Whether weighted costs are linear in the sums. Where they are not a leaf has one label.
    pub linear: bool,
}

impl<T: FrontTask<K>, const K: usize> Leaves<'_, T, K> {
    /// Costs of every label of rows with these sums (size last); none of too few rows.
    #[inline(always)]
    pub fn costs(&self, record: &[i64], out: &mut Vec<[i64; K]>) {
        let (size, sums) = record.split_last().expect("a size");
        out.clear();
        if self.smallest.allows_leaf(*size) {
            self.task.leaf_candidates(sums, out);
        }
    }

    /// The cost of the only label of a leaf, [`NO_LEAF`] of too few rows.
    #[inline(always)]
    pub fn cost(&self, record: &[i64], scratch: &mut Vec<[i64; K]>) -> [i64; K] {
        self.costs(record, scratch);
        debug_assert!(scratch.len() <= 1);
        scratch.first().copied().unwrap_or([NO_LEAF; K])
    }
}

/// Bytes that may be taken, by all threads together.
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

    /// Takes so many bytes if they are left.
    pub fn take(&self, bytes: usize) -> bool {
        // The call that does this at once has had several names in the standard library.
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
