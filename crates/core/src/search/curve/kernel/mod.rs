//! All single splits of a node in one pass over its rows, lanes = columns, both sides at once.

mod side;
mod source;

use super::rows::{Rows, Tables};
use crate::simd::Backend;
#[cfg(target_arch = "x86_64")]
use crate::simd::reals::{Avx2, Avx512};
use crate::simd::reals::{Job, Portable, Reals};
use crate::task::brier::LeafCurve;
use crate::task::brier::antitonic::Fit;
use side::{Change, Side, Step};
use source::{Collect, Count, CountColumns, FromRows, FromRuns, Listed, Node, Runs, Source, lanes};
use std::marker::PhantomData;

/// Leaf losses of the two sides of the splits on some columns: all that leave enough rows on
/// either side, and maybe others.
#[derive(Clone, Debug, Default)]
pub struct Splits {
    /// The columns, ascending; what follows is in this order, and padded.
    pub columns: Vec<usize>,
    /// Loss of the rows where the column is true, as one leaf.
    pub yes: Vec<f64>,
    /// Loss of the rows where it is false.
    pub no: Vec<f64>,
    /// Number of the caller's rows where it is true.
    pub count: Vec<f64>,
    /// Part of the node's floor where it is true.
    pub floor: Vec<f64>,
    scratch: Scratch,
}

/// Buffers of a pass.
#[derive(Clone, Debug, Default)]
struct Scratch {
    ids: Vec<u32>,
    bits: Vec<u64>,
    before: Vec<u32>,
    /// All columns of the node, for its children.
    runs: Runs,
    /// The lanes that are kept.
    narrow: Runs,
    fits: Vec<Fit>,
}

/// The node that a node is a side of.
#[derive(Clone, Copy, Debug)]
pub struct Parent<'a> {
    /// Its splits.
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
    /// Fewest of the caller's rows on either side of a split.
    pub min_leaf: usize,
}

impl Kernel {
    /// Loss of all rows as one leaf.
    pub fn leaf(&self, tables: &Tables) -> f64 {
        let rows = tables.code.iter().copied().zip(tables.weight.iter().copied());
        match self.curve {
            LeafCurve::KaplanMeier => tables.kaplan_meier(rows),
            LeafCurve::BrierOptimal => tables.best_curve(rows),
        }
    }

    /// Losses of all single splits; O(rows · columns). Parts of the floor only where asked for.
    ///
    /// `parent` saves the larger side of a split from being counted anew.
    pub fn splits(
        &self,
        rows: &Rows,
        tables: &Tables,
        parent: Option<Parent>,
        floors: bool,
        out: &mut Splits,
    ) {
        let n_columns = tables.columns.len();
        // Vectors are stored whole.
        let padded = n_columns.next_multiple_of(64);
        for values in [&mut out.yes, &mut out.no, &mut out.count, &mut out.floor] {
            values.resize(padded, 0.0);
        }
        if n_columns == 0 {
            return;
        }
        // SAFETY: only backends of this machine are ever chosen; the buffers are padded.
        unsafe {
            match self.backend {
                #[cfg(target_arch = "x86_64")]
                Backend::Avx512 => all_splits::<Avx512, 2>(rows, tables, self, parent, floors, out),
                #[cfg(target_arch = "x86_64")]
                Backend::Avx2 => all_splits::<Avx2, 1>(rows, tables, self, parent, floors, out),
                _ => all_splits::<Portable, 1>(rows, tables, self, parent, floors, out),
            }
        }
    }
}

