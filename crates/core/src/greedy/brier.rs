//! The fall of the integrated Brier score at the thresholds of a column.
//!
//! A leaf's score needs its rows in the order of time, so every threshold takes a pass over the
//! rows of the node; one pass serves a block of thresholds. Of many thresholds those around the best
//! one are found in steps. See docs/maths/branch.md.

use super::{Choice, Criterion, Group, Interrupted, Scores, choose_in_order};
use crate::data::size;
use crate::survival::timeline::{Code, Timeline};
use crate::task::brier::antitonic::Fit;
use crate::task::curve::{LeafCurve, ScalarCurveTask};
use std::ops::Range;

/// Thresholds of a pass.
const BLOCK: usize = 8;

/// Thresholds of a column that are scored at first, all of them where there are no more.
const AT_FIRST: usize = 256;

/// Thresholds that are scored at a time between the best one and its neighbours.
const BETWEEN: usize = 16;

/// Units of cost per unit of loss.
const SCALE: f64 = (1u64 << 48) as f64;

/// A fall this small is the rounding of sums over rows.
const ROUNDING: f64 = 1e-12;

/// Rows in the order of time: events before censorings.
pub(super) struct BrierScore<'a> {
    timeline: &'a Timeline,
    curve: LeafCurve,
    price: i64,
    codes: Vec<Code>,
    event: Vec<bool>,
    /// Whole-numbered weights.
    weights: Vec<f64>,
    integrals: (Vec<f64>, Vec<f64>),
    rows: Vec<u32>,
    /// Place of every row of the node in the order of a column.
    places: Vec<u32>,
    loss: f64,
}

/// State of a leaf up to a time.
#[derive(Clone, Debug, Default)]
struct Leaf {
    at_risk: f64,
    /// Weight of the events, each times 1/G.
    happened: f64,
    survival: f64,
    /// Survival per weight at risk.
    ratio: f64,
    loss: f64,
    last: usize,
    fit: Fit,
}

impl Leaf {
    fn start(&mut self, weight: f64) {
        let mut fit = std::mem::take(&mut self.fit);
        fit.clear();
        let ratio = 1.0 / weight.max(1.0);
        *self = Leaf { at_risk: weight, survival: 1.0, ratio, fit, ..Leaf::default() };
    }
}

/// At most so many of these places, evenly spread.
fn spread(places: Range<usize>, most: usize) -> Vec<usize> {
    let (n, first) = (places.len(), places.start);
    let some = n.min(most);
    (0..some).map(|k| first + (2 * k + 1) * n / (2 * some)).collect()
}

impl<'a> BrierScore<'a> {
    /// The criterion, and the caller's rows in the order in which it reads them.
    pub fn new(task: &'a (impl ScalarCurveTask + ?Sized)) -> (Self, Vec<u32>) {
        let (timeline, weights) = (task.timeline(), task.timeline().whole_weights());
        let keyed = weights.into_iter().enumerate();
        let mut keyed: Vec<(Code, f64, u32)> =
            keyed.map(|(i, weight)| (timeline.code(i), weight, i as u32)).collect();
        // No sum over rows depends on the order in which the caller has them.
        keyed.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let weights: Vec<f64> = keyed.iter().map(|row| row.1).collect();
        let criterion = BrierScore {
            timeline,
            curve: task.curve(),
            price: (task.leaf_penalty() * SCALE).round() as i64,
            codes: keyed.iter().map(|row| row.0).collect(),
            event: keyed.iter().map(|row| timeline.event[row.2 as usize]).collect(),
            integrals: timeline.integrals(weights.iter().sum()),
            places: vec![0; keyed.len()],
            rows: Vec::new(),
            weights,
            loss: 0.0,
        };
        (criterion, keyed.iter().map(|row| row.2).collect())
    }

    /// Closes the stretch of a leaf's curve that ends before time `k`, or at the end.
    #[inline(always)]
    fn advance(&self, leaf: &mut Leaf, k: Option<usize>) {
        let (plain, censoring) = &self.integrals;
        let k_or_end = k.unwrap_or(plain.len() - 1);
        let p = leaf.happened * (plain[leaf.last] - plain[k_or_end]);
        let q = leaf.at_risk * (censoring[k_or_end] - censoring[leaf.last]);
        match self.curve {
            LeafCurve::KaplanMeier => {
                let died = 1.0 - leaf.survival;
                leaf.loss += leaf.survival * leaf.survival * p + died * died * q;
            }
            LeafCurve::BrierOptimal => leaf.fit.push(p, q),
        }
        leaf.last = k.unwrap_or(leaf.last);
    }

