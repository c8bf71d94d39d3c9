//! Thresholds of a numeric column at its quantiles.

/// Gaps between distinct values, ascending. For every i / (n + 1) quantile, this is the first gap
/// whose midpoint is not below the quantile, or the last gap. O(n log k) for k values.
///
/// The rows are laid out in the order of their values, each as long as its weight, with total
/// length W. The p-quantile is the mean over the window of length `unit` that starts at p (W −
/// unit). With unit weights this is the linear quantile (Hyndman & Fan 1996, type 7). `distinct` is
/// ascending, `total` contains the weights of its values, and `unit` is at most the smallest weight
/// of a row, so a window meets at most two values. The result is empty for fewer than two values.
pub fn quantile_gaps(distinct: &[f64], total: &[f64], n: usize, unit: f64) -> Vec<i64> {
    let ends: Vec<f64> = total
        .iter()
        .scan(0.0, |end, weight| {
            *end += weight;
            Some(*end)
        })
        .collect();
    let (Some(last), Some(&whole)) = (distinct.len().checked_sub(2), ends.last()) else {
        return Vec::new();
    };
    let mut gaps: Vec<i64> = (1..=n)
        .map(|i| {
            let start = (whole - unit) * (i as f64 / (n + 1) as f64);
            let value = ends.partition_point(|&end| end <= start).min(last + 1);
            let above = ((ends[value] - start) / unit).min(1.0);
            let next = (value + 1).min(last + 1);
            let quantile = between(distinct[value], distinct[next], 1.0 - above, above);
            let gap = distinct.partition_point(|&value| value < quantile);
            // Use the midpoint below the first value that is not less than the quantile, unless
            // that midpoint is less.
            let before = gap.saturating_sub(1).min(last);
            let found = if midpoint(distinct, before) >= quantile { before } else { gap };
            found.min(last) as i64
        })
        .collect();
    gaps.sort_unstable();
    gaps.dedup();
    gaps
}

/// The point between `low` and `high` from which the shares `from_low` and `from_high` of the way
/// remain; the shares add up to 1. It is computed from the nearer end, so that the ends are reached
/// exactly.
fn between(low: f64, high: f64, from_low: f64, from_high: f64) -> f64 {
    // Use halves if the distance itself would overflow.
    let scale = if (high - low).is_finite() { 1.0 } else { 0.5 };
    let step = high * scale - low * scale;
    let point = if from_low < 0.5 {
        low * scale + step * from_low
    } else {
        high * scale - step * from_high
    };
    point / scale
}

/// The threshold of a gap: at least the value on its left, and below the value on its right.
fn midpoint(distinct: &[f64], gap: usize) -> f64 {
    let (low, high) = (distinct[gap], distinct[gap + 1]);
    // The sum could overflow, and between neighbouring numbers the midpoint is rounded up.
    let middle = low / 2.0 + high / 2.0;
    if middle < high { middle } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_quantiles_of_rows_are_cut() {
        // Type 7 of 0, 1, 2, 3, 10: quartiles 1, 2 and 3.
        let values = [0.0, 1.0, 2.0, 3.0, 10.0];
        assert_eq!(quantile_gaps(&values, &[1.0; 5], 3, 1.0), [1, 2, 3]);
        // Half of the values: 0.5 is the first midpoint that is not below 0.4, and 6.5 is the one
        // for 4.4.
        assert_eq!(quantile_gaps(&values, &[1.0; 5], 9, 1.0), [0, 1, 2, 3]);
    }

    #[test]
    fn whole_weights_are_repeated_rows() {
        let rows = [1.0, 2.0, 2.0, 2.0, 5.0, 7.0, 7.0, 8.0];
        let (values, weight) = ([1.0, 2.0, 5.0, 7.0, 8.0], [1.0, 3.0, 1.0, 2.0, 1.0]);
        for n in 1..6 {
            let cut = |gaps: Vec<i64>, of: &[f64]| -> Vec<f64> {
                gaps.iter().map(|&gap| of[gap as usize]).collect()
            };
            let mut plain = cut(quantile_gaps(&rows, &[1.0; 8], n, 1.0), &rows);
            plain.dedup();
            assert_eq!(cut(quantile_gaps(&values, &weight, n, 1.0), &values), plain);
        }
    }

    #[test]
    fn there_are_no_gaps_of_one_value_and_none_beyond_the_last() {
        assert!(quantile_gaps(&[], &[], 3, 1.0).is_empty());
        assert!(quantile_gaps(&[2.0], &[4.0], 3, 1.0).is_empty());
        assert_eq!(quantile_gaps(&[f64::MIN, f64::MAX], &[1.0, 1.0], 2, 1.0), [0]);
    }
}
