//! All single splits of a node in one pass over its rows, lanes = columns, both sides at once.

use super::rows::{Code, Rows, Tables};
use crate::simd::Backend;
#[cfg(target_arch = "x86_64")]
use crate::simd::reals::{Avx2, Avx512};
use crate::simd::reals::{Portable, Reals};
use crate::task::brier::LeafCurve;
use crate::task::brier::antitonic::Fit;

/// Leaf losses of the two sides of a split on each column.
#[derive(Clone, Debug, Default)]
pub struct Splits {
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
    lanes: Vec<usize>,
    runs: Runs,
    fits: Vec<Fit>,
}

/// Weight of every column in each run of rows with equal [`Code`].
#[derive(Clone, Debug, Default)]
struct Runs {
    /// `lanes` counters per run.
    counts: Vec<u16>,
    lanes: usize,
    code: Vec<Code>,
    weight: Vec<f64>,
}

/// Rows per time of the whole sample from which runs are counted first.
const LONG_RUNS: usize = 3;

/// Evaluates the splits of nodes.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Instruction set.
    pub backend: Backend,
    /// Curve of the leaves.
    pub curve: LeafCurve,
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
    pub fn splits(&self, rows: &Rows, tables: &Tables, floors: bool, out: &mut Splits) {
        let n_columns = tables.columns.len();
        // Vectors are stored whole.
        let padded = n_columns.next_multiple_of(64);
        for values in [&mut out.yes, &mut out.no, &mut out.count, &mut out.floor] {
            values.resize(padded, 0.0);
        }
        // SAFETY: only backends of this machine are ever chosen; the buffers are padded.
        unsafe {
            match self.backend {
                #[cfg(target_arch = "x86_64")]
                Backend::Avx512 => all_splits_avx512(rows, tables, self.curve, floors, out),
                #[cfg(target_arch = "x86_64")]
                Backend::Avx2 => all_splits_avx2(rows, tables, self.curve, floors, out),
                _ => all_splits::<Portable, 1>(rows, tables, self.curve, floors, out),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt,fma")]
unsafe fn all_splits_avx512(
    rows: &Rows,
    tables: &Tables,
    curve: LeafCurve,
    floors: bool,
    out: &mut Splits,
) {
    // SAFETY: the features are enabled.
    unsafe { all_splits::<Avx512, 2>(rows, tables, curve, floors, out) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,fma")]
unsafe fn all_splits_avx2(
    rows: &Rows,
    tables: &Tables,
    curve: LeafCurve,
    floors: bool,
    out: &mut Splits,
) {
    // SAFETY: the features are enabled.
    unsafe { all_splits::<Avx2, 1>(rows, tables, curve, floors, out) }
}

/// # Safety
/// Needs the instruction set of `L`; the vectors of `out` are padded.
#[inline(always)]
unsafe fn all_splits<L: Reals, const WIDE: usize>(
    rows: &Rows,
    tables: &Tables,
    curve: LeafCurve,
    floors: bool,
    out: &mut Splits,
) {
    let mut scratch = std::mem::take(&mut out.scratch);
    let Scratch { ids, bits, lanes, runs, fits } = &mut scratch;
    // SAFETY: passed on; there is room for the rows and what is written behind them.
    unsafe {
        ids.resize(ids.len().max(64 * rows.mask.len() + 16), 0);
        let mut n = 0;
        for (w, &word) in rows.mask.iter().enumerate() {
            n += L::positions(word, 64 * w as u32, ids.as_mut_ptr().add(n));
        }
        let ids = &ids[..n];
        choose_lanes::<L>(rows, ids, tables, bits, lanes);
        let node = Node {
            ids,
            bits,
            words: tables.words,
            n_lanes: lanes.len(),
            floors: floors && rows.floor > 0.0,
            tables,
        };
        let long = n >= LONG_RUNS * tables.plain.len();
        let counted = tables.small_weight.as_deref().filter(|_| long);
        if let Some(weight) = counted {
            if lanes.len() <= L::COUNTERS {
                count_runs::<L, 1>(node, weight, runs);
            } else {
                count_runs::<L, 2>(node, weight, runs);
            }
        }
        let counted = counted.map(|_| &*runs);
        let mut first = 0;
        while first < lanes.len() {
            if lanes.len() - first > L::N {
                one_pass::<L, WIDE>(node, curve, first, counted, fits, out);
                first += WIDE * L::N;
            } else {
                one_pass::<L, 1>(node, curve, first, counted, fits, out);
                first += L::N;
            }
        }
    }
    // From lanes to columns; lanes are ascending, so nothing is overwritten too early.
    for values in [&mut out.yes, &mut out.no, &mut out.count, &mut out.floor] {
        let mut end = tables.columns.len();
        for (lane, &column) in lanes.iter().enumerate().rev() {
            let value = values[lane];
            values[column..end].fill(0.0);
            values[column] = value;
            end = column;
        }
        values[..end].fill(0.0);
    }
    out.scratch = scratch;
}

/// Gives a lane to every column, or only to those that split the node where that takes
/// fewer vectors, and collects the lanes' bits.
///
/// # Safety
/// Needs the instruction set of `L`.
#[inline(always)]
unsafe fn choose_lanes<L: Reals>(
    rows: &Rows,
    ids: &[u32],
    tables: &Tables,
    bits: &mut Vec<u64>,
    lanes: &mut Vec<usize>,
) {
    let n_columns = tables.columns.len();
    lanes.clear();
    bits.clear();
    if L::COMPACTS && tables.words == 1 {
        let words = rows.mask.len();
        let mut splitting = 0u64;
        for c in 0..n_columns {
            let column = &tables.column_masks[c * words..(c + 1) * words];
            let inside = column.iter().zip(&rows.mask).map(|(a, b)| (a & b).count_ones() as usize);
            let inside: usize = inside.sum();
            if inside > 0 && inside < ids.len() {
                lanes.push(c);
                splitting |= 1 << c;
            }
        }
        if lanes.len().div_ceil(L::N) < n_columns.div_ceil(L::N) {
            let word = |&id: &u32| tables.word(id, 0);
            for id in ids {
                // SAFETY: passed on.
                bits.push(unsafe { L::compact(word(id), splitting) });
            }
            return;
        }
        lanes.clear();
    }
    lanes.extend(0..n_columns);
    for &id in ids {
        for first in (0..64 * tables.words).step_by(64) {
            bits.push(tables.word(id, first));
        }
    }
}

/// A node's rows, in the order of time.
#[derive(Clone, Copy)]
struct Node<'a> {
    ids: &'a [u32],
    /// Lanes of each row, in `words` words.
    bits: &'a [u64],
    words: usize,
    n_lanes: usize,
    /// Whether parts of the floor are asked for, and there is one.
    floors: bool,
    tables: &'a Tables,
}

impl Node<'_> {
    /// Lanes of the `r`-th row from `first` on, up to the end of a word.
    #[inline(always)]
    fn word(&self, r: usize, first: usize) -> u64 {
        self.bits[r * self.words + first / 64] >> (first % 64)
    }
}

/// Sums the weights of every run, in whole numbers.
///
/// # Safety
/// Needs the instruction set of `L`.
#[inline(always)]
unsafe fn count_runs<L: Reals, const V: usize>(node: Node, weight: &[u16], runs: &mut Runs) {
    let Node { ids, tables, .. } = node;
    let width = V * L::COUNTERS;
    runs.lanes = node.n_lanes.next_multiple_of(width);
    let most = ids.len().min(2 * tables.plain.len());
    runs.counts.resize(most * runs.lanes, 0);
    let mut first = 0;
    while first < runs.lanes {
        runs.code.clear();
        runs.weight.clear();
        let mut r = 0;
        while r < ids.len() {
            let code = tables.code[ids[r] as usize];
            let end = tables.run_end[code as usize];
            let mut total = 0u32;
            // SAFETY: passed on; there is room for `most` runs.
            unsafe {
                let mut counts = [L::no_counts(); V];
                while let Some(&id) = ids.get(r).filter(|&&id| id < end) {
                    let weight = weight[id as usize];
                    let bits = node.word(r, first);
                    for v in 0..V {
                        let bits = (bits >> (v * L::COUNTERS)) as u32;
                        counts[v] = L::count_where(counts[v], bits, weight);
                    }
                    total += u32::from(weight);
                    r += 1;
                }
                let to = &mut runs.counts[runs.code.len() * runs.lanes + first..][..width];
                for v in 0..V {
                    L::store_counts(to.as_mut_ptr().add(v * L::COUNTERS), counts[v]);
                }
            }
            runs.code.push(code);
            runs.weight.push(f64::from(total));
        }
        first += width;
    }
}

/// Runs of rows with equal [`Code`], one after the other.
trait Source<L: Reals, const V: usize> {
    /// Code, total weight and weight per column of the next run.
    ///
    /// # Safety
    /// Needs the instruction set of `L`.
    unsafe fn next(&mut self) -> Option<(Code, f64, [L::V; V])>;
}

/// From the rows.
struct FromRows<'a> {
    node: Node<'a>,
    first: usize,
    at: usize,
}

impl<L: Reals, const V: usize> Source<L, V> for FromRows<'_> {
    #[inline(always)]
    unsafe fn next(&mut self) -> Option<(Code, f64, [L::V; V])> {
        let Node { ids, tables, .. } = self.node;
        let code = tables.code[*ids.get(self.at)? as usize];
        let mut total = 0.0;
        // SAFETY: passed on.
        let mut sums = [unsafe { L::splat(0.0) }; V];
        let end = tables.run_end[code as usize];
        while let Some(&id) = ids.get(self.at).filter(|&&id| id < end) {
            let weight = tables.weight[id as usize];
            let bits = self.node.word(self.at, self.first) as u32;
            for v in 0..V {
                // SAFETY: passed on.
                sums[v] = unsafe { L::add_where(sums[v], lanes::<L>(bits, v), weight) };
            }
            total += weight;
            self.at += 1;
        }
        Some((code, total, sums))
    }
}

/// From counted runs.
struct FromRuns<'a> {
    runs: &'a Runs,
    first: usize,
    at: usize,
}