    #[inline(always)]
    fn take(&self, leaf: &mut Leaf, row: u32) {
        let (code, weight) = (self.codes[row as usize], self.weights[row as usize]);
        let k = (code / 2) as usize;
        if weight == 0.0 {
            return;
        }
        if k != leaf.last {
            self.advance(leaf, Some(k));
        }
        leaf.at_risk -= weight;
        if code % 2 == 0 {
            leaf.survival = leaf.ratio * leaf.at_risk;
            leaf.happened += weight * self.timeline.inverse_censoring[k];
        } else {
            leaf.ratio = leaf.survival / leaf.at_risk.max(1.0);
        }
    }

    fn finish(&self, leaf: &mut Leaf) -> f64 {
        self.advance(leaf, None);
        match self.curve {
            LeafCurve::KaplanMeier => leaf.loss,
            LeafCurve::BrierOptimal => leaf.fit.loss(),
        }
    }

    /// Falls of some of the cuts; `left` is the weight of the first rows in the order of the column.
    fn score_some(
        &self,
        left: &[f64],
        cuts: &[usize],
        asked: &[usize],
        falls: &mut [f64],
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        let total = left[left.len() - 1];
        let mut sides: [[Leaf; 2]; BLOCK] = Default::default();
        for asked in asked.chunks(BLOCK) {
            if interrupted() {
                return Err(Interrupted);
            }
            for (&at, sides) in asked.iter().zip(&mut sides) {
                sides[0].start(left[cuts[at]]);
                sides[1].start(total - left[cuts[at]]);
            }
            for &row in &self.rows {
                let place = self.places[row as usize] as usize;
                for (&at, sides) in asked.iter().zip(&mut sides) {
                    self.take(&mut sides[usize::from(place >= cuts[at])], row);
                }
            }
            for (&at, [yes, no]) in asked.iter().zip(&mut sides) {
                falls[at] = (self.loss - self.finish(yes) - self.finish(no)) * SCALE;
            }
        }
        Ok(())
    }

    fn weight_of(&self, rows: impl Iterator<Item = u32>) -> f64 {
        rows.map(|row| self.weights[row as usize]).sum()
    }
}

