//! Integrated Brier score of a leaf, each term as it is defined.
//!
//! Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024, eq. 1–3:
//! BS(t) = mean of S(t)² 1{y ≤ t, event}/G(y) + (1 − S(t))² 1{y > t}/G(t), integrated from 0
//! to the largest time as a left sum over the distinct times, divided by the largest time.

use crate::survival::Sample;

/// A sample with its grid of times and its censoring distribution.
#[derive(Clone, Debug)]
pub struct Brier<'a> {
    sample: &'a Sample,
    /// Distinct times of rows with a weight, ascending.
    grid: Vec<f64>,
    /// Censoring distribution G at the times of the grid.
    censoring: Vec<f64>,
}

impl<'a> Brier<'a> {
    /// Number of `rows` with an event.
    pub fn n_events(&self, rows: &[usize]) -> usize {
        self.sample.n_events(rows)
    }

    /// G is the Kaplan–Meier estimate of the time of censoring over all rows, every row with
    /// `time >= t` at risk at `t`.
    pub fn new(sample: &'a Sample) -> Brier<'a> {
        let weighted = || sample.rows().into_iter().filter(|&i| sample.weight[i] > 0.0);
        let mut grid: Vec<f64> = weighted().map(|i| sample.time[i]).collect();
        grid.sort_by(f64::total_cmp);
        grid.dedup();
        let sum = |inside: &dyn Fn(usize) -> bool| -> f64 {
            weighted().filter(|&i| inside(i)).map(|i| sample.weight[i]).sum()
        };
        let mut g = 1.0;
        let at = |&u: &f64| {
            let stay = |i: usize| sample.time[i] > u || sample.event[i] && sample.time[i] == u;
            g *= sum(&stay) / sum(&|i| sample.time[i] >= u);
            g
        };
        let censoring = grid.iter().map(at).collect();
        Brier { sample, grid, censoring }
    }

    fn inverse_censoring(&self, k: usize) -> f64 {
        if self.censoring[k] > 0.0 { 1.0 / self.censoring[k] } else { 0.0 }
    }

    /// At every time but the last: Δ, the weight V of the events so far over G at their
    /// times, the weight n beyond that time over G at that time.
    fn terms(&self, rows: &[usize]) -> Vec<[f64; 3]> {
        let Sample { time, event, weight, .. } = self.sample;
        let term = |k: usize| {
            let u = self.grid[k];
            let (mut happened, mut beyond) = (0.0, 0.0);
            for &i in rows.iter().filter(|&&i| weight[i] > 0.0) {
                if time[i] > u {
                    beyond += weight[i] * self.inverse_censoring(k);
                } else if event[i] {
                    let own = self.grid.iter().position(|&v| v == time[i]).expect("on the grid");
                    happened += weight[i] * self.inverse_censoring(own);
                }
            }
            [self.grid[k + 1] - u, happened, beyond]
        };
        (0..self.grid.len().saturating_sub(1)).map(term).collect()
    }

    /// Loss of a leaf that predicts `curve[k]` from the k-th time on, per unit of weight of
    /// the whole sample.
    fn loss(&self, rows: &[usize], curve: &[f64]) -> f64 {
        let largest = self.grid.last().copied().unwrap_or(0.0);
        let integral: f64 = self
            .terms(rows)
            .iter()
            .zip(curve)
            .map(|([delta, v, n], s)| delta * (s * s * v + (1.0 - s) * (1.0 - s) * n))
            .sum();
        if largest > 0.0 { integral / (largest * self.sample.total_weight()) } else { 0.0 }
    }

    /// Loss of a leaf that predicts its Kaplan–Meier curve.
    pub fn kaplan_meier(&self, rows: &[usize]) -> f64 {
        let Sample { time, event, weight, .. } = self.sample;
        let mut survival = 1.0;
        let at = |&u: &f64| {
            let sum = |inside: &dyn Fn(usize) -> bool| -> f64 {
                rows.iter().filter(|&&i| inside(i)).map(|&i| weight[i]).sum()
            };
            let survivors = sum(&|i| time[i] > u || !event[i] && time[i] == u);
            let at_risk = sum(&|i| time[i] >= u);
            if at_risk > 0.0 {
                survival *= survivors / at_risk;
            }
            survival
        };
        let curve: Vec<f64> = self.grid.iter().map(at).collect();
        self.loss(rows, &curve)
    }

    /// Loss of a leaf that predicts the non-increasing curve with the least loss, by the
    /// min-max formula of antitonic regression.
    pub fn antitonic(&self, rows: &[usize]) -> f64 {
        let terms = self.terms(rows);
        let n = terms.len();
        // The minimiser of s² p + (1 − s)² q is q / (p + q).
        let mean = |from: usize, to: usize| {
            let sum = |c: usize| terms[from..=to].iter().map(|t| t[0] * t[c]).sum::<f64>();
            let (p, q) = (sum(1), sum(2));
            if p + q > 0.0 { q / (p + q) } else { f64::NAN }
        };
        let value = |k: usize| {
            let largest = |s: usize| (k..n).map(|t| mean(s, t)).fold(f64::NAN, f64::max);
            (0..=k).map(largest).fold(f64::NAN, f64::min)
        };
        let curve: Vec<f64> = (0..n).map(value).map(|s| if s.is_nan() { 1.0 } else { s }).collect();
        self.loss(rows, &curve)
    }

    /// Loss of a leaf that predicts the best of all curves, rising or falling: at each time
    /// A·B/(A + B). Below every other loss.
    pub fn unrestricted(&self, rows: &[usize]) -> f64 {
        let best = |t: &[f64; 3]| if t[1] + t[2] > 0.0 { t[2] / (t[1] + t[2]) } else { 1.0 };
        let curve: Vec<f64> = self.terms(rows).iter().map(best).collect();
        self.loss(rows, &curve)
    }
}
