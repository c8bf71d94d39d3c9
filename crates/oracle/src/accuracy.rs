//! Classification accuracy.

use crate::Real;

/// Weight of the rows outside the heaviest class; 0 without rows.
pub fn misclassified(rows: &[usize], labels: &[usize], weight: &[f64]) -> Real {
    let weight_outside = |class: usize| -> Real {
        rows.iter().filter(|&&i| labels[i] != class).map(|&i| Real::from(weight[i])).sum()
    };
    rows.iter().map(|&i| weight_outside(labels[i])).reduce(Real::min).unwrap_or(Real::ZERO)
}
