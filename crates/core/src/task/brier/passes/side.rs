//! The Kaplan–Meier loss on one side of the splits, from event to event.

use crate::simd::RowLanes;

/// Running state of the leaves on one side of the splits.
///
/// `survival` is `ratio` times the weight at risk after an event; `ratio` changes only at
/// censorings.
pub(super) struct Side<L: RowLanes, const V: usize> {
    survival: [L::Real; V],
    ratio: [L::Real; V],
    happened: [L::Real; V],
    pub(super) loss: [L::Real; V],
    /// Restricted mean, as a share of the horizon; only computed if needed.
    pub(super) mean: [L::Real; V],
}

/// Values between two events of the node that are the same for all lanes: the time between the
/// events, 1/G at the second one, and the share of the horizon.
#[derive(Clone, Copy)]
pub(super) struct Step<L: RowLanes> {
    pub(super) plain: L::Real,
    pub(super) inverse_censoring: L::Real,
    pub(super) horizon: L::Real,
    pub(super) any_censored: bool,
}

/// Weights between one event of the node and the next.
#[derive(Clone, Copy)]
pub(super) struct Stretch<T> {
    /// Weight at risk before the second event.
    pub(super) at_risk: T,
    /// Integral of the weight at risk over G. All terms are positive, so the errors of a side and
    /// of the rest of the node are relative to what the node can lose.
    pub(super) integral: T,
    /// Events at the second time.
    pub(super) events: T,
}

impl<L: RowLanes, const V: usize> Side<L, V> {
    /// The state before any event; the share `mean` of the horizon lies before the first time.
    #[inline(always)]
    pub(super) fn new(lanes: L, at_risk: [L::Real; V], mean: f64) -> Self {
        let (zero, one) = (lanes.splat_real(0.0), lanes.splat_real(1.0));
        let mut ratio = [zero; V];
        for v in 0..V {
            ratio[v] = L::reciprocal(L::max_real(at_risk[v], one));
        }
        let mean = [lanes.splat_real(mean); V];
        Side { survival: [one; V], ratio, happened: [zero; V], loss: [zero; V], mean }
    }

    /// Integrates up to the next event, then applies it.
    #[inline(always)]
    pub(super) fn advance<const MEANS: bool>(
        &mut self,
        lanes: L,
        step: Step<L>,
        stretch: impl Fn(usize) -> Stretch<L::Real>,
    ) {
        let one = lanes.splat_real(1.0);
        for v in 0..V {
            let Stretch { at_risk, integral, events } = stretch(v);
            let s = self.survival[v];
            if step.any_censored {
                self.ratio[v] = s * L::reciprocal(L::max_real(at_risk, one));
            }
            if MEANS {
                self.mean[v] = L::mul_add(s, step.horizon, self.mean[v]);
            }
            let u = one - s;
            let p = s * s * self.happened[v];
            self.loss[v] = L::mul_add(p, step.plain, self.loss[v]);
            self.loss[v] = L::mul_add(u * u, integral, self.loss[v]);
            self.survival[v] = L::if_positive(events, self.ratio[v] * (at_risk - events), s);
            self.happened[v] = L::mul_add(events, step.inverse_censoring, self.happened[v]);
        }
    }
}
