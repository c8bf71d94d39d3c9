//! The tree with the best F-measure or Matthews correlation.
//!
//! Both measures fall when false positives or false negatives rise, and are largest at a corner of
//! the convex hull of the pairs (FP, FN) of all trees: for t ≥ 0 the pairs whose measure is at most
//! t form a convex set. A corner minimises a weighted sum α·FP + β·FN, which is misclassification
//! with class weights, so every step is a search by the lattice. See docs/maths/fronts.md.

use super::hull::{Hull, Line, Loss, Pair, loss_at};
use super::ties::without_ties;
use super::{Front, FrontPoint, resolved};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::precise::Precise;
use crate::search::certificate::{Certificate, EVALUATED, MEET};
use crate::search::{Checked, Measured, Monitor, Settings, Status, Stop, TracePoint, solve};
use crate::task::accuracy::Accuracy;
use crate::task::digits::{ExactSums, ratio};
use crate::task::fixed::times_power;
use crate::task::range_of;
use crate::tree::{LEAF, Tree};
use num_bigint::BigInt;
use num_traits::Zero;
use std::sync::Mutex;

/// Depth of the trees that are searched first, and the share of the time that this may take.
const QUICK: (usize, f64) = (4, 0.3);

/// A measure of the false positives and false negatives of a classifier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// F measure: (1 + β²)TP / ((1 + β²)TP + β²FN + FP).
    FBeta(f64),
    /// Matthews correlation coefficient.
    Matthews,
}

impl Metric {
    /// One minus the measure, for the shares of true positives, false positives, false negatives
    /// and true negatives. If the quotient is 0/0, the measure is 0.
    ///
    /// Nearly equal numbers are only subtracted if 1 or more is added to the difference, so the
    /// result is as precise as the shares.
    fn loss(self, [tp, fp, fn_, tn]: [f64; 4]) -> f64 {
        match self {
            Metric::FBeta(beta) => {
                let missed = beta * beta * fn_ + fp;
                let all = (1.0 + beta * beta) * tp + missed;
                if all > 0.0 { missed / all } else { 1.0 }
            }
            Metric::Matthews => {
                let (chosen, left) = (tp + fp, fn_ + tn);
                let (positive, negative) = (tp + fn_, fp + tn);
                if [chosen, left, positive, negative].contains(&0.0) {
                    return 1.0;
                }
                // Each factor is a mean of two shares, so no product is out of range.
                let mean = |x: f64, of: f64, other: f64| (x / of).sqrt() * (x / other).sqrt();
                let same = mean(tp, chosen, positive) * mean(tn, left, negative);
                let crossed = mean(fp, chosen, negative) * mean(fn_, left, positive);
                if same < crossed {
                    return 1.0 + (crossed - same);
                }
                // 1 − r = (1 − r²)/(1 + r).
                let wrong = tp / chosen * (fp / negative) / positive
                    + tn / left * (fn_ / positive) / negative;
                (chosen + left) * wrong / (1.0 + (same - crossed))
            }
        }
    }

    /// Weights (α, β) of the line along which the measure does not change to first order.
    fn slope(self, at: [f64; 2], total: [f64; 2]) -> [f64; 2] {
        match self {
            Metric::FBeta(beta) => {
                let loss = self.loss([total[1] - at[1], at[0], at[1], total[0] - at[0]]);
                [1.0 - loss, beta * beta + loss]
            }
            Metric::Matthews => {
                let predicted = total[1] - at[1] + at[0];
                let all = total[0] + total[1];
                let product = predicted * (all - predicted);
                let numerator = total[0] * total[1] - total[1] * at[0] - total[0] * at[1];
                if product <= 0.0 {
                    return [total[1], total[0]];
                }
                // d ln MCC: −P/numerator − (all − 2·predicted)/(2·product) per false positive.
                let curve = numerator * (all - 2.0 * predicted) / (2.0 * product);
                [(total[1] + curve).max(0.0), (total[0] - curve).max(0.0)]
            }
        }
    }
}

/// Objectives that differ by less than this share are not distinguished by another search, because
/// objective and bound meet without it.
const WORTH: f64 = MEET / 64.0;