impl<L: Reals, const V: usize> Source<L, V> for FromRuns<'_> {
    #[inline(always)]
    unsafe fn next(&mut self) -> Option<(Code, f64, [L::V; V])> {
        let code = *self.runs.code.get(self.at)?;
        let counts = &self.runs.counts[self.at * self.runs.lanes + self.first..][..V * L::N];
        // SAFETY: passed on; the slice holds V·N counters.
        let sums = unsafe {
            let mut sums = [L::splat(0.0); V];
            for v in 0..V {
                sums[v] = L::load_counts(counts.as_ptr().add(v * L::N));
            }
            sums
        };
        let weight = self.runs.weight[self.at];
        self.at += 1;
        Some((code, weight, sums))
    }
}

/// Running state of the leaves on one side of the splits.
///
/// `survival` is `ratio · at_risk` after an event; `ratio` changes only at censorings.
struct Side<L: Reals, const V: usize> {
    at_risk: [L::V; V],
    survival: [L::V; V],
    ratio: [L::V; V],
    happened: [L::V; V],
    loss: [L::V; V],
}

/// What all lanes share between two events of the node: Δ and Δ/G integrated, the integral
/// of 1/G from the later time on, and 1/G there.
#[derive(Clone, Copy)]
struct Step<L: Reals> {
    plain: L::V,
    censoring: L::V,
    rest: L::V,
    inverse_censoring: L::V,
}

