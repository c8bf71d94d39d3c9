//! Losses of a leaf that follow from sums over its rows, each as it is defined.

/// Summed cost of the cheapest label, for `costs[row][label]`; 0 without rows.
pub fn cheapest_label(rows: &[usize], costs: &[Vec<f64>], weight: &[f64]) -> f64 {
    let Some(&first) = rows.first() else { return 0.0 };
    let of_label = |k: usize| rows.iter().map(|&i| weight[i] * costs[i][k]).sum::<f64>();
    (0..costs[first].len()).map(of_label).fold(f64::INFINITY, f64::min)
}

/// Weights under which accuracy is balanced accuracy: every class has the same share.
pub fn balanced_weights(labels: &[usize], n_classes: usize, weight: &[f64]) -> Vec<f64> {
    let of_class = |k: usize| -> f64 {
        (0..labels.len()).filter(|&i| labels[i] == k).map(|i| weight[i]).sum()
    };
    let present = (0..n_classes).filter(|&k| of_class(k) > 0.0).count() as f64;
    let balanced = |i: usize| {
        if weight[i] > 0.0 { weight[i] / of_class(labels[i]) / present } else { 0.0 }
    };
    (0..labels.len()).map(balanced).collect()
}

/// Share of the weight in each class; empty without weight.
fn shares(rows: &[usize], labels: &[usize], n_classes: usize, weight: &[f64]) -> (f64, Vec<f64>) {
    let total: f64 = rows.iter().map(|&i| weight[i]).sum();
    let of_class =
        |k: usize| -> f64 { rows.iter().filter(|&&i| labels[i] == k).map(|&i| weight[i]).sum() };
    let shares = (0..n_classes).map(of_class).filter(|&w| w > 0.0).map(|w| w / total).collect();
    (total, shares)
}

/// Weight times Σ p(1 − p) over the classes.
pub fn gini(rows: &[usize], labels: &[usize], n_classes: usize, weight: &[f64]) -> f64 {
    let (total, shares) = shares(rows, labels, n_classes, weight);
    total * shares.iter().map(|p| p * (1.0 - p)).sum::<f64>()
}

/// Weight times −Σ p ln p over the classes.
pub fn entropy(rows: &[usize], labels: &[usize], n_classes: usize, weight: &[f64]) -> f64 {
    let (total, shares) = shares(rows, labels, n_classes, weight);
    -total * shares.iter().map(|p| p * p.ln()).sum::<f64>()
}

/// Weighted squared distances from the weighted mean.
pub fn squared_error(rows: &[usize], target: &[f64], weight: &[f64]) -> f64 {
    let total: f64 = rows.iter().map(|&i| weight[i]).sum();
    if total == 0.0 {
        return 0.0;
    }
    let mean = rows.iter().map(|&i| weight[i] * target[i]).sum::<f64>() / total;
    rows.iter().map(|&i| weight[i] * (target[i] - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_those_worked_by_hand() {
        let (rows, labels, weight) = ([0, 1, 2], [0, 1, 1], [1.0, 1.0, 2.0]);
        assert!((gini(&rows, &labels, 3, &weight) - 4.0 * 2.0 * 0.25 * 0.75).abs() < 1e-15);
        let expected = 4.0f64.ln() + 3.0 * (4.0f64 / 3.0).ln();
        assert!((entropy(&rows, &labels, 3, &weight) - expected).abs() < 1e-15);
        assert_eq!(squared_error(&rows, &[1.0, 3.0, 4.0], &weight), 4.0 + 0.0 + 2.0);
        let costs = [vec![0.0, 3.0], vec![2.0, 0.0], vec![1.0, 1.0]];
        assert_eq!(cheapest_label(&rows, &costs, &weight), 4.0);
        assert_eq!(balanced_weights(&labels, 3, &weight), [0.5, 0.5 / 3.0, 1.0 / 3.0]);
    }
}
