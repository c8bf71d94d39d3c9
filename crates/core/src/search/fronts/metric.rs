//! The tree with the best F-measure or Matthews correlation.
//!
//! Both measures fall when false positives or false negatives rise, and are largest at a
//! corner of the convex hull of the pairs (FP, FN) that trees attain: at t ≥ 0 the pairs
//! whose measure is at most t form a convex set. A corner is the least of a weighted sum
//! α·FP + β·FN, which is misclassification with class weights, so that every step is a
//! search by the lattice. See docs/maths/fronts.md.

use super::{Front, FrontPoint};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::search::{Monitor, Settings, Status, TracePoint, solve};
use crate::task::accuracy::Accuracy;
use crate::tree::{LEAF, Tree};

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

/// Largest sum of class-weighted rows that single lanes hold.
const SINGLE: f64 = (1 << 19) as f64;

/// A pair (FP, FN) of some tree.
type Pair = [f64; 2];

struct Search<'a> {
    metric: Metric,
    positive: &'a [bool],
    weights: Option<&'a [f64]>,
    whole: bool,
    total: [f64; 2],
    penalty: f64,
    features: &'a BinaryMatrix,
    monitor: &'a Monitor<'a>,
    corners: Vec<FrontPoint>,
    trace: Vec<TracePoint>,
    sample: (usize, usize),
}

/// The best tree of one leaf budget: its point, its measure, and what none exceeds.
struct Best {
    point: FrontPoint,
    value: f64,
    upper: f64,
    status: Status,
}

