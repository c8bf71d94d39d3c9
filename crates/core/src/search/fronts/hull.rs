//! What is known about the pairs (FP, FN) of trees: corners of their convex hull, and a polygon of
//! lines that no tree is below. All of it is exact, in integers. See docs/maths/fronts.md.

use crate::search::certificate::EVALUATED;
use crate::task::digits::{parts, ratio};
use num_bigint::BigInt;
use num_traits::{Signed, Zero};

/// False positives and false negatives, in units of the weights.
pub(super) type Pair = [BigInt; 2];

/// Trees that are below a chord by at most this share of its height do not divide the gap: a search
/// of the gap would find them again. This only guides the search and is not part of a proof.
const CHORD_BITS: u32 = 40;

/// A proven bound: no tree has a·x + b·y below `least`.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub weights: Pair,
    pub least: BigInt,
}

impl Line {
    /// The line with these weights and this least sum, in units of 2^`exponent`.
    pub fn new(weights: [f64; 2], least: f64, exponent: i32) -> Line {
        let [(a, of_a), (b, of_b), (c, of_c)] = [weights[0], weights[1], least].map(parts);
        let of_c = of_c - exponent;
        let used = [(a, of_a), (b, of_b), (c, of_c)].into_iter().filter(|part| part.0 != 0);
        let unit = used.map(|part| part.1).min().unwrap_or(0);
        let whole = |part: i64, of: i32| match part {
            0 => BigInt::zero(),
            _ => BigInt::from(part) << (of - unit),
        };
        Line { weights: [whole(a, of_a), whole(b, of_b)], least: whole(c, of_c) }
    }

    /// The line through a tree whose sum is the least.
    pub fn through(weights: [f64; 2], pair: &Pair) -> Line {
        let mut line = Line::new(weights, 0.0, 0);
        line.least = line.at(pair);
        line
    }

    fn at(&self, [x, y]: &Pair) -> BigInt {
        &self.weights[0] * x + &self.weights[1] * y
    }

    /// The intersection with a flatter line.
    fn meet(&self, flatter: &Line) -> Vertex {
        let ([a, b], [c, d]) = (&self.weights, &flatter.weights);
        Vertex {
            x: &self.least * d - b * &flatter.least,
            y: a * &flatter.least - &self.least * c,
            w: a * d - b * c,
            loss: f64::NAN,
        }
    }
}

impl Line {
    /// The point on the line with this x − y.
    fn at_difference(&self, difference: &BigInt) -> Vertex {
        let [a, b] = &self.weights;
        Vertex {
            x: &self.least + b * difference,
            y: &self.least - a * difference,
            w: a + b,
            loss: f64::NAN,
        }
    }
}

/// The point (x/w, y/w), and one minus the measure at this point.
#[derive(Clone, Debug)]
struct Vertex {
    x: BigInt,
    y: BigInt,
    w: BigInt,
    loss: f64,
}

impl Vertex {
    /// Height above a line, times the divisor.
    fn above(&self, line: &Line) -> BigInt {
        &line.weights[0] * &self.x + &line.weights[1] * &self.y - &line.least * &self.w
    }

    fn is_at(&self, [x, y]: &Pair) -> bool {
        self.x == x * &self.w && self.y == y * &self.w
    }
}

/// One minus a measure, as a function of the weights of true positives, false positives, false
/// negatives and true negatives, given as shares of their sum.
pub(super) type Loss<'a> = dyn Fn([f64; 4]) -> f64 + Sync + 'a;

/// One minus the measure of a pair divided by w, for these totals of negatives and positives; the
/// relative error is below [`EVALUATED`].
pub(super) fn loss_at(loss: &Loss, total: &Pair, [x, y]: [&BigInt; 2], w: &BigInt) -> f64 {
    let all = (&total[0] + &total[1]) * w;
    let counts = [&total[1] * w - y, x.clone(), y.clone(), &total[0] * w - x];
    loss(counts.map(|count| if count.is_negative() { 0.0 } else { ratio(&count, &all) }))
}

