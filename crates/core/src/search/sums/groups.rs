//! A bound from the best division of the rows into groups of any kind (k-partition).
//!
//! The leaves of a tree divide the rows into groups that follow from the columns. This costs at
//! least as much as the best of all divisions into as many groups. If groups are runs in the order
//! of a number ([`Superadditive::rank`]), dynamic programming finds that division. The bound is
//! weak, but needs no search; see docs/maths/branch.md.

use crate::data::Sample;
use crate::task::Superadditive;

/// Most rows to divide; further rows are counted as separate leaves.
pub const MOST_ROWS: usize = 2048;

/// Most groups. With more groups the bound is hardly better than the finest partition.
pub const MOST_GROUPS: usize = 256;

/// Least cost of the rows in at most `most_leaves` groups, or a lower bound on it, without prices.
/// O(groups · rows · log rows).
pub fn bound<T: Superadditive>(
    task: &T,
    sample: &Sample,
    most_leaves: usize,
    row_cost: impl Fn(u32) -> i64,
) -> Option<i64> {
    if most_leaves > MOST_GROUPS {
        return None;
    }
    let mut order: Vec<(f64, u32)> = (0..sample.n_rows() as u32)
        .map(|r| Some((task.rank(sample.statistics(r as usize))?, r)))
        .collect::<Option<_>>()?;
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let every = order.len().div_ceil(MOST_ROWS);
    let (mut rows, mut alone) = (Vec::new(), 0);
    for (i, &(_, r)) in order.iter().enumerate() {
        if i.is_multiple_of(every) {
            rows.push(r)
        } else {
            alone += row_cost(sample.ids[r as usize])
        }
    }
    let groups = most_leaves.min(rows.len());
    let runs = Runs::new(task, sample, &rows);
    let mut least: Vec<i64> = (0..=rows.len()).map(|end| runs.cost(0, end)).collect();
    let mut next = vec![0; rows.len() + 1];
    for k in 1..groups {
        next[..=k].copy_from_slice(&least[..=k]);
        runs.best(&least, &mut next, k + 1..rows.len() + 1, k..rows.len());
        std::mem::swap(&mut least, &mut next);
    }
    // Rounding of every group, both in the costs that are compared and in the sum.
    let slack = 4 * groups as i64 * task.cost_rounding();
    Some(least[rows.len()].saturating_add(alone) - slack)
}

/// Sums over runs of rows.
struct Runs<'a, T> {
    task: &'a T,
    channels: usize,
    /// Sums over the first rows, `[rows][channel]`.
    prefix: Vec<i64>,
}

impl<'a, T: Superadditive> Runs<'a, T> {
    fn new(task: &'a T, sample: &Sample, rows: &[u32]) -> Self {
        let channels = sample.channels;
        let mut prefix = vec![0; channels];
        for (i, &r) in rows.iter().enumerate() {
            for (c, &v) in sample.statistics(r as usize).iter().enumerate() {
                prefix.push(prefix[i * channels + c] + v);
            }
        }
        Runs { task, channels, prefix }
    }

    /// Cost of the rows `start..end` as one group.
    fn cost(&self, start: usize, end: usize) -> i64 {
        if start == end {
            return 0;
        }
        let mut sums = [0; 8];
        let of = |i: usize| &self.prefix[i * self.channels..][..self.channels];
        for ((sum, a), b) in sums.iter_mut().zip(of(end)).zip(of(start)) {
            *sum = a - b;
        }
        self.task.part_cost(&sums[..self.channels])
    }

    /// Fills `next[end]` with the minimum over `start` of `least[start]` plus the cost of a group
    /// from there. The best start grows with the end (a Monge cost), so the two halves can be
    /// solved separately.
    fn best(
        &self,
        least: &[i64],
        next: &mut [i64],
        ends: std::ops::Range<usize>,
        starts: std::ops::Range<usize>,
    ) {
        if ends.is_empty() {
            return;
        }
        let end = ends.start + ends.len() / 2;
        let among = starts.start..starts.end.min(end);
        let of = |start: usize| (least[start].saturating_add(self.cost(start, end)), start);
        let (cost, at) = among.map(of).min().expect("a group is not empty");
        next[end] = cost;
        self.best(least, next, ends.start..end, starts.start..at + 1);
        self.best(least, next, end + 1..ends.end, at..starts.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::task::ScalarTask;
    use crate::task::Statistics;
    use crate::task::regression::Regression;

    /// Least cost over all divisions of the rows into at most `most` groups.
    fn best_division(task: &Regression, rows: &[[i64; 2]], most: usize) -> i64 {
        fn place(
            task: &Regression,
            rows: &[[i64; 2]],
            most: usize,
            sums: &mut Vec<[i64; 2]>,
        ) -> i64 {
            let Some((row, rest)) = rows.split_first() else {
                return sums.iter().map(|sums| task.leaf_cost(sums)).sum();
            };
            let mut least = i64::MAX;
            for group in 0..(sums.len() + 1).min(most) {
                let before = sums.clone();
                if group == sums.len() {
                    sums.push([0, 0]);
                }
                sums[group] = [sums[group][0] + row[0], sums[group][1] + row[1]];
                least = least.min(place(task, rest, most, sums));
                *sums = before;
            }
            least
        }
        place(task, rows, most, &mut Vec::new())
    }

    #[test]
    fn runs_are_the_best_of_all_divisions() {
        for seed in 0..20u32 {
            let mix =
                |i: u32, k: u32| (i * 7919 + seed * 104_729 + k).wrapping_mul(48_271) % 65_537;
            let target: Vec<f64> = (0..8).map(|i| f64::from(mix(i, 0)) / 1000.0).collect();
            let weight: Vec<f64> = (0..8).map(|i| f64::from(1 + mix(i, 5) % 4)).collect();
            let task = Regression::new(&target, Some(&weight[..]), 0.0).unwrap();
            let bytes: Vec<u8> = (0..8u8).flat_map(|r| [r & 1, r >> 1 & 1, r >> 2]).collect();
            let matrix = BinaryMatrix::from_bytes(8, 3, &bytes).unwrap();
            let sample = Sample::new(&matrix, task.statistics(), 2);
            let rows: Vec<[i64; 2]> =
                (0..8).map(|r| [sample.statistics(r)[0], sample.statistics(r)[1]]).collect();
            for most in 1..=8 {
                let found = bound(&task, &sample, most, |_| 0).unwrap();
                let best = best_division(&task, &rows, most);
                let slack = 4 * most as i64 * task.cost_rounding();
                assert!((found + slack - best).abs() <= slack, "{most}: {found} for {best}");
                assert!(found <= best);
            }
        }
    }
}
