//! Survival under right-censoring and delayed entry, each estimator from its definition.
//!
//! Loss: Huisman, van der Linden, Demirović, "Optimal Survival Trees: A Dynamic Programming
//! Approach", AAAI-24, eq. 20, after LeBlanc & Crowley (1992).

use crate::Real;

/// Observations, one entry per row.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Time of event or censoring.
    pub time: Vec<f64>,
    /// Whether the event was observed.
    pub event: Vec<bool>,
    /// Row weight, non-negative.
    pub weight: Vec<f64>,
    /// Delayed entry, before the row's time: the row is at risk at `t` if `entry < t <= time`.
    pub entry: Option<Vec<f64>>,
}

impl Sample {
    /// All rows.
    pub fn rows(&self) -> Vec<usize> {
        (0..self.time.len()).collect()
    }

    /// Sum of the weights.
    pub fn total(&self) -> Real {
        self.weight.iter().copied().map(Real::from).sum()
    }

    /// The sum of the weights as a double.
    pub fn total_weight(&self) -> f64 {
        self.total().to_f64()
    }

    /// Number of `rows` with an event, regardless of their weight.
    pub fn n_events(&self, rows: &[usize]) -> usize {
        rows.iter().filter(|&&i| self.event[i]).count()
    }

    /// Distinct times with an event of positive weight among `rows`, ascending.
    pub fn event_times(&self, rows: &[usize]) -> Vec<f64> {
        let counted = rows.iter().filter(|&&i| self.event[i] && self.weight[i] > 0.0);
        let mut times: Vec<f64> = counted.map(|&i| self.time[i]).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        times
    }

    /// Summed weight of the `rows` for which `counts` is true.
    pub(crate) fn weight_of(&self, rows: &[usize], counts: impl Fn(usize) -> bool) -> Real {
        rows.iter().filter(|&&i| counts(i)).map(|&i| Real::from(self.weight[i])).sum()
    }

    /// Weight of the events at `t` among `rows`.
    pub fn events_at(&self, rows: &[usize], t: f64) -> Real {
        self.weight_of(rows, |i| self.event[i] && self.time[i] == t)
    }

    /// Weight at risk at `t` among `rows`.
    pub fn at_risk(&self, rows: &[usize], t: f64) -> Real {
        let entered = |i: usize| self.entry.as_ref().is_none_or(|entry| entry[i] < t);
        self.weight_of(rows, |i| entered(i) && t <= self.time[i])
    }

    /// Nelson–Aalen Λ(t) = Σ d(t')/n(t') over the event times t' ≤ t of `rows`.
    pub fn nelson_aalen(&self, rows: &[usize], t: f64) -> Real {
        let times = self.event_times(rows);
        let until = times.into_iter().filter(|&u| u <= t);
        until.map(|u| self.events_at(rows, u) / self.at_risk(rows, u)).sum()
    }

    /// Kaplan–Meier S(t) = Π (1 − d(t')/n(t')) over the event times t' ≤ t of `rows`.
    pub fn kaplan_meier(&self, rows: &[usize], t: f64) -> Real {
        let times = self.event_times(rows);
        let until = times.into_iter().filter(|&u| u <= t);
        until.fold(Real::from(1.0), |value, u| {
            let at_risk = self.at_risk(rows, u);
            value * ((at_risk - self.events_at(rows, u)) / at_risk)
        })
    }

    /// [`Sample::baseline_hazard`] with events that are counted instead of the observed ones.
    pub fn smoothed(&self, events: &[f64]) -> Vec<Hazard> {
        let baseline = self.baseline_hazard().into_iter();
        baseline.zip(events).map(|(row, &events)| row.of_events(events)).collect()
    }

    /// Every row's share of the baseline hazard of all rows, Λ(time) − Λ(entry), or 1/(W + 1) if
    /// that is zero, so that no hazard sum vanishes and logarithms stay finite.
    pub fn baseline_hazard(&self) -> Vec<Hazard> {
        let all = self.rows();
        let steps: Vec<(f64, Real)> = self
            .event_times(&all)
            .into_iter()
            .map(|t| (t, self.events_at(&all, t) / self.at_risk(&all, t)))
            .collect();
        let of_row = |&i: &usize| {
            let entry = self.entry.as_ref().map_or(f64::NEG_INFINITY, |entry| entry[i]);
            let inside = steps.iter().filter(|(t, _)| entry < *t && *t <= self.time[i]);
            let hazard: Real = inside.map(|(_, step)| *step).sum();
            let floor = || Real::from(1.0) / (self.total() + Real::from(1.0));
            let value = if hazard > Real::ZERO { hazard } else { floor() };
            let hazard = Hazard { value, ln: value.ln(), events: 0.0, saturated: Real::ZERO };
            hazard.of_events(f64::from(u8::from(self.event[i])))
        };
        all.iter().map(of_row).collect()
    }