/// Corners of the hull by ascending false positives, from one single leaf to the other, and the
/// lower left boundary of the polygon that contains all trees.
#[derive(Clone)]
pub(super) struct Hull<'a> {
    loss: &'a Loss<'a>,
    total: Pair,
    /// The corners, with their losses.
    corners: Vec<(Pair, f64)>,
    /// For each corner, whether nothing is left to search for between it and the next.
    closed: Vec<bool>,
    /// Lines of the boundary, from the vertical to the horizontal axis.
    edges: Vec<Line>,
    /// Intersections of each line with the next.
    vertices: Vec<Vertex>,
    /// Weight of the lightest row: every tree other than the single leaves predicts at least that
    /// much of either class.
    lightest: BigInt,
    /// Vertices of the part of the polygon that contains all trees other than the single leaves.
    inner: Vec<Vertex>,
}

impl<'a> Hull<'a> {
    /// The hull of the two single leaves; `total` is the weight of negatives and of positives.
    pub fn new(total: &Pair, lightest: &BigInt, loss: &'a Loss<'a>) -> Self {
        let one = BigInt::from(1);
        let leaves = [[BigInt::zero(), total[1].clone()], [total[0].clone(), BigInt::zero()]];
        let axis = |weights| Line::new(weights, 0.0, 0);
        let mut hull = Hull {
            loss,
            total: total.clone(),
            corners: Vec::new(),
            closed: vec![total.iter().any(Zero::is_zero)],
            edges: vec![axis([1.0, 0.0]), axis([0.0, 1.0])],
            vertices: Vec::new(),
            lightest: lightest.clone(),
            inner: Vec::new(),
        };
        let corner = |leaf: Pair| {
            let of = loss_at(loss, total, [&leaf[0], &leaf[1]], &one);
            (leaf, of)
        };
        hull.corners = leaves.map(corner).into();
        hull.vertices = vec![hull.vertex(0)];
        hull.narrow();
        hull
    }

    /// The same boundary without the known corners, for a subset of the trees.
    pub fn again(&self) -> Self {
        let mut hull = Hull::new(&self.total, &self.lightest, self.loss);
        (hull.edges, hull.vertices) = (self.edges.clone(), self.vertices.clone());
        hull.inner.clone_from(&self.inner);
        hull
    }

    fn vertex(&self, place: usize) -> Vertex {
        self.with_loss(self.edges[place].meet(&self.edges[place + 1]))
    }

    fn with_loss(&self, vertex: Vertex) -> Vertex {
        let loss = loss_at(self.loss, &self.total, [&vertex.x, &vertex.y], &vertex.w);
        Vertex { loss, ..vertex }
    }

    /// Cuts off the parts of the polygon that contain only the single leaves.
    fn narrow(&mut self) {
        // The predicted positives are x − y plus all positives.
        let [negatives, positives] = &self.total;
        let ends = [&self.lightest - positives, negatives - &self.lightest];
        let beyond = |vertex: &Vertex, end: usize| {
            let above = &vertex.x - &vertex.y - &ends[end] * &vertex.w;
            if end == 0 { above.is_negative() } else { above.is_positive() }
        };
        let mut inner = Vec::new();
        for (place, vertex) in self.vertices.iter().enumerate() {
            let outside = [beyond(vertex, 0), beyond(vertex, 1)];
            if outside == [false; 2] {
                inner.push(vertex.clone());
            }
            for end in [0, 1].into_iter().filter(|&end| outside[end]) {
                // The point at which an edge that enters the part leaves it again.
                let (next, edge) =
                    if end == 0 { (place + 1, place + 1) } else { (place.wrapping_sub(1), place) };
                if self.vertices.get(next).is_none_or(|next| !beyond(next, end)) {
                    inner.push(self.with_loss(self.edges[edge].at_difference(&ends[end])));
                }
            }
        }
        self.inner = inner;
    }

