//! The loss of the likelihood in lanes, and the error of lanes.

use super::Likelihood;
use crate::simd::{FloatLanes, LaneInt, LaneReal};
use crate::task::fixed::power_of_two;
use crate::task::{LaneError, LaneTask, Swept};

impl Swept for Likelihood {
    /// The events of one end with the hazard of the other. Non-empty parts have at least one unit
    /// of hazard.
    #[inline(always)]
    fn lane_least<L: FloatLanes>(
        &self,
        lanes: L,
        constants: &Self::Constants<L>,
        from: &[L::Int],
        to: &[L::Int],
        whole: &[L::Int],
    ) -> L::Real {
        // No closures, because they would not be compiled for the instruction set.
        let one = lanes.splat(L::I::from_i64(1));
        let part = self.lane_loss(lanes, *constants, [from[0], L::max(to[1], one)]);
        let rest = [whole[0] - from[0], L::max(whole[1] - to[1], one)];
        let first = part + self.lane_loss(lanes, *constants, rest);
        let part = self.lane_loss(lanes, *constants, [to[0], L::max(from[1], one)]);
        let rest = [whole[0] - to[0], L::max(whole[1] - from[1], one)];
        L::min_real(first, part + self.lane_loss(lanes, *constants, rest))
    }

    /// As in [`lane_error`](LaneTask::lane_error), with the logarithms that sums of lanes can have.
    fn least_error(&self, rows: &[i64], shift: &[u32], roundoff: f64, ln_error: f64) -> f64 {
        let prior = self.prior();
        let most = |c: usize| {
            let unit = power_of_two(-(shift[c] as i32));
            let rounded = if shift[c] > 0 { rows.len() as f64 / 4.0 } else { 0.0 };
            let sum = rows[c..].iter().step_by(2).sum::<i64>() as f64;
            (sum + 2.0 * prior[c]) * unit + rounded
        };
        let (events, hazard) = (most(0), most(1));
        // A corner has at least one event, or that of the prior, and one unit of hazard.
        let least = match self.prior > 0.0 {
            true => (prior[0] * power_of_two(-(shift[0] as i32))).min(1.0),
            false => 1.0,
        };
        let log_unit = (shift[1] as f64 - shift[0] as f64) * std::f64::consts::LN_2;
        let baseline = (self.total[0] as f64 / self.total[1] as f64).ln() + log_unit;
        let logarithm =
            ((hazard / least).ln() + baseline).abs().max((baseline - events.ln()).abs());
        events * (ln_error + roundoff * (CORNER_OPERATIONS * logarithm + 3.0 * baseline.abs()))
    }
}

/// Number of roundings relative to the loss in a complete tree of depth d with this many leaves:
/// four in a leaf and 2d − 3 in sums.
pub fn operations(max_leaves: usize) -> f64 {
    f64::from(2 * max_leaves.ilog2() + 1)
}

/// The same for [`Swept::least_error`].
pub const CORNER_OPERATIONS: f64 = 6.0;

/// Constants of the loss in lane units.
#[derive(Clone, Copy)]
pub struct Constants<R> {
    /// ln(ES₀/HS₀)
    baseline: R,
    /// Events and hazard of the prior, and the baseline's charge for its events, which is
    /// subtracted again.
    prior: [R; 3],
}

impl LaneTask for Likelihood {
    type State<L: FloatLanes> = [L::Int; 2];
    type Constants<L: FloatLanes> = Constants<L::Real>;

    fn lane_unit(&self, shift: &[u32]) -> f64 {
        power_of_two(shift[0] as i32) / self.events_scale * self.scale
    }

    fn lane_error(
        &self,
        rows: &[i64],
        shift: &[u32],
        max_leaves: usize,
        roundoff: f64,
        ln_error: f64,
    ) -> LaneError {
        let unit = |c: usize| power_of_two(-(shift[c] as i32));
        let (e_unit, h_unit) = (unit(0), unit(1));
        let records = rows.chunks_exact(2).map(|r| (r[0] as f64 * e_unit, r[1] as f64 * h_unit));
        let (mut e_total, mut h_total) = (0.0, 0.0);
        let (mut least_events, mut least_hazard) = (f64::INFINITY, f64::INFINITY);
        let mut least_ratio = f64::INFINITY;
        for (events, hazard) in records.clone() {
            (e_total, h_total) = (e_total + events, h_total + hazard);
            least_hazard = least_hazard.min(hazard);
            if events > 0.0 {
                least_events = least_events.min(events);
                least_ratio = least_ratio.min(hazard / events);
            }
        }
        // R bounds the absolute logarithm of the hazard ratio between any leaf and the whole
        // sample.
        if e_total == 0.0 && self.prior == 0.0 {
            return LaneError::Fixed(0.0);
        }
        let baseline = (self.total[0] as f64 * e_unit) / (self.total[1] as f64 * h_unit);
        let [prior_events, prior_hazard] = [self.prior()[0] * e_unit, self.prior()[1] * h_unit];
        let (mut largest, mut smallest) = (h_total / least_events, least_ratio);
        // Roundings per event: `operations` relative to the loss, and three relative to the
        // logarithm from `lane_constants`. A prior adds its events to every leaf, and eleven
        // roundings.
        let (mut events, mut operations) = (e_total, operations(max_leaves));
        if self.prior > 0.0 {
            largest = (h_total + prior_hazard) / prior_events;
            smallest = smallest.min(prior_hazard / prior_events);
            events += max_leaves as f64 * prior_events;
            operations += 11.0;
        }
        let r = (largest * baseline).ln().abs().max((smallest * baseline).ln().abs()) + 1.0;
        let relative = operations * r + 3.0 * baseline.ln().abs();
        let mut error = events * (ln_error + roundoff * relative);
        if shift[0] > 0 {
            error += 0.5 * (rows.len() / 2) as f64 * (r + 2.0);
        }
        if shift[1] > 0 {
            if least_hazard < 4.0 {
                return LaneError::Fixed(f64::INFINITY);
            }
            // Rounded events may each be half a unit larger.
            let more = if shift[0] > 0 { 0.5 } else { 0.0 };
            let records = records.map(|(e, h)| (e + more, h, 1.0));
            if self.prior > 0.0 {
                error += 4.0 / 7.0 * rows.len() as f64 / 2.0 * prior_events / prior_hazard;
            }
            error += rounding_error(records, 1.0, max_leaves);
        }
        LaneError::Fixed(error)
    }

