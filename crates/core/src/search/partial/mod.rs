//! Trees from sums over parts of the rows, for tables that are never in memory as a whole.
//!
//! Every leaf of a tree of depth d is a sign pattern of at most d columns, whose statistics follow by
//! inclusion and exclusion from those of the rows where all columns of an itemset are true. These
//! sums are integers: those of the parts, added up in any order, are those of the whole, and a tree
//! found from them is the tree of the whole table. See docs/maths/partial-sums.md.
//!
//! [`Table`] holds the sums, [`fill`] adds rows to them with the kernels of the lattice,
//! [`costs`] evaluates all cells, and [`search`] finds the best tree in exact costs, which [`certify`] turns into a solution.

mod bytes;
mod cells;
pub(in crate::search) mod costs;
pub(in crate::search) mod fill;
mod itemsets;
mod solve;

pub use bytes::checksum;
pub use fill::{Adder, Records};
pub use solve::{Found, Leaves, certify, finest, search};

use crate::error::Error;
use crate::search::lattice;
use itemsets::Itemsets;

/// Deepest tree whose sums fit a table.
pub const MOST_DEPTH: usize = lattice::PREFIX;

/// Channels beyond those of the task: numbers of rows, and of rows with an event.
const COUNTS: usize = 2;

/// Purpose of a table: tables add up if it is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Binary features.
    pub n_features: usize,
    /// Columns of the largest itemsets, and the depth of the deepest tree.
    pub depth: usize,
    /// Channels of the task.
    pub channels: usize,
    /// Features that are held negated. Rows cost less to add the fewer columns are true.
    pub flipped: Vec<bool>,
    /// Identifies the task and its records.
    pub task: u64,
}

/// Sums of the statistics over the rows added so far, for every itemset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    shape: Shape,
    itemsets: Itemsets,
    /// `[itemset][channel]`; the last two channels are the numbers of rows and of events.
    sums: Vec<i64>,
}

impl Shape {
    /// Refuses what no table is made for.
    ///
    /// # Errors
    /// For a depth of 0 or more than [`MOST_DEPTH`], and for flips of another number of features.
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

    /// Bytes of a table; `usize::MAX` where there are more.
    pub fn bytes(&self) -> usize {
        let per_itemset = 8 * (self.channels + COUNTS);
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
    /// As [`Shape::check`]; where the table would not fit into `memory_limit` bytes.
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

    /// Its purpose.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Rows added.
    pub fn n_rows(&self) -> i64 {
        self.sums[self.shape.channels]
    }

    /// Sums of an itemset, its columns ascending.
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
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, v)| *sum += v);
        Ok(())
    }

    /// The cell with the fewest rows, but for empty ones, among those of as many features as
    /// the table holds: the rows, and the features with the values asked for.
    pub fn smallest_cell(&self) -> Option<(i64, Vec<(usize, bool)>)> {
        let mut smallest: Option<(i64, Vec<(usize, bool)>)> = None;
        let size = self.shape.depth.min(self.shape.n_features);
        let rows = self.shape.channels;
        cells::for_each(self, size, &mut |itemset, cells| {
            let counts = cells.iter().map(|cell| cell[rows]).enumerate().filter(|cell| cell.1 > 0);
            let Some((pattern, count)) = counts.min_by_key(|cell| cell.1) else { return };
            if smallest.as_ref().is_none_or(|known| count < known.0) {
                let value = |(at, &c): (usize, &usize)| {
                    (c, (pattern >> at & 1 == 1) != self.shape.flipped[c])
                };
                smallest = Some((count, itemset.iter().enumerate().map(value).collect()));
            }
        });
        smallest
    }
}
