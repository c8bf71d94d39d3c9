//! The decrease of the integrated Brier score at the thresholds of a column.
//!
//! The score of a leaf needs its rows in the order of time, so every threshold takes a pass over
//! the rows of the node; one pass serves as many thresholds as there are lanes. If there are many
//! thresholds, those around the best one are found step by step. See docs/maths/branch.md.

use super::{Choice, Criterion, Group, Interrupted, Scores, choose_in_order};
use crate::data::size;
use crate::simd::{Backend, Job, RowLanes, with_token};
use crate::survival::timeline::Code;
use crate::task::brier::antitonic::Fit;
use crate::task::brier::passes::{self, Sides, Source, Times, lane_bits};
use crate::task::curve::{LeafCurve, ScalarCurveTask};
use std::ops::Range;

/// Number of thresholds of a column that are scored first; all of them if there are no more.
const AT_FIRST: usize = 256;

/// Number of thresholds that are then scored at a time between the best one and its neighbours.
const BETWEEN: usize = 16;

/// Largest number of lanes of a pass.
const LANES: usize = 16;

/// Units of cost per unit of loss.
const SCALE: f64 = (1u64 << 48) as f64;

/// A decrease this small is due to the rounding of sums over rows.
const ROUNDING: f64 = 1e-12;

/// Rows in the order of time: events before censorings.
pub(super) struct BrierScore {
    backend: Backend,
    curve: LeafCurve,
    times: Times,
    price: i64,
    all: Vec<Row>,
    /// The rows of the node that have a weight.
    rows: Vec<Row>,
    fits: Vec<Fit>,
    loss: f64,
}

/// The values of a row that a pass reads.
#[derive(Clone, Copy)]
struct Row {
    id: u32,
    code: Code,
    /// Rounded to whole numbers.
    weight: f64,
    /// Number of thresholds that have the row on the right.
    passed: u16,
}

/// Rows and the thresholds from `first` on, which are ascending.
#[derive(Clone, Copy)]
struct Asked<'a> {
    rows: &'a [Row],
    first: usize,
}

impl<L: RowLanes, const V: usize> Source<L, V> for Asked<'_> {
    #[inline(always)]
    fn next(&mut self, lanes: L) -> Option<(Code, f64, [L::Real; V])> {
        let code = self.rows.first()?.code;
        let (mut total, mut sums) = (0.0, [lanes.splat_real(0.0); V]);
        while let Some((row, later)) = self.rows.split_first().filter(|(row, _)| row.code == code) {
            let passed = usize::from(row.passed).saturating_sub(self.first).min(LANES);
            for v in 0..V {
                let left = lane_bits::<L>(u32::MAX << passed, v);
                sums[v] = L::add_real_where(sums[v], left, row.weight);
            }
            total += row.weight;
            self.rows = later;
        }
        Some((code, total, sums))
    }
}

/// Losses of the right and the left sides of thresholds, given the weights of the left sides and of
/// all rows.
struct Pass<'a, const V: usize> {
    asked: Asked<'a>,
    losses: (LeafCurve, &'a Times),
    left: &'a [f64; LANES],
    total: f64,
    fits: &'a mut Vec<Fit>,
}

impl<L: RowLanes, const V: usize> Job<L> for Pass<'_, V> {
    type Output = [[f64; LANES]; 2];

    #[inline(always)]
    fn run(self, lanes: L) -> [[f64; LANES]; 2] {
        let mut at_risk = [lanes.splat_real(0.0); V];
        for (at_risk, left) in at_risk.iter_mut().zip(self.left.chunks(L::N)) {
            *at_risk = lanes.load_real(left);
        }
        let mut out = [[0.0; LANES]; 2];
        let losses = out.each_mut().map(|losses| &mut losses[..]);
        let sides = Sides { losses, means: [&mut [], &mut []] };
        let weight = (at_risk, self.total);
        passes::losses::<L, V, _, false>(lanes, self.asked, self.losses, weight, self.fits, sides);
        out
    }
}

/// At most `most` of these positions, evenly spread.
fn spread(places: Range<usize>, most: usize) -> Vec<usize> {
    let (n, first) = (places.len(), places.start);
    let some = n.min(most);
    (0..some).map(|k| first + (2 * k + 1) * n / (2 * some)).collect()
}

impl BrierScore {
    /// The criterion, and the order in which it reads the caller's rows.
    pub fn new(task: &(impl ScalarCurveTask + ?Sized)) -> (Self, Vec<u32>) {
        let timeline = task.timeline();
        let weights = timeline.whole_weights();
        // Rows without weight do not change a sum.
        let mut order = timeline.order.clone();
        let rows = 0..timeline.n_rows() as u32;
        order.extend(rows.filter(|&i| timeline.weight[i as usize] == 0.0));
        let of_row = |(id, &i): (usize, &u32)| {
            let (id, code, weight) = (id as u32, timeline.code(i as usize), weights[i as usize]);
            Row { id, code, weight, passed: 0 }
        };
        let criterion = BrierScore {
            backend: Backend::best(),
            curve: task.curve(),
            times: Times::new(timeline, weights.iter().sum(), None),
            price: (task.leaf_penalty() * SCALE).round() as i64,
            all: order.iter().enumerate().map(of_row).collect(),
            rows: Vec::new(),
            fits: Vec::new(),
            loss: 0.0,
        };
        (criterion, order)
    }

