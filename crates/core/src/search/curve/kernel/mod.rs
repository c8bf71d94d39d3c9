//! All single splits of a node in one pass over its rows, lanes = columns, both sides at once.

pub mod exact;
mod side;
mod source;

use super::rows::{Rows, Tables};
use crate::simd::{Backend, Job, RowLanes, Vector, with_token};
use crate::survival::timeline::Code;
use crate::task::brier::antitonic::Fit;
use crate::task::brier::exact::leaf_loss;
use crate::task::curve::{BLOCK, LeafCurve};
use side::{Side, Step, Stretch};
use source::{
    Collect, Count, CountColumns, FromRows, FromRuns, Listed, NodeRows, Runs, Source, lane_bits,
};

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
    /// Restricted means of both sides, as shares of the horizon; empty without one.
    pub means: [Vec<f64>; 2],
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
        if let Some(exact) = &tables.exact {
            let rows = tables.code.iter().copied().zip(exact.weight.iter().copied());
            return leaf_loss(&exact.timeline, self.curve, &rows.collect::<Vec<(Code, f64)>>());
        }
        let rows = tables.code.iter().copied().zip(tables.weight.iter().copied());
        match self.curve {
            LeafCurve::KaplanMeier => tables.kaplan_meier(rows).0,
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
        if !tables.horizon.is_empty() {
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

/// Lanes with at least `least` of `all` rows on either side, of at most 64.
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
        // All rows are no more than 16 bits count.
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
    match (runs, node.tables.horizon.is_empty()) {
        (Some(source), true) => lanes.run(Walk::<V, _, false> { source, pass, fits, out }),
        (Some(source), false) => lanes.run(Walk::<V, _, true> { source, pass, fits, out }),
        (None, true) => lanes.run(Walk::<V, _, false> { source: rows, pass, fits, out }),
        (None, false) => lanes.run(Walk::<V, _, true> { source: rows, pass, fits, out }),
    }
}

/// Keeps some of at most 64 lanes.
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

/// As [`NarrowRuns`], for the bits of rows.
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

/// Counts of the caller's rows and parts of the floor.
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
        store::<L, V>(&mut out.count[first..], &count);
        store::<L, V>(&mut out.floor[first..], &floor);
    }
}

/// The losses on both sides, and where they are wanted the restricted `MEANS`.
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
        let Walk { source, pass, fits, out, .. } = self;
        let (tables, first) = (pass.node.tables, pass.first);
        let weight = weigh::<L, V, S>(lanes, source, pass, out);
        match pass.curve {
            LeafCurve::KaplanMeier => {
                walk::<L, V, S, MEANS>(lanes, source, tables, weight, first, out)
            }
            LeafCurve::BrierOptimal => {
                assert!(!MEANS, "only Kaplan–Meier curves have restricted means here");
                fit::<L, V, S>(lanes, source, tables, weight, first, fits, out)
            }
        }
    }
}

/// Weight where the column is true, and of all rows.
#[inline(always)]
fn weigh<L: RowLanes, const V: usize, S: Source<L, V>>(
    lanes: L,
    mut runs: S,
    pass: Pass,
    out: &mut Splits,
) -> ([L::Real; V], f64) {
    let Pass { node, first, totals, .. } = pass;
    let (mut at_risk, mut weight) = ([lanes.splat_real(0.0); V], 0.0);
    if let Some(totals) = totals {
        let totals = &totals[first..][..V * L::N];
        for v in 0..V {
            at_risk[v] = lanes.load_counts(&totals[v * L::N..]);
        }
        weight = node.count;
    } else {
        while let Some((_, total, sums)) = runs.next(lanes) {
            weight += total;
            for v in 0..V {
                at_risk[v] = at_risk[v] + sums[v];
            }
        }
    }
    if !node.tables.weighted {
        store::<L, V>(&mut out.count[first..], &at_risk);
    }
    (at_risk, weight)
}

