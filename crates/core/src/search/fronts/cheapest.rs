//! Finds the cheapest point whose second component lies in an interval.

use super::engine::Point;
use std::ops::Range;

/// Points sorted by their second component, with a tree of minima.
pub(super) struct Cheapest {
    /// Second components, ascending.
    keys: Vec<i64>,
    /// A binary tree of ranks by cost: the last half are the ranks of the points in the order of
    /// `keys`, the others the minima of pairs.
    minima: Vec<u32>,
    /// For every rank, the point and its position in the order of `keys`.
    by_rank: Vec<[u32; 2]>,
}

impl Cheapest {
    /// O(n log n).
    pub fn new<const K: usize>(points: &[Point<K>]) -> Self {
        let n = points.len();
        let mut by_rank: Vec<[u32; 2]> = (0..n as u32).map(|i| [i, 0]).collect();
        by_rank.sort_by_key(|&[i, _]| (points[i as usize].cost[0], points[i as usize].leaves));
        let mut order: Vec<(i64, u32)> = Vec::with_capacity(n);
        for (rank, &[i, _]) in by_rank.iter().enumerate() {
            order.push((points[i as usize].cost[1], rank as u32));
        }
        order.sort_unstable();
        for (at, &(_, rank)) in order.iter().enumerate() {
            by_rank[rank as usize][1] = at as u32;
        }
        let mut minima = vec![u32::MAX; 2 * n];
        for (leaf, (_, rank)) in minima[n..].iter_mut().zip(&order) {
            *leaf = *rank;
        }
        for at in (1..n).rev() {
            minima[at] = minima[2 * at].min(minima[2 * at + 1]);
        }
        Cheapest { keys: order.into_iter().map(|(key, _)| key).collect(), minima, by_rank }
    }

    /// The range, in that order, of the points with a second component in `low..=high`; O(log n).
    pub fn within(&self, low: i64, high: i64) -> Range<usize> {
        let from = self.keys.partition_point(|&key| key < low);
        from..self.keys.partition_point(|&key| key <= high).max(from)
    }

    /// The point in that range with the smallest first component, then the fewest leaves, and its
    /// position; O(log n).
    pub fn least(&self, among: &Range<usize>) -> Option<[usize; 2]> {
        let n = self.keys.len();
        let (mut left, mut right) = (n + among.start, n + among.end);
        let mut least = u32::MAX;
        while left < right {
            if left % 2 == 1 {
                least = least.min(self.minima[left]);
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                least = least.min(self.minima[right]);
            }
            (left, right) = (left / 2, right / 2);
        }
        self.by_rank.get(least as usize).map(|point| point.map(|number| number as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_give_their_cheapest_point() {
        for n in 0..20u32 {
            let point = |i: u32| Point {
                cost: [i64::from(i * 7 % 5), i64::from(i * 11 % 13) - 6],
                leaves: 1 + i % 3,
                plan: i,
            };
            let points: Vec<Point<2>> = (0..n).map(point).collect();
            let cheapest = Cheapest::new(&points);
            for low in -8..8 {
                for high in low - 1..8 {
                    let inside = |p: &&Point<2>| low <= p.cost[1] && p.cost[1] <= high;
                    let key = |p: &Point<2>| (p.cost[0], p.leaves);
                    let expected = points.iter().filter(inside).map(key).min();
                    let among = cheapest.within(low, high);
                    let found = cheapest.least(&among);
                    assert_eq!(found.map(|[point, _]| key(&points[point])), expected);
                    assert_eq!(among.len(), points.iter().filter(inside).count());
                    assert!(found.is_none_or(|[point, at]| {
                        among.contains(&at) && cheapest.keys[at] == points[point].cost[1]
                    }));
                }
            }
        }
    }
}