    /// The corner with the smallest loss, and its loss.
    pub fn best(&self) -> (&Pair, f64) {
        let least = self.corners.iter().min_by(|p, q| p.1.total_cmp(&q.1));
        least.map(|(pair, loss)| (pair, *loss)).expect("two leaves")
    }

    /// Adds a line that no tree is below; its weights are positive.
    pub fn cut(&mut self, line: Line) {
        let below = |vertex: &Vertex| vertex.above(&line).is_negative();
        let Some(first) = self.vertices.iter().position(below) else { return };
        let last = self.vertices.iter().rposition(below).unwrap_or(first);
        self.edges.splice(first + 1..=last, [line]);
        let new = [self.vertex(first), self.vertex(first + 1)];
        self.vertices.splice(first..=last, new);
        self.narrow();
    }

    /// The hull with one more line.
    pub fn with(&self, line: Line) -> Self {
        let mut hull = self.clone();
        hull.cut(line);
        hull
    }

    /// Lower bound on the loss at a vertex: the loss of a tree, if one is known there.
    fn least_at(&self, vertex: &Vertex) -> f64 {
        let off = 2.0 * EVALUATED * vertex.loss;
        let is_tree =
            |(pair, loss): &(Pair, f64)| (loss - vertex.loss).abs() <= off && vertex.is_at(pair);
        if self.corners.iter().any(is_tree) { vertex.loss } else { vertex.loss - off }
    }

    /// A lower bound on the loss of every tree.
    pub fn least(&self) -> f64 {
        let losses = self.inner.iter().map(|vertex| self.least_at(vertex));
        let leaves = [0, self.corners.len() - 1].map(|leaf| self.corners[leaf].1);
        losses.chain(leaves).fold(f64::INFINITY, f64::min)
    }