/// Largest sum of class-weighted rows that single lanes can hold.
const SINGLE: f64 = (1 << 19) as f64;

/// Largest sum of class-weighted rows that the search stores as whole numbers.
const EXACT: f64 = (1u64 << 44) as f64;

struct Search<'a> {
    metric: Metric,
    loss: &'a Loss<'a>,
    positive: &'a [bool],
    weights: Option<&'a [f64]>,
    whole: bool,
    sums: ExactSums,
    /// Weight of the negatives and of the positives.
    total: Pair,
    totals: [f64; 2],
    /// Smallest positive weight of a row.
    lightest: BigInt,
    penalty: f64,
    features: &'a BinaryMatrix,
    monitor: &'a Monitor<'a>,
    certificate: Certificate<'a>,
    /// Trees found so far, and the position of the best.
    met: Vec<Met>,
    best: usize,
    sample: (usize, usize),
}

/// A tree with its exact errors and its objective.
struct Met {
    point: FrontPoint,
    pair: Pair,
    objective: f64,
}

/// The trees that a hull is searched for: those with at least this many leaves. All other trees
/// have an objective of at least `rest`.
#[derive(Clone, Copy)]
struct Range {
    leaves: usize,
    rest: f64,
}

/// Reason why a search for a hull has no result.
enum End {
    Stopped(Stop),
    Refused(Error),
}

/// The line that is proven nevertheless, if there is one, and the reason why there is no more.
type Ended = (Option<Box<Line>>, End);

