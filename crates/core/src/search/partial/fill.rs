//! Adds rows to a table, with the kernels that also fill the levels of a lattice.

use super::{Shape, Table};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::search::lattice::geometry::{Geometry, PREFIX};
use crate::search::lattice::kernels::{Pass, SumsOut, Worker, fill_double};
use crate::search::lattice::refill;
use crate::search::lattice::running;
use crate::search::lattice::runs::{LONGEST, runs_of};
use crate::search::lattice::sums::Sums;
use crate::search::lattice::tickets::Tickets;
use crate::search::{Monitor, Stop};
use crate::simd::Backend;

/// Number of rows that are summed at a time: few enough to stay in the cache, and enough that the
/// tables are rarely touched.
pub(in crate::search) const BLOCK: usize = 1 << 16;

/// Statistics of one row of each record.
#[derive(Clone, Copy)]
pub struct Records<'a> {
    /// `[record][channel]`.
    pub statistics: &'a [i64],
    /// Whether the event of its rows was observed; empty if there are no events.
    pub events: &'a [bool],
    /// Number of channels per record.
    pub channels: usize,
    /// Number of rows of every record; `None` if each record is one row.
    pub counts: Option<&'a [i64]>,
}

impl Records<'_> {
    /// Number of records.
    pub fn n_records(&self) -> usize {
        self.statistics.len() / self.channels.max(1)
    }
}

/// Rows to sum up, with this number of channels in addition to the two that count.
pub(in crate::search) struct Block<'a, R, W> {
    pub n_rows: usize,
    /// Number of words per row.
    pub words: usize,
    /// Packed columns of a row.
    pub row: R,
    /// Writes the statistics of a row, and its numbers of rows and events.
    pub write: W,
    pub backend: Backend,
    pub monitor: &'a Monitor<'a>,
}

/// Memory of a thread that adds rows.
#[derive(Default)]
pub struct Adder {
    sums: Sums<i64>,
    worker: Worker<i64>,
    totals: Vec<i64>,
}

impl Adder {
    /// Adds rows, given by their features and the record that each belongs to. O(rows · C(k, d))
    /// for k columns that are true in a row.
    ///
    /// # Errors
    ///
    /// For a record that does not exist. After a stop the table may contain some of the rows and
    /// must not be used.
    pub fn add(
        &mut self,
        table: &mut Table,
        records: Records,
        features: &mut BinaryMatrix,
        record_of: &[u32],
        backend: Backend,
        monitor: &Monitor,
    ) -> Result<Result<(), Stop>, Error> {
        let n_records = records.n_records();
        if let Some(row) = record_of.iter().position(|&of| of as usize >= n_records) {
            let reason = format!("row {row} has outcome {} of {n_records}", record_of[row]);
            return Err(Error::invalid("outcome", reason));
        }
        if features.n_rows() != record_of.len() || features.n_features() != table.shape.n_features {
            let (rows, columns) = (features.n_rows(), features.n_features());
            let (n, p) = (record_of.len(), table.shape.n_features);
            let reason = format!("is of shape ({rows}, {columns}), not ({n}, {p})");
            return Err(Error::invalid("features", reason));
        }
        features.negate(&table.shape.flipped);
        let (features, channels) = (&*features, records.channels);
        for first in (0..record_of.len()).step_by(BLOCK) {
            let of_block = &record_of[first..record_of.len().min(first + BLOCK)];
            let write = |r: usize, lanes: &mut [i64]| {
                let record = of_block[r] as usize;
                let statistics = &records.statistics[record * channels..][..channels];
                lanes[..channels].copy_from_slice(statistics);
                let event = records.events.get(record).is_some_and(|&event| event);
                lanes[channels..].copy_from_slice(&[1, i64::from(event)]);
            };
            let row = |r: usize| features.row(first + r);
            let (n_rows, words) = (of_block.len(), features.words());
            let block = Block { n_rows, words, row, write, backend, monitor };
            if let Err(stop) = self.sum(&table.shape, block) {
                return Ok(Err(stop));
            }
            self.pour(table);
        }
        Ok(Ok(()))
    }

