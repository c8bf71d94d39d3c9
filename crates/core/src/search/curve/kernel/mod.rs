//! Evaluates all splits of a node in one pass over its rows; lanes are columns, and both sides are
//! computed together.

pub mod exact;
mod source;

use super::rows::{Rows, Tables};
use crate::simd::{Backend, Job, RowLanes, with_token};
use crate::survival::timeline::Code;
use crate::task::brier::antitonic::Fit;
use crate::task::brier::exact::leaf_loss;
use crate::task::brier::passes::{self, Sides, Source, lane_bits};
use crate::task::curve::LeafCurve;
use source::{Collect, Count, CountColumns, FromRows, FromRuns, Listed, NodeRows, Runs};

/// Leaf losses of the two sides of splits on some columns. These include all columns that leave
/// enough rows on either side.
#[derive(Clone, Debug, Default)]
pub struct Splits {
    /// The columns, ascending. The other vectors have the same order, and are padded.
    pub columns: Vec<usize>,
    /// Loss of the rows where the column is true, as one leaf.
    pub yes: Vec<f64>,
    /// Loss of the rows where the column is false, as one leaf.
    pub no: Vec<f64>,
    /// Number of the caller's rows where the column is true.
    pub count: Vec<f64>,
    /// Part of the node's floor where the column is true.
    pub floor: Vec<f64>,
    /// Restricted means of both sides, as shares of the horizon; empty if there is none.
    pub means: [Vec<f64>; 2],
    scratch: Scratch,
}

/// Buffers of a pass.
#[derive(Clone, Debug, Default)]
struct Scratch {
    ids: Vec<u32>,
    bits: Vec<u64>,
    before: Vec<u32>,
    /// Counts of all columns of the node, which its children use.
    runs: Runs,
    /// Counts of the columns that are kept.
    narrow: Runs,
    fits: Vec<Fit>,
}

/// The node above, and the other side of its split.
#[derive(Clone, Copy, Debug)]
pub struct Parent<'a> {
    /// Splits of the node above.
    pub splits: &'a Splits,
    /// The other side.
    pub sibling: &'a Rows,
}

/// Evaluates the splits of nodes.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Instruction set.
    pub backend: Backend,
    /// Curve of the leaves.
    pub curve: LeafCurve,
    /// Minimum number of the caller's rows on either side of a split.
    pub min_leaf: usize,
}

impl Kernel {
    /// Loss of all rows as one leaf.
    pub fn leaf(&self, tables: &Tables) -> f64 {
        if let Some(exact) = &tables.exact {
            let rows = tables.code.iter().copied().zip(exact.weight.iter().copied());
            return leaf_loss(&exact.timeline, self.curve, &rows.collect::<Vec<(Code, f64)>>());
        }
        let rows = tables.code.iter().copied().zip(tables.weight.iter().copied());
        tables.times.leaf(self.curve, rows)
    }

    /// Losses of all single splits; O(rows · columns). Parts of the floor are only computed on
    /// request.
    ///
    /// With `parent`, the larger side of a split need not be counted again.
    pub fn splits(
        &self,
        rows: &Rows,
        tables: &Tables,
        parent: Option<Parent>,
        floors: bool,
        out: &mut Splits,
    ) {
        let n_columns = tables.columns.len();
        // Whole vectors are written.
        let padded = n_columns.next_multiple_of(64);
        for values in [&mut out.yes, &mut out.no, &mut out.count, &mut out.floor] {
            values.resize(padded, 0.0);
        }
        if tables.times.has_horizon() {
            out.means.iter_mut().for_each(|values| values.resize(padded, 0.0));
        }
        if n_columns == 0 {
            return;
        }
        if let Some(exact) = tables.exact.as_ref().filter(|exact| exact.passes.is_none()) {
            exact::all_splits(rows, tables, exact, self.curve, out);
            return;
        }
        with_token!(self.backend, token => {
            all_splits(token.double(), rows, tables, self, parent, floors, out);
        });
    }
}