/// Sums over the rows between two events and at the second.
struct Change<L: Reals, const V: usize> {
    /// Weight censored.
    censored: [L::V; V],
    /// Weight censored times minus the integral of 1/G from the time of censoring on.
    minus_rest: [L::V; V],
    /// Weight of the events.
    events: [L::V; V],
}

impl<L: Reals, const V: usize> Change<L, V> {
    #[inline(always)]
    unsafe fn none() -> Self {
        // SAFETY: passed on.
        let zero = [unsafe { L::splat(0.0) }; V];
        Change { censored: zero, minus_rest: zero, events: zero }
    }

    /// The other side's sums.
    #[inline(always)]
    unsafe fn rest_of(&self, total: [f64; 3]) -> Self {
        // SAFETY: passed on.
        unsafe {
            let mut rest = Self::none();
            for v in 0..V {
                rest.censored[v] = L::sub(L::splat(total[0]), self.censored[v]);
                rest.minus_rest[v] = L::sub(L::splat(total[1]), self.minus_rest[v]);
                rest.events[v] = L::sub(L::splat(total[2]), self.events[v]);
            }
            rest
        }
    }
}

impl<L: Reals, const V: usize> Side<L, V> {
    #[inline(always)]
    unsafe fn new(at_risk: [L::V; V]) -> Self {
        // SAFETY: passed on.
        unsafe {
            let (zero, one) = (L::splat(0.0), L::splat(1.0));
            let mut ratio = [zero; V];
            for v in 0..V {
                ratio[v] = L::div(one, L::max(at_risk[v], one));
            }
            Side { at_risk, survival: [one; V], ratio, happened: [zero; V], loss: [zero; V] }
        }
    }