/// The tree with the largest measure minus `leaf_penalty` per leaf; the objective is 1 − measure +
/// `leaf_penalty`·leaves. The points of the result are trees found on the way that do not dominate
/// each other.
///
/// # Errors
///
/// If the weights span too wide a range for a certificate.
pub fn solve_metric(
    metric: Metric,
    positive: &[bool],
    weights: Option<&[f64]>,
    leaf_penalty: f64,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Front, Error> {
    let n = positive.len();
    let sums = ExactSums::new((0..n).map(|i| weights.map_or(1.0, |w| w[i])));
    let total = sums.of_groups(2, positive.iter().map(|&p| Some(usize::from(p))));
    let total: Pair = total.try_into().expect("two classes");
    if total.iter().all(Zero::is_zero) {
        return Err(Error::invalid("sample_weight", "all weights are zero"));
    }
    let loss = |counts: [f64; 4]| metric.loss(counts);
    let mut search = Search {
        metric,
        loss: &loss,
        positive,
        weights,
        whole: weights.is_none_or(|w| w.iter().all(|w| w.fract() == 0.0)),
        totals: in_units(&total, sums.exponent),
        lightest: sums.least(),
        sums,
        total,
        penalty: leaf_penalty,
        features,
        monitor,
        certificate: Certificate::new(monitor, settings, leaf_penalty),
        met: Vec::new(),
        best: 0,
        sample: (0, 0),
    };
    for label in [0, 1] {
        let leaf = Tree::leaf();
        let sums = [search.total.clone()];
        let met = search.labelled(leaf, &sums, |_| label == 1);
        search.meet(met);
    }
    search.certificate.record();
    if settings.limits.max_depth > QUICK.0 && !settings.limits.allowed().is_full() {
        search.try_shallower(settings)?;
    }
    // The planted objective is that of this search, not of the weighted searches.
    let weighted = settings.with_switches(|s| s.planted = None);
    let stop = match search.penalised(&weighted) {
        Ok(()) => None,
        Err(End::Stopped(stop)) => Some(stop),
        Err(End::Refused(error)) => return Err(error),
    };
    let range = || match weights {
        Some(weights) => range_of(weights.iter().copied().enumerate()),
        None => "none".into(),
    };
    resolved(search.finish(stop), || ("sample_weight", range()))
}

impl Search<'_> {
    /// Searches trees of smaller depth. With few leaves the many searches of the full depth may not
    /// find better ones before they are stopped.
    fn try_shallower(&mut self, settings: &Checked) -> Result<(), Error> {
        let Search { metric, positive, weights, penalty, features, monitor, .. } = *self;
        let (depth, share) = QUICK;
        let settings = settings.with_limits(|s| s.max_depth = depth);
        let settings = settings.checked(features.n_rows(), 0)?;
        let stopped = || monitor.check().is_err();
        let inner = monitor.within(&stopped).for_share(share);
        let found = solve_metric(metric, positive, weights, penalty, features, &settings, &inner)?;
        monitor.count(inner.nodes());
        for FrontPoint { tree, labels, .. } in found.points {
            let sums = self.leaf_sums(&tree);
            let met = self.labelled(tree, &sums, |node| labels[node] == 1);
            self.meet(met);
        }
        Ok(())
    }

    /// Objective of the best tree.
    fn known(&self) -> f64 {
        self.met[self.best].objective
    }

    /// Records a tree.
    fn meet(&mut self, met: Met) {
        self.met.push(met);
        let last = self.met.len() - 1;
        if self.met[last].objective < self.known() {
            self.best = last;
        }
        self.certificate.improve(Measured::plain(self.known()));
    }

    /// Finds the best measure minus penalties. Single leaves are known. The objective of trees with
    /// at least k leaves is at least the smallest loss of any tree plus k penalties; for trees with
    /// exactly k leaves, it is the smallest loss of trees with at most k leaves.
    fn penalised(&mut self, settings: &Settings) -> Result<(), End> {
        let range = Range { leaves: 2, rest: f64::INFINITY };
        let any = self.hull(settings, range, Hull::new(&self.total, &self.lightest, self.loss))?;
        let most = settings.limits.most_leaves();
        if self.penalty == 0.0 || most < 2 {
            return Ok(());
        }
        let least = any.least();
        let at_least = |leaves: usize, penalty: f64| least + penalty * leaves as f64;
        // Bound on trees with fewer leaves.
        let mut done = f64::INFINITY;
        for leaves in 2..=most {
            let rest = at_least(leaves, self.penalty);
            if rest >= self.known() * (1.0 - WORTH) {
                done = done.min(rest);
                break;
            }
            let more = at_least(leaves + 1, self.penalty);
            let rest = if leaves < most { done.min(more) } else { done };
            let settings = settings.with_limits(|s| s.max_leaves = Some(leaves));
            let hull = self.hull(&settings, Range { leaves, rest }, any.again())?;
            done = done.min(hull.least() + self.penalty * leaves as f64);
        }
        self.raise(done);
        Ok(())
    }

    /// Searches for trees with at most the `max_leaves` of the limits until no tree of the range
    /// can be better than the best, or none has a larger measure than the best tree found here.
    ///
    /// Every step adds a corner, closes a gap, or tries the slope at a better corner; there are
    /// only finitely many of each.
    fn hull<'h>(
        &mut self,
        settings: &Settings,
        range: Range,
        mut hull: Hull<'h>,
    ) -> Result<Hull<'h>, End> {
        let mut sloped: Option<Pair> = None;
        loop {
            self.bound(range, &hull);
            let (corner, loss) = hull.best();
            let better = self.known() * (1.0 - WORTH) - self.penalty * range.leaves as f64;
            let Some(gap) = hull.widest(better.min(loss * (1.0 - WORTH))) else {
                return Ok(hull);
            };
            let at = in_units(corner, self.sums.exponent);
            let slope = self.rounded(self.metric.slope(at, self.totals));
            let by_slope = sloped.as_ref() != Some(corner) && slope[0] > 0.0 && slope[1] > 0.0;
            sloped = Some(corner.clone());
            let chord = || self.reduced(in_units(&hull.chord(gap), self.sums.exponent));
            let weights = if by_slope { slope } else { chord() };
            match self.least(weights, settings, &hull, range) {
                Ok((found, line)) => {
                    hull.cut(line);
                    let new = hull.insert(&found);
                    if !new && !by_slope {
                        hull.close(gap);
                    }
                }
                Err((line, end)) => {
                    line.into_iter().for_each(|line| hull.cut(*line));
                    self.bound(range, &hull);
                    return Err(end);
                }
            }
        }
    }

    /// Takes a hull whose boundary no allowed tree is below.
    fn bound(&mut self, range: Range, hull: &Hull) {
        let least = hull.least() + self.penalty * range.leaves as f64;
        self.raise(least.min(range.rest));
        self.certificate.record();
    }

    /// Takes a lower bound on objectives that is a computed sum.
    fn raise(&mut self, least: f64) {
        self.certificate.raise(lowered(least, self.known()));
    }

    /// Whether the search stores weighted sums as whole numbers.
    fn is_exact(&self, [a, b]: [f64; 2]) -> bool {
        let whole = self.whole && a.fract() == 0.0 && b.fract() == 0.0;
        whole && a * self.totals[0] + b * self.totals[1] <= EXACT
    }

    /// The same weights as small whole numbers if they are whole, otherwise scaled to near 1.
    fn reduced(&self, [a, b]: [f64; 2]) -> [f64; 2] {
        if self.whole {
            let divisor = divisor(a, b);
            return [a / divisor, b / divisor];
        }
        let unit = -(a.max(b).log2().floor() as i32);
        [times_power(a, unit), times_power(b, unit)]
    }

    /// Weights as whole numbers that single lanes can hold, if rows have whole weights. Any weights
    /// near the slope are suitable.
    fn rounded(&self, [a, b]: [f64; 2]) -> [f64; 2] {
        let largest = (a * self.totals[0] + b * self.totals[1]).max(f64::MIN_POSITIVE);
        let unit = SINGLE / largest;
        let (x, y) = ((a * unit).floor(), (b * unit).floor());
        if self.whole && x >= 4.0 && y >= 4.0 {
            return [x, y];
        }
        let unit = -(a.max(b).max(f64::MIN_POSITIVE).log2().floor() as i32);
        [times_power(a, unit), times_power(b, unit)]
    }

    /// The tree with the least weighted errors, and the line that no tree is below. After a stop,
    /// the line that is proven, if there is one.
    fn least(
        &mut self,
        weights: [f64; 2],
        settings: &Settings,
        hull: &Hull,
        range: Range,
    ) -> Result<(Pair, Line), Ended> {
        let refused = |error| (None, End::Refused(error));
        let of_class = |&p: &bool| weights[usize::from(p)];
        let of_row = |(i, p): (usize, &bool)| self.weights.map_or(1.0, |w| w[i]) * of_class(p);
        let of_rows: Vec<f64> = self.positive.iter().enumerate().map(of_row).collect();
        let labels: Vec<usize> = self.positive.iter().map(|&p| usize::from(p)).collect();
        let most_leaves = settings.limits.most_leaves();
        let task =
            Accuracy::new(&labels, 2, Some(&of_rows[..]), 0.0, most_leaves).map_err(refused)?;
        let total = Precise::of(of_rows.iter().copied()).value();
        // Rows weigh their rounded products, which are smaller if they leave the range.
        let lost = of_rows.len() as f64 * f64::from_bits(1);
        let exponent = self.sums.exponent;
        let line = |bound: f64| {
            let least = bound * total * (1.0 - EVALUATED) - lost;
            Line::new(weights, least.max(0.0), exponent)
        };
        // Bounds of the weighted search raise the bound of this search.
        let solution = {
            let (monitor, known) = (self.monitor, self.known());
            let penalties = self.penalty * range.leaves as f64;
            let certificate = Mutex::new(&mut self.certificate);
            let progress = |point: &TracePoint| {
                let least = hull.with(line(point.lower_bound)).least() + penalties;
                let mut certificate = certificate.lock().expect("no panic while locked");
                certificate.raise(lowered(least.min(range.rest), known));
                certificate.record();
            };
            let stopped = || monitor.check().is_err();
            let inner = monitor.within(&stopped).with_progress(&progress);
            let settings = settings.checked(self.features.n_rows(), 0).map_err(refused)?;
            let solution = solve(&task, self.features, &settings, &inner).map_err(refused)?;
            monitor.count(inner.nodes());
            solution
        };
        self.sample = (solution.n_distinct_rows, solution.n_columns);
        let sums = self.leaf_sums(&solution.tree);
        let chosen = self.best_labels(&solution.tree, &sums);
        let relabelled = self.labelled(solution.tree.clone(), &sums, |node| chosen[node]);
        let positive = |node: usize| {
            let [negative, positive] = in_units(&sums[node], exponent);
            weights[1] * positive > weights[0] * negative
        };
        let met = self.labelled(solution.tree, &sums, positive);
        let found = met.pair.clone();
        self.meet(met);
        if relabelled.objective < self.known() {
            self.meet(relabelled);
        }
        let is_least = solution.objective <= solution.lower_bound;
        match solution.status {
            // A search that is stopped may only be optimal to 1e-9.
            Status::Optimal if is_least && self.is_exact(weights) => {
                let line = Line::through(weights, &found);
                Ok((found, line))
            }
            Status::Optimal => Ok((found, line(solution.lower_bound))),
            status => {
                let stop = match (self.monitor.check(), status) {
                    (Err(stop), _) => stop,
                    (Ok(()), Status::TimeLimit) => Stop::Time,
                    (Ok(()), Status::Interrupted) => Stop::Interrupt,
                    (Ok(()), _) => Stop::Memory,
                };
                Err((Some(Box::new(line(solution.lower_bound))), End::Stopped(stop)))
            }
        }
    }

    /// Weight of the negatives and of the positives in every leaf of a tree.
    fn leaf_sums(&self, tree: &Tree) -> Vec<Pair> {
        let rows = self.positive.iter().enumerate();
        let group = rows.map(|(i, &p)| Some(2 * tree.leaf_of(self.features, i) + usize::from(p)));
        let mut sums = self.sums.of_groups(2 * tree.n_nodes(), group).into_iter();
        let mut next = || sums.next().unwrap_or_default();
        (0..tree.n_nodes()).map(|_| [next(), next()]).collect()
    }

    /// The labels of a tree's leaves for the best measure: leaves are positive from some share of
    /// positives on.
    fn best_labels(&self, tree: &Tree, sums: &[Pair]) -> Vec<bool> {
        let mut leaves: Vec<(usize, [f64; 2])> = (0..tree.n_nodes())
            .filter(|&node| tree.feature[node] == LEAF)
            .map(|node| (node, in_units(&sums[node], self.sums.exponent)))
            .collect();
        let share = |p: &[f64; 2]| p[1] / (p[0] + p[1]);
        leaves.sort_by(|p, q| share(&q.1).total_cmp(&share(&p.1)));
        let [negatives, positives] = self.totals;
        let mut counts = [0.0, 0.0, positives, negatives];
        let mut best = (self.metric.loss(counts), 0);
        for (k, (_, [negative, positive])) in leaves.iter().enumerate() {
            let [tp, fp, fn_, tn] = counts;
            counts = [tp + positive, fp + negative, fn_ - positive, tn - negative];
            counts = counts.map(|count| count.max(0.0));
            let loss = self.metric.loss(counts);
            if loss < best.0 {
                best = (loss, k + 1);
            }
        }
        let mut chosen = vec![false; tree.n_nodes()];
        leaves[..best.1].iter().for_each(|&(node, _)| chosen[node] = true);
        chosen
    }

    /// A tree with these leaves predicted positive.
    fn labelled(&self, tree: Tree, sums: &[Pair], positive: impl Fn(usize) -> bool) -> Met {
        let mut labels = vec![-1; tree.n_nodes()];
        let mut pair = Pair::default();
        for (node, label) in labels.iter_mut().enumerate() {
            if tree.feature[node] == LEAF {
                let predicted = usize::from(positive(node));
                *label = predicted as i64;
                pair[1 - predicted] += &sums[node][1 - predicted];
            }
        }
        let loss = loss_at(self.loss, &self.total, [&pair[0], &pair[1]], &BigInt::from(1));
        let objective = loss + self.penalty * tree.n_leaves() as f64;
        let costs = in_units(&pair, self.sums.exponent).to_vec();
        Met { point: FrontPoint { tree, labels, costs }, pair, objective }
    }

    fn finish(self, stop: Option<Stop>) -> Front {
        let Search { met, best, certificate, monitor, sample, totals, .. } = self;
        let mut met: Vec<FrontPoint> = met.into_iter().map(|met| met.point).collect();
        // Of the trees with the same errors, the one with the fewest leaves; it replaces the best
        // tree if that is one of them.
        let (errors, leaves) = (pair(&met[best]), met[best].tree.n_leaves());
        met.sort_by(|p, q| {
            let (a, b) = (pair(p), pair(q));
            let by_errors = a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]));
            by_errors.then(p.tree.n_leaves().cmp(&q.tree.n_leaves()))
        });
        met.dedup_by(|p, q| pair(p) == pair(q));
        let mut least = f64::INFINITY;
        let is_best = |p: &FrontPoint| pair(p) == errors;
        met.retain(|p| {
            let better = pair(p)[1] < least || is_best(p);
            least = least.min(pair(p)[1]);
            better
        });
        debug_assert!(met.iter().find(|p| is_best(p)).is_some_and(|p| p.tree.n_leaves() <= leaves));
        // Each weight has an error of half a unit in its last place, in either of two sums.
        let tie = f64::EPSILON * (totals[0] + totals[1]);
        let best = met.iter().position(is_best);
        let met = without_ties(met, tie, best);
        let verdict = certificate.finish(stop);
        Front {
            best: met.iter().position(is_best),
            points: met,
            objective: verdict.objective,
            lower_bound: verdict.lower_bound,
            status: verdict.status,
            nodes: monitor.nodes(),
            n_distinct_rows: sample.0,
            n_columns: sample.1,
            trace: verdict.trace,
        }
    }
}