    /// Bytes in addition to the table.
    pub(in crate::search) fn bytes(shape: &Shape) -> usize {
        let positions = (1..=shape.depth).map(|m| Geometry::positions(shape.n_features, m));
        let per_row = 8 * (shape.width() + 2 * shape.n_features.div_ceil(64)) + 1;
        let longest = shape.n_features.min(LONGEST);
        let running = running::entries(shape.depth, BLOCK, shape.n_features, longest);
        let entries = positions.chain(running).fold(0, usize::saturating_add);
        entries.saturating_mul(8 * shape.width()) + (2 + running::copies(BLOCK)) * BLOCK * per_row
    }

    /// Sums up rows.
    pub(in crate::search) fn sum<'r>(
        &mut self,
        shape: &Shape,
        block: Block<impl Fn(usize) -> &'r [u64], impl Fn(usize, &mut [i64])>,
    ) -> Result<(), Stop> {
        let Adder { sums, worker, totals } = self;
        let (n, width) = (shape.n_features, shape.width());
        sums.channels = width;
        if sums.geometry.n != n || sums.geometry.total(1) == 0 {
            sums.geometry = Geometry::new(n, PREFIX);
        }
        refill(totals, width, 0);
        let Block { n_rows, words, row, write, backend, monitor } = block;
        sums.runs = runs_of(n, (0..n_rows).map(&row));
        sums.rows.fill((n_rows, n, words), width, row, |r, lanes| {
            write(r, lanes);
            totals.iter_mut().zip(lanes).for_each(|(total, v)| *total += *v);
        });
        let everything = sums.rows.everything();
        worker.begin(sums);
        for size in 1..=shape.depth.min(n) {
            let mut level = std::mem::take(&mut sums.levels[size - 1]);
            refill(&mut level, width * sums.geometry.total(size), 0);
            let (tickets, everything) = (Tickets::new(size, &sums.runs, 1), &everything[..]);
            let pass = Pass { sums, size, counts: true, everything, tickets, monitor };
            let filled = fill_double(backend, &pass, &SumsOut::new(&mut level), worker);
            sums.levels[size - 1] = level;
            filled?;
        }
        Ok(())
    }

    /// Adds the last sums to a table.
    pub(in crate::search) fn pour(&self, table: &mut Table) {
        let Adder { sums, totals, .. } = self;
        let Table { shape, itemsets, sums: into } = table;
        let (n, width) = (shape.n_features, shape.width());
        into.iter_mut().zip(totals).for_each(|(sum, v)| *sum += v);
        for size in 1..=shape.depth.min(n) {
            let (level, total) = (&sums.levels[size - 1], sums.geometry.total(size));
            for_each_prefix(n, size - 1, &mut |prefix| {
                let row = sums.geometry.row(prefix);
                let mut itemset = [0; PREFIX];
                itemset[..prefix.len()].copy_from_slice(prefix);
                for lane in row.first..n {
                    itemset[prefix.len()] = lane;
                    let place = itemsets.position(&itemset[..size]) * width;
                    let at = row.start + (lane - row.first);
                    for (c, sum) in into[place..place + width].iter_mut().enumerate() {
                        *sum += level[c * total + at];
                    }
                }
            });
        }
    }
}

/// Visits every ascending choice of `size` columns.
fn for_each_prefix(n: usize, size: usize, visit: &mut dyn FnMut(&[usize])) {
    fn descend(n: usize, size: usize, prefix: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
        if prefix.len() == size {
            return visit(prefix);
        }
        for column in prefix.last().map_or(0, |c| c + 1)..n {
            prefix.push(column);
            descend(n, size, prefix, visit);
            prefix.pop();
        }
    }
    descend(n, size, &mut Vec::with_capacity(size), visit);
}