/// # Safety
/// Needs the instruction set of `L`; the vectors of `out` are padded.
unsafe fn all_splits<L: Reals, const WIDE: usize>(
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
    let (lanes_of, words, count) = (PhantomData, tables.words, rows.count);
    let mut kept = u64::MAX;
    // SAFETY: passed on.
    unsafe {
        let parent = parent.filter(|p| tables.histograms && p.sibling.count < count);
        let listed = parent.map_or(rows, |parent| parent.sibling);
        let mut splitting = 0;
        let to = &mut splitting;
        L::isolated(Collect::<L> { rows: listed, tables, ids, bits, before, to, lanes_of });
        let (n_lanes, n_rows) = (tables.columns.len(), ids.len());
        let node = Node { ids, bits, n_lanes, count, tables };
        let parent = parent.map(|parent| &parent.splits.scratch.runs);
        if let Some(weight) = tables.small_weight.as_deref() {
            let few = n_lanes <= L::COUNTERS;
            let listed = Listed { node, mask: &listed.mask, before, weight };
            match (tables.histograms, few) {
                (true, true) => {
                    L::isolated(Count::<L, 1> { listed, parent, runs, lanes_of });
                }
                (true, false) => {
                    L::isolated(Count::<L, 2> { listed, parent, runs, lanes_of });
                }
                (false, true) if tables.countable => {
                    L::isolated(CountColumns::<L, 1> { listed, runs, lanes_of });
                }
                (false, false) if tables.countable => {
                    L::isolated(CountColumns::<L, 2> { listed, runs, lanes_of });
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
                let (least, to) = (kernel.min_leaf, &mut keep);
                L::isolated(Enough::<L> { totals, all, least, to, lanes_of });
                keep &= all_lanes;
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
                    L::isolated(NarrowRuns::<L> { keep, runs, narrow, lanes_of });
                    counted = narrow;
                }
                if !tables.histograms {
                    L::isolated(NarrowRows::<L> { keep, bits: &mut bits[..n_rows], lanes_of });
                }
            }
        }
        if kept == u64::MAX {
            columns.clear();
            columns.extend(0..n_lanes);
        }
        let node = Node { ids, bits, n_lanes: columns.len(), count, tables };
        let totals = tables.countable.then_some(&counted.totals[..]);
        let counted = tables.histograms.then_some(counted);
        let mask = (floors && rows.floor > 0.0 || tables.weighted).then_some(&rows.mask[..]);
        let mut first = 0;
        while first < columns.len() {
            let pass = Pass { node, first, curve: kernel.curve, counted, totals, mask, kept };
            if columns.len() - first > L::N {
                one_pass::<L, WIDE>(pass, fits, out);
                first += WIDE * L::N;
            } else {
                one_pass::<L, 1>(pass, fits, out);
                first += L::N;
            }
        }
    }
    out.columns = columns;
    out.scratch = scratch;
}

/// Lanes with at least `least` of `all` rows on either side, of at most 64.
struct Enough<'a, L> {
    totals: &'a [u16],
    all: usize,
    least: usize,
    to: &'a mut u64,
    lanes_of: PhantomData<L>,
}

impl<L: Reals> Job for Enough<'_, L> {
    #[inline(always)]
    unsafe fn run(self) {
        let Enough { totals, all, least, to, .. } = self;
        *to = 0;
        if 2 * least > all {
            return;
        }
        // All rows are no more than 16 bits count.
        let (least, most) = (least as u16, (all - least) as u16);
        for (group, totals) in totals.chunks_exact(L::COUNTERS).enumerate() {
            // SAFETY: passed on.
            let enough = unsafe { L::between(L::load_all(totals.as_ptr()), least, most) };
            *to |= u64::from(enough) << (group * L::COUNTERS);
        }
    }
}

/// A pass over the lanes from `first` on.
#[derive(Clone, Copy)]
struct Pass<'a> {
    node: Node<'a>,
    first: usize,
    curve: LeafCurve,
    /// The rows in runs, where they were counted.
    counted: Option<&'a Runs>,
    /// Weight of every lane, where it was counted; it is then the number of rows.
    totals: Option<&'a [u16]>,
    /// The rows, where floors or counts are to be added up.
    mask: Option<&'a [u64]>,
    /// Columns that have a lane, up to 64 columns.
    kept: u64,
}

/// Splits on the lanes `first..first + V·N`.
///
/// # Safety
/// Needs the instruction set of `L`; the vectors of `out` hold those lanes.
unsafe fn one_pass<L: Reals, const V: usize>(pass: Pass, fits: &mut Vec<Fit>, out: &mut Splits) {
    let (Pass { node, first, .. }, lanes_of) = (pass, PhantomData);
    // SAFETY: passed on.
    unsafe {
        if let Some(mask) = pass.mask {
            L::isolated(AddUp::<L, V> { pass, mask, out, lanes_of });
        } else {
            out.floor[first..first + V * L::N].fill(0.0);
        }
        match pass.counted {
            Some(runs) => {
                let source = FromRuns { runs, first, at: 0 };
                L::isolated(Walk::<L, V, _> { source, pass, fits, out, lanes_of });
            }
            None => {
                let source = FromRows { node, first, at: 0 };
                L::isolated(Walk::<L, V, _> { source, pass, fits, out, lanes_of });
            }
        }
    }
}

/// Keeps some of at most 64 lanes.
struct NarrowRuns<'a, L> {
    keep: u64,
    runs: &'a Runs,
    narrow: &'a mut Runs,
    lanes_of: PhantomData<L>,
}

