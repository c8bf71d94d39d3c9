//! Balanced accuracy: the mean over classes of the share misclassified.

use super::check_labels;
use super::label_costs::LabelCosts;
use crate::error::Error;

/// A row of class k costs its weight over (K · weight of class k) under a wrong label, K the
/// number of classes with weight; otherwise as accuracy.
pub fn balanced_accuracy(
    labels: &[usize],
    n_classes: usize,
    weights: Option<&[f64]>,
    leaf_penalty: f64,
    max_leaves: usize,
) -> Result<LabelCosts, Error> {
    check_labels(labels, n_classes)?;
    let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
    let mut per_class = vec![0.0; n_classes];
    for (i, &k) in labels.iter().enumerate() {
        per_class[k] += weight(i);
    }
    let present = per_class.iter().filter(|&&w| w > 0.0).count() as f64;
    let share = |(i, &k): (usize, &usize)| {
        if per_class[k] > 0.0 { weight(i) / (present * per_class[k]) } else { 0.0 }
    };
    let shares = labels.iter().enumerate().map(share).collect();
    LabelCosts::of_classes(labels, n_classes, shares, 1.0, leaf_penalty, max_leaves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::ScalarTask;

    #[test]
    fn every_class_counts_the_same() {
        let labels = [0, 0, 0, 0, 1, 3];
        let task = balanced_accuracy(&labels, 4, None, 0.0, 4).unwrap();
        // In leaf 0 class 3 outweighs three of the four rows of class 0.
        assert!(
            (task.objective(&[0, 0, 0, 1, 1, 0], 2).objective - (0.75 + 0.25) / 3.0).abs() < 1e-15
        );
    }
}
