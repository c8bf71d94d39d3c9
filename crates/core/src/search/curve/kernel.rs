//! All single splits of a node in one pass over its rows, lanes = columns, both sides at once.

use super::rows::{Code, Rows, Tables};
use crate::simd::Backend;
#[cfg(target_arch = "x86_64")]
use crate::simd::reals::{Avx2, Avx512};
use crate::simd::reals::{Portable, Reals};
use crate::task::brier::LeafCurve;

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
}

/// Evaluates the splits of nodes.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Instruction set.
    pub backend: Backend,
    /// Curve of the leaves.
    pub curve: LeafCurve,
}

impl Kernel {
    /// Loss of the node as one leaf.
    pub fn leaf(&self, rows: &Rows, tables: &Tables) -> f64 {
        let rows = rows.code.iter().copied().zip(rows.weight.iter().copied());
        match self.curve {
            LeafCurve::KaplanMeier => tables.kaplan_meier(rows),
            LeafCurve::BrierOptimal => tables.best_curve(rows),
        }
    }

    /// Losses of all single splits; O(rows · columns).
    pub fn splits(&self, rows: &Rows, tables: &Tables, out: &mut Splits) {
        let n_columns = tables.columns.len();
        // Vectors are stored whole.
        let padded = n_columns.next_multiple_of(16);
        for values in [&mut out.yes, &mut out.no, &mut out.count, &mut out.floor] {
            values.clear();
            values.resize(padded, 0.0);
        }
        // SAFETY: only backends of this machine are ever chosen; the buffers are padded.
        unsafe {
            match self.backend {
                #[cfg(target_arch = "x86_64")]
                Backend::Avx512 => all_splits_avx512(rows, tables, self.curve, out),
                #[cfg(target_arch = "x86_64")]
                Backend::Avx2 => all_splits_avx2(rows, tables, self.curve, out),
                _ => all_splits::<Portable, 1, 1>(rows, tables, self.curve, out),
            }
        }
        if self.curve == LeafCurve::BrierOptimal {
            for c in 0..n_columns {
                let side = |value: bool| {
                    let inside = (0..rows.len()).filter(move |&r| rows.get(r, c) == value);
                    tables.best_curve(inside.map(|r| (rows.code[r], rows.weight[r])))
                };
                (out.yes[c], out.no[c]) = (side(true), side(false));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,fma")]
unsafe fn all_splits_avx512(rows: &Rows, tables: &Tables, curve: LeafCurve, out: &mut Splits) {
    // SAFETY: the features are enabled.
    unsafe { all_splits::<Avx512, 2, 1>(rows, tables, curve, out) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,fma")]
unsafe fn all_splits_avx2(rows: &Rows, tables: &Tables, curve: LeafCurve, out: &mut Splits) {
    // SAFETY: the features are enabled.
    unsafe { all_splits::<Avx2, 1, 1>(rows, tables, curve, out) }
}

/// # Safety
/// Needs the instruction set of `L`; the vectors of `out` are padded.
#[inline(always)]
unsafe fn all_splits<L: Reals, const WIDE: usize, const NARROW: usize>(
    rows: &Rows,
    tables: &Tables,
    curve: LeafCurve,
    out: &mut Splits,
) {
    let mut first = 0;
    while first < tables.columns.len() {
        // SAFETY: passed on.
        unsafe {
            if tables.columns.len() - first > NARROW * L::N {
                pass::<L, WIDE>(rows, tables, curve, first, out);
                first += WIDE * L::N;
            } else {
                pass::<L, NARROW>(rows, tables, curve, first, out);
                first += NARROW * L::N;
            }
        }
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
unsafe fn pass<L: Reals, const V: usize>(
    rows: &Rows,
    tables: &Tables,
    curve: LeafCurve,
    first: usize,
    out: &mut Splits,
) {
    let n_rows = rows.len();
    // SAFETY: passed on.
    unsafe {
        let zero = [L::splat(0.0); V];
        let (mut at_risk, mut count, mut floor) = (zero, zero, zero);
        let mut weight = 0.0;
        for r in 0..n_rows {
            let bits = bits(rows, r, first);
            weight += rows.weight[r];
            for v in 0..V {
                at_risk[v] = L::add_where(at_risk[v], lanes::<L>(bits, v), rows.weight[r]);
            }
        }
        if tables.weighted || rows.floor > 0.0 {
            for r in 0..n_rows {
                let bits = bits(rows, r, first);
                let about = &tables.about[rows.id[r] as usize];
                for v in 0..V {
                    count[v] = L::add_where(count[v], lanes::<L>(bits, v), about.count);
                    floor[v] = L::add_where(floor[v], lanes::<L>(bits, v), about.floor);
                }
            }
        }
        if !tables.weighted {
            count = at_risk;
        }
        store::<L, V>(&mut out.count[first..], &count);
        store::<L, V>(&mut out.floor[first..], &floor);
        if curve == LeafCurve::BrierOptimal {
            return;
        }
        let mut others = zero;
        for v in 0..V {
            others[v] = L::sub(L::splat(weight), at_risk[v]);
        }
        let (mut yes, mut no) = (Side::<L, V>::new(at_risk), Side::<L, V>::new(others));
        let (mut r, mut last) = (0, 0);
        while r < n_rows {
            let mut change = Change::<L, V>::none();
            let mut total = [0.0; 3];
            let run = r;
            while r < n_rows && rows.code[r] % 2 == 1 {
                let weight = rows.weight[r];
                let minus_rest = -weight * tables.censoring[(rows.code[r] / 2) as usize];
                let bits = bits(rows, r, first);
                for v in 0..V {
                    let lanes = lanes::<L>(bits, v);
                    change.censored[v] = L::add_where(change.censored[v], lanes, weight);
                    change.minus_rest[v] = L::add_where(change.minus_rest[v], lanes, minus_rest);
                }
                total[0] += weight;
                total[1] += minus_rest;
                r += 1;
            }
            let any_censored = r > run;
            // The end of time, unless another event follows.
            let (mut k, mut at) = (last, [0.0; 3]);
            let has_events = r < n_rows;
            if has_events {
                let code: Code = rows.code[r];
                k = (code / 2) as usize;
                at = [tables.plain[k], tables.censoring[k], tables.inverse_censoring[k]];
                while r < n_rows && rows.code[r] == code {
                    let weight = rows.weight[r];
                    let bits = bits(rows, r, first);
                    for v in 0..V {
                        let lanes = lanes::<L>(bits, v);
                        change.events[v] = L::add_where(change.events[v], lanes, weight);
                    }
                    total[2] += weight;
                    r += 1;
                }
            }
            let step = Step {
                plain: L::splat(tables.plain[last] - at[0]),
                censoring: L::splat(tables.censoring[last] - at[1]),
                rest: L::splat(at[1]),
                inverse_censoring: L::splat(at[2]),
            };
            last = k;
            no.advance(step, &change.rest_of(total), any_censored);
            yes.advance(step, &change, any_censored);
            if r == n_rows && has_events {
                // The last group was of events: from there to the end.
                let step = Step {
                    plain: L::splat(tables.plain[last]),
                    censoring: L::splat(tables.censoring[last]),
                    rest: L::splat(0.0),
                    inverse_censoring: L::splat(0.0),
                };
                no.advance(step, &Change::none(), false);
                yes.advance(step, &Change::none(), false);
            }
        }
        store::<L, V>(&mut out.yes[first..], &yes.loss);
        store::<L, V>(&mut out.no[first..], &no.loss);
    }
}

/// The bits of the `v`-th vector's lanes.
#[inline(always)]
fn lanes<L: Reals>(bits: u32, v: usize) -> u32 {
    bits >> (v * L::N) & ((1 << L::N) - 1)
}

/// Columns from `first` on of row `r`, at least sixteen.
#[inline(always)]
fn bits(rows: &Rows, r: usize, first: usize) -> u32 {
    (rows.bits[r * rows.words + first / 64] >> (first % 64)) as u32
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
