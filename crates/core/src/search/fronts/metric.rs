//! The tree with the best F-measure or Matthews correlation.
//!
//! Both measures fall when false positives or false negatives rise, and are largest at a
//! corner of the convex hull of the pairs (FP, FN) that trees attain: at t ≥ 0 the pairs
//! whose measure is at most t form a convex set. A corner is the least of a weighted sum
//! α·FP + β·FN, which is misclassification with class weights, so that every step is a
//! search by the lattice. See docs/maths/fronts.md.

use super::hull::{Hull, Line, Pair};
use super::ties::without_ties;
use super::{Front, FrontPoint};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::search::certificate::Certificate;
use crate::search::{Checked, Measured, Monitor, Settings, Status, Stop, TracePoint, solve};
use crate::task::accuracy::Accuracy;
use crate::tree::{LEAF, Tree};
use std::sync::Mutex;

/// A measure of the false positives and false negatives of a classifier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// F measure: (1 + β²)TP / ((1 + β²)TP + β²FN + FP).
    FBeta(f64),
    /// Matthews correlation coefficient.
    Matthews,
}

impl Metric {
    /// Value of the measure for `total` = weight of negatives and of positives; 0 where the
    /// quotient is 0/0.
    pub fn value(self, [fp, fn_]: [f64; 2], total: [f64; 2]) -> f64 {
        if fp == 0.0 && fn_ == 0.0 && total[0] > 0.0 && total[1] > 0.0 {
            // No weights round this.
            return 1.0;
        }
        let (numerator, denominator) = match self {
            Metric::FBeta(beta) => {
                let squared = beta * beta;
                let tp = (1.0 + squared) * (total[1] - fn_);
                (tp, tp + squared * fn_ + fp)
            }
            Metric::Matthews => {
                let predicted = total[1] - fn_ + fp;
                let all = total[0] + total[1];
                let product = predicted * (all - predicted);
                let numerator = total[0] * total[1] - total[1] * fp - total[0] * fn_;
                (numerator, (total[0] * total[1]).sqrt() * product.max(0.0).sqrt())
            }
        };
        if denominator > 0.0 { numerator / denominator } else { 0.0 }
    }

    /// One less the measure, computed without a difference of numbers that are nearly equal.
    fn loss(self, [fp, fn_]: [f64; 2], total: [f64; 2]) -> f64 {
        match self {
            Metric::FBeta(beta) => {
                let missed = beta * beta * fn_ + fp;
                let all = (1.0 + beta * beta) * (total[1] - fn_) + missed;
                if all > 0.0 { missed / all } else { 1.0 }
            }
            Metric::Matthews => {
                let (a, b, c, d) = (total[1] - fn_, fp, fn_, total[0] - fp);
                // Weights that differ by powers of ten have products beyond all range.
                let [left, right] =
                    [(a + b).sqrt() * (a + c).sqrt(), (d + b).sqrt() * (d + c).sqrt()];
                let (same, crossed) = (a * d, b * c);
                if left * right <= 0.0 || same < crossed {
                    return 1.0 - self.value([fp, fn_], total);
                }
                let products = a * b * (c + d) + c * d * (a + b);
                (a + b + c + d) * products / (left * right) / (left * right + same - crossed)
            }
        }
    }