impl<L: Reals> Job for NarrowRuns<'_, L> {
    #[inline(always)]
    unsafe fn run(self) {
        let NarrowRuns { keep, runs, narrow, .. } = self;
        narrow.lanes = runs.lanes;
        narrow.codes.clone_from(&runs.codes);
        narrow.weight.clone_from(&runs.weight);
        narrow.counts.resize(runs.counts.len(), 0);
        narrow.totals.resize(runs.totals.len(), 0);
        // SAFETY: passed on.
        unsafe {
            L::narrow(&runs.totals, &mut narrow.totals, &[0], runs.totals.len(), keep);
            L::narrow(&runs.counts, &mut narrow.counts, &runs.codes, runs.lanes, keep);
        }
    }
}

/// As [`NarrowRuns`], for the bits of rows.
struct NarrowRows<'a, L> {
    keep: u64,
    bits: &'a mut [u64],
    lanes_of: PhantomData<L>,
}

impl<L: Reals> Job for NarrowRows<'_, L> {
    #[inline(always)]
    unsafe fn run(self) {
        for bits in self.bits {
            // SAFETY: passed on.
            *bits = unsafe { L::compact(*bits, self.keep) };
        }
    }
}

/// Counts of the caller's rows and parts of the floor.
struct AddUp<'a, L, const V: usize> {
    pass: Pass<'a>,
    mask: &'a [u64],
    out: &'a mut Splits,
    lanes_of: PhantomData<L>,
}

impl<L: Reals, const V: usize> Job for AddUp<'_, L, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let AddUp { pass: Pass { node: Node { tables, .. }, first, kept, .. }, mask, out, .. } =
            self;
        // SAFETY: passed on.
        unsafe {
            let zero = [L::splat(0.0); V];
            let (mut count, mut floor) = (zero, zero);
            for (w, (mask, adding)) in mask.iter().zip(&tables.adding).enumerate() {
                let mut left = mask & adding;
                while left != 0 {
                    let id = 64 * w as u32 + left.trailing_zeros();
                    left &= left - 1;
                    let about = &tables.about[id as usize];
                    let bits = if tables.words == 1 {
                        L::compact(tables.word(id, 0), kept) >> first
                    } else {
                        tables.word(id, first)
                    };
                    for v in 0..V {
                        let lanes = lanes::<L>(bits as u32, v);
                        count[v] = L::add_where(count[v], lanes, about.count);
                        floor[v] = L::add_where(floor[v], lanes, about.floor);
                    }
                }
            }
            store::<L, V>(&mut out.count[first..], &count);
            store::<L, V>(&mut out.floor[first..], &floor);
        }
    }
}

/// The losses on both sides.
struct Walk<'a, L, const V: usize, S> {
    source: S,
    pass: Pass<'a>,
    fits: &'a mut Vec<Fit>,
    out: &'a mut Splits,
    lanes_of: PhantomData<L>,
}

impl<L: Reals, const V: usize, S: Source<L, V> + Copy> Job for Walk<'_, L, V, S> {
    #[inline(always)]
    unsafe fn run(self) {
        let Walk { source, pass, fits, out, .. } = self;
        let (tables, first) = (pass.node.tables, pass.first);
        // SAFETY: passed on.
        unsafe {
            let weight = weigh::<L, V, S>(source, pass, out);
            match pass.curve {
                LeafCurve::KaplanMeier => walk::<L, V, S>(source, tables, weight, first, out),
                LeafCurve::BrierOptimal => fit::<L, V, S>(source, tables, weight, first, fits, out),
            }
        }
    }
}

/// Weight where the column is true, and of all rows.
///
/// # Safety
/// As [`one_pass`].
#[inline(always)]
unsafe fn weigh<L: Reals, const V: usize, S: Source<L, V>>(
    mut runs: S,
    pass: Pass,
    out: &mut Splits,
) -> ([L::V; V], f64) {
    let Pass { node, first, totals, .. } = pass;
    // SAFETY: passed on; the slice holds V·N counters.
    unsafe {
        let (mut at_risk, mut weight) = ([L::splat(0.0); V], 0.0);
        if let Some(totals) = totals {
            let totals = &totals[first..][..V * L::N];
            for v in 0..V {
                at_risk[v] = L::load_counts(totals.as_ptr().add(v * L::N));
            }
            weight = node.count;
        } else {
            while let Some((_, total, sums)) = runs.next() {
                weight += total;
                for v in 0..V {
                    at_risk[v] = L::add(at_risk[v], sums[v]);
                }
            }
        }
        if !node.tables.weighted {
            store::<L, V>(&mut out.count[first..], &at_risk);
        }
        (at_risk, weight)
    }
}