/// A bound that is a sum of parts, lowered by their rounding; the known objective if the bound is
/// no less.
fn lowered(least: f64, known: f64) -> f64 {
    if least < known { least - EVALUATED * least } else { known }
}

fn pair(point: &FrontPoint) -> [f64; 2] {
    [point.costs[0], point.costs[1]]
}

/// Weights as floating-point numbers, from units of 2^`exponent`.
fn in_units(pair: &Pair, exponent: i32) -> [f64; 2] {
    let one = BigInt::from(1);
    [0, 1].map(|k| times_power(ratio(&pair[k], &one), exponent))
}

/// Greatest common divisor of two whole numbers.
fn divisor(a: f64, b: f64) -> f64 {
    if b == 0.0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::fixed::power_of_two;

    /// 1 − MCC straight from its definition.
    fn matthews([tp, fp, fn_, tn]: [f64; 4]) -> f64 {
        let below = ((tp + fp) * (tp + fn_) * (tn + fp) * (tn + fn_)).sqrt();
        1.0 - (tp * tn - fp * fn_) / below
    }

    #[test]
    fn losses_are_one_less_the_measure() {
        for counts in [[4.0, 1.0, 2.0, 8.0], [1.0, 5.0, 7.0, 2.0], [3.0, 3.0, 1.0, 1.0]] {
            let [tp, fp, fn_, _] = counts;
            assert!((Metric::Matthews.loss(counts) - matthews(counts)).abs() < 1e-15);
            let f1 = 2.0 * tp / (2.0 * tp + fp + fn_);
            assert!((Metric::FBeta(1.0).loss(counts) - (1.0 - f1)).abs() < 1e-15);
        }
        // Nothing is predicted positive; everything is right; one in 2^60 is wrong, and half are
        // negative.
        assert_eq!(Metric::Matthews.loss([0.0, 0.0, 3.0, 2.0]), 1.0);
        assert_eq!(Metric::Matthews.loss([3.0, 0.0, 0.0, 2.0]), 0.0);
        let half = power_of_two(59);
        let tiny = Metric::Matthews.loss([half, 1.0, 0.0, half]) * half;
        assert!((tiny - 1.0).abs() < 1e-15, "{tiny}");
        // Weights that differ as much as they may.
        let wide = Metric::Matthews.loss([1e-290, 1e-300, 1e-295, 1.0]);
        assert!((wide / 5.00005e-6 - 1.0).abs() < 1e-5, "{wide}");
    }
}