/// The tree of the largest measure, less `leaf_penalty` per leaf; the objective is
/// 1 − measure + `leaf_penalty`·leaves. The points of the result are the corners of the
/// hull that were met on the way.
pub fn solve_metric(
    metric: Metric,
    positive: &[bool],
    weights: Option<&[f64]>,
    leaf_penalty: f64,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Front, Error> {
    settings.check(features.n_rows())?;
    let mut total = [0.0; 2];
    for (i, &p) in positive.iter().enumerate() {
        total[usize::from(p)] += weights.map_or(1.0, |w| w[i]);
    }
    if total[0] + total[1] <= 0.0 {
        return Err(Error::invalid("sample_weight", "all weights are zero"));
    }
    let mut search = Search {
        metric,
        positive,
        weights,
        whole: weights.is_none_or(|w| w.iter().all(|w| w.fract() == 0.0)),
        total,
        penalty: leaf_penalty,
        features,
        monitor,
        corners: Vec::new(),
        trace: Vec::new(),
        sample: (0, 0),
    };
    let (best, upper) = search.penalised(settings)?;
    Ok(search.finish(&best, upper))
}

impl Search<'_> {
    fn score(&self, best: &Best) -> f64 {
        best.value - self.penalty * best.point.tree.n_leaves() as f64
    }

    /// Best measure less penalties, and its upper bound. Trees of k leaves are at most the
    /// best of at most k, less k penalties.
    fn penalised(&mut self, settings: &Settings) -> Result<(Best, f64), Error> {
        let any = self.hull(settings)?;
        if self.penalty == 0.0 {
            let upper = any.upper;
            return Ok((any, upper));
        }
        let most = settings.most_leaves();
        let highest = any.upper;
        let mut best = any;
        let mut upper = self.score(&best);
        for leaves in 1..=most {
            if highest - self.penalty * leaves as f64 <= self.score(&best) {
                break;
            }
            if best.status != Status::Optimal {
                upper = upper.max(highest - self.penalty * leaves as f64);
                break;
            }
            let found = self.hull(&Settings { max_leaves: Some(leaves), ..settings.clone() })?;
            upper = upper.max(found.upper - self.penalty * leaves as f64);
            let status = found.status;
            if self.score(&found) > self.score(&best) {
                best = found;
            }
            best.status = status;
        }
        Ok((best, upper))
    }

    /// Best measure of trees of at most `settings.max_leaves` leaves.
    fn hull(&mut self, settings: &Settings) -> Result<Best, Error> {
        let all = self.total;
        let leaf = |label: usize| FrontPoint {
            tree: Tree::leaf(),
            labels: vec![label as i64],
            costs: if label == 0 { vec![0.0, all[1]] } else { vec![all[0], 0.0] },
        };
        self.corners = vec![leaf(0), leaf(1)];
        // No pair lies beyond this chain.
        let mut outer: Vec<Pair> = vec![[0.0, all[1]], [0.0, 0.0], [all[0], 0.0]];
        let mut sloped: Option<Pair> = None;
        let mut status = Status::Optimal;
        let mut known = f64::INFINITY;
        loop {
            let value = |p: &FrontPoint| self.metric.value(pair(p), all);
            let best =
                self.corners.iter().max_by(|a, b| value(a).total_cmp(&value(b))).expect("two");
            let (best, best_value) = (best.clone(), value(best));
            let at = |p: &Pair| self.metric.value(*p, all);
            let tip = *outer.iter().max_by(|a, b| at(a).total_cmp(&at(b))).expect("a chain");
            let upper = at(&tip).max(best_value);
            self.record(best_value - self.penalty * best.tree.n_leaves() as f64, upper);
            let closed = upper <= best_value + CLOSE;
            if closed || status != Status::Optimal || all.contains(&0.0) {
                let upper = if closed || all.contains(&0.0) { best_value } else { upper };
                return Ok(Best { point: best, value: best_value, upper, status });
            }
            let by_slope = sloped != Some(pair(&best));
            let weights = if by_slope {
                sloped = Some(pair(&best));
                self.rounded(self.metric.slope(pair(&best), all))
            } else {
                match self.chord_under(tip) {
                    Some(weights) if upper < known => weights,
                    _ => return Ok(Best { point: best, value: best_value, upper, status }),
                }
            };
            if !by_slope {
                known = upper;
            }
            let (found, least, ended) = self.least(weights, settings)?;
            status = ended;
            outer = clip(&outer, weights, least);
            let of = pair(&found);
            let place = |p: &FrontPoint| (pair(p)[0], -pair(p)[1]) < (of[0], -of[1]);
            let place = self.corners.partition_point(place);
            if self.corners.get(place).is_none_or(|p| pair(p) != of) {
                self.corners.insert(place, found);
            }
        }
    }

    /// Weights as whole numbers that single lanes hold, if rows weigh whole numbers; any
    /// weights near the slope will do.
    fn rounded(&self, [a, b]: [f64; 2]) -> [f64; 2] {
        let largest = (a * self.total[0] + b * self.total[1]).max(f64::MIN_POSITIVE);
        let unit = SINGLE / largest;
        let (x, y) = ((a * unit).floor(), (b * unit).floor());
        if self.whole && x >= 4.0 && y >= 4.0 { [x, y] } else { [a, b] }
    }

    /// Weights along the chord between two corners that `tip` lies furthest below.
    fn chord_under(&self, tip: Pair) -> Option<[f64; 2]> {
        let chord = |w: &[FrontPoint]| {
            let (p, q) = (pair(&w[0]), pair(&w[1]));
            let (a, b) = (p[1] - q[1], q[0] - p[0]);
            let below = (a * (p[0] - tip[0]) + b * (p[1] - tip[1])) / (a + b);
            (a > 0.0 && b > 0.0 && below > 0.0).then_some((below, [a, b]))
        };
        let deepest = self.corners.windows(2).filter_map(chord).max_by(|x, y| x.0.total_cmp(&y.0));
        deepest.map(|(_, [a, b])| {
            let divisor = if self.whole { divisor(a, b) } else { 1.0 };
            [a / divisor, b / divisor]
        })
    }

    /// The tree with the least weighted errors, and what none is below.
    fn least(
        &mut self,
        [a, b]: [f64; 2],
        settings: &Settings,
    ) -> Result<(FrontPoint, f64, Status), Error> {
        let weight = |i: usize| self.weights.map_or(1.0, |w| w[i]);
        let of_row = |(i, &p): (usize, &bool)| weight(i) * if p { b } else { a };
        let weights: Vec<f64> = self.positive.iter().enumerate().map(of_row).collect();
        let labels: Vec<usize> = self.positive.iter().map(|&p| usize::from(p)).collect();
        let task = Accuracy::new(&labels, 2, Some(&weights), 0.0, settings.most_leaves())?;
        let solution = solve(&task, self.features, settings, self.monitor)?;
        self.sample = (solution.n_distinct_rows, solution.n_columns);
        let tree = solution.tree;
        let mut sums = vec![[0.0; 2]; tree.n_nodes()];
        for (i, &p) in self.positive.iter().enumerate() {
            sums[tree.leaf_of(self.features, i)][usize::from(p)] += weight(i);
        }
        let mut labels = vec![-1; tree.n_nodes()];
        let mut errors = [0.0; 2];
        for (node, label) in labels.iter_mut().enumerate() {
            if tree.feature[node] == LEAF {
                let predicted = usize::from(b * sums[node][1] > a * sums[node][0]);
                *label = predicted as i64;
                errors[1 - predicted] += sums[node][1 - predicted];
            }
        }
        let total = a * self.total[0] + b * self.total[1];
        let least = match solution.status {
            Status::Optimal => a * errors[0] + b * errors[1],
            _ => solution.lower_bound * total,
        };
        Ok((FrontPoint { tree, labels, costs: errors.to_vec() }, least, solution.status))
    }

    fn record(&mut self, score: f64, upper: f64) {
        let objective = 1.0 - score;
        let point = TracePoint {
            seconds: self.monitor.seconds(),
            objective,
            lower_bound: (1.0 - upper + self.penalty).min(objective),
            nodes: self.monitor.nodes(),
        };
        self.monitor.report(&point);
        self.trace.push(point);
    }

    fn finish(mut self, best: &Best, upper: f64) -> Front {
        let objective = 1.0 - self.score(best);
        let mut points = std::mem::take(&mut self.corners);
        points.push(best.point.clone());
        points.sort_by(|p, q| {
            let (a, b) = (pair(p), pair(q));
            a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]))
        });
        let mut least = f64::INFINITY;
        let is_best = |p: &FrontPoint| p.tree == best.point.tree && p.labels == best.point.labels;
        points.retain(|p| {
            let better = pair(p)[1] < least || is_best(p);
            least = least.min(pair(p)[1]);
            better
        });
        points.dedup_by(|p, q| pair(p) == pair(q) && p.labels == q.labels && p.tree == q.tree);
        let place = points.iter().position(is_best);
        Front {
            best: place,
            points,
            objective,
            lower_bound: (1.0 - upper).min(objective),
            status: best.status,
            nodes: self.monitor.nodes(),
            n_distinct_rows: self.sample.0,
            n_columns: self.sample.1,
            trace: self.trace,
        }
    }
}

fn pair(point: &FrontPoint) -> Pair {
    [point.costs[0], point.costs[1]]
}

/// The part of a convex chain on which a·x + b·y ≥ least, closed along that line.
fn clip(chain: &[Pair], [a, b]: [f64; 2], least: f64) -> Vec<Pair> {
    let above = |p: &Pair| a * p[0] + b * p[1] - least;
    let mut out = Vec::new();
    for (i, p) in chain.iter().enumerate() {
        if above(p) >= 0.0 {
            out.push(*p);
        }
        if let Some(q) = chain.get(i + 1) {
            let (x, y) = (above(p), above(q));
            if (x < 0.0) != (y < 0.0) {
                let t = x / (x - y);
                out.push([p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])]);
            }
        }
    }
    if out.is_empty() { chain.to_vec() } else { out }
}

/// Greatest common divisor of two whole numbers.
fn divisor(a: f64, b: f64) -> f64 {
    if b == 0.0 { a } else { divisor(b, a % b) }
}
