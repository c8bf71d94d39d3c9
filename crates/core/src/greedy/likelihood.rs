//! The fall of the likelihood loss (LeBlanc and Crowley 1992) at every threshold of a column.

use super::{Criterion, columns::Entry};

/// A gain this small, per event of the node, is rounding.
const ROUNDING: f64 = 1e-12;

/// Sums of events and of baseline hazard decide; as integers they are exact, so that they do
/// not depend on the order of the rows.
pub(super) struct Likelihood {
    /// Events and hazard of every row, in any fixed units.
    statistics: Vec<[i64; 2]>,
    /// Events and hazard of a prior at θ = 1, charged on every leaf.
    prior: [f64; 2],
    total: [i64; 2],
}

impl Likelihood {
    pub fn new(statistics: Vec<[i64; 2]>, prior: [f64; 2]) -> Self {
        Likelihood { statistics, prior, total: [0; 2] }
    }

    /// Fall of the loss by a split of the node into these parts.
    fn fall(&self, parts: [[i64; 2]; 2]) -> f64 {
        if self.prior[0] == 0.0 {
            return parts.map(|part| self.share(part)).iter().sum();
        }
        parts.map(|part| self.under_prior(part)).iter().sum::<f64>() - self.under_prior(self.total)
    }

    /// Events, with those of the prior, times log hazard ratio.
    fn under_prior(&self, sums: [i64; 2]) -> f64 {
        let [prior_events, prior_hazard] = self.prior;
        let unit = prior_events / prior_hazard;
        let [events, hazard] = [sums[0] as f64, sums[1] as f64 * unit];
        (events + prior_events) * ((events - hazard) / (hazard + prior_events)).ln_1p()
    }

    /// Events times log hazard ratio of a part of the node: the part's share of the gain.
    fn share(&self, [events, hazard]: [i64; 2]) -> f64 {
        if events == 0 {
            return 0.0;
        }
        let [all_events, all_hazard] = self.total.map(|sum| sum as f64);
        let (events, hazard) = (events as f64, hazard as f64);
        events * (events * all_hazard / (hazard * all_events)).ln()
    }
}

impl Criterion for Likelihood {
    fn enter(&mut self, rows: &[u32]) -> bool {
        self.total = [0; 2];
        for &row in rows {
            let [events, hazard] = self.statistics[row as usize];
            self.total[0] += events;
            self.total[1] += hazard;
        }
        self.total[0] > 0
    }

    fn score(&mut self, order: &[Entry], cuts: &[usize], gains: &mut [f64]) {
        let nothing = ROUNDING * self.total[0] as f64;
        let (mut left, mut begin) = ([0; 2], 0);
        for (&cut, gain) in cuts.iter().zip(gains) {
            for entry in &order[begin..cut] {
                let [events, hazard] = self.statistics[entry.row as usize];
                left[0] += events;
                left[1] += hazard;
            }
            begin = cut;
            let right = [self.total[0] - left[0], self.total[1] - left[1]];
            let fall = self.fall([left, right]);
            *gain = if fall > nothing { fall } else { 0.0 };
        }
    }
}
