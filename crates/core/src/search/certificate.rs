//! The certificate of a search. This is the only place that assigns a status.

use super::{Monitor, Settings, Status, Stop, TracePoint};
use crate::error::Error;

/// Objective and bound meet if they differ by at most this share of the magnitude.
pub(super) const MEET: f64 = 1e-9;

/// Relative error of evaluating an objective, or the objective of a cost: 2^−46, far more than a
/// few roundings. See docs/maths/resolution.md.
pub(crate) const EVALUATED: f64 = 1.0 / (1u64 << 46) as f64;

/// An objective, and the size of its terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The objective of a tree.
    pub objective: f64,
    /// Its absolute value, or more if terms of different signs cancel: the mean absolute term of
    /// the tree's leaves.
    pub magnitude: f64,
}

impl Measured {
    /// An objective whose terms have one sign.
    pub fn plain(objective: f64) -> Measured {
        Measured { objective, magnitude: objective.abs() }
    }

    /// The state before any tree is known.
    pub(super) const NONE: Measured = Measured { objective: f64::INFINITY, magnitude: 0.0 };

    /// Whether `lower` proves that this is the least objective: to within [`MEET`], and exactly if
    /// the objective is 0.
    pub fn meets(self, lower: f64) -> bool {
        let Measured { objective, magnitude } = self;
        objective <= lower || objective - lower <= MEET * magnitude
    }
}

/// The error if objective and bound do not meet in any precision; `widest` names an array and says
/// how far its values range.
pub(crate) fn too_wide(
    (name, range): (&'static str, String),
    objective: f64,
    lower_bound: f64,
) -> Error {
    let gap = objective - lower_bound;
    let reason = format!(
        "the values span too wide a range for a certificate ({range}): the objective {objective:e} \
         is certain to {gap:.1e} only"
    );
    Error::invalid(name, reason)
}

/// Objective and bound during a search. Bounds only rise, and no reported bound exceeds the
/// objective known at that time.
pub(super) struct Certificate<'a> {
    monitor: &'a Monitor<'a>,
    best: Measured,
    lower: f64,
    trace: Vec<TracePoint>,
    /// Objective of a known tree, for tests.
    planted: Option<f64>,
    /// Whether trees were ruled out by a reference model.
    trusts_reference: bool,
}

/// The certificate of a search that has ended.
pub(super) struct Verdict {
    pub objective: f64,
    pub lower_bound: f64,
    pub status: Status,
    pub nodes: u64,
    pub trace: Vec<TracePoint>,
}

impl<'a> Certificate<'a> {
    /// Starts with the bound `least`, and without a tree.
    pub fn new(monitor: &'a Monitor<'a>, settings: &Settings, least: f64) -> Self {
        let (planted, trusts_reference) = (settings.switches.planted, false);
        let (best, trace) = (Measured::NONE, Vec::new());
        Certificate { monitor, best, lower: least, trace, planted, trusts_reference }
    }

    /// Continues where another search for the same trees ended.
    pub fn after(mut self, objective: f64, lower_bound: f64, trace: &[TracePoint]) -> Self {
        self.best = Measured::plain(objective);
        self.raise(lower_bound);
        self.trace = trace.to_vec();
        self
    }

    /// Whether bounds may ignore trees that the reference model rules out.
    pub fn trusting_reference(self, trusts_reference: bool) -> Self {
        Certificate { trusts_reference, ..self }
    }

    /// Takes the objective of a new tree.
    pub fn improve(&mut self, found: Measured) {
        if found.objective < self.best.objective {
            self.best = found;
        }
    }

    /// Sets the objective of the tree that is returned. It may differ in its last digits from that
    /// of an equally good tree.
    pub fn settle(&mut self, found: Measured) {
        self.best = found;
    }

    /// Takes a lower bound; infinite if there is no tree.
    pub fn raise(&mut self, lower: f64) {
        self.lower = self.lower.max(lower);
    }

    /// Records that no tree is better than the best known tree.
    pub fn close(&mut self) {
        self.lower = self.best.objective;
    }

    /// Whether the best known tree is proven optimal.
    pub fn is_met(&self) -> bool {
        self.best.objective < f64::INFINITY && self.best.meets(self.lower)
    }

    fn point(&self) -> TracePoint {
        TracePoint {
            seconds: self.monitor.seconds(),
            objective: self.best.objective,
            lower_bound: self.lower.min(self.best.objective),
            nodes: self.monitor.nodes(),
        }
    }

