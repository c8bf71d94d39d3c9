//! Losses of many leaves in one pass over the rows, in the order of time. A lane is a split, which
//! has a leaf on either side. See docs/maths/brier.md.

mod side;

use super::antitonic::Fit;
use crate::simd::{RowLanes, Vector};
use crate::survival::timeline::{Code, Timeline};
use crate::task::curve::{BLOCK, LeafCurve};
use side::{Side, Step, Stretch};

/// What losses depend on at every time.
#[derive(Debug)]
pub struct Times {
    /// Time until the end, normalised.
    plain: Vec<f64>,
    /// Integral of 1/G up to the time, normalised.
    censoring: Vec<f64>,
    /// 1/G.
    inverse_censoring: Vec<f64>,
    /// Share of the horizon after the time; empty if restricted means are not needed.
    horizon: Vec<f64>,
}

impl Times {
    /// For rows of this total weight; restricted means extend to the horizon, if one is given.
    pub fn new(timeline: &Timeline, weight: f64, horizon: Option<f64>) -> Self {
        let (plain, censoring) = timeline.integrals(weight);
        let inverse_censoring = timeline.inverse_censoring.clone();
        let horizon = horizon.map_or(Vec::new(), |horizon| timeline.rest_of(horizon));
        Times { plain, censoring, inverse_censoring, horizon }
    }

    /// Whether restricted means are computed.
    pub fn has_horizon(&self) -> bool {
        !self.horizon.is_empty()
    }

    /// Loss of a leaf, from its rows in the order of time; O(rows).
    pub fn leaf(&self, curve: LeafCurve, rows: impl Iterator<Item = (Code, f64)> + Clone) -> f64 {
        match curve {
            LeafCurve::KaplanMeier => self.kaplan_meier(rows).0,
            LeafCurve::BrierOptimal => self.best_curve(rows),
        }
    }

    /// Loss of the best non-increasing curve on rows in the order of time.
    fn best_curve(&self, rows: impl Iterator<Item = (Code, f64)> + Clone) -> f64 {
        let mut fit = Fit::default();
        let (mut n, mut v): (f64, f64) = (rows.clone().map(|row| row.1).sum(), 0.0);
        let mut last: Option<usize> = None;
        for (code, weight) in rows {
            let k = (code / 2) as usize;
            if let Some(last) = last.filter(|&last| last != k) {
                fit.push(
                    v * (self.plain[last] - self.plain[k]),
                    n * (self.censoring[k] - self.censoring[last]),
                );
            }
            last = Some(k);
            n -= weight;
            if code % 2 == 0 {
                v += weight * self.inverse_censoring[k];
            }
        }
        if let Some(last) = last {
            let end = self.censoring.len() - 1;
            fit.push(v * self.plain[last], n * (self.censoring[end] - self.censoring[last]));
        }
        fit.loss()
    }

    /// Loss of the Kaplan–Meier curve on rows in the order of time, and its restricted mean as a
    /// share of the horizon, if there is one.
    pub fn kaplan_meier(&self, rows: impl Iterator<Item = (Code, f64)> + Clone) -> (f64, f64) {
        let (mut n, mut v): (f64, f64) = (rows.clone().map(|row| row.1).sum(), 0.0);
        let (mut survival, mut ratio, mut loss) = (1.0, 1.0 / n.max(1.0), 0.0);
        let rest = |k: usize| self.horizon.get(k).copied().unwrap_or(0.0);
        // Before the first time all rows are at risk.
        let (mut last, mut mean) = (0, self.horizon.first().map_or(0.0, |rest| 1.0 - rest));
        for (code, weight) in rows {
            let k = (code / 2) as usize;
            let (p, q) = (
                v * (self.plain[last] - self.plain[k]),
                n * (self.censoring[k] - self.censoring[last]),
            );
            loss += survival * survival * p + (1.0 - survival) * (1.0 - survival) * q;
            mean += survival * (rest(last) - rest(k));
            last = k;
            n -= weight;
            if weight == 0.0 {
                continue;
            }
            if code % 2 == 0 {
                survival = ratio * n;
                v += weight * self.inverse_censoring[k];
            } else {
                ratio = survival / n.max(1.0);
            }
        }
        let end = self.censoring.len() - 1;
        let (p, q) = (v * self.plain[last], n * (self.censoring[end] - self.censoring[last]));
        loss += survival * survival * p + (1.0 - survival) * (1.0 - survival) * q;
        (loss, mean + survival * rest(last))
    }
}

/// Runs of rows with equal [`Code`], in the order of time.
pub trait Source<L: RowLanes, const V: usize> {
    /// The code of the next run, its total weight, and the weight of the true side of every lane.
    fn next(&mut self, lanes: L) -> Option<(Code, f64, [L::Real; V])>;
}

