//! The two-sample log-rank statistic U²/V of a node at every threshold of a column.
//!
//! With `d` events among `n` at risk at an event time t of the node, `n_L` of them left,
//!
//! ```text
//! U = Σ_t (d_L − n_L d/n) = Σ_{i left} w_i (δ_i − Λ(t_i))      Λ: Nelson–Aalen of the node
//! V = Σ_t q n_L (n − n_L) = Σ_{i left} w_i A(t_i) − S
//! q = d (n − d) / (n² (n − 1)),  A(t) = Σ_{s ≤ t} q n,  C(t) = Σ_{s ≤ t} q,  S = Σ_t q n_L²
//! ```
//!
//! so that all but S adds up over rows. A row i that joins the left raises n_L by w_i at all
//! times up to t_i, hence S by w_i² C(t_i) + 2 w_i Σ_{j left} w_j C(min(t_i, t_j)); the last sum
//! comes from two Fenwick trees over the ranks of the times. All thresholds of a column with n
//! rows in the node: O(n log n). With delayed entry v_i a row is at risk in (v_i, t_i] and counts
//! as w_i up to t_i less w_i up to v_i.

use super::{Choice, Criterion, Group, Interrupted, Scores, choose_in_order};
use crate::data::size;
use crate::survival::Observations;

/// A statistic this small relative to the mean weight is rounding (it scales with the weights), and
/// so is a variance this small relative to the terms of its difference.
const ROUNDING: f64 = 1e-12;

/// Up to about this many summands per row, summing over the event times for every threshold is
/// faster than the Fenwick trees.
const SCAN: usize = 16;

/// The state of the node at an event time; index 0 stands for the time before the first event.
#[derive(Clone, Copy, Default)]
struct Step {
    at_risk: f64,
    events: f64,
    /// q in the module's documentation.
    spread: f64,
    /// Λ, A and C.
    hazard: f64,
    pull: f64,
    cumulative_spread: f64,
}

/// A row within the node, which is at risk at the event times `entry + 1 ..= exit`.
#[derive(Clone, Copy, Default)]
struct Row {
    entry: u32,
    exit: u32,
    weight: f64,
    /// w (δ − Λ(t)).
    residual: f64,
    /// w A(t).
    pull: f64,
}

/// Rows must be given in the order of time.
pub(super) struct LogRank {
    time: Vec<f64>,
    event: Vec<bool>,
    weight: Vec<f64>,
    entry: Option<Vec<f64>>,
    // The rows of the current node, and their mean weight.
    rows: Vec<Row>,
    mean_weight: f64,
    times: Vec<f64>,
    steps: Vec<Step>,
    // A buffer with one entry per event time.
    left: Vec<f64>,
    tree: Vec<[f64; 2]>,
}

impl LogRank {
    /// `order` lists the rows of `obs` in the order of time.
    pub fn new(obs: &Observations, order: &[u32]) -> Self {
        let pick = |values: &[f64]| order.iter().map(|&i| values[i as usize]).collect();
        LogRank {
            time: pick(obs.time),
            event: order.iter().map(|&i| obs.event[i as usize]).collect(),
            weight: order.iter().map(|&i| obs.weight(i as usize)).collect(),
            entry: obs.entry.map(pick),
            rows: vec![Row::default(); order.len()],
            mean_weight: 0.0,
            times: Vec::new(),
            steps: Vec::new(),
            left: Vec::new(),
            tree: Vec::new(),
        }
    }

    /// Assigns the node's event times to its rows and counts the rows at risk.
    fn rank(&mut self, node: &[u32]) {
        self.times.clear();
        self.steps.clear();
        self.steps.push(Step::default());
        let time = &self.time;
        for tie in node.chunk_by(|&a, &b| time[a as usize] == time[b as usize]) {
            let happened = tie.iter().filter(|&&row| self.event[row as usize]);
            let events: f64 = happened.map(|&row| self.weight[row as usize]).sum();
            if events > 0.0 {
                self.times.push(time[tie[0] as usize]);
                self.steps.push(Step { events, ..Step::default() });
            }
            let exit = self.times.len();
            for row in tie.iter().map(|&row| row as usize) {
                let entry = match &self.entry {
                    Some(entry) => self.times.partition_point(|&t| t <= entry[row]),
                    None => 0,
                };
                let weight = self.weight[row];
                self.rows[row] =
                    Row { entry: entry as u32, exit: exit as u32, weight, ..Row::default() };
                self.steps[exit].at_risk += weight;
                self.steps[entry].at_risk -= weight;
            }
        }
        let mut at_risk = 0.0;
        for step in self.steps.iter_mut().rev() {
            at_risk += step.at_risk;
            step.at_risk = at_risk;
        }
    }