impl Criterion for BrierScore<'_> {
    fn enter(&mut self, rows: &[u32], _: &[usize]) -> bool {
        self.rows.clear();
        self.rows.extend(rows);
        let mut leaf = Leaf::default();
        leaf.start(self.weight_of(rows.iter().copied()));
        for &row in rows {
            self.take(&mut leaf, row);
        }
        self.loss = self.finish(&mut leaf);
        self.loss > 0.0
    }

    fn size(&self, row: u32) -> i64 {
        size(1, i64::from(self.event[row as usize]))
    }

    fn rounding(&self) -> f64 {
        ROUNDING * SCALE
    }

    fn leaf(&self) -> i64 {
        (self.loss * SCALE).round() as i64
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

impl Scores for BrierScore<'_> {
    /// Scores some thresholds, then some between the neighbours of the best one, until none is left
    /// between them.
    fn score(
        &mut self,
        order: &[u32],
        cuts: &[usize],
        falls: &mut [f64],
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        for (place, &row) in order.iter().enumerate() {
            self.places[row as usize] = place as u32;
        }
        let mut left = vec![0.0];
        left.extend(order.iter().scan(0.0, |sum, &row| {
            *sum += self.weights[row as usize];
            Some(*sum)
        }));
        falls.fill(f64::NAN);
        let mut asked = spread(0..cuts.len(), AT_FIRST);
        while !asked.is_empty() {
            self.score_some(&left, cuts, &asked, falls, interrupted)?;
            let is_known = |&at: &usize| !falls[at].is_nan();
            let known = (0..cuts.len()).rev().filter(is_known);
            // The first of those that are as good.
            let best = known.max_by(|&a, &b| falls[a].total_cmp(&falls[b])).expect("one was asked");
            let before = (0..best).rev().find(is_known).map_or(0, |at| at + 1);
            let after = (best + 1..cuts.len()).find(is_known).unwrap_or(cuts.len());
            asked = spread(before..best, BETWEEN);
            asked.extend(spread(best + 1..after, BETWEEN));
        }
        Ok(())
    }

    fn split_price(&self) -> i64 {
        self.price
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Problem;
    use super::*;
    use crate::survival::Observations;
    use crate::task::brier::Brier;

    /// Every threshold of the whole sample against the loss of its sides, from their rows.
    #[test]
    fn falls_are_those_of_the_definition() {
        let mut worth = 0;
        for seed in 0..60 {
            let problem = Problem::random(seed, 60);
            let obs = Observations { entry: None, ..problem.observations() };
            for curve in [LeafCurve::KaplanMeier, LeafCurve::BrierOptimal] {
                let task = Brier::new(&obs, 0.0, curve, None).unwrap();
                let (mut score, rows) = BrierScore::new(&task);
                let n = rows.len();
                let all: Vec<u32> = (0..n as u32).collect();
                if !score.enter(&all, &[]) {
                    continue;
                }
                for codes in &problem.codes {
                    let code = |row: u32| codes[rows[row as usize] as usize];
                    let mut order = all.clone();
                    order.sort_by_key(|&row| code(row));
                    let cuts: Vec<usize> =
                        (1..n).filter(|&i| code(order[i - 1]) != code(order[i])).collect();
                    let mut falls = vec![0.0; cuts.len()];
                    score.score(&order, &cuts, &mut falls, &mut || false).unwrap();
                    for (&cut, fall) in cuts.iter().zip(falls) {
                        let last = code(order[cut - 1]);
                        let (left, right): (Vec<usize>, Vec<usize>) =
                            (0..n).partition(|&i| codes[i] <= last);
                        let whole: Vec<usize> = (0..n).collect();
                        let sides = task.leaf_loss(&left) + task.leaf_loss(&right);
                        let expected = task.leaf_loss(&whole) - sides;
                        worth += usize::from(expected > 1e-3);
                        assert!((fall / SCALE - expected).abs() < 1e-11, "seed {seed}");
                    }
                }
            }
        }
        assert!(worth > 1000);
    }

    /// Of many thresholds some are scored, as they are by themselves, and no neighbour of the best
    /// one is better.
    #[test]
    fn of_many_thresholds_the_best_has_no_better_neighbour() {
        let mut unscored = 0;
        for seed in 0..30 {
            let problem = Problem::random(seed, 2000);
            let obs = Observations { entry: None, ..problem.observations() };
            let task = Brier::new(&obs, 0.0, LeafCurve::KaplanMeier, None).unwrap();
            let (mut score, rows) = BrierScore::new(&task);
            let all: Vec<u32> = (0..rows.len() as u32).collect();
            if !score.enter(&all, &[]) {
                continue;
            }
            let codes = problem.codes.last().expect("a column");
            let code = |row: u32| codes[rows[row as usize] as usize];
            let mut order = all.clone();
            order.sort_by_key(|&row| code(row));
            let is_cut = |&i: &usize| code(order[i - 1]) != code(order[i]);
            let cuts: Vec<usize> = (1..all.len()).filter(is_cut).collect();
            let mut falls = vec![0.0; cuts.len()];
            score.score(&order, &cuts, &mut falls, &mut || false).unwrap();
            unscored += falls.iter().filter(|fall| fall.is_nan()).count();
            let scored = falls.iter().filter(|fall| !fall.is_nan()).count();
            assert!(scored >= cuts.len().min(AT_FIRST), "seed {seed}");
            let best = falls.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for (at, &fall) in falls.iter().enumerate().filter(|(_, fall)| !fall.is_nan()) {
                let mut alone = [0.0];
                score.score(&order, &cuts[at..=at], &mut alone, &mut || false).unwrap();
                assert_eq!(alone[0], fall, "seed {seed}");
            }
            let at = falls.iter().position(|&fall| fall == best).expect("a best one");
            let beside = [at.checked_sub(1), Some(at + 1).filter(|&at| at < cuts.len())];
            assert!(beside.into_iter().flatten().all(|at| falls[at] <= best), "seed {seed}");
        }
        assert!(unscored > 5000, "{unscored}");
    }
}