    /// Decreases at some of the cuts, which are ascending; `left` is the weight of the first rows
    /// in the `order` of the column.
    fn score_some(
        &mut self,
        (order, left): (&[u32], &[f64]),
        cuts: &[usize],
        asked: &[usize],
        falls: &mut [f64],
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        let mut start = 0;
        for (passed, &at) in asked.iter().enumerate() {
            for &row in &order[start..cuts[at]] {
                self.all[row as usize].passed = passed as u16;
            }
            start = cuts[at];
        }
        for &row in &order[start..] {
            self.all[row as usize].passed = asked.len() as u16;
        }
        for row in &mut self.rows {
            row.passed = self.all[row.id as usize].passed;
        }
        let total = left[left.len() - 1];
        let mut first = 0;
        while first < asked.len() {
            if interrupted() {
                return Err(Interrupted);
            }
            // In unused lanes all rows are on the left.
            let mut of_lanes = [total; LANES];
            for (of_lane, &at) in of_lanes.iter_mut().zip(&asked[first..]) {
                *of_lane = left[cuts[at]];
            }
            let (n, [no, yes]) = with_token!(self.backend, token => {
                self.pass(token.double(), first, (&of_lanes, total))
            });
            for (lane, &at) in asked[first..].iter().take(n).enumerate() {
                falls[at] = (self.loss - yes[lane] - no[lane]) * SCALE;
            }
            first += n;
        }
        Ok(())
    }

    /// Losses on the right and on the left of the thresholds from `first` on, and the number of
    /// these thresholds.
    fn pass<L: RowLanes>(
        &mut self,
        lanes: L,
        first: usize,
        (left, total): (&[f64; LANES], f64),
    ) -> (usize, [[f64; LANES]; 2]) {
        let BrierScore { curve, times, rows, fits, .. } = self;
        let (asked, losses) = (Asked { rows, first }, (*curve, &*times));
        let sides = match L::WIDE {
            1 => lanes.run(Pass::<1> { asked, losses, left, total, fits }),
            _ => lanes.run(Pass::<2> { asked, losses, left, total, fits }),
        };
        (L::WIDE * L::N, sides)
    }
}

impl Criterion for BrierScore {
    fn enter(&mut self, rows: &[u32], _: &[usize]) -> bool {
        let own = rows.iter().map(|&row| self.all[row as usize]);
        self.rows.clear();
        self.rows.extend(own.filter(|row| row.weight > 0.0));
        let rows = self.rows.iter().map(|row| (row.code, row.weight));
        self.loss = self.times.leaf(self.curve, rows);
        self.loss > 0.0
    }

    fn size(&self, row: u32) -> i64 {
        size(1, i64::from(self.all[row as usize].code.is_multiple_of(2)))
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

impl Scores for BrierScore {
    /// Scores some thresholds, then some between the neighbours of the best one, until there are
    /// none left between them.
    fn score(
        &mut self,
        order: &[u32],
        cuts: &[usize],
        falls: &mut [f64],
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        let mut left = vec![0.0];
        left.extend(order.iter().scan(0.0, |sum, &row| {
            *sum += self.all[row as usize].weight;
            Some(*sum)
        }));
        falls.fill(f64::NAN);
        let mut asked = spread(0..cuts.len(), AT_FIRST);
        while !asked.is_empty() {
            self.score_some((order, &left), cuts, &asked, falls, interrupted)?;
            let is_known = |&at: &usize| !falls[at].is_nan();
            let known = (0..cuts.len()).rev().filter(is_known);
            // The first of equally good thresholds.
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

    /// Compares every threshold of the whole sample with the loss of its sides, computed from their
    /// rows.
    #[test]
    fn falls_are_those_of_the_definition() {
        let mut worth = 0;
        for seed in 0..60 {
            let problem = Problem::random(seed, 60);
            let obs = Observations { entry: None, ..problem.observations() };
            let curves = [LeafCurve::KaplanMeier, LeafCurve::BrierOptimal].into_iter();
            for (curve, backend) in
                curves.flat_map(|curve| Backend::available().map(move |backend| (curve, backend)))
            {
                let task = Brier::new(&obs, 0.0, curve, None).unwrap();
                let (mut score, rows) = BrierScore::new(&task);
                score.backend = backend;
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

    /// If there are many thresholds, those that are scored have their exact scores, and no
    /// neighbour of the best one is better.
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
