//! The loss of a leaf with the full relative precision of f64, for any weights.

use super::antitonic::Fit;
use crate::precise::Precise;
use crate::survival::timeline::{Code, Timeline};
use crate::task::curve::LeafCurve;

/// The rows of a leaf that leave at one time.
struct Leaving {
    time: usize,
    events: f64,
    /// Weight at risk at that time.
    at_risk: Precise,
    /// Weight at risk without an event at that time.
    survive: Precise,
    /// Weight at risk afterwards.
    beyond: Precise,
}

/// The times at which rows of a leaf leave, last first. `rows` are (position in time, weight) in
/// the order of time. O(rows).
///
/// Weights at risk are summed from the end, so nothing cancels.
fn leaving(rows: &[(Code, f64)]) -> Vec<Leaving> {
    // Times at which only rows without weight leave change nothing.
    let weighs = |same: &&[(Code, f64)]| same.iter().any(|row| row.1 > 0.0);
    let mut times: Vec<Leaving> = Vec::new();
    let mut beyond = Precise::default();
    for same in rows.chunk_by(|a, b| a.0 / 2 == b.0 / 2).filter(weighs).rev() {
        let weight_of =
            |kind: Code| Precise::of(same.iter().filter(|row| row.0 % 2 == kind).map(|row| row.1));
        let (events, survive) = (weight_of(0), beyond.plus(weight_of(1)));
        let (time, at_risk) = ((same[0].0 / 2) as usize, survive.plus(events));
        times.push(Leaving { time, events: events.value(), at_risk, survive, beyond });
        beyond = at_risk;
    }
    times
}

/// Loss of a leaf per unit of weight of all rows. `rows` are (position in time, weight) in the
/// order of time. O(rows).
pub fn leaf_loss(timeline: &Timeline, curve: LeafCurve, rows: &[(Code, f64)]) -> f64 {
    let times = leaving(rows);
    let (mut survival, mut happened) = (Precise::from(1.0), Precise::default());
    let (mut loss, mut fit) = (Precise::default(), Fit::default());
    for (at, now) in times.iter().enumerate().rev() {
        if now.events > 0.0 {
            survival = survival.times(now.survive.over(now.at_risk));
            happened.add_product(now.events, timeline.inverse_censoring[now.time]);
        }
        let next = at.checked_sub(1).map_or(timeline.grid.len() - 1, |next| times[next].time);
        let p = happened.value() * timeline.share(now.time, next);
        let q = now.beyond.value() * timeline.censoring_share(now.time, next);
        match curve {
            LeafCurve::KaplanMeier => {
                let (s, died) = (survival.value(), Precise::from(1.0).minus(survival).value());
                loss.add(s * s * p + died * died * q);
            }
            LeafCurve::BrierOptimal => fit.push(p, q),
        }
    }
    let loss = match curve {
        LeafCurve::KaplanMeier => loss.value(),
        LeafCurve::BrierOptimal => fit.loss(),
    };
    loss / timeline.total_weight()
}

/// Restricted mean of a leaf's Kaplan–Meier curve, as a share of the horizon. `rows` are as in
/// [`leaf_loss`].
pub fn restricted_mean(timeline: &Timeline, horizon: f64, rows: &[(Code, f64)]) -> f64 {
    let (mut survival, mut mean) = (Precise::from(1.0), Precise::default());
    let mut since = 0.0;
    for now in leaving(rows).iter().rev().filter(|now| now.events > 0.0) {
        let until = timeline.grid[now.time].min(horizon);
        mean.add_product(survival.value(), (until - since) / horizon);
        survival = survival.times(now.survive.over(now.at_risk));
        since = until;
    }
    mean.add_product(survival.value(), (horizon - since) / horizon);
    mean.value()
}
