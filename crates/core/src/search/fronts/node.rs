//! A set of rows in the search, and values that are computed for it once.

use super::curves::Curves;
use super::leaves::{Budget, Leaves};
use super::pairs::Pairs;
use crate::data::Sample;
use crate::search::curve::rows::Rows;
use crate::search::{Monitor, Settings, Stop};
use crate::task::FrontTask;
use std::sync::{Arc, OnceLock};

/// Number of steps between two checks of the monitor.
const STRIDE: usize = 1 << 16;

/// Checks the monitor as work is done.
#[derive(Clone)]
pub(super) struct Pace<'a> {
    monitor: &'a Monitor<'a>,
    work: usize,
}

impl<'a> Pace<'a> {
    pub fn new(monitor: &'a Monitor<'a>) -> Self {
        Pace { monitor, work: 0 }
    }

    /// Counts steps that are about to be done.
    #[inline(always)]
    pub fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        self.work += steps;
        if self.work < STRIDE {
            return Ok(());
        }
        self.work = 0;
        self.monitor.check()
    }
}

/// Identifies a set of rows and the size of trees over them.
pub(super) type Place = (u128, usize, usize);

/// Rows of one node of the search.
pub(super) struct FrontNode<const K: usize> {
    pub sample: Sample,
    pub key: u128,
    /// The same rows in the order of time, if leaves are curves.
    pub rows: Rows,
    /// Sums of the statistics over all rows, then their size: the number of rows and of events.
    pub total: Vec<i64>,
    children: Vec<[OnceLock<Arc<FrontNode<K>>>; 2]>,
    /// Sums of single columns only, and sums that include pairs.
    pairs: [OnceLock<Arc<Pairs<K>>>; 2],
}

impl<const K: usize> FrontNode<K> {
    /// Bytes of a node without its rows and columns, including what the allocator adds to each of
    /// its lists.
    const BYTES: usize = size_of::<FrontNode<K>>() + 12 * 16;

    /// `rows` are those of the sample in the order of time, if leaves are `curves`.
    pub fn new(sample: Sample, rows: Rows, curves: Option<&Curves>) -> Self {
        let mut total = sample.total.clone();
        if let Some(curves) = curves {
            let share = total[2] - total[3];
            total[..2].copy_from_slice(&curves.statistics(curves.leaf(&rows), share));
        }
        total.push(sample.total_size());
        let children = (0..sample.n_columns()).map(|_| Default::default()).collect();
        let key = sample.key();
        FrontNode { key, sample, rows, total, children, pairs: Default::default() }
    }

    /// The rows in which column `c` has the value. They are kept if the budget allows it.
    pub fn child(
        &self,
        c: usize,
        value: bool,
        curves: Option<&Curves>,
        budget: &Budget,
    ) -> Arc<Self> {
        let slot = &self.children[c][usize::from(value)];
        if let Some(child) = slot.get() {
            return child.clone();
        }
        let sides = curves.map(|curves| curves.sides(&self.rows, self.sample.columns[c]));
        let rows = sides.map_or_else(Rows::default, |[no, yes]| if value { yes } else { no });
        let child = Arc::new(FrontNode::new(self.sample.restrict(c, value), rows, curves));
        // Statistics, bits, size and number of a row.
        let row = 8 * (child.sample.channels + child.sample.words() + 1) + 4;
        let rows = row * child.sample.n_rows() + 8 * child.rows.mask.len();
        if budget.take(rows + 64 * child.sample.n_columns() + Self::BYTES) {
            slot.get_or_init(|| child.clone());
        }
        child
    }

    /// The same node if it is kept.
    pub fn kept_child(&self, c: usize, value: bool) -> Option<&Self> {
        self.children[c][usize::from(value)].get().map(|child| &**child)
    }

    /// Key in the memo for trees of at most this many levels.
    pub fn place(&self, depth: usize) -> Place {
        (self.key, self.sample.n_rows(), depth.min(self.sample.n_columns()))
    }

    /// Whether the leaves of pairs are kept.
    pub fn has_pairs(&self) -> bool {
        self.pairs[1].get().is_some()
    }

    /// The leaves of single columns, and with `both` also of pairs. They are kept if the budget
    /// allows it. Stops if they need more than the total memory.
    pub fn pairs<T: FrontTask<K>>(
        &self,
        both: bool,
        leaves: &Leaves<T, K>,
        settings: &Settings,
        monitor: &Monitor,
        budget: &Budget,
    ) -> Result<Arc<Pairs<K>>, Stop> {
        let slot = &self.pairs[usize::from(both)];
        if let Some(pairs) = slot.get() {
            return Ok(pairs.clone());
        }
        let (bytes, more) = Pairs::bytes(self, both, leaves.linear);
        if bytes + more > settings.bytes() {
            return Err(Stop::Memory);
        }
        let pairs = Arc::new(Pairs::new(self, both, leaves, settings, monitor)?);
        if budget.take(bytes) {
            slot.get_or_init(|| pairs.clone());
        }
        Ok(pairs)
    }
}