    #[inline(always)]
    fn lane_constants<L: FloatLanes>(&self, lanes: L, shift: &[u32]) -> Constants<L::Real> {
        let log_unit = (shift[1] as f64 - shift[0] as f64) * std::f64::consts::LN_2;
        let baseline = (self.total[0] as f64 / self.total[1] as f64).ln() + log_unit;
        let events = self.prior * self.events_scale / power_of_two(shift[0] as i32);
        let hazard = self.prior * self.hazard_scale / power_of_two(shift[1] as i32);
        let uncharged = -events * self.baseline();
        let splat = |value| lanes.splat_real(L::R::from_f64(value));
        let prior = [splat(events), splat(hazard), splat(uncharged)];
        Constants { baseline: splat(baseline), prior }
    }

    #[inline(always)]
    fn lane_start<L: FloatLanes>(&self, lanes: L) -> [L::Int; 2] {
        [lanes.splat(L::I::default()); 2]
    }

    #[inline(always)]
    fn lane_fold<L: FloatLanes>(
        &self,
        _: L,
        _: &Self::Constants<L>,
        mut state: [L::Int; 2],
        channel: usize,
        sums: L::Int,
    ) -> [L::Int; 2] {
        state[channel] = sums;
        state
    }

    #[inline(always)]
    fn lane_loss<L: FloatLanes>(
        &self,
        _: L,
        Constants { baseline, prior }: Constants<L::Real>,
        state: [L::Int; 2],
    ) -> L::Real {
        let (events, hazard) = (L::to_real(state[0]), L::to_real(state[1]));
        // The condition is the same for all leaves, so it costs nothing.
        if self.prior == 0.0 {
            return events * L::ln_ratio(hazard, events, baseline);
        }
        let (events, hazard) = (events + prior[0], hazard + prior[1]);
        // The baseline is charged only for the events of the rows.
        events * L::ln_ratio(hazard, events, baseline) + prior[2]
    }
}

/// Bound on the change of the summed loss of any partition into `leaves` if every row's hazard is
/// rounded to a multiple of `unit`, for (events, hazard, number of rows) with hazards of at least 4
/// units.
///
/// The hazard of a leaf with m rows changes by at most m·unit/2, and its loss by at most
/// (8/7)·ES·m·(unit/2)/HS. With b = max(events/κ, 1), ES·m ≤ κ(Σ b)². The subset with the largest
/// (Σ b)²/(Σ h) is a prefix in the order of h/b. Also m/HS ≤ 1/min h, and ES/HS ≤ max events/h.
pub(super) fn rounding_error(
    records: impl Iterator<Item = (f64, f64, f64)> + Clone,
    unit: f64,
    leaves: usize,
) -> f64 {
    let (mut events, mut n, mut most_events, mut largest_rate) = (0.0, 0.0, 0.0f64, 0.0f64);
    let (mut least_hazard, mut most_hazard) = (f64::INFINITY, 0.0f64);
    for (e, h, count) in records.clone() {
        (events, n) = (events + e * count, n + count);
        (least_hazard, most_hazard) = (least_hazard.min(h), most_hazard.max(h));
        if e > 0.0 {
            (most_events, largest_rate) = (most_events.max(e), largest_rate.max(e / h));
        }
    }
    let kappa = f64::max(events / f64::max(n, 1.0), f64::MIN_POSITIVE);
    // Groups records by the first bits of h/b. Within a group h is at least b times the smallest
    // ratio, and an expression that is convex in the number of its records in the prefix is largest
    // at an end.
    let of_events = |e: f64| if e > kappa { e / kappa } else { 1.0 };
    const DROPPED: u32 = 46;
    let group = |ratio: f64| ratio.to_bits() >> DROPPED;
    let first = group(least_hazard / of_events(most_events));
    let mut groups = vec![0.0; (group(most_hazard) + 1).saturating_sub(first) as usize];
    for (e, h, n) in records {
        let b = of_events(e);
        groups[(group(h / b) - first) as usize] += n * b;
    }
    let (mut b, mut h, mut worst) = (0.0, 0.0, 0.0f64);
    for (&more, key) in groups.iter().zip(first..).filter(|group| *group.0 > 0.0) {
        b += more;
        h += more * f64::from_bits(key << DROPPED);
        worst = worst.max(b * b / h);
    }
    let bounds = [events / least_hazard, n * largest_rate, leaves as f64 * kappa * worst];
    8.0 / 7.0 * bounds.into_iter().fold(f64::INFINITY, f64::min) * unit / 2.0
}