/// The losses of the Kaplan–Meier curves.
///
/// # Safety
/// As [`one_pass`].
#[inline(always)]
unsafe fn walk<L: Reals, const V: usize, S: Source<L, V>>(
    mut runs: S,
    tables: &Tables,
    (at_risk, weight): ([L::V; V], f64),
    first: usize,
    out: &mut Splits,
) {
    // SAFETY: passed on.
    unsafe {
        let mut others = at_risk;
        for v in 0..V {
            others[v] = L::sub(L::splat(weight), at_risk[v]);
        }
        let (mut yes, mut no) = (Side::<L, V>::new(at_risk), Side::<L, V>::new(others));
        let mut change = Change::<L, V>::none();
        let (mut total, mut last) = ([0.0; 3], 0);
        loop {
            let run = runs.next();
            let k = match run {
                Some((code, weight, sums)) if code % 2 == 1 => {
                    let minus_rest = -tables.censoring[(code / 2) as usize];
                    for v in 0..V {
                        change.censored[v] = L::add(change.censored[v], sums[v]);
                        change.minus_rest[v] =
                            L::mul_add(sums[v], L::splat(minus_rest), change.minus_rest[v]);
                    }
                    total[0] += weight;
                    total[1] += weight * minus_rest;
                    continue;
                }
                Some((code, weight, sums)) => {
                    change.events = sums;
                    total[2] = weight;
                    Some((code / 2) as usize)
                }
                None => None,
            };
            // At the end of time nothing is left.
            let at = k.map_or([0.0; 3], |k| {
                [tables.plain[k], tables.censoring[k], tables.inverse_censoring[k]]
            });
            let step = Step {
                plain: L::splat(tables.plain[last] - at[0]),
                censoring: L::splat(tables.censoring[last] - at[1]),
                rest: L::splat(at[1]),
                inverse_censoring: L::splat(at[2]),
            };
            let any_censored = total[0] > 0.0;
            no.advance(step, &change.rest_of(total), any_censored);
            yes.advance(step, &change, any_censored);
            let Some(k) = k else { break };
            last = k;
            change = Change::none();
            total = [0.0; 3];
        }
        store::<L, V>(&mut out.yes[first..], &yes.loss);
        store::<L, V>(&mut out.no[first..], &no.loss);
    }
}

/// The losses of the fitted curves: every run ends a piece on either side of every column.
///
/// # Safety
/// As [`one_pass`].
#[inline(always)]
unsafe fn fit<L: Reals, const V: usize, S: Source<L, V>>(
    mut runs: S,
    tables: &Tables,
    (at_risk, weight): ([L::V; V], f64),
    first: usize,
    fits: &mut Vec<Fit>,
    out: &mut Splits,
) {
    let n = V * L::N;
    fits.resize_with(fits.len().max(2 * n), Fit::default);
    fits.iter_mut().for_each(Fit::clear);
    let (yes_fits, no_fits) = fits.split_at_mut(n);
    let (mut yes, mut sums, mut happened) = ([0.0; 32], [0.0; 32], [0.0; 32]);
    let (mut all, mut all_happened, mut last) = (weight, 0.0, 0);
    // SAFETY: passed on.
    unsafe {
        store::<L, V>(&mut yes, &at_risk);
        loop {
            let run = runs.next();
            let k = run.as_ref().map(|&(code, ..)| (code / 2) as usize);
            let (plain, censoring) =
                k.map_or((0.0, 0.0), |k| (tables.plain[k], tables.censoring[k]));
            let (plain, censoring) =
                (tables.plain[last] - plain, tables.censoring[last] - censoring);
            if k != Some(last) {
                for lane in 0..n {
                    yes_fits[lane].push(happened[lane] * plain, yes[lane] * censoring);
                    let (v, at_risk) = (all_happened - happened[lane], all - yes[lane]);
                    no_fits[lane].push(v.max(0.0) * plain, at_risk * censoring);
                }
            }
            let Some((code, total, lanes)) = run else { break };
            last = (code / 2) as usize;
            store::<L, V>(&mut sums, &lanes);
            let weight = if code % 2 == 0 { tables.inverse_censoring[last] } else { 0.0 };
            for lane in 0..n {
                yes[lane] -= sums[lane];
                happened[lane] += weight * sums[lane];
            }
            all -= total;
            all_happened += weight * total;
        }
    }
    for lane in 0..n {
        out.yes[first + lane] = yes_fits[lane].loss();
        out.no[first + lane] = no_fits[lane].loss();
    }
}

/// # Safety
/// Needs the instruction set of `L`.
#[inline(always)]
unsafe fn store<L: Reals, const V: usize>(to: &mut [f64], values: &[L::V; V]) {
    assert!(to.len() >= V * L::N);
    for v in 0..V {
        // SAFETY: passed on; there is room.
        unsafe { L::store(to.as_mut_ptr().add(v * L::N), values[v]) }
    }
}
