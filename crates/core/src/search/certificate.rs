//! What a search may say of its best tree: the one place where a status is made.

use super::{Monitor, Settings, Status, Stop, TracePoint};

/// A tree whose objective is no more than this above that of a planted one, relative to the larger
/// of 1 and it, is as good.
const PLANTED: f64 = 1e-9;

/// Objective and bound as a search goes on. Bounds only rise, and none is told above the
/// objective known at the time.
pub(super) struct Certificate<'a> {
    monitor: &'a Monitor<'a>,
    /// What no objective is below but by rounding.
    least: f64,
    objective: f64,
    lower: f64,
    trace: Vec<TracePoint>,
    /// Objective of a known tree.
    planted: Option<f64>,
    /// Whether what was left out rests on a reference model.
    trusts_reference: bool,
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
    pub fn new(monitor: &'a Monitor<'a>, settings: &Settings, least: f64) -> Self {
        let (objective, trace) = (f64::INFINITY, Vec::new());
        let (planted, trusts_reference) = (settings.switches.planted, false);
        Certificate { monitor, least, objective, lower: least, trace, planted, trusts_reference }
    }

    /// Bounds are not of trees that the reference model rules out.
    pub fn trusting_reference(self, trusts_reference: bool) -> Self {
        Certificate { trusts_reference, ..self }
    }

    /// A tree of this objective is known.
    pub fn improve(&mut self, objective: f64) {
        self.objective = self.objective.min(objective.max(self.least));
    }

    /// The tree that will be returned has this objective, which may differ from that of one as
    /// good in its last digits.
    pub fn settle(&mut self, objective: f64) {
        self.objective = objective;
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
        self.monitor.report(&self.point());
        self.keep();
    }

    /// Keeps what is new.
    fn keep(&mut self) {
        let point = self.point();
        let numbers = |p: &TracePoint| (p.objective, p.lower_bound);
        if self.trace.last().is_none_or(|last| numbers(last) != numbers(&point)) {
            self.trace.push(point);
        }
    }

    /// The end, after a stop or because nothing is left to search. Optimal if, and only if,
    /// objective and bound meet.
    ///
    /// # Panics
    /// When a search ended with a gap and without a reason, or missed the planted tree.
    pub fn finish(mut self, stop: Option<Stop>) -> Verdict {
        let status = match stop {
            _ if self.lower < self.objective => match stop {
                Some(stop) => Status::from(stop),
                None if self.trusts_reference => Status::ReferenceOptimal,
                None => unreachable!("a search ended with a gap and without a reason"),
            },
            _ if self.objective < f64::INFINITY => Status::Optimal,
            _ => Status::Infeasible,
        };
        if let (Some(planted), Status::Optimal | Status::Infeasible) = (self.planted, status) {
            assert!(
                self.objective <= planted + PLANTED * planted.abs().max(1.0),
                "a tree of objective {planted} was pruned: {} was returned as {}",
                self.objective,
                status.name(),
            );
        }
        self.keep();
        let TracePoint { objective, lower_bound, .. } = self.point();
        Verdict { objective, lower_bound, status, trace: self.trace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(steps: impl FnOnce(&mut Certificate), stop: Option<Stop>) -> Verdict {
        let monitor = Monitor::new(None, &|| false);
        let mut certificate = Certificate::new(&monitor, &Settings::default(), 0.0);
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

    #[test]
    fn a_gap_that_rests_on_a_reference_model_says_so() {
        let monitor = Monitor::new(None, &|| false);
        let trusting = |trusts: bool| {
            Certificate::new(&monitor, &Settings::default(), 0.0).trusting_reference(trusts)
        };
        let mut certificate = trusting(true);
        certificate.improve(1.0);
        let verdict = certificate.finish(None);
        assert_eq!((verdict.status, verdict.lower_bound), (Status::ReferenceOptimal, 0.0));
        let mut stopped = trusting(true);
        stopped.improve(1.0);
        assert_eq!(stopped.finish(Some(Stop::Time)).status, Status::TimeLimit);
    }

    #[test]
    #[should_panic(expected = "was pruned")]
    fn a_planted_tree_must_not_be_missed() {
        let monitor = Monitor::new(None, &|| false);
        let settings = Settings::default().with_switches(|s| s.planted = Some(0.5));
        let mut certificate = Certificate::new(&monitor, &settings, 0.0);
        certificate.improve(1.0);
        certificate.close();
        certificate.finish(None);
    }
}
