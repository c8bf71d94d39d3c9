//! What every search guarantees about its result, its trace and its callback, even if stopped.

use bristlecone_core::search::{Settings, Status, TracePoint};
use bristlecone_oracle::Limits;

use crate::harness::{Answer, CERTIFIED, Case, EVALUATED, Until, agree, ensure};

/// Checks the tree, the bound and the trace of an answer, even of a stopped search.
pub fn keeps_promises(
    case: &Case,
    limits: &Limits,
    optimum: f64,
    answer: &Answer,
    reports: &[TracePoint],
) -> Result<(), String> {
    let Answer { objective, lower_bound, status, trace, .. } = answer;
    ensure(lower_bound <= objective, || format!("bound {lower_bound} above {objective}"))?;
    let size = case.size(answer)?;
    let at_most = |value: f64, most: f64, share: f64| {
        value <= most || most.is_finite() && size.is_finite() && value <= most + share * size
    };
    let (gap, proven) = (objective - lower_bound, *status == Status::Optimal);
    let found = answer.tree.is_some();
    // The gap is relative to the terms if these cancel.
    let terms = case.terms(answer)?.max(objective.abs()) * (1.0 + 1e-6);
    let met = found && gap <= CERTIFIED * if proven { terms } else { objective.abs() };
    ensure(proven == met, || format!("{status:?} of {answer:?}"))?;
    ensure(found == objective.is_finite(), || format!("{found} and {objective}"))?;
    if found {
        agree("objective of the tree", *objective, case.score(limits, answer)?, EVALUATED * size)?;
    }
    if proven {
        agree("objective", *objective, optimum, CERTIFIED * size)?;
    }
    let valid = at_most(*lower_bound, optimum, EVALUATED);
    ensure(valid, || format!("bound {lower_bound} above {optimum}"))?;
    let last = trace.last().map(|p| (p.objective, p.lower_bound));
    let end = Some((*objective, *lower_bound));
    ensure(last == end, || format!("the trace ends with {last:?}, the search with {end:?}"))?;
    for points in [trace, reports] {
        for point in points {
            let valid = at_most(optimum, point.objective, EVALUATED)
                && at_most(point.lower_bound, optimum, EVALUATED);
            ensure(valid, || format!("{point:?} for an optimum of {optimum}"))?;
            let within = point.lower_bound <= objective.min(point.objective);
            ensure(within, || format!("{point:?} before {objective}"))?;
        }
        for pair in points.windows(2) {
            let better = pair[1].objective <= pair[0].objective;
            let closer = pair[0].lower_bound <= pair[1].lower_bound;
            ensure(better && closer, || format!("{:?} and then {:?}", pair[0], pair[1]))?;
        }
    }
    Ok(())
}

/// Runs a search, checks its guarantees, and returns the status if it was stopped.
pub fn stopped(
    case: &Case,
    settings: &Settings,
    optimum: f64,
    until: Until,
) -> Result<Option<Status>, String> {
    let (answer, reports) = case.search(settings, until).map_err(|e| e.to_string())?;
    keeps_promises(case, &case.question.limits, optimum, &answer, &reports)
        .map_err(|message| format!("{message}: {until:?} {settings:?}"))?;
    let end = if optimum.is_finite() { Status::Optimal } else { Status::Infeasible };
    Ok((answer.status != end).then_some(answer.status))
}