fn all_splits<L: RowLanes>(
    lanes: L,
    rows: &Rows,
    tables: &Tables,
    kernel: &Kernel,
    parent: Option<Parent>,
    floors: bool,
    out: &mut Splits,
) {
    let mut scratch = std::mem::take(&mut out.scratch);
    let mut columns = std::mem::take(&mut out.columns);
    let Scratch { ids, bits, before, runs, narrow, fits } = &mut scratch;
    let (words, count) = (tables.words, rows.count);
    let mut kept = u64::MAX;
    let parent = parent.filter(|p| tables.histograms && p.sibling.count < count);
    let listed = parent.map_or(rows, |parent| parent.sibling);
    let (n_rows, splitting) = lanes.run(Collect { rows: listed, tables, ids, bits, before });
    let (n_lanes, ids) = (tables.columns.len(), &ids[..n_rows]);
    let node = NodeRows { ids, bits, n_lanes, count, tables };
    let parent = parent.map(|parent| &parent.splits.scratch.runs);
    if let Some(weight) = tables.small_weight.as_deref() {
        let few = n_lanes <= L::COUNTERS;
        let listed = Listed { node, mask: &listed.mask, before, weight };
        match (tables.histograms, few) {
            (true, true) => {
                lanes.run(Count::<1> { listed, parent, runs });
            }
            (true, false) => {
                lanes.run(Count::<2> { listed, parent, runs });
            }
            (false, true) if tables.countable => {
                lanes.run(CountColumns::<1> { listed, runs });
            }
            (false, false) if tables.countable => {
                lanes.run(CountColumns::<2> { listed, runs });
            }
            _ => {}
        }
    }
    let mut counted = &*runs;
    if words == 1 {
        let all_lanes = u64::MAX >> (64 - n_lanes);
        let mut keep = if tables.histograms { all_lanes } else { splitting };
        if tables.countable {
            let (totals, all) = (&runs.totals[..], count as usize);
            keep = lanes.run(Enough { totals, all, least: kernel.min_leaf }) & all_lanes;
        }
        let n_kept = keep.count_ones() as usize;
        if n_kept == 0 || n_kept.div_ceil(L::N) < n_lanes.div_ceil(L::N) {
            kept = keep;
            columns.clear();
            columns.reserve(n_kept);
            let mut left = keep;
            while left != 0 {
                columns.push(left.trailing_zeros() as usize);
                left &= left - 1;
            }
            if tables.histograms || tables.countable {
                lanes.run(NarrowRuns { keep, runs, narrow });
                counted = narrow;
            }
            if !tables.histograms {
                lanes.run(NarrowRows { keep, bits: &mut bits[..n_rows] });
            }
        }
    }
    if kept == u64::MAX {
        columns.clear();
        columns.extend(0..n_lanes);
    }
    let node = NodeRows { ids, bits, n_lanes: columns.len(), count, tables };
    let totals = tables.countable.then_some(&counted.totals[..]);
    let counted = tables.histograms.then_some(counted);
    let mask = (floors && rows.floor > 0.0 || tables.weighted).then_some(&rows.mask[..]);
    let mut first = 0;
    while first < columns.len() {
        let pass = Pass { node, first, curve: kernel.curve, counted, totals, mask, kept };
        if columns.len() - first > L::N {
            match L::WIDE {
                1 => one_pass::<L, 1>(lanes, pass, fits, out),
                _ => one_pass::<L, 2>(lanes, pass, fits, out),
            }
            first += L::WIDE * L::N;
        } else {
            one_pass::<L, 1>(lanes, pass, fits, out);
            first += L::N;
        }
    }
    out.columns = columns;
    out.scratch = scratch;
}

/// Of at most 64 lanes, those with at least `least` of `all` rows on either side.
struct Enough<'a> {
    totals: &'a [u16],
    all: usize,
    least: usize,
}

impl<L: RowLanes> Job<L> for Enough<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self, lanes: L) -> u64 {
        let Enough { totals, all, least } = self;
        let mut out = 0;
        if 2 * least > all {
            return out;
        }
        // The total number of rows fits into 16 bits.
        let (least, most) = (least as u16, (all - least) as u16);
        for (group, totals) in totals.chunks_exact(L::COUNTERS).enumerate() {
            let enough = L::between(lanes.load_all(totals), least, most);
            out |= u64::from(enough) << (group * L::COUNTERS);
        }
        out
    }
}

/// A pass over the lanes from `first` on.
#[derive(Clone, Copy)]
struct Pass<'a> {
    node: NodeRows<'a>,
    first: usize,
    curve: LeafCurve,
    /// The counted rows, if they were counted.
    counted: Option<&'a Runs>,
    /// Weight of every lane if it was counted; it then equals the number of rows.
    totals: Option<&'a [u16]>,
    /// The rows, if floors or counts are to be summed.
    mask: Option<&'a [u64]>,
    /// Columns that have a lane, of up to 64 columns.
    kept: u64,
}

