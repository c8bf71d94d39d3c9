//! Adding rows to a table, by the kernels that fill the levels of a lattice.

use super::{COUNTS, Table};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::search::lattice::geometry::{Geometry, PREFIX};
use crate::search::lattice::kernels::{Filling, SumsOut, Worker, fill_double};
use crate::search::lattice::refill;
use crate::search::lattice::sums::Sums;
use crate::search::{Monitor, Stop};
use crate::simd::Backend;
use std::sync::atomic::AtomicUsize;

/// Rows that are summed at a time: few enough to stay in the cache, and enough that the tables are
/// rarely touched.
const BLOCK: usize = 1 << 16;

/// Statistics of one row of every record.
#[derive(Clone, Copy)]
pub struct Records<'a> {
    /// `[record][channel]`.
    pub statistics: &'a [i64],
    /// Whether the event of its rows was observed; empty where there are none.
    pub events: &'a [bool],
    /// Channels per record.
    pub channels: usize,
    /// Rows of every record; one each where there are none.
    pub counts: Option<&'a [i64]>,
}

impl Records<'_> {
    /// Number of records.
    pub fn n_records(&self) -> usize {
        self.statistics.len() / self.channels.max(1)
    }
}

/// Memory of a thread that adds rows.
#[derive(Default)]
pub struct Adder {
    sums: Sums<i64>,
    worker: Worker<i64, f64>,
}

impl Adder {
    /// Adds rows: their features, and the record that each is a row of. O(rows · C(k, d)) for k
    /// columns that are true in a row.
    ///
    /// # Errors
    /// For a record that does not exist. After a stop or an error the table may hold some of the
    /// rows: it is of no further use.
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
        for first in (0..record_of.len()).step_by(BLOCK) {
            let end = record_of.len().min(first + BLOCK);
            let of_block = &record_of[first..end];
            if let Err(stop) =
                self.block(table, records, (features, first), of_block, backend, monitor)
            {
                return Ok(Err(stop));
            }
        }
        Ok(Ok(()))
    }

    fn block(
        &mut self,
        table: &mut Table,
        records: Records,
        (features, first): (&BinaryMatrix, usize),
        record_of: &[u32],
        backend: Backend,
        monitor: &Monitor,
    ) -> Result<(), Stop> {
        let Adder { sums, worker } = self;
        let (n, depth, channels) = (
            table.shape.n_features,
            table.shape.depth.min(table.shape.n_features),
            records.channels,
        );
        sums.channels = channels + COUNTS;
        if sums.geometry.n != n || sums.geometry.total(1) == 0 {
            sums.geometry = Geometry::new(n, PREFIX);
        }
        let mut totals = vec![0i64; sums.channels];
        let rows = (record_of.len(), n, features.words());
        sums.rows.fill(
            rows,
            sums.channels,
            |r| features.row(first + r),
            |r, lanes| {
                let record = record_of[r] as usize;
                lanes[..channels]
                    .copy_from_slice(&records.statistics[record * channels..][..channels]);
                lanes[channels] = 1;
                lanes[channels + 1] =
                    i64::from(records.events.get(record).is_some_and(|&event| event));
                totals.iter_mut().zip(lanes).for_each(|(total, v)| *total += *v);
            },
        );
        let everything = sums.rows.everything();
        worker.begin(sums);
        for size in 1..=depth {
            let mut level = std::mem::take(&mut sums.levels[size - 1]);
            refill(&mut level, sums.channels * sums.geometry.total(size), 0);
            let filling = Filling {
                sums,
                size,
                out: SumsOut::new(&mut level),
                everything: &everything,
                next: AtomicUsize::new(0),
                monitor,
            };
            let filled = fill_double(backend, &filling, worker);
            sums.levels[size - 1] = level;
            filled?;
        }
        let width = sums.channels;
        table.sums.iter_mut().zip(&totals).for_each(|(sum, v)| *sum += v);
        for size in 1..=depth {
            let (level, total) = (&sums.levels[size - 1], sums.geometry.total(size));
            for_each_prefix(n, size - 1, &mut |prefix| {
                let row = sums.geometry.row(prefix);
                let mut itemset = [0; PREFIX];
                itemset[..prefix.len()].copy_from_slice(prefix);
                for lane in row.first..n {
                    itemset[prefix.len()] = lane;
                    let into = table.itemsets.position(&itemset[..size]) * width;
                    let at = row.start + (lane - row.first);
                    for (c, sum) in table.sums[into..into + width].iter_mut().enumerate() {
                        *sum += level[c * total + at];
                    }
                }
            });
        }
        Ok(())
    }
}

/// Every ascending choice of so many columns.
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
