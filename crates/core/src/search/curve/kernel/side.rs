//! The Kaplan–Meier loss on either side of the splits, from event to event.

use crate::simd::reals::Reals;

/// Running state of the leaves on one side of the splits.
///
/// `survival` is `ratio · at_risk` after an event; `ratio` changes only at censorings.
pub(super) struct Side<L: Reals, const V: usize> {
    pub(super) at_risk: [L::V; V],
    pub(super) survival: [L::V; V],
    pub(super) ratio: [L::V; V],
    pub(super) happened: [L::V; V],
    pub(super) loss: [L::V; V],
}

/// What all lanes share between two events of the node: Δ and Δ/G integrated, the integral
/// of 1/G from the later time on, and 1/G there.
#[derive(Clone, Copy)]
pub(super) struct Step<L: Reals> {
    pub(super) plain: L::V,
    pub(super) censoring: L::V,
    pub(super) rest: L::V,
    pub(super) inverse_censoring: L::V,
}

/// Sums over the rows between two events and at the second.
pub(super) struct Change<L: Reals, const V: usize> {
    /// Weight censored.
    pub(super) censored: [L::V; V],
    /// Weight censored times minus the integral of 1/G from the time of censoring on.
    pub(super) minus_rest: [L::V; V],
    /// Weight of the events.
    pub(super) events: [L::V; V],
}

impl<L: Reals, const V: usize> Change<L, V> {
    #[inline(always)]
    pub(super) unsafe fn none() -> Self {
        // SAFETY: passed on.
        let zero = [unsafe { L::splat(0.0) }; V];
        Change { censored: zero, minus_rest: zero, events: zero }
    }

    /// The other side's sums.
    #[inline(always)]
    pub(super) unsafe fn rest_of(&self, total: [f64; 3]) -> Self {
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
    pub(super) unsafe fn new(at_risk: [L::V; V]) -> Self {
        // SAFETY: passed on.
        unsafe {
            let (zero, one) = (L::splat(0.0), L::splat(1.0));
            let mut ratio = [zero; V];
            for v in 0..V {
                ratio[v] = L::reciprocal(L::max(at_risk[v], one));
            }
            Side { at_risk, survival: [one; V], ratio, happened: [zero; V], loss: [zero; V] }
        }
    }

    /// Integrates up to the next event, and takes it in.
    #[inline(always)]
    pub(super) unsafe fn advance(
        &mut self,
        step: Step<L>,
        change: &Change<L, V>,
        any_censored: bool,
    ) {
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
                    self.ratio[v] = L::mul(s, L::reciprocal(L::max(n, one)));
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