    /// Sums over the event times for every threshold.
    fn scan(&mut self, order: &[u32], cuts: &[usize], gains: &mut [f64]) {
        self.left.clear();
        self.left.resize(self.steps.len(), 0.0);
        let (mut u, mut pull, mut begin) = (0.0, 0.0, 0);
        for (&cut, gain) in cuts.iter().zip(gains) {
            for &row in &order[begin..cut] {
                let row = self.rows[row as usize];
                self.left[row.exit as usize] += row.weight;
                self.left[row.entry as usize] -= row.weight;
                u += row.residual;
                pull += row.pull;
            }
            begin = cut;
            let (mut left, mut v) = (0.0, 0.0);
            for (step, change) in self.steps[1..].iter().zip(&self.left[1..]).rev() {
                left += change;
                v += step.spread * left * (step.at_risk - left);
            }
            *gain = self.statistic(u, v, pull);
        }
    }

    /// Adds rows to the smaller side, so that the difference that defines V does not cancel.
    fn sweep_from_both_ends(&mut self, order: &[u32], cuts: &[usize], gains: &mut [f64]) {
        let n = order.len();
        let half = cuts.partition_point(|&cut| 2 * cut <= n);
        let (low, high) = gains.split_at_mut(half);
        self.sweep(order.iter(), cuts[..half].iter().copied().zip(low));
        let from_the_end = cuts[half..].iter().map(|cut| n - cut).zip(high).rev();
        self.sweep(order.iter().rev(), from_the_end);
    }

    /// Adds rows one by one; `cuts` are (number of rows added, position of the statistic).
    fn sweep<'a>(
        &mut self,
        mut order: impl Iterator<Item = &'a u32>,
        cuts: impl Iterator<Item = (usize, &'a mut f64)>,
    ) {
        self.tree.clear();
        self.tree.resize(self.steps.len(), [0.0; 2]);
        let (mut u, mut pull, mut square, mut at_risk, mut added) = (0.0, 0.0, 0.0, 0.0, 0);
        for (cut, gain) in cuts {
            for &row in order.by_ref().take(cut - added) {
                let row = self.rows[row as usize];
                u += row.residual;
                pull += row.pull;
                let changes = [(row.exit as usize, row.weight), (row.entry as usize, -row.weight)];
                for (rank, weight) in changes {
                    let own = row.weight * self.steps[rank].cumulative_spread;
                    square += weight * (own + 2.0 * self.overlap(rank, at_risk));
                }
                for (rank, weight) in changes {
                    if rank > 0 {
                        at_risk += weight;
                        self.insert(rank, weight);
                    }
                }
            }
            added = cut;
            *gain = self.statistic(u, pull - square, pull);
        }
    }

    /// Σ_{s <= t} q n_L over the rows added so far, whose weights sum to `total`.
    fn overlap(&self, rank: usize, total: f64) -> f64 {
        let (mut earlier, mut weighted, mut at) = (0.0, 0.0, rank);
        while at > 0 {
            let [weight, weight_spread] = self.tree[at];
            earlier += weight;
            weighted += weight_spread;
            at &= at - 1;
        }
        weighted + self.steps[rank].cumulative_spread * (total - earlier)
    }

    fn insert(&mut self, rank: usize, weight: f64) {
        let weight_spread = weight * self.steps[rank].cumulative_spread;
        let mut at = rank;
        while at < self.tree.len() {
            self.tree[at][0] += weight;
            self.tree[at][1] += weight_spread;
            at += at & at.wrapping_neg();
        }
    }

    /// U²/V, or 0 if it is rounding; `pull` is the part of V that adds up over rows.
    fn statistic(&self, u: f64, v: f64, pull: f64) -> f64 {
        let chi_square = u * u / v;
        let positive = v > ROUNDING * pull && chi_square > ROUNDING * self.mean_weight;
        if positive { chi_square } else { 0.0 }
    }
}