    /// Weighted events of `rows`, and their weighted hazards.
    fn sums(&self, hazard: &[Hazard], rows: &[usize]) -> (Real, Real) {
        let of = |i: usize, value: Real| Real::from(self.weight[i]) * value;
        let events = rows.iter().map(|&i| of(i, Real::from(hazard[i].events)));
        let hazards = rows.iter().map(|&i| of(i, hazard[i].value));
        (events.sum(), hazards.sum())
    }

    /// Σ w e ln(e/H) over `rows`, 0 ln 0 = 0.
    fn saturated(&self, hazard: &[Hazard], rows: &[usize]) -> Real {
        rows.iter().map(|&i| Real::from(self.weight[i]) * hazard[i].saturated).sum()
    }

    /// Likelihood loss of a leaf, NLHS − ES·log(ES/HS), with `hazard` from
    /// [`Sample::baseline_hazard`]; 0 without events.
    pub fn likelihood_loss(&self, hazard: &[Hazard], rows: &[usize]) -> Real {
        let (events, sum) = self.sums(hazard, rows);
        if events == Real::ZERO {
            return events;
        }
        clear_of_rounding(&[self.saturated(hazard, rows), -(events * (events / sum).ln())])
    }

    /// The absolute terms of the likelihood loss of a leaf: NLHS, (ES + a) log θ̂, and θ̂ HS, which
    /// equals ES without the prior a.
    pub fn likelihood_terms(&self, hazard: &[Hazard], rows: &[usize], prior: f64) -> Real {
        let ((events, sum), prior) = (self.sums(hazard, rows), Real::from(prior));
        let count = events + prior;
        if count == Real::ZERO {
            return count;
        }
        let fitted = count * (count / (sum + prior)).ln();
        self.saturated(hazard, rows).abs() + fitted.abs() + events
    }

    /// [`Sample::likelihood_loss`] with a prior of `prior` > 0 pseudo-events at θ = 1: deviances of the rows and of
    /// the prior at θ̂ = (ES + a)/(HS + a).
    pub fn loss_under_prior(&self, hazard: &[Hazard], rows: &[usize], prior: f64) -> Real {
        let (events, sum) = self.sums(hazard, rows);
        let (prior, one) = (Real::from(prior), Real::from(1.0));
        let theta = (events + prior) / (sum + prior);
        let ln = theta.ln();
        // Σ w (θH − e − e ln θH) over the rows.
        let of_rows = [self.saturated(hazard, rows), theta * sum - events, -(events * ln)];
        let of_prior = [prior * (theta - one), -(prior * ln)];
        clear_of_rounding(&[of_rows.as_slice(), &of_prior].concat())
    }
}

/// The cumulative hazard and the events of a row.
#[derive(Clone, Copy, Debug)]
pub struct Hazard {
    /// The hazard.
    pub value: Real,
    /// Its logarithm.
    ln: Real,
    /// Number of events, which is 0 or 1 for observed events.
    events: f64,
    /// e ln(e/H) of these events, 0 ln 0 = 0.
    saturated: Real,
}

impl Hazard {
    fn of_events(self, events: f64) -> Hazard {
        let e = Real::from(events);
        let saturated = if events > 0.0 { e * (e.ln() - self.ln) } else { Real::ZERO };
        Hazard { events, saturated, ..self }
    }
}

/// Sum of terms that may cancel; zero if it is no larger than the last of 120 digits.
pub(crate) fn clear_of_rounding(terms: &[Real]) -> Real {
    let sum: Real = terms.iter().copied().sum();
    let size: Real = terms.iter().map(|term| term.abs()).sum();
    if sum.abs() > size * Real::from(1e-120) { sum } else { Real::ZERO }
}