    /// Reports the progress of the search, and stores it if it is new. No objective is above an
    /// earlier one, although among equally good trees the one that is kept may be worse in its last
    /// digits.
    pub fn record(&mut self) {
        let mut point = self.point();
        if let Some(before) = self.trace.last() {
            point.objective = point.objective.min(before.objective);
            point.lower_bound = point.lower_bound.min(point.objective);
        }
        self.monitor.report(&point);
        self.keep(point);
    }

    /// Stores a point if it is new, and returns whether it is.
    fn keep(&mut self, point: TracePoint) -> bool {
        let numbers = |p: &TracePoint| (p.objective, p.lower_bound);
        let is_new = self.trace.last().is_none_or(|last| numbers(last) != numbers(&point));
        if is_new {
            self.trace.push(point);
        }
        is_new
    }

    /// Ends the search, after a stop or because nothing is left. The status is optimal if and only
    /// if objective and bound meet.
    ///
    /// # Panics
    ///
    /// If the search missed the planted tree.
    pub fn finish(mut self, stop: Option<Stop>) -> Verdict {
        let objective = self.best.objective;
        let status = match stop {
            _ if objective == f64::INFINITY && self.lower == f64::INFINITY => Status::Infeasible,
            _ if self.is_met() => Status::Optimal,
            Some(stop) => Status::from(stop),
            None if self.trusts_reference => Status::ReferenceOptimal,
            None => Status::Unresolved,
        };
        if let (Some(planted), Status::Optimal | Status::Infeasible) = (self.planted, status) {
            assert!(
                objective <= planted || objective.is_finite() && self.best.meets(planted),
                "a tree of objective {planted} was pruned: {objective} was returned as {}",
                status.name(),
            );
        }
        let before = self.trace.last().map_or(f64::INFINITY, |point| point.objective);
        let mut point = self.point();
        if self.keep(point) {
            // The last report is the returned objective, unless a tie is above it in the last
            // digits.
            point.objective = point.objective.min(before);
            point.lower_bound = point.lower_bound.min(point.objective);
            self.monitor.report(&point);
        }
        let TracePoint { objective, lower_bound, nodes, .. } = self.point();
        // The objective of the returned tree may differ from that of the search in its last digits.
        for point in &mut self.trace {
            point.objective = point.objective.max(objective);
            point.lower_bound = point.lower_bound.min(lower_bound);
        }
        Verdict { objective, lower_bound, status, nodes, trace: self.trace }
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
            c.improve(Measured::plain(2.0));
            c.raise(1.0);
            c.record();
            c.improve(Measured::plain(3.0));
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
    fn a_gap_without_a_reason_is_one_of_resolution() {
        let status = |lower: f64, magnitude: f64| {
            let found = |c: &mut Certificate| {
                c.improve(Measured { objective: 2.0, magnitude });
                c.raise(lower);
            };
            verdict(found, None).status
        };
        assert_eq!(status(2.0 - 1.9e-9, 2.0), Status::Optimal);
        assert_eq!(status(2.0 - 2.1e-9, 2.0), Status::Unresolved);
        assert_eq!(status(2.0 - 2.1e-9, 3.0), Status::Optimal);
        // Only 0 is close to 0.
        let zero = |c: &mut Certificate| {
            c.raise(-1e-300);
            c.improve(Measured::plain(0.0));
        };
        let monitor = Monitor::new(None, &|| false);
        let mut certificate = Certificate::new(&monitor, &Settings::default(), f64::NEG_INFINITY);
        zero(&mut certificate);
        assert_eq!(certificate.finish(None).status, Status::Unresolved);
    }

    #[test]
    fn a_gap_that_rests_on_a_reference_model_says_so() {
        let monitor = Monitor::new(None, &|| false);
        let trusting = |trusts: bool| {
            Certificate::new(&monitor, &Settings::default(), 0.0).trusting_reference(trusts)
        };
        let mut certificate = trusting(true);
        certificate.improve(Measured::plain(1.0));
        let verdict = certificate.finish(None);
        assert_eq!((verdict.status, verdict.lower_bound), (Status::ReferenceOptimal, 0.0));
        let mut stopped = trusting(true);
        stopped.improve(Measured::plain(1.0));
        assert_eq!(stopped.finish(Some(Stop::Time)).status, Status::TimeLimit);
    }

    #[test]
    #[should_panic(expected = "was pruned")]
    fn a_planted_tree_must_not_be_missed() {
        let monitor = Monitor::new(None, &|| false);
        let settings = Settings::default().with_switches(|s| s.planted = Some(0.5));
        let mut certificate = Certificate::new(&monitor, &settings, 0.0);
        certificate.improve(Measured::plain(1.0));
        certificate.close();
        certificate.finish(None);
    }
}