impl Criterion for LogRank {
    fn enter(&mut self, rows: &[u32], _: &[usize]) -> bool {
        self.rank(rows);
        let (mut hazard, mut pull, mut cumulative_spread) = (0.0, 0.0, 0.0);
        for step in &mut self.steps[1..] {
            let (d, n) = (step.events, step.at_risk);
            // The factor (n − d) / (n − 1) for ties is at most one. With fractional weights, n − 1
            // can be small or negative.
            let ties = match n - d {
                alive if alive <= ROUNDING * n => 0.0,
                alive if d > 1.0 => alive / (n - 1.0),
                _ => 1.0,
            };
            hazard += d / n;
            step.spread = d * ties / (n * n);
            pull += step.spread * n;
            cumulative_spread += step.spread;
            (step.hazard, step.pull, step.cumulative_spread) = (hazard, pull, cumulative_spread);
        }
        let mut total = 0.0;
        for &i in rows {
            let row = &mut self.rows[i as usize];
            total += row.weight;
            let (exit, entry) = (self.steps[row.exit as usize], self.steps[row.entry as usize]);
            let event = f64::from(self.event[i as usize]);
            row.residual = row.weight * (event - (exit.hazard - entry.hazard));
            row.pull = row.weight * (exit.pull - entry.pull);
        }
        self.mean_weight = total / rows.len() as f64;
        cumulative_spread > 0.0
    }

    fn size(&self, row: u32) -> i64 {
        size(1, i64::from(self.event[row as usize]))
    }

    fn choose(
        &mut self,
        group: &Group,
        choice: &mut Choice,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        choose_in_order(self, group, choice, interrupted)
    }
}

impl Scores for LogRank {
    fn score(
        &mut self,
        order: &[u32],
        cuts: &[usize],
        gains: &mut [f64],
        _: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        if cuts.len() * self.times.len() <= SCAN * order.len() {
            self.scan(order, cuts, gains);
        } else {
            self.sweep_from_both_ends(order, cuts, gains);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Problem;
    use super::*;
    use bristlecone_oracle::instances::Random;

    /// Both kernels at every threshold of random nodes.
    #[test]
    fn kernels_equal_the_definition() {
        let mut positive = 0;
        for seed in 0..200 {
            let problem = Problem::random(seed, 80);
            let mut order: Vec<u32> = (0..problem.time.len() as u32).collect();
            order.sort_by(|&a, &b| problem.time[a as usize].total_cmp(&problem.time[b as usize]));
            let random = &mut Random::new(seed + 1);
            let node: Vec<u32> = (0..order.len() as u32).filter(|_| random.below(4) > 0).collect();
            let rows: Vec<usize> = node.iter().map(|&i| order[i as usize] as usize).collect();
            let mut log_rank = LogRank::new(&problem.observations(), &order);
            if node.is_empty() || !log_rank.enter(&node, &[]) {
                continue;
            }
            for codes in &problem.codes {
                let code = |row: u32| codes[order[row as usize] as usize];
                let mut sorted = node.clone();
                sorted.sort_by_key(|&row| code(row));
                let n = sorted.len();
                let cuts: Vec<usize> =
                    (1..n).filter(|&i| code(sorted[i - 1]) != code(sorted[i])).collect();
                let mut scanned = vec![0.0; cuts.len()];
                let mut swept = scanned.clone();
                log_rank.scan(&sorted, &cuts, &mut scanned);
                log_rank.sweep_from_both_ends(&sorted, &cuts, &mut swept);
                for (i, &cut) in cuts.iter().enumerate() {
                    let last = code(sorted[cut - 1]);
                    let expected = problem.log_rank(&rows, &|i| codes[i] <= last);
                    positive += usize::from(expected > 0.0);
                    for found in [scanned[i], swept[i]] {
                        assert!((found - expected).abs() <= 1e-9 * expected.max(1e-3));
                    }
                }
            }
        }
        assert!(positive > 1000);
    }

    /// If the many rows are added, V of a few rows against many is a small difference of large
    /// sums.
    #[test]
    fn small_sides_are_exact_at_both_ends() {
        let n = 10_000;
        let time: Vec<f64> = (0..n).map(f64::from).collect();
        let event: Vec<bool> = (0..n).map(|i| i % 3 > 0).collect();
        let obs = Observations { time: &time, event: &event, ..Observations::default() };
        let rows: Vec<u32> = (0..n as u32).collect();
        let mut log_rank = LogRank::new(&obs, &rows);
        assert!(log_rank.enter(&rows, &[]));
        let mut order: Vec<u32> = rows.iter().map(|&i| i * 2_357 % n as u32).collect();
        let cuts: Vec<usize> = (1..n as usize).collect();
        let mut swept = vec![0.0; cuts.len()];
        log_rank.sweep_from_both_ends(&order, &cuts, &mut swept);
        for _ in ["first rows", "last rows"] {
            let mut scanned = [0.0; 20];
            log_rank.scan(&order, &cuts[..20], &mut scanned);
            for (found, expected) in swept.iter().zip(scanned) {
                assert!((found - expected).abs() <= 1e-13 * expected);
            }
            order.reverse();
            swept.reverse();
        }
    }
}
