//! Removes points of a front that differ only by rounding.

use super::FrontPoint;

/// Of points that are equal up to rounding, one is kept, and a point is removed if another is
/// better up to rounding. The best point, if there is one, is always kept.
///
/// `points` ascend in the first cost, and all except the best descend in the second. Costs that
/// differ by at most `tie` may be equal in truth. Of equal points the one with the fewest leaves is
/// kept.
pub fn without_ties(points: Vec<FrontPoint>, tie: f64, best: Option<usize>) -> Vec<FrontPoint> {
    let (mut kept, mut first): (Vec<FrontPoint>, Option<FrontPoint>) = (Vec::new(), None);
    for (i, q) in points.into_iter().enumerate() {
        if best == Some(i) {
            first = Some(q);
            continue;
        }
        let mut stays = true;
        while let Some(p) = kept.last() {
            match (no_worse(&q, p, 0, tie), no_worse(p, &q, 1, tie)) {
                (false, false) => break,
                (true, true) if q.tree.n_leaves() < p.tree.n_leaves() => {}
                (_, true) => {
                    stays = false;
                    break;
                }
                (true, false) => {}
            }
            kept.pop();
        }
        if stays {
            kept.push(q);
        }
    }
    if let Some(best) = first {
        kept.retain(|p| !(no_worse(&best, p, 0, tie) && no_worse(&best, p, 1, tie)));
        let place = kept.partition_point(|p| p.costs[0] < best.costs[0]);
        kept.insert(place, best);
    }
    kept
}

/// Whether `p` is as good as `q` in a cost, up to rounding.
fn no_worse(p: &FrontPoint, q: &FrontPoint, cost: usize, tie: f64) -> bool {
    p.costs[cost] <= q.costs[cost] + tie
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn points(costs: &[(f64, f64, bool)]) -> Vec<FrontPoint> {
        let split = Tree::split(0, &Tree::leaf(), &Tree::leaf());
        let tree = |small| if small { Tree::leaf() } else { split.clone() };
        let point = |&(a, b, small)| FrontPoint {
            tree: tree(small),
            labels: Vec::new(),
            costs: vec![a, b],
        };
        costs.iter().map(point).collect()
    }

    fn thinned(costs: &[(f64, f64, bool)], best: Option<usize>) -> Vec<(f64, f64)> {
        let thin = without_ties(points(costs), 0.1, best);
        thin.iter().map(|p| (p.costs[0], p.costs[1])).collect()
    }

    #[test]
    fn points_apart_by_rounding_alone_are_one() {
        // Beaten by the next point up to rounding; by the previous one; equal, with fewer leaves.
        assert_eq!(thinned(&[(0.3, 3.0, true), (0.35, 2.0, true)], None), [(0.35, 2.0)]);
        assert_eq!(thinned(&[(0.3, 2.05, true), (1.0, 2.0, true)], None), [(0.3, 2.05)]);
        let equal = [(0.0, 2.05, false), (0.05, 2.0, true)];
        assert_eq!(thinned(&equal, None), [(0.05, 2.0)]);
        assert_eq!(thinned(&equal, Some(0)), [(0.0, 2.05)]);
        // The third point beats the two before it.
        let chain = [(0.0, 4.0, true), (0.05, 3.0, true), (0.08, 2.0, true), (5.0, 0.0, true)];
        assert_eq!(thinned(&chain, None), [(0.08, 2.0), (5.0, 0.0)]);
        let apart = [(0.0, 4.0), (1.0, 3.0), (2.0, 1.0)];
        assert_eq!(thinned(&apart.map(|(a, b)| (a, b, true)), None), apart);
    }

    #[test]
    fn the_best_stays_and_hides_no_tie() {
        // A best point with few leaves, which another point dominates in costs, lies between two
        // ties.
        let costs = [(0.0, 2.0, false), (0.5, 2.5, true), (0.7, 1.95, false)];
        assert_eq!(thinned(&costs, Some(1)), [(0.0, 2.0), (0.5, 2.5)]);
    }
}