/// Output of a pass: the losses of the false and of the true side of every lane, and their
/// restricted means if these are needed.
pub struct Sides<'a> {
    /// Losses.
    pub losses: [&'a mut [f64]; 2],
    /// Restricted means, as shares of the horizon.
    pub means: [&'a mut [f64]; 2],
}

/// Weight of the true side of every lane, and of all rows.
#[inline(always)]
pub fn weigh<L: RowLanes, const V: usize>(
    lanes: L,
    mut runs: impl Source<L, V>,
) -> ([L::Real; V], f64) {
    let (mut at_risk, mut weight) = ([lanes.splat_real(0.0); V], 0.0);
    while let Some((_, total, sums)) = runs.next(lanes) {
        weight += total;
        for v in 0..V {
            at_risk[v] = at_risk[v] + sums[v];
        }
    }
    (at_risk, weight)
}

/// Writes the losses of both sides of every lane, and with `MEANS` their restricted means. `weight`
/// is the weight of the true sides and of all rows. O(rows).
#[inline(always)]
pub fn losses<L: RowLanes, const V: usize, S: Source<L, V>, const MEANS: bool>(
    lanes: L,
    runs: S,
    (curve, times): (LeafCurve, &Times),
    weight: ([L::Real; V], f64),
    fits: &mut Vec<Fit>,
    out: Sides,
) {
    match curve {
        LeafCurve::KaplanMeier => walk::<L, V, S, MEANS>(lanes, runs, times, weight, out),
        LeafCurve::BrierOptimal => {
            assert!(!MEANS, "only Kaplan–Meier curves have restricted means here");
            fit::<L, V, S>(lanes, runs, times, weight, fits, out)
        }
    }
}

/// The losses of the Kaplan–Meier curves.
#[inline(always)]
fn walk<L: RowLanes, const V: usize, S: Source<L, V>, const MEANS: bool>(
    lanes: L,
    mut runs: S,
    times: &Times,
    (at_risk, weight): ([L::Real; V], f64),
    out: Sides,
) {
    let (zero, splat) = ([lanes.splat_real(0.0); V], |value| lanes.splat_real(value));
    let mut others = at_risk;
    for v in 0..V {
        others[v] = splat(weight) - at_risk[v];
    }
    // Before the first time all rows are at risk.
    let mut rest = if MEANS { times.horizon[0] } else { 1.0 };
    let mut yes = Side::<L, V>::new(lanes, at_risk, 1.0 - rest);
    let mut no = Side::<L, V>::new(lanes, others, 1.0 - rest);
    let mut ours = Stretch { at_risk, integral: zero, events: zero };
    let mut all = Stretch { at_risk: weight, integral: 0.0, events: 0.0 };
    // Many censorings are summed in blocks, so that few roundings accumulate.
    let (mut blocks, mut of_blocks) = (zero, 0.0);
    // The slices have the same length, so one check covers all of them.
    let n = times.plain.len();
    let (plain, censoring) = (&times.plain[..n], &times.censoring[..n]);
    let inverse_censoring = &times.inverse_censoring[..n];
    // Integrals up to the previous run, and up to the previous event.
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
        let until = if MEANS && !is_end { times.horizon[now] } else { 0.0 };
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
    let Sides { losses: [no_losses, yes_losses], means: [no_means, yes_means] } = out;
    store::<L, V>(yes_losses, &yes.loss);
    store::<L, V>(no_losses, &no.loss);
    if MEANS {
        store::<L, V>(no_means, &no.mean);
        store::<L, V>(yes_means, &yes.mean);
    }
}

/// Losses of the best curves: every run ends a piece on either side of every column.
#[inline(always)]
fn fit<L: RowLanes, const V: usize, S: Source<L, V>>(
    lanes: L,
    mut runs: S,
    times: &Times,
    (at_risk, weight): ([L::Real; V], f64),
    fits: &mut Vec<Fit>,
    out: Sides,
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
        let until = k.unwrap_or(times.plain.len() - 1);
        let plain = times.plain[last] - times.plain[until];
        let censoring = times.censoring[until] - times.censoring[last];
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
        let weight = if code % 2 == 0 { times.inverse_censoring[last] } else { 0.0 };
        for lane in 0..n {
            yes[lane] -= sums[lane];
            happened[lane] += weight * sums[lane];
        }
        all -= total;
        all_happened += weight * total;
    }
    for lane in 0..n {
        out.losses[1][lane] = yes_fits[lane].loss();
        out.losses[0][lane] = no_fits[lane].loss();
    }
}

/// Stores the values of all lanes.
#[inline(always)]
pub fn store<L: RowLanes, const V: usize>(to: &mut [f64], values: &[L::Real; V]) {
    assert!(to.len() >= V * L::N);
    for v in 0..V {
        values[v].store(&mut to[v * L::N..]);
    }
}

/// The bits of the `v`-th vector's lanes.
#[inline(always)]
pub fn lane_bits<L: RowLanes>(bits: u32, v: usize) -> u32 {
    bits >> (v * L::N) & ((1 << L::N) - 1)
}
