//! Classification accuracy.

/// Weight of the rows outside the heaviest class; 0 without rows.
pub fn misclassified(rows: &[usize], labels: &[usize], weight: &[f64]) -> f64 {
    let weight_outside = |class: usize| -> f64 {
        rows.iter().filter(|&&i| labels[i] != class).map(|&i| weight[i]).sum()
    };
    rows.iter().map(|&i| weight_outside(labels[i])).reduce(f64::min).unwrap_or(0.0)
}
