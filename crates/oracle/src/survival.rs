//! Survival under right-censoring and delayed entry, each estimator as it is defined.
//!
//! Loss: Huisman, van der Linden, Demirović, "Optimal Survival Trees: A Dynamic Programming
//! Approach", AAAI-24, eq. 20, after LeBlanc & Crowley (1992).

/// Observations, one entry per row.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Time of event or censoring.
    pub time: Vec<f64>,
    /// Whether the event was observed.
    pub event: Vec<bool>,
    /// Row weight, non-negative.
    pub weight: Vec<f64>,
    /// Delayed entry, before the row's time: it is at risk at `t` when `entry < t <= time`.
    pub entry: Option<Vec<f64>>,
}

impl Sample {
    /// All rows.
    pub fn rows(&self) -> Vec<usize> {
        (0..self.time.len()).collect()
    }

    /// Sum of the weights.
    pub fn total_weight(&self) -> f64 {
        self.weight.iter().sum()
    }

    /// Number of `rows` with an event, whatever their weight.
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

    /// Weight of the events at `t` among `rows`.
    pub fn events_at(&self, rows: &[usize], t: f64) -> f64 {
        rows.iter().filter(|&&i| self.event[i] && self.time[i] == t).map(|&i| self.weight[i]).sum()
    }

    /// Weight at risk at `t` among `rows`.
    pub fn at_risk(&self, rows: &[usize], t: f64) -> f64 {
        let entered = |i: usize| self.entry.as_ref().is_none_or(|entry| entry[i] < t);
        rows.iter().filter(|&&i| entered(i) && t <= self.time[i]).map(|&i| self.weight[i]).sum()
    }

    /// Nelson–Aalen Λ(t) = Σ d(t')/n(t') over the event times t' ≤ t of `rows`.
    pub fn nelson_aalen(&self, rows: &[usize], t: f64) -> f64 {
        let times = self.event_times(rows);
        let until = times.into_iter().filter(|&u| u <= t);
        until.map(|u| self.events_at(rows, u) / self.at_risk(rows, u)).sum()
    }

    /// Kaplan–Meier S(t) = Π (1 − d(t')/n(t')) over the event times t' ≤ t of `rows`.
    pub fn kaplan_meier(&self, rows: &[usize], t: f64) -> f64 {
        let times = self.event_times(rows);
        let until = times.into_iter().filter(|&u| u <= t);
        until.map(|u| 1.0 - self.events_at(rows, u) / self.at_risk(rows, u)).product()
    }

    /// Every row's share of the baseline hazard of all rows, Λ(time) − Λ(entry), floored at
    /// 1/(W + 1) where that is zero: no hazard sum vanishes and logarithms stay finite.
    pub fn baseline_hazard(&self) -> Vec<f64> {
        let all = self.rows();
        let of_row = |&i: &usize| {
            let before = self.entry.as_ref().map_or(0.0, |v| self.nelson_aalen(&all, v[i]));
            let hazard = self.nelson_aalen(&all, self.time[i]) - before;
            if hazard > 0.0 { hazard } else { 1.0 / (self.total_weight() + 1.0) }
        };
        all.iter().map(of_row).collect()
    }

    /// Likelihood loss of a leaf, NLHS − ES·log(ES/HS), with `hazard` from
    /// [`Sample::baseline_hazard`]; 0 without events.
    pub fn likelihood_loss(&self, hazard: &[f64], rows: &[usize]) -> f64 {
        let sum = |term: &dyn Fn(usize) -> f64| rows.iter().map(|&i| term(i)).sum::<f64>();
        let events = sum(&|i| if self.event[i] { self.weight[i] } else { 0.0 });
        let hazard_sum = sum(&|i| self.weight[i] * hazard[i]);
        let nlhs = -sum(&|i| if self.event[i] { self.weight[i] * hazard[i].ln() } else { 0.0 });
        if events == 0.0 { 0.0 } else { nlhs - events * (events / hazard_sum).ln() }
    }

    /// The same with a prior of `prior` > 0 pseudo-events at θ = 1: deviances of the rows and of
    /// the prior at θ̂ = (ES + a)/(HS + a), each as it is defined.
    pub fn loss_under_prior(&self, hazard: &[f64], rows: &[usize], prior: f64) -> f64 {
        let sum = |term: &dyn Fn(usize) -> f64| rows.iter().map(|&i| term(i)).sum::<f64>();
        let events = sum(&|i| if self.event[i] { self.weight[i] } else { 0.0 });
        let theta = (events + prior) / (sum(&|i| self.weight[i] * hazard[i]) + prior);
        let deviance = |i: usize| {
            let expected = theta * hazard[i];
            let of_event = if self.event[i] { -1.0 - expected.ln() } else { 0.0 };
            self.weight[i] * (expected + of_event)
        };
        sum(&deviance) + prior * (theta - 1.0 - theta.ln())
    }
}
