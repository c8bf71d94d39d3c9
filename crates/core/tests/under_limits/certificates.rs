//! What every search promises of its result, its trace and its callback, stopped or not.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bristlecone_core::error::Error;
use bristlecone_core::search::fronts::{Front, FrontPoint};
use bristlecone_core::search::{Monitor, Status, TracePoint};

use crate::harness::{CERTIFIED, agree, ensure};

/// What bounds may be above an optimum that the oracle adds up in another order.
const ROUNDING: f64 = 1e-11;

/// The result of a search that ran to its end, if there is an admissible tree; whatever it and
/// searches that were stopped early tell is checked against the optimum, and their trees by
/// `objective`.
pub fn searched(
    optimum: f64,
    objective: impl Fn(&FrontPoint) -> Result<f64, String>,
    search: impl Fn(&Monitor) -> Result<Front, Error>,
) -> Result<Option<Front>, String> {
    let run = |patience: u64| {
        let (checks, told) = (AtomicU64::new(0), Mutex::new(Vec::new()));
        let stop = || checks.fetch_add(1, Ordering::Relaxed) >= patience;
        let progress = |point: &TracePoint| told.lock().expect("no panic").push(*point);
        let monitor = Monitor::new(None, &stop).with_progress(&progress);
        search(&monitor).map(|front| (front, told.into_inner().expect("no panic")))
    };
    let Ok((front, told)) = run(u64::MAX) else { return Ok(None) };
    keeps_promises(&front, &told, optimum, &objective)?;
    let expected = if optimum.is_finite() { Status::Optimal } else { Status::Infeasible };
    ensure(front.status == expected, || format!("{:?} not {expected:?}", front.status))?;
    if optimum.is_finite() {
        agree("objective", front.objective, optimum, CERTIFIED)?;
    }
    for patience in [0, 1, 2, 5, 10, 30, 100] {
        let (front, told) = run(patience).map_err(|e| e.to_string())?;
        keeps_promises(&front, &told, optimum, &objective)
            .map_err(|e| format!("stopped at {patience}: {e}"))?;
        let stopped = front.status == Status::Interrupted;
        ensure(stopped || front.status == expected, || format!("{:?}", front.status))?;
    }
    Ok(optimum.is_finite().then_some(front))
}

fn keeps_promises(
    front: &Front,
    told: &[TracePoint],
    optimum: f64,
    objective: impl Fn(&FrontPoint) -> Result<f64, String>,
) -> Result<(), String> {
    let slack = if optimum.is_finite() { ROUNDING * optimum.abs().max(1.0) } else { 0.0 };
    let (met, proven) = (front.lower_bound == front.objective, front.status == Status::Optimal);
    let found = front.best.is_some();
    ensure(proven == (met && found), || format!("{:?}: {front:?}", front.status))?;
    ensure(found == front.objective.is_finite(), || format!("{front:?}"))?;
    if let Some(best) = front.best {
        agree("objective of the tree", objective(&front.points[best])?, front.objective, 1e-11)?;
    }
    let last = front.trace.last().map(|p| (p.objective, p.lower_bound));
    let end = Some((front.objective, front.lower_bound));
    ensure(last == end, || format!("the trace ends with {last:?}, the search with {end:?}"))?;
    for points in [&front.trace[..], told] {
        for point in points {
            let TracePoint { objective, lower_bound, .. } = *point;
            let valid = objective >= optimum - slack && lower_bound <= optimum + slack;
            ensure(valid, || format!("{point:?} for an optimum of {optimum}"))?;
            let within = lower_bound <= objective && lower_bound <= front.objective;
            ensure(within, || format!("{point:?} before {}", front.objective))?;
        }
        for pair in points.windows(2) {
            let better = pair[1].objective <= pair[0].objective;
            let closer = pair[1].lower_bound >= pair[0].lower_bound;
            ensure(better && closer, || format!("{:?} and then {:?}", pair[0], pair[1]))?;
        }
    }
    Ok(())
}
