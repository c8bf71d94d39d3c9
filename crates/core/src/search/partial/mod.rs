//! Trees from sums over parts of the rows, for tables that do not fit into memory.
//!
//! Every leaf of a tree of depth d is a sign pattern of at most d columns. Its statistics follow by
//! inclusion–exclusion from those of the rows in which all columns of an itemset are true. These
//! sums are integers, so the sums of the parts, added in any order, are those of the whole, and a
//! tree found from them is the tree of the whole table. See docs/maths/partial-sums.md.
//!
//! [`Table`] stores the sums, [`fill`] adds rows to them with the kernels of the lattice, [`costs`]
//! evaluates all cells, and [`search`] finds the best tree with exact costs, which [`certify`]
//! turns into a solution.

mod bytes;
mod cells;
pub(in crate::search) mod costs;
pub(in crate::search) mod fill;
mod itemsets;
mod solve;

pub use bytes::checksum;
pub use fill::{Adder, Records};
pub use solve::{Found, Leaves, certify, finest, search};

use crate::data::add;
use crate::error::Error;
use crate::search::{Monitor, Stop, lattice};
use itemsets::Itemsets;

/// Deepest tree whose sums fit a table.
pub const MOST_DEPTH: usize = lattice::PREFIX;

/// Channels in addition to those of the task: the number of rows, and of rows with an event.
const COUNTS: usize = 2;

/// What a table is for. Only tables for the same purpose can be added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Binary features.
    pub n_features: usize,
    /// Number of columns of the largest itemsets, and the depth of the deepest tree.
    pub depth: usize,
    /// Channels of the task.
    pub channels: usize,
    /// Features that are stored negated. The fewer columns are true, the less work it is to add a
    /// row.
    pub flipped: Vec<bool>,
    /// Identifies the task and its records.
    pub task: u64,
}

/// Sums of the statistics over the rows added so far, for every itemset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    shape: Shape,
    itemsets: Itemsets,
    /// `[itemset][channel]`; the last two channels are the number of rows and of events.
    sums: Vec<i64>,
}

/// Number of rows of a cell, and its features with their values.
pub type Cell = (i64, Vec<(usize, bool)>);

impl Shape {
    /// Rejects shapes that no table can have.
    ///
    /// # Errors
    ///
    /// For a depth of 0 or more than [`MOST_DEPTH`], and if `flipped` has another number of
    /// features.
    pub fn check(&self) -> Result<(), Error> {
        if !(1..=MOST_DEPTH).contains(&self.depth) {
            let reason = format!("{} is not between 1 and {MOST_DEPTH}", self.depth);
            return Err(Error::invalid("depth", reason));
        }
        if self.flipped.len() != self.n_features {
            let (n, features) = (self.flipped.len(), self.n_features);
            let reason = format!("has {n} entries for {features} features");
            return Err(Error::invalid("flipped", reason));
        }
        Ok(())
    }

    /// Bytes of a table; `usize::MAX` if there are more.
    pub fn bytes(&self) -> usize {
        let per_itemset = self.channels.saturating_add(COUNTS).saturating_mul(8);
        Itemsets::count(self.n_features, self.depth).saturating_mul(per_itemset)
    }

    /// Channels of the table.
    fn width(&self) -> usize {
        self.channels + COUNTS
    }
}

impl Table {
    /// A table without rows.
    ///
    /// # Errors
    ///
    /// As [`Shape::check`], and if the table does not fit into `memory_limit` bytes.
    pub fn new(shape: Shape, memory_limit: Option<usize>) -> Result<Table, Error> {
        shape.check()?;
        let bytes = shape.bytes();
        if memory_limit.is_some_and(|limit| bytes > limit) || isize::try_from(bytes).is_err() {
            let fits = |depth: &usize| {
                let smaller = Shape { depth: *depth, ..shape.clone() };
                smaller.bytes() <= memory_limit.unwrap_or(isize::MAX as usize)
            };
            let way_out = match (1..shape.depth).rev().find(fits) {
                Some(depth) => format!("max_depth={depth} fits"),
                None => "use fewer thresholds".into(),
            };
            let reason = format!(
                "the sums of {} binary features at depth {} take {bytes} bytes; {way_out}",
                shape.n_features, shape.depth
            );
            return Err(Error::invalid("memory_limit", reason));
        }
        lattice::make_sure(bytes);
        let itemsets = Itemsets::new(shape.n_features, shape.depth);
        let sums = vec![0; itemsets.len() * shape.width()];
        Ok(Table { shape, itemsets, sums })
    }

    /// What the table is for.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of rows added.
    pub fn n_rows(&self) -> i64 {
        self.sums[self.shape.channels]
    }

    /// Sums of an itemset, whose columns are ascending.
    fn of(&self, itemset: &[usize]) -> &[i64] {
        let width = self.shape.width();
        &self.sums[self.itemsets.position(itemset) * width..][..width]
    }

    /// Adds the sums of other rows.
    ///
    /// # Errors
    /// If the other table is for another task, other records, features or depth.
    pub fn merge(&mut self, other: &Table) -> Result<(), Error> {
        let differ = |what: &str| Err(Error::invalid("sums", format!("are of {what}")));
        let (one, two) = (&self.shape, &other.shape);
        if one.depth != two.depth {
            return differ(&format!("depth {}, not {}", two.depth, one.depth));
        }
        if one.n_features != two.n_features {
            return differ(&format!("{} features, not {}", two.n_features, one.n_features));
        }
        if one.flipped != two.flipped {
            return differ("features that are negated otherwise");
        }
        if one != two {
            return differ("another task or other outcomes");
        }
        add(&mut self.sums, &other.sums);
        Ok(())
    }

    /// The non-empty cell with the fewest rows, among the cells of as many features as the table
    /// supports.
    ///
    /// # Errors
    ///
    /// If the monitor stops the visit of the cells.
    pub fn smallest_cell(&self, monitor: &Monitor) -> Result<Option<Cell>, Stop> {
        let mut smallest: Option<Cell> = None;
        let size = self.shape.depth.min(self.shape.n_features);
        let rows = self.shape.channels;
        cells::for_each(self, size, monitor, &mut |itemset, cells| {
            let counts = cells.iter().map(|cell| cell[rows]).enumerate().filter(|cell| cell.1 > 0);
            let Some((pattern, count)) = counts.min_by_key(|cell| cell.1) else { return Ok(()) };
            if smallest.as_ref().is_none_or(|known| count < known.0) {
                let value = |(at, &c): (usize, &usize)| {
                    (c, (pattern >> at & 1 == 1) != self.shape.flipped[c])
                };
                smallest = Some((count, itemset.iter().enumerate().map(value).collect()));
            }
            Ok(())
        })?;
        Ok(smallest)
    }
}