/// Computes the splits of the lanes `first..first + V·N`.
fn one_pass<L: RowLanes, const V: usize>(
    lanes: L,
    pass: Pass,
    fits: &mut Vec<Fit>,
    out: &mut Splits,
) {
    let Pass { node, first, .. } = pass;
    if let Some(mask) = pass.mask {
        lanes.run(AddUp::<V> { pass, mask, out });
    } else {
        out.floor[first..first + V * L::N].fill(0.0);
    }
    let runs = pass.counted.map(|runs| FromRuns { runs, first, at: 0 });
    let rows = FromRows { node, first, at: 0 };
    match (runs, node.tables.times.has_horizon()) {
        (Some(source), false) => lanes.run(Walk::<V, _, false> { source, pass, fits, out }),
        (Some(source), true) => lanes.run(Walk::<V, _, true> { source, pass, fits, out }),
        (None, false) => lanes.run(Walk::<V, _, false> { source: rows, pass, fits, out }),
        (None, true) => lanes.run(Walk::<V, _, true> { source: rows, pass, fits, out }),
    }
}

/// Keeps some of at most 64 lanes of counts.
struct NarrowRuns<'a> {
    keep: u64,
    runs: &'a Runs,
    narrow: &'a mut Runs,
}

impl<L: RowLanes> Job<L> for NarrowRuns<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let NarrowRuns { keep, runs, narrow, .. } = self;
        narrow.lanes = runs.lanes;
        narrow.codes.clone_from(&runs.codes);
        narrow.weight.clone_from(&runs.weight);
        narrow.counts.resize(runs.counts.len(), 0);
        narrow.totals.resize(runs.totals.len(), 0);
        lanes.narrow(&runs.totals, &mut narrow.totals, &[0], runs.totals.len(), keep);
        lanes.narrow(&runs.counts, &mut narrow.counts, &runs.codes, runs.lanes, keep);
    }
}

/// Keeps some of at most 64 lanes in the bits of rows.
struct NarrowRows<'a> {
    keep: u64,
    bits: &'a mut [u64],
}

impl<L: RowLanes> Job<L> for NarrowRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        for bits in self.bits {
            *bits = lanes.compact(*bits, self.keep);
        }
    }
}

/// Sums the counts of the caller's rows and the parts of the floor.
struct AddUp<'a, const V: usize> {
    pass: Pass<'a>,
    mask: &'a [u64],
    out: &'a mut Splits,
}

impl<L: RowLanes, const V: usize> Job<L> for AddUp<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let AddUp {
            pass: Pass { node: NodeRows { tables, .. }, first, kept, .. }, mask, out, ..
        } = self;
        let zero = [lanes.splat_real(0.0); V];
        let (mut count, mut floor) = (zero, zero);
        for (w, (mask, adding)) in mask.iter().zip(&tables.adding).enumerate() {
            let mut left = mask & adding;
            while left != 0 {
                let id = 64 * w as u32 + left.trailing_zeros();
                left &= left - 1;
                let about = &tables.about[id as usize];
                let bits = if tables.words == 1 {
                    lanes.compact(tables.word(id, 0), kept) >> first
                } else {
                    tables.word(id, first)
                };
                for v in 0..V {
                    let lanes = lane_bits::<L>(bits as u32, v);
                    count[v] = L::add_real_where(count[v], lanes, about.count);
                    floor[v] = L::add_real_where(floor[v], lanes, about.floor);
                }
            }
        }
        passes::store::<L, V>(&mut out.count[first..], &count);
        passes::store::<L, V>(&mut out.floor[first..], &floor);
    }
}

/// Computes the losses on both sides, and with `MEANS` the restricted means.
struct Walk<'a, const V: usize, S, const MEANS: bool> {
    source: S,
    pass: Pass<'a>,
    fits: &'a mut Vec<Fit>,
    out: &'a mut Splits,
}

impl<L: RowLanes, const V: usize, S: Source<L, V> + Copy, const MEANS: bool> Job<L>
    for Walk<'_, V, S, MEANS>
{
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let Walk { source, pass: Pass { node, first, curve, totals, .. }, fits, out } = self;
        let tables = node.tables;
        let weight = match totals {
            Some(totals) => {
                let mut at_risk = [lanes.splat_real(0.0); V];
                for (at_risk, totals) in at_risk.iter_mut().zip(totals[first..].chunks(L::N)) {
                    *at_risk = lanes.load_counts(totals);
                }
                (at_risk, node.count)
            }
            None => passes::weigh::<L, V>(lanes, source),
        };
        if !tables.weighted {
            passes::store::<L, V>(&mut out.count[first..], &weight.0);
        }
        let losses = [&mut out.no, &mut out.yes].map(|losses| &mut losses[first..]);
        let means = out.means.each_mut().map(|m| if MEANS { &mut m[first..] } else { &mut m[..] });
        let (times, sides) = (&tables.times, Sides { losses, means });
        passes::losses::<L, V, S, MEANS>(lanes, source, (curve, times), weight, fits, sides);
    }
}
