//! Balanced accuracy: the mean over classes of the share misclassified.

use super::label_costs::LabelCosts;
use super::{Weights, check_labels};
use crate::error::Error;
use crate::precise::Precise;

/// A row of class k costs its weight over (K · weight of class k) under a wrong label, K the
/// number of classes with weight; otherwise as accuracy.
pub fn balanced_accuracy<'a>(
    labels: &[usize],
    n_classes: usize,
    weights: impl Into<Weights<'a>>,
    leaf_penalty: f64,
    max_leaves: usize,
) -> Result<LabelCosts, Error> {
    check_labels(labels, n_classes)?;
    let weights = weights.into();
    let weight = |i: usize| weights.of(i);
    let mut per_class = vec![Precise::default(); n_classes];
    for (i, &k) in labels.iter().enumerate() {
        per_class[k].add_times(weight(i), weights.count(i));
    }
    let per_class: Vec<f64> = per_class.into_iter().map(Precise::value).collect();
    let present = per_class.iter().filter(|&&w| w > 0.0).count() as f64;
    let share = |(i, &k): (usize, &usize)| {
        if per_class[k] > 0.0 { weight(i) / (present * per_class[k]) } else { 0.0 }
    };
    let shares: Vec<f64> = labels.iter().enumerate().map(share).collect();
    let weights = weights.with(Some(&shares));
    LabelCosts::of_classes(labels, n_classes, weights, 1.0, leaf_penalty, max_leaves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Placed, ScalarTask};

    #[test]
    fn every_class_counts_the_same() {
        let labels = [0, 0, 0, 0, 1, 3];
        let task = balanced_accuracy(&labels, 4, None, 0.0, 4).unwrap();
        // In leaf 0 class 3 outweighs three of the four rows of class 0.
        assert!(
            (task.objective(Placed::rows(&[0, 0, 0, 1, 1, 0], 2)).objective - (0.75 + 0.25) / 3.0)
                .abs()
                < 1e-15
        );
    }
}