    /// Weights (α, β) along whose line the measure does not change to first order.
    fn slope(self, at: [f64; 2], total: [f64; 2]) -> [f64; 2] {
        let value = self.value(at, total);
        match self {
            Metric::FBeta(beta) => [value, 1.0 + beta * beta - value],
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

/// Values closer than this are equal.
const CLOSE: f64 = 1e-11;

/// Bounds are told with this allowance for values that count as equal, and for rounding.
const ALLOWANCE: f64 = 2.0 * CLOSE;

/// Largest sum of class-weighted rows that single lanes hold.
const SINGLE: f64 = (1 << 19) as f64;

/// Largest sum of class-weighted rows that the search keeps as whole numbers.
const EXACT: f64 = (1u64 << 44) as f64;

struct Search<'a> {
    metric: Metric,
    positive: &'a [bool],
    weights: Option<&'a [f64]>,
    whole: bool,
    total: Pair,
    penalty: f64,
    features: &'a BinaryMatrix,
    monitor: &'a Monitor<'a>,
    certificate: Certificate<'a>,
    /// Trees met on the way, and the place of the best.
    met: Vec<FrontPoint>,
    best: usize,
    sample: (usize, usize),
}

/// Which trees a hull is searched for: those of at least so many leaves, as long as the others
/// score no more than `rest`.
#[derive(Clone, Copy)]
struct Range {
    leaves: usize,
    rest: f64,
}

/// Why no result comes of a search for a hull.
enum End {
    Stopped(Stop),
    Refused(Error),
}

/// The tree of the largest measure, less `leaf_penalty` per leaf; the objective is
/// 1 − measure + `leaf_penalty`·leaves. The points of the result are trees that were met on
/// the way and that do not dominate one another.
pub fn solve_metric(
    metric: Metric,
    positive: &[bool],
    weights: Option<&[f64]>,
    leaf_penalty: f64,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Front, Error> {
    let mut total = [0.0; 2];
    for (i, &p) in positive.iter().enumerate() {
        total[usize::from(p)] += weights.map_or(1.0, |w| w[i]);
    }
    if total[0] + total[1] <= 0.0 {
        return Err(Error::invalid("sample_weight", "all weights are zero"));
    }
    let leaf = |label: usize| FrontPoint {
        tree: Tree::leaf(),
        labels: vec![label as i64],
        costs: if label == 0 { vec![0.0, total[1]] } else { vec![total[0], 0.0] },
    };
    let mut search = Search {
        metric,
        positive,
        weights,
        whole: weights.is_none_or(|w| w.iter().all(|w| w.fract() == 0.0)),
        total,
        penalty: leaf_penalty,
        features,
        monitor,
        certificate: Certificate::new(monitor, settings, leaf_penalty),
        met: vec![leaf(0)],
        best: 0,
        sample: (0, 0),
    };
    search.meet(leaf(1));
    search.certificate.record();
    // What is planted is an objective of this search, not of the weighted ones.
    let weighted = settings.with_switches(|s| s.planted = None);
    let stop = match search.penalised(&weighted) {
        Ok(()) => {
            search.certificate.close();
            None
        }
        Err(End::Stopped(stop)) => Some(stop),
        Err(End::Refused(error)) => return Err(error),
    };
    Ok(search.finish(stop))
}

impl Search<'_> {
    fn value(&self, point: &FrontPoint) -> f64 {
        self.metric.value(pair(point), self.total)
    }

    fn score(&self, point: &FrontPoint) -> f64 {
        self.value(point) - self.penalty * point.tree.n_leaves() as f64
    }

    fn best_score(&self) -> f64 {
        self.score(&self.met[self.best])
    }

    /// Takes note of a tree.
    fn meet(&mut self, point: FrontPoint) {
        if self.score(&point) > self.best_score() {
            self.best = self.met.len();
        }
        self.met.push(point);
        let best = &self.met[self.best];
        let objective =
            self.metric.loss(pair(best), self.total) + self.penalty * best.tree.n_leaves() as f64;
        self.certificate.improve(Measured::plain(objective));
    }

    /// Finds the best measure less penalties. Single leaves are known. Trees of at least k
    /// leaves score no more than the best measure of any tree less k penalties, and those of
    /// exactly k no more than the best of at most k.
    fn penalised(&mut self, settings: &Settings) -> Result<(), End> {
        let any = Range { leaves: 2, rest: f64::NEG_INFINITY };
        let (highest, lines) = self.hull(settings, any, Vec::new())?;
        if self.penalty == 0.0 {
            return Ok(());
        }
        for leaves in 2..=settings.limits.most_leaves() {
            if highest - self.penalty * leaves as f64 <= self.best_score() + CLOSE {
                break;
            }
            let range = Range { leaves, rest: highest - self.penalty * (leaves + 1) as f64 };
            let settings = settings.with_limits(|s| s.max_leaves = Some(leaves));
            self.hull(&settings, range, lines.clone())?;
        }
        Ok(())
    }

    /// Searches for trees of at most `max_leaves` of the limits until none of the range can score
    /// more than the best, or none measures more than the best met here. Returns the
    /// largest measure there can be, and lines that hold for any allowed tree.
    ///
    /// Every step makes a corner, or closes a gap, or tries the slope at a better corner; all of
    /// these are finite in number.
    fn hull(
        &mut self,
        settings: &Settings,
        range: Range,
        lines: Vec<Line>,
    ) -> Result<(f64, Vec<Line>), End> {
        let (all, metric) = (self.total, self.metric);
        let measure = |p: Pair| metric.value(p, all);
        let mut hull = Hull::new(all, lines);
        let mut sloped: Option<Pair> = None;
        loop {
            let known =
                hull.corners().iter().copied().max_by(|p, q| measure(*p).total_cmp(&measure(*q)));
            let known = known.expect("two leaves");
            let widest = hull.widest(None, measure);
            let upper = widest.map_or(measure(known), |(_, upper)| upper.max(measure(known)));
            self.bound(range, upper);
            let beaten = upper - self.penalty * range.leaves as f64 <= self.best_score() + CLOSE;
            let (Some((gap, _)), false) = (widest, beaten || upper <= measure(known) + CLOSE)
            else {
                return Ok((upper, hull.lines));
            };
            let slope = self.rounded(metric.slope(known, all));
            let by_slope = sloped != Some(known) && slope[0] > 0.0 && slope[1] > 0.0;
            sloped = Some(known);
            let weights = if by_slope { slope } else { self.reduced(hull.chord(gap)) };
            let (found, least) = match self.least(weights, settings, &hull, range) {
                Ok(found) => found,
                Err((line, end)) => {
                    hull.lines.extend(line);
                    if let Some((_, upper)) = hull.widest(None, measure) {
                        self.bound(range, upper.max(measure(known)));
                    }
                    return Err(end);
                }
            };
            hull.lines.push(least);
            let new = hull.insert(found, |weights| self.is_exact(weights));
            if !new && !by_slope {
                hull.close(gap);
            }
        }
    }

    /// No allowed tree measures more than `upper` with the lines of one hull.
    fn bound(&mut self, range: Range, upper: f64) {
        let lower = self.lower(range, upper);
        self.certificate.raise(lower);
        self.certificate.record();
    }

    /// Bound on the objective when trees of the range measure no more than `upper`.
    fn lower(&self, range: Range, upper: f64) -> f64 {
        let most = (upper - self.penalty * range.leaves as f64).max(range.rest);
        1.0 - most.max(self.best_score()) - ALLOWANCE
    }

    /// Whether the search keeps weighted sums as whole numbers.
    fn is_exact(&self, [a, b]: Pair) -> bool {
        let whole = self.whole && a.fract() == 0.0 && b.fract() == 0.0;
        whole && a * self.total[0] + b * self.total[1] <= EXACT
    }

    /// The same weights as small whole numbers where they are whole.
    fn reduced(&self, [a, b]: Pair) -> Pair {
        let divisor = if self.whole { divisor(a, b) } else { 1.0 };
        [a / divisor, b / divisor]
    }

    /// Weights as whole numbers that single lanes hold, if rows weigh whole numbers; any
    /// weights near the slope will do.
    fn rounded(&self, [a, b]: [f64; 2]) -> [f64; 2] {
        let largest = (a * self.total[0] + b * self.total[1]).max(f64::MIN_POSITIVE);
        let unit = SINGLE / largest;
        let (x, y) = ((a * unit).floor(), (b * unit).floor());
        if self.whole && x >= 4.0 && y >= 4.0 { [x, y] } else { [a, b] }
    }

    /// The tree with the least weighted errors and the line that no tree is below; after a stop
    /// the line that is proven, if there is one.
    fn least(
        &mut self,
        [a, b]: Pair,
        settings: &Settings,
        hull: &Hull,
        range: Range,
    ) -> Result<(Pair, Line), (Option<Line>, End)> {
        let refused = |error| (None, End::Refused(error));
        let weight = |i: usize| self.weights.map_or(1.0, |w| w[i]);
        let of_row = |(i, &p): (usize, &bool)| weight(i) * if p { b } else { a };
        let weights: Vec<f64> = self.positive.iter().enumerate().map(of_row).collect();
        let labels: Vec<usize> = self.positive.iter().map(|&p| usize::from(p)).collect();
        let most_leaves = settings.limits.most_leaves();
        let task = Accuracy::new(&labels, 2, Some(&weights), 0.0, most_leaves).map_err(refused)?;
        let total = a * self.total[0] + b * self.total[1];
        let rounding = hull.rounding([a, b], false);
        let line = |bound: f64| Line { weights: [a, b], least: bound * total - rounding };
        // What the weighted search proves on its way moves the bound of this one.
        let solution = {
            let (metric, all, monitor) = (self.metric, self.total, self.monitor);
            let (best, penalty) = (self.best_score(), self.penalty);
            let certificate = Mutex::new(&mut self.certificate);
            let progress = |point: &TracePoint| {
                let more = Some(line(point.lower_bound));
                let Some((_, upper)) = hull.widest(more, |p| metric.value(p, all)) else { return };
                let known = hull.corners().iter().map(|&p| metric.value(p, all));
                let upper = known.fold(upper, f64::max);
                let most = (upper - penalty * range.leaves as f64).max(range.rest).max(best);
                let mut certificate = certificate.lock().expect("no panic while locked");
                certificate.raise(1.0 - most - ALLOWANCE);
                certificate.record();
            };
            let stopped = || monitor.check().is_err();
            let inner = monitor.within(&stopped).with_progress(&progress);
            let settings = settings.checked(self.features.n_rows(), &[]).map_err(refused)?;
            let solution = solve(&task, self.features, &settings, &inner).map_err(refused)?;
            monitor.count(inner.nodes());
            solution
        };
        self.sample = (solution.n_distinct_rows, solution.n_columns);
        let relabelled = self.best_labelled(&solution.tree);
        let point = self.labelled(solution.tree, [a, b]);
        let found = pair(&point);
        self.meet(point);
        if self.score(&relabelled) > self.best_score() {
            self.meet(relabelled);
        }
        match solution.status {
            Status::Optimal => {
                let least = a * found[0] + b * found[1];
                let rounding = hull.rounding([a, b], self.is_exact([a, b]));
                Ok((found, Line { weights: [a, b], least: least - rounding }))
            }
            status => {
                let stop = match (self.monitor.check(), status) {
                    (Err(stop), _) => stop,
                    (Ok(()), Status::TimeLimit) => Stop::Time,
                    (Ok(()), Status::Interrupted) => Stop::Interrupt,
                    (Ok(()), _) => Stop::Memory,
                };
                Err((Some(line(solution.lower_bound)), End::Stopped(stop)))
            }
        }
    }

    /// Weight of the negatives and of the positives at every leaf of a tree.
    fn sums(&self, tree: &Tree) -> Vec<Pair> {
        let weight = |i: usize| self.weights.map_or(1.0, |w| w[i]);
        let mut sums = vec![[0.0; 2]; tree.n_nodes()];
        for (i, &p) in self.positive.iter().enumerate() {
            sums[tree.leaf_of(self.features, i)][usize::from(p)] += weight(i);
        }
        sums
    }

    /// A tree with the labels of the best measure, which are those of some weights: leaves are
    /// positive from some share of positives on.
    fn best_labelled(&self, tree: &Tree) -> FrontPoint {
        let nodes = self.sums(tree).into_iter().zip(&tree.feature);
        let mut leaves: Vec<Pair> = nodes.filter(|n| *n.1 == LEAF).map(|n| n.0).collect();
        let share = |p: &Pair| p[1] / (p[0] + p[1]);
        leaves.sort_by(|p, q| share(q).total_cmp(&share(p)));
        let mut errors = [0.0, self.total[1]];
        let mut best = (self.metric.value(errors, self.total), [1.0, 0.0]);
        for [negative, positive] in leaves {
            errors = [errors[0] + negative, errors[1] - positive];
            let value = self.metric.value(errors, self.total);
            if value > best.0 {
                // Just below the share of this leaf.
                best = (value, [positive, negative + CLOSE * (negative + positive)]);
            }
        }
        self.labelled(tree.clone(), best.1)
    }

    /// A tree with the labels of least weighted errors.
    fn labelled(&self, tree: Tree, [a, b]: Pair) -> FrontPoint {
        let sums = self.sums(&tree);
        let mut labels = vec![-1; tree.n_nodes()];
        let mut errors = [0.0; 2];
        for (node, label) in labels.iter_mut().enumerate() {
            if tree.feature[node] == LEAF {
                let predicted = usize::from(b * sums[node][1] > a * sums[node][0]);
                *label = predicted as i64;
                errors[1 - predicted] += sums[node][1 - predicted];
            }
        }
        FrontPoint { tree, labels, costs: errors.to_vec() }
    }

    fn finish(self, stop: Option<Stop>) -> Front {
        let Search { mut met, best, certificate, monitor, sample, total, .. } = self;
        // Of trees of the same errors the one of fewest leaves, which is the best one where it is
        // among them.
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
        // Errors are summed leaf by leaf.
        let tie = CLOSE * (total[0] + total[1]);
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

fn pair(point: &FrontPoint) -> Pair {
    [point.costs[0], point.costs[1]]
}

/// Greatest common divisor of two whole numbers.
fn divisor(a: f64, b: f64) -> f64 {
    if b == 0.0 { a } else { divisor(b, a % b) }
}