    /// The gap between corners that contains the vertex with the smallest loss, among open gaps
    /// with a vertex whose loss is below this.
    pub fn widest(&self, below: f64) -> Option<usize> {
        let gaps = self.inner.iter().filter(|vertex| vertex.loss < below);
        let gaps = gaps.map(|vertex| (self.gap_of(vertex), vertex.loss));
        let open = gaps.filter(|&(gap, _)| !self.closed[gap]);
        open.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(gap, _)| gap)
    }

    fn gap_of(&self, vertex: &Vertex) -> usize {
        let before = |(corner, _): &(Pair, f64)| &corner[0] * &vertex.w <= vertex.x;
        let at = self.corners.partition_point(before).saturating_sub(1);
        let corner = &self.corners[at].0;
        // A vertex straight above a corner belongs to the gap before it.
        let above = &corner[0] * &vertex.w == vertex.x && &corner[1] * &vertex.w <= vertex.y;
        (at - usize::from(above && at > 0)).min(self.closed.len() - 1)
    }

    /// Weights under which both ends of a gap have the same cost.
    pub fn chord(&self, gap: usize) -> Pair {
        let (p, q) = (&self.corners[gap].0, &self.corners[gap + 1].0);
        [&p[1] - &q[1], &q[0] - &p[0]]
    }

    /// Adds a tree as a corner, unless it lies on or above the chord of its gap.
    pub fn insert(&mut self, pair: &Pair) -> bool {
        let gap = self.corners.partition_point(|c| c.0[0] < pair[0]).saturating_sub(1);
        let Some((q, _)) = self.corners.get(gap + 1) else { return false };
        let (p, weights) = (&self.corners[gap].0, self.chord(gap));
        // A single leaf may be dominated by a tree with the same other error.
        let between = p[0] <= pair[0] && pair[0] <= q[0] && q[1] <= pair[1] && pair[1] <= p[1];
        let chord = Line { least: BigInt::zero(), weights };
        let height = chord.at(p);
        let below = &height - chord.at(pair);
        let new = between && !self.closed[gap] && below > height >> CHORD_BITS;
        if new {
            let ends = [pair[0] == p[0], pair[1] == q[1]];
            let loss = loss_at(self.loss, &self.total, [&pair[0], &pair[1]], &BigInt::from(1));
            self.corners.insert(gap + 1, (pair.clone(), loss));
            self.closed.insert(gap + 1, ends[1]);
            self.closed[gap] = ends[0];
        }
        new
    }

    /// Marks a gap whose chord was searched.
    pub fn close(&mut self, gap: usize) {
        self.closed[gap] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::fixed::power_of_two;

    fn pair(x: i64, y: i64) -> Pair {
        [x, y].map(BigInt::from)
    }

    fn hull<'a>(of: &'a Loss<'static>) -> Hull<'a> {
        Hull::new(&pair(4, 4), &BigInt::from(1), of)
    }

    /// The share of misclassified rows.
    fn wrong(counts: [f64; 4]) -> f64 {
        counts[1] + counts[2]
    }

    #[test]
    fn lines_cut_the_polygon_and_trees_are_its_corners() {
        let mut hull = hull(&wrong);
        assert_eq!(hull.least(), 0.0);
        assert_eq!(hull.widest(1.0), Some(0));
        assert!(!hull.insert(&pair(2, 2)), "on the chord");
        assert!(hull.insert(&pair(1, 1)));
        hull.cut(Line::through([1.0, 3.0], &pair(1, 1)));
        hull.cut(Line::through([3.0, 1.0], &pair(1, 1)));
        // A corner is a tree, so its loss is not rounded down.
        assert_eq!(hull.least(), 0.25);
        // These lines add nothing new.
        let edges = hull.edges.len();
        hull.cut(Line::through([2.0, 2.0], &pair(1, 1)));
        hull.cut(Line::through([1.0, 1.0], &pair(0, 1)));
        assert_eq!((hull.edges.len(), hull.least()), (edges, 0.25));
        // Vertices on a line between two trees need not be trees.
        let steep = hull.with(Line::new([1.0, 1.0], 3.0, 0));
        assert!(steep.least() < 0.375 && steep.least() > 0.375 - 1e-13);
        assert_eq!(hull.best(), (&pair(1, 1), 0.25));
    }

    #[test]
    fn only_single_leaves_predict_less_than_the_lightest_row() {
        let mut hull = hull(&wrong);
        // At (0, 3.5), half a row would be predicted positive.
        hull.cut(Line::new([3.5, 3.5], 12.25, 0));
        let at = |v: &Vertex| (ratio(&v.x, &v.w), ratio(&v.y, &v.w));
        let inner: Vec<_> = hull.inner.iter().map(at).collect();
        assert_eq!(inner, [(0.25, 3.25), (3.25, 0.25)]);
    }

    #[test]
    fn gaps_are_searched_by_their_lowest_vertex_and_once() {
        let mut hull = hull(&wrong);
        assert!(hull.insert(&pair(1, 1)));
        hull.cut(Line::through([2.0, 1.0], &pair(1, 1)));
        // The vertices are (0, 3) and (3/2, 0); the latter is lower.
        assert_eq!(hull.widest(1.0), Some(1));
        hull.close(1);
        assert_eq!(hull.widest(1.0), Some(0));
        assert_eq!(hull.widest(0.2), None);
        hull.close(0);
        assert_eq!(hull.widest(1.0), None);
        assert!(hull.again().widest(1.0).is_some());
    }

    #[test]
    fn a_tree_may_dominate_a_single_leaf() {
        let mut hull = hull(&wrong);
        assert!(hull.insert(&pair(0, 3)));
        assert!(hull.insert(&pair(2, 0)));
        hull.cut(Line::through([1.0, 1.0], &pair(2, 0)));
        hull.close(1);
        assert_eq!(hull.widest(1.0), None);
    }

    #[test]
    fn lines_of_real_weights_keep_all_digits() {
        let line = Line::new([0.1, 0.3], 1e-20, -60);
        let (a, b) = (&line.weights[0], &line.weights[1]);
        assert_eq!(ratio(a, b), 0.1 / 0.3);
        assert_eq!(ratio(&line.least, a) * power_of_two(-60), 1e-20 / 0.1);
    }
}
