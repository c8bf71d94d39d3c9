//! The convex hull of the pairs (FP, FN) that trees attain, between corners that are known and
//! lines that no tree is below. See docs/maths/fronts.md.

/// False positives and false negatives.
pub(super) type Pair = [f64; 2];

/// What real weights may round to, as a share of the largest weighted sum.
const ROUNDING: f64 = 1e-12;

/// No tree has a·x + b·y below `least`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub weights: Pair,
    pub least: f64,
}

impl Line {
    fn above(&self, [x, y]: Pair) -> f64 {
        self.weights[0] * x + self.weights[1] * y - self.least
    }
}

/// Corners of the hull by ascending false positives, each the least of some weighted sum but for
/// the two single leaves at the ends, and the gaps between neighbours.
pub(super) struct Hull {
    total: Pair,
    corners: Vec<Pair>,
    /// Whether no tree lies below the chord from a corner to the next.
    closed: Vec<bool>,
    pub lines: Vec<Line>,
}

impl Hull {
    /// The hull of the two single leaves, for `total` weight of negatives and positives.
    pub fn new(total: Pair, lines: Vec<Line>) -> Self {
        let corners = vec![[0.0, total[1]], [total[0], 0.0]];
        Hull { total, corners, closed: vec![total.contains(&0.0)], lines }
    }

    pub fn corners(&self) -> &[Pair] {
        &self.corners
    }

    /// More than rounding changes sums of these weights by; none of whole ones.
    pub fn rounding(&self, [a, b]: Pair, whole: bool) -> f64 {
        if whole { 0.0 } else { ROUNDING * (a * self.total[0] + b * self.total[1]) }
    }

    /// The open gap in which a tree may have the largest measure, and that measure.
    pub fn widest(
        &self,
        more: Option<Line>,
        measure: impl Fn(Pair) -> f64,
    ) -> Option<(usize, f64)> {
        let open = (0..self.closed.len()).filter(|&gap| !self.closed[gap]);
        let most = |gap: usize| {
            let (p, q) = (self.corners[gap], self.corners[gap + 1]);
            // Whatever no corner dominates lies in the box of two neighbours.
            let mut chain = vec![p, [p[0], q[1]], q];
            for line in self.lines.iter().chain(&more) {
                chain = clip(&chain, line);
            }
            chain.into_iter().map(&measure).fold(f64::NEG_INFINITY, f64::max)
        };
        open.map(|gap| (gap, most(gap))).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Weights under which both ends of a gap cost the same.
    pub fn chord(&self, gap: usize) -> Pair {
        let (p, q) = (self.corners[gap], self.corners[gap + 1]);
        [p[1] - q[1], q[0] - p[0]]
    }

    /// Takes a tree of least weighted sum for a corner, unless it lies on or above the chord of
    /// its gap; `whole` weights are known not to round.
    pub fn insert(&mut self, pair: Pair, whole: impl Fn(Pair) -> bool) -> bool {
        let gap = self.corners.partition_point(|c| c[0] < pair[0]).saturating_sub(1);
        let Some(&q) = self.corners.get(gap + 1) else { return false };
        let (p, [a, b]) = (self.corners[gap], self.chord(gap));
        // A single leaf may be dominated by a tree as good in the other error.
        let between = p[0] <= pair[0] && pair[0] <= q[0] && q[1] <= pair[1] && pair[1] <= p[1];
        let below = a * (p[0] - pair[0]) + b * (p[1] - pair[1]);
        let new = between && !self.closed[gap] && below > self.rounding([a, b], whole([a, b]));
        if new {
            self.corners.insert(gap + 1, pair);
            self.closed.insert(gap + 1, pair[1] == q[1]);
            self.closed[gap] = pair[0] == p[0];
        }
        new
    }

    /// No tree lies below the chord of this gap.
    pub fn close(&mut self, gap: usize) {
        self.closed[gap] = true;
    }
}

/// The part of a convex chain that is not below a line, ended along it.
fn clip(chain: &[Pair], line: &Line) -> Vec<Pair> {
    let mut out = Vec::with_capacity(chain.len() + 1);
    for (i, p) in chain.iter().enumerate() {
        if line.above(*p) >= 0.0 {
            out.push(*p);
        }
        if let Some(q) = chain.get(i + 1) {
            let (x, y) = (line.above(*p), line.above(*q));
            if (x < 0.0) != (y < 0.0) {
                let t = x / (x - y);
                out.push([p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])]);
            }
        }
    }
    if out.is_empty() { chain.to_vec() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_may_dominate_a_single_leaf() {
        let mut hull = Hull::new([4.0, 4.0], Vec::new());
        assert!(hull.insert([0.0, 3.0], |_| true));
        assert!(hull.insert([2.0, 0.0], |_| true));
        assert_eq!(hull.widest(None, |p| -p[0] - p[1]), Some((1, 0.0)));
        hull.close(1);
        assert_eq!(hull.widest(None, |p| p[0]), None);
    }

    #[test]
    fn gaps_open_below_chords_and_close_on_them() {
        let mut hull = Hull::new([4.0, 4.0], Vec::new());
        let best = |[x, y]: Pair| -(x + y);
        assert_eq!(hull.widest(None, best), Some((0, 0.0)));
        assert!(!hull.insert([2.0, 2.0], |_| true), "on the chord");
        assert!(hull.insert([1.0, 1.0], |_| true));
        hull.lines.push(Line { weights: [1.0, 1.0], least: 2.0 });
        assert_eq!(hull.widest(None, best).unwrap().1, -2.0);
        let steep = Line { weights: [3.0, 1.0], least: 4.0 };
        assert_eq!(hull.widest(Some(steep), |p| -p[0]).unwrap().1, 0.0);
        hull.close(0);
        assert_eq!(hull.widest(None, best).map(|(gap, _)| gap), Some(1));
        hull.close(1);
        assert_eq!(hull.widest(None, best), None);
        assert_eq!(hull.corners(), [[0.0, 4.0], [1.0, 1.0], [4.0, 0.0]]);
    }
}
