//! The Kaplan–Meier loss on either side of the splits, from event to event.

use crate::simd::RowLanes;

/// Running state of the leaves on one side of the splits.
///
/// `survival` is `ratio · at_risk` after an event; `ratio` changes only at censorings.
pub(super) struct Side<L: RowLanes, const V: usize> {
    pub(super) at_risk: [L::Real; V],
    pub(super) survival: [L::Real; V],
    pub(super) ratio: [L::Real; V],
    pub(super) happened: [L::Real; V],
    pub(super) loss: [L::Real; V],
    /// Restricted mean, as a share of the horizon; only where it is asked for.
    pub(super) mean: [L::Real; V],
}

/// What all lanes share between two events of the node: Δ and Δ/G integrated, the integral
/// of 1/G from the later time on, and 1/G there; the share of the horizon.
#[derive(Clone, Copy)]
pub(super) struct Step<L: RowLanes> {
    pub(super) plain: L::Real,
    pub(super) censoring: L::Real,
    pub(super) rest: L::Real,
    pub(super) inverse_censoring: L::Real,
    pub(super) horizon: L::Real,
}

/// Sums over the rows between two events and at the second.
pub(super) struct Change<L: RowLanes, const V: usize> {
    /// Weight censored.
    pub(super) censored: [L::Real; V],
    /// Weight censored times minus the integral of 1/G from the time of censoring on.
    pub(super) minus_rest: [L::Real; V],
    /// Weight of the events.
    pub(super) events: [L::Real; V],
}

impl<L: RowLanes, const V: usize> Change<L, V> {
    #[inline(always)]
    pub(super) fn none(lanes: L) -> Self {
        let zero = [lanes.splat_real(0.0); V];
        Change { censored: zero, minus_rest: zero, events: zero }
    }

    /// The other side's sums.
    #[inline(always)]
    pub(super) fn rest_of(&self, lanes: L, total: [f64; 3]) -> Self {
        let mut rest = Self::none(lanes);
        for v in 0..V {
            rest.censored[v] = lanes.splat_real(total[0]) - self.censored[v];
            rest.minus_rest[v] = lanes.splat_real(total[1]) - self.minus_rest[v];
            rest.events[v] = lanes.splat_real(total[2]) - self.events[v];
        }
        rest
    }
}

impl<L: RowLanes, const V: usize> Side<L, V> {
    /// Before any event; `mean` of the horizon lies before the first time.
    #[inline(always)]
    pub(super) fn new(lanes: L, at_risk: [L::Real; V], mean: f64) -> Self {
        let (zero, one) = (lanes.splat_real(0.0), lanes.splat_real(1.0));
        let mut ratio = [zero; V];
        for v in 0..V {
            ratio[v] = L::reciprocal(L::max_real(at_risk[v], one));
        }
        let mean = [lanes.splat_real(mean); V];
        Side { at_risk, survival: [one; V], ratio, happened: [zero; V], loss: [zero; V], mean }
    }

    /// Integrates up to the next event, and takes it in.
    #[inline(always)]
    pub(super) fn advance<const MEANS: bool>(
        &mut self,
        lanes: L,
        step: Step<L>,
        change: &Change<L, V>,
        any_censored: bool,
    ) {
        let one = lanes.splat_real(1.0);
        for v in 0..V {
            let s = self.survival[v];
            let mut n = self.at_risk[v];
            let mut q = n * step.censoring;
            if any_censored {
                let censored = change.censored[v];
                q = q + L::mul_add(censored, step.rest, change.minus_rest[v]);
                n = n - censored;
                self.ratio[v] = s * L::reciprocal(L::max_real(n, one));
            }
            if MEANS {
                self.mean[v] = L::mul_add(s, step.horizon, self.mean[v]);
            }
            let u = one - s;
            let p = s * s * self.happened[v];
            self.loss[v] = L::mul_add(p, step.plain, self.loss[v]);
            self.loss[v] = L::mul_add(u * u, q, self.loss[v]);
            let events = change.events[v];
            n = n - events;
            self.survival[v] = L::if_positive(events, self.ratio[v] * n, s);
            self.happened[v] = L::mul_add(events, step.inverse_censoring, self.happened[v]);
            self.at_risk[v] = n;
        }
    }
}