/// The losses of the Kaplan–Meier curves.
#[inline(always)]
fn walk<L: RowLanes, const V: usize, S: Source<L, V>, const MEANS: bool>(
    lanes: L,
    mut runs: S,
    tables: &Tables,
    (at_risk, weight): ([L::Real; V], f64),
    first: usize,
    out: &mut Splits,
) {
    let (zero, splat) = ([lanes.splat_real(0.0); V], |value| lanes.splat_real(value));
    let mut others = at_risk;
    for v in 0..V {
        others[v] = splat(weight) - at_risk[v];
    }
    // Nobody has left before the first time.
    let mut rest = if MEANS { tables.horizon[0] } else { 1.0 };
    let mut yes = Side::<L, V>::new(lanes, at_risk, 1.0 - rest);
    let mut no = Side::<L, V>::new(lanes, others, 1.0 - rest);
    let mut ours = Stretch { at_risk, integral: zero, events: zero };
    let mut all = Stretch { at_risk: weight, integral: 0.0, events: 0.0 };
    // Sums of many censorings are sums of blocks, so that few roundings add up.
    let (mut blocks, mut of_blocks) = (zero, 0.0);
    // The tables have one length, so one check covers all of them.
    let n = tables.plain.len();
    let (plain, censoring) = (&tables.plain[..n], &tables.censoring[..n]);
    let inverse_censoring = &tables.inverse_censoring[..n];
    // Integrals up to the last run, and to the last event.
    let (mut censoring_before, mut plain_before, mut n_censored) = (censoring[0], plain[0], 0);
    loop {
        let run = runs.next(lanes);
        let now = run.as_ref().map_or(n - 1, |&(code, ..)| (code / 2) as usize);
        let share = censoring[now] - censoring_before;
        censoring_before = censoring[now];
        for v in 0..V {
            ours.integral[v] = L::mul_add(ours.at_risk[v], splat(share), ours.integral[v]);
        }
        all.integral += all.at_risk * share;
        let is_end = run.is_none();
        match run {
            Some((code, weight, sums)) if code % 2 == 1 => {
                for v in 0..V {
                    ours.at_risk[v] = ours.at_risk[v] - sums[v];
                }
                all.at_risk -= weight;
                n_censored += 1;
                if n_censored % BLOCK == 0 {
                    for v in 0..V {
                        blocks[v] = blocks[v] + ours.integral[v];
                    }
                    ours.integral = zero;
                    of_blocks += std::mem::take(&mut all.integral);
                }
                continue;
            }
            Some((_, weight, sums)) => (ours.events, all.events) = (sums, weight),
            None => (ours.events, all.events) = (zero, 0.0),
        }
        if n_censored >= BLOCK {
            for v in 0..V {
                ours.integral[v] = ours.integral[v] + blocks[v];
            }
            blocks = zero;
            all.integral += std::mem::take(&mut of_blocks);
        }
        let until = if MEANS && !is_end { tables.horizon[now] } else { 0.0 };
        let step = Step {
            plain: splat(plain_before - plain[now]),
            inverse_censoring: splat(inverse_censoring[now]),
            horizon: splat(rest - until),
            any_censored: n_censored > 0,
        };
        no.advance::<MEANS>(lanes, step, |v| Stretch {
            at_risk: splat(all.at_risk) - ours.at_risk[v],
            integral: splat(all.integral) - ours.integral[v],
            events: splat(all.events) - ours.events[v],
        });
        yes.advance::<MEANS>(lanes, step, |v| Stretch {
            at_risk: ours.at_risk[v],
            integral: ours.integral[v],
            events: ours.events[v],
        });
        if is_end {
            break;
        }
        for v in 0..V {
            ours.at_risk[v] = ours.at_risk[v] - ours.events[v];
        }
        all.at_risk -= all.events;
        (ours.integral, all.integral) = (zero, 0.0);
        (plain_before, rest, n_censored) = (plain[now], until, 0);
    }
    store::<L, V>(&mut out.yes[first..], &yes.loss);
    store::<L, V>(&mut out.no[first..], &no.loss);
    if MEANS {
        let [no_means, yes_means] = &mut out.means;
        store::<L, V>(&mut no_means[first..], &no.mean);
        store::<L, V>(&mut yes_means[first..], &yes.mean);
    }
}

/// The losses of the fitted curves: every run ends a piece on either side of every column.
#[inline(always)]
fn fit<L: RowLanes, const V: usize, S: Source<L, V>>(
    lanes: L,
    mut runs: S,
    tables: &Tables,
    (at_risk, weight): ([L::Real; V], f64),
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
    store::<L, V>(&mut yes, &at_risk);
    loop {
        let run = runs.next(lanes);
        let k = run.as_ref().map(|&(code, ..)| (code / 2) as usize);
        let until = k.unwrap_or(tables.plain.len() - 1);
        let plain = tables.plain[last] - tables.plain[until];
        let censoring = tables.censoring[until] - tables.censoring[last];
        if k != Some(last) {
            for lane in 0..n {
                yes_fits[lane].push(happened[lane] * plain, yes[lane] * censoring);
                let (v, at_risk) = (all_happened - happened[lane], all - yes[lane]);
                no_fits[lane].push(v.max(0.0) * plain, at_risk * censoring);
            }
        }
        let Some((code, total, weights)) = run else { break };
        last = (code / 2) as usize;
        store::<L, V>(&mut sums, &weights);
        let weight = if code % 2 == 0 { tables.inverse_censoring[last] } else { 0.0 };
        for lane in 0..n {
            yes[lane] -= sums[lane];
            happened[lane] += weight * sums[lane];
        }
        all -= total;
        all_happened += weight * total;
    }
    for lane in 0..n {
        out.yes[first + lane] = yes_fits[lane].loss();
        out.no[first + lane] = no_fits[lane].loss();
    }
}

#[inline(always)]
fn store<L: RowLanes, const V: usize>(to: &mut [f64], values: &[L::Real; V]) {
    assert!(to.len() >= V * L::N);
    for v in 0..V {
        values[v].store(&mut to[v * L::N..]);
    }
}