    /// Integrates up to the next event, and takes it in.
    #[inline(always)]
    unsafe fn advance(&mut self, step: Step<L>, change: &Change<L, V>, any_censored: bool) {
        // SAFETY: passed on.
        unsafe {
            let one = L::splat(1.0);
            for v in 0..V {
                let s = self.survival[v];
                let mut n = self.at_risk[v];
                let mut q = L::mul(n, step.censoring);
                if any_censored {
                    let censored = change.censored[v];
                    q = L::add(q, L::mul_add(censored, step.rest, change.minus_rest[v]));
                    n = L::sub(n, censored);
                    self.ratio[v] = L::div(s, L::max(n, one));
                }
                let u = L::sub(one, s);
                let p = L::mul(L::mul(s, s), self.happened[v]);
                self.loss[v] = L::mul_add(p, step.plain, self.loss[v]);
                self.loss[v] = L::mul_add(L::mul(u, u), q, self.loss[v]);
                let events = change.events[v];
                n = L::sub(n, events);
                self.survival[v] = L::if_positive(events, L::mul(self.ratio[v], n), s);
                self.happened[v] = L::mul_add(events, step.inverse_censoring, self.happened[v]);
                self.at_risk[v] = n;
            }
        }
    }
}

/// Splits on the columns `first..first + V·N`.
///
/// # Safety
/// Needs the instruction set of `L`; the vectors of `out` hold those columns.
#[inline(always)]
unsafe fn one_pass<L: Reals, const V: usize>(
    node: Node,
    curve: LeafCurve,
    first: usize,
    runs: Option<&Runs>,
    fits: &mut Vec<Fit>,
    out: &mut Splits,
) {
    let tables = node.tables;
    // SAFETY: passed on.
    unsafe {
        let zero = [L::splat(0.0); V];
        if tables.weighted || node.floors {
            let (mut count, mut floor) = (zero, zero);
            for (r, &id) in node.ids.iter().enumerate() {
                let bits = node.word(r, first) as u32;
                let about = &tables.about[id as usize];
                for v in 0..V {
                    count[v] = L::add_where(count[v], lanes::<L>(bits, v), about.count);
                    floor[v] = L::add_where(floor[v], lanes::<L>(bits, v), about.floor);
                }
            }
            store::<L, V>(&mut out.count[first..], &count);
            store::<L, V>(&mut out.floor[first..], &floor);
        } else {
            store::<L, V>(&mut out.floor[first..], &zero);
        }
        match runs {
            Some(runs) => {
                let source = || FromRuns { runs, first, at: 0 };
                walk::<L, V, _>(source, tables, curve, first, fits, out);
            }
            None => {
                let source = || FromRows { node, first, at: 0 };
                walk::<L, V, _>(source, tables, curve, first, fits, out);
            }
        }
    }
}

/// Walks over the runs twice: for the weight on each side, and for the losses.
///
/// # Safety
/// As [`one_pass`].
#[inline(always)]
unsafe fn walk<L: Reals, const V: usize, S: Source<L, V>>(
    source: impl Fn() -> S,
    tables: &Tables,
    curve: LeafCurve,
    first: usize,
    fits: &mut Vec<Fit>,
    out: &mut Splits,
) {
    // SAFETY: passed on.
    unsafe {
        let (mut at_risk, mut weight) = ([L::splat(0.0); V], 0.0);
        let mut runs = source();
        while let Some((_, total, sums)) = runs.next() {
            weight += total;
            for v in 0..V {
                at_risk[v] = L::add(at_risk[v], sums[v]);
            }
        }
        if !tables.weighted {
            store::<L, V>(&mut out.count[first..], &at_risk);
        }
        if curve == LeafCurve::BrierOptimal {
            return fit::<L, V, S>(source(), tables, (at_risk, weight), first, fits, out);
        }
        let mut others = at_risk;
        for v in 0..V {
            others[v] = L::sub(L::splat(weight), at_risk[v]);
        }
        let (mut yes, mut no) = (Side::<L, V>::new(at_risk), Side::<L, V>::new(others));
        let mut change = Change::<L, V>::none();
        let (mut total, mut last) = ([0.0; 3], 0);
        let mut runs = source();
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

/// The bits of the `v`-th vector's lanes.
#[inline(always)]
fn lanes<L: Reals>(bits: u32, v: usize) -> u32 {
    bits >> (v * L::N) & ((1 << L::N) - 1)
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
