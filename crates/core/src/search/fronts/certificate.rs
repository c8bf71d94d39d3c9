//! What a search may say of its best tree: the one place where a status is made.

use crate::search::{Monitor, Status, Stop, TracePoint};

/// Objective and bound as a search goes on. Objectives only fall, bounds only rise, and no
/// bound is told above the objective known at the time.
pub(super) struct Certificate<'a> {
    monitor: &'a Monitor<'a>,
    /// What no objective is below but by rounding.
    least: f64,
    objective: f64,
    lower: f64,
    trace: Vec<TracePoint>,
}

/// The certificate of a search that has ended.
pub(super) struct Verdict {
    pub objective: f64,
    pub lower_bound: f64,
    pub status: Status,
    pub trace: Vec<TracePoint>,
}

impl<'a> Certificate<'a> {
    /// No tree is below `least`, and none is known.
    pub fn new(monitor: &'a Monitor<'a>, least: f64) -> Self {
        Certificate { monitor, least, objective: f64::INFINITY, lower: least, trace: Vec::new() }
    }

    /// A tree of this objective is known.
    pub fn improve(&mut self, objective: f64) {
        self.objective = self.objective.min(objective.max(self.least));
    }

    /// No tree is below `lower`; infinite where there is none.
    pub fn raise(&mut self, lower: f64) {
        self.lower = self.lower.max(lower);
    }

    /// Everything better than the best tree known is ruled out.
    pub fn close(&mut self) {
        self.lower = self.objective;
    }

    fn point(&self) -> TracePoint {
        TracePoint {
            seconds: self.monitor.seconds(),
            objective: self.objective,
            lower_bound: self.lower.min(self.objective),
            nodes: self.monitor.nodes(),
        }
    }

    /// Tells where the search is, and keeps what is new.
    pub fn record(&mut self) {
        let point = self.point();
        self.monitor.report(&point);
        let numbers = |p: &TracePoint| (p.objective, p.lower_bound);
        if self.trace.last().is_none_or(|last| numbers(last) != numbers(&point)) {
            self.trace.push(point);
        }
    }

    /// The end, after a stop or because nothing is left to search. Optimal if, and only if,
    /// objective and bound meet.
    pub fn finish(mut self, stop: Option<Stop>) -> Verdict {
        let status = match stop {
            _ if self.lower < self.objective => match stop {
                Some(stop) => Status::from(stop),
                None => unreachable!("a search ended with a gap and without a reason"),
            },
            _ if self.objective < f64::INFINITY => Status::Optimal,
            _ => Status::Infeasible,
        };
        self.record();
        let TracePoint { objective, lower_bound, .. } = self.point();
        Verdict { objective, lower_bound, status, trace: self.trace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(steps: impl FnOnce(&mut Certificate), stop: Option<Stop>) -> Verdict {
        let monitor = Monitor::new(None, &|| false);
        let mut certificate = Certificate::new(&monitor, 0.0);
        steps(&mut certificate);
        certificate.finish(stop)
    }

    #[test]
    fn optimal_means_that_the_bounds_meet() {
        let open = |c: &mut Certificate| {
            c.improve(2.0);
            c.raise(1.0);
            c.record();
            c.improve(3.0);
            c.raise(0.5);
        };
        let stopped = verdict(open, Some(Stop::Memory));
        assert_eq!((stopped.objective, stopped.lower_bound), (2.0, 1.0));
        assert_eq!(stopped.status, Status::MemoryLimit);
        let closed = verdict(
            |c| {
                open(c);
                c.close();
            },
            Some(Stop::Time),
        );
        assert_eq!((closed.objective, closed.lower_bound), (2.0, 2.0));
        assert_eq!(closed.status, Status::Optimal);
        let last = closed.trace.last().expect("recorded");
        assert_eq!((last.objective, last.lower_bound), (2.0, 2.0));
        assert_eq!(verdict(|c| c.raise(f64::INFINITY), None).status, Status::Infeasible);
        assert_eq!(verdict(|_| (), Some(Stop::Interrupt)).status, Status::Interrupted);
    }

    #[test]
    #[should_panic(expected = "with a gap")]
    fn a_gap_without_a_reason_is_an_error() {
        verdict(|c| c.improve(1.0), None);
    }
}
