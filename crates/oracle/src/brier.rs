//! Integrated Brier score of a leaf, term by term from its definition.
//!
//! Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024, eq. 1–3: BS(t) = mean
//! of S(t)² 1{y ≤ t, event}/G(y) + (1 − S(t))² 1{y > t}/G(t), integrated from 0 to the largest time
//! as a left sum over the distinct times, divided by the largest time.

use crate::Real;
use crate::survival::Sample;

/// A sample, with its grid of times and its censoring distribution.
#[derive(Clone, Debug)]
pub struct Brier<'a> {
    sample: &'a Sample,
    /// Distinct times of the rows with positive weight, ascending.
    grid: Vec<f64>,
    /// 1/G at the times of the grid, where G is the censoring distribution; 0 where G is 0.
    inverse: Vec<Real>,
    /// Position of every row on the grid.
    place: Vec<usize>,
}

impl<'a> Brier<'a> {
    /// Number of `rows` with an event.
    pub fn n_events(&self, rows: &[usize]) -> usize {
        self.sample.n_events(rows)
    }

    /// G is the Kaplan–Meier estimate of the censoring time over all rows; every row with `time >=
    /// t` is at risk at `t`.
    pub fn new(sample: &'a Sample) -> Brier<'a> {
        let mut weighted = sample.rows();
        weighted.retain(|&i| sample.weight[i] > 0.0);
        let mut grid: Vec<f64> = weighted.iter().map(|&i| sample.time[i]).collect();
        grid.sort_by(f64::total_cmp);
        grid.dedup();
        let mut g = Real::from(1.0);
        let at = |&u: &f64| {
            let stay = |i: usize| sample.time[i] > u || sample.event[i] && sample.time[i] == u;
            let at_risk = sample.weight_of(&weighted, |i| sample.time[i] >= u);
            g *= sample.weight_of(&weighted, stay) / at_risk;
            if g > Real::ZERO { Real::from(1.0) / g } else { g }
        };
        let inverse = grid.iter().map(at).collect();
        let place = sample.time.iter().map(|&t| grid.partition_point(|&u| u < t)).collect();
        Brier { sample, grid, inverse, place }
    }

    /// At every time except the last: Δ, the weight V of the events so far (each divided by G at
    /// its time), and the weight n beyond that time, divided by G at that time.
    fn terms(&self, rows: &[usize]) -> Vec<[Real; 3]> {
        let Sample { event, weight, .. } = self.sample;
        let n = self.grid.len();
        let (mut happening, mut leaving) = (vec![Real::ZERO; n], vec![Real::ZERO; n]);
        let mut beyond = Real::ZERO;
        for &i in rows.iter().filter(|&&i| weight[i] > 0.0) {
            let own = Real::from(weight[i]);
            beyond += own;
            leaving[self.place[i]] += own;
            if event[i] {
                happening[self.place[i]] += own * self.inverse[self.place[i]];
            }
        }
        let mut happened = Real::ZERO;
        let term = |k: usize| {
            happened += happening[k];
            beyond = beyond - leaving[k];
            let delta = Real::from(self.grid[k + 1]) - Real::from(self.grid[k]);
            [delta, happened, beyond * self.inverse[k]]
        };
        (0..n.saturating_sub(1)).map(term).collect()
    }

    /// Loss of a leaf that predicts `curve[k]` from the k-th time on, per unit of weight of
    /// the whole sample.
    fn loss(&self, rows: &[usize], curve: &[Real]) -> Real {
        let largest = self.grid.last().map_or(Real::ZERO, |&t| Real::from(t));
        let one = Real::from(1.0);
        let terms = self.terms(rows);
        let at = |([delta, v, n], s): (&[Real; 3], &Real)| {
            *delta * (*s * *s * *v + (one - *s) * (one - *s) * *n)
        };
        let integral: Real = terms.iter().zip(curve).map(at).sum();
        if largest > Real::ZERO { integral / (largest * self.sample.total()) } else { largest }
    }

    /// Loss of a leaf that predicts its Kaplan–Meier curve.
    pub fn kaplan_meier(&self, rows: &[usize]) -> Real {
        let Sample { event, weight, .. } = self.sample;
        let n = self.grid.len();
        let (mut dying, mut leaving) = (vec![Real::ZERO; n], vec![Real::ZERO; n]);
        let mut at_risk = Real::ZERO;
        for &i in rows.iter().filter(|&&i| weight[i] > 0.0) {
            let own = Real::from(weight[i]);
            at_risk += own;
            leaving[self.place[i]] += own;
            if event[i] {
                dying[self.place[i]] += own;
            }
        }
        let mut survival = Real::from(1.0);
        let at = |k: usize| {
            if dying[k] > Real::ZERO {
                survival *= (at_risk - dying[k]) / at_risk;
            }
            at_risk = at_risk - leaving[k];
            survival
        };
        let curve: Vec<Real> = (0..n).map(at).collect();
        self.loss(rows, &curve)
    }

    /// Loss of a leaf that predicts the non-increasing curve with the least loss: neighbours that
    /// increase are pooled.
    pub fn antitonic(&self, rows: &[usize]) -> Real {
        // The minimiser, for a pool [p, q], of s² p + (1 − s)² q is q / (p + q).
        let value = |[p, q]: [Real; 2]| (p + q > Real::ZERO).then(|| q / (p + q));
        let mut pools: Vec<([Real; 2], Option<Real>, usize)> = vec![];
        for [delta, v, n] in self.terms(rows) {
            let own = [delta * v, delta * n];
            pools.push((own, value(own), 1));
            while let [.., (first, before, m), (second, after, n)] = pools[..] {
                // A pool that does not affect the loss continues the value of the previous one.
                if after.is_some() && !(before.is_some() && after > before) {
                    break;
                }
                pools.truncate(pools.len() - 2);
                let both = [first[0] + second[0], first[1] + second[1]];
                pools.push((both, value(both), m + n));
            }
        }
        let curve = pools
            .iter()
            .flat_map(|&(_, value, n)| std::iter::repeat_n(value.unwrap_or(Real::from(1.0)), n));
        self.loss(rows, &curve.collect::<Vec<_>>())
    }

    /// Loss of a leaf that predicts the best of all curves, increasing or not: A·B/(A + B) at each
    /// time. It is at most every other loss.
    pub fn unrestricted(&self, rows: &[usize]) -> Real {
        let best = |t: &[Real; 3]| {
            if t[1] + t[2] > Real::ZERO { t[2] / (t[1] + t[2]) } else { Real::from(1.0) }
        };
        let curve: Vec<Real> = self.terms(rows).iter().map(best).collect();
        self.loss(rows, &curve)
    }
}
