//! Balanced accuracy: the mean over the classes of the misclassified share.

use super::label_costs::{LabelCosts, MAX_TOTAL_BITS};
use super::{Weights, check_labels};
use crate::error::Error;
use crate::precise::Precise;

/// A wrong label costs a row of class k its weight over (K · weight of class k), where K is the
/// number of classes with weight. Everything else is as for accuracy.
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
    // Costs are exact if there is a unit in which they are whole numbers.
    let whole = (0..labels.len()).all(|i| weight(i).fract() == 0.0);
    let multiple = if whole { common_multiple(&per_class, present) } else { None };
    let total = multiple.map_or(1.0, |multiple| multiple * present);
    let of_each_class = total / present;
    let cost = |(i, &k): (usize, &usize)| match per_class[k] {
        of_class if of_class <= 0.0 => 0.0,
        of_class => weight(i) * (of_each_class / of_class),
    };
    let costs: Vec<f64> = labels.iter().enumerate().map(cost).collect();
    let weights = weights.with(Some(&costs));
    LabelCosts::of_classes(labels, n_classes, weights, total, leaf_penalty, max_leaves)
}

/// The least common multiple of the weights of the classes, if lanes can hold that many units.
fn common_multiple(weights: &[f64], classes: f64) -> Option<f64> {
    let most = (1u64 << MAX_TOTAL_BITS) as f64 / classes;
    let mut multiple = 1.0;
    for &weight in weights.iter().filter(|&&w| w > 0.0) {
        // Remainders of whole numbers are exact in f64.
        let (mut divisor, mut rest) = (weight, multiple % weight);
        while rest > 0.0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        multiple *= weight / divisor;
        if multiple > most {
            return None;
        }
    }
    Some(multiple)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Allowed;
    use crate::task::{Placed, ScalarTask, Statistics};

    #[test]
    fn every_class_counts_the_same() {
        let labels = [0, 0, 0, 0, 1, 3];
        let task = balanced_accuracy(&labels, 4, None, 0.0, 4).unwrap();
        // In leaf 0, class 3 outweighs three of the four rows of class 0.
        assert!(
            (task.objective(Placed::rows(&[0, 0, 0, 1, 1, 0], 2)).objective - (0.75 + 0.25) / 3.0)
                .abs()
                < 1e-15
        );
    }

    #[test]
    fn costs_are_whole_numbers_if_weights_are() {
        let labels = [0, 0, 0, 0, 1, 3, 3, 3, 3, 3, 3];
        let task = balanced_accuracy(&labels, 4, None, 0.0, 4).unwrap();
        // The label of class 2, which has no rows, costs a row of each class this much.
        let costs = task.statistics().chunks_exact(4).map(|record| record[2]);
        assert_eq!(costs.collect::<Vec<_>>(), [3, 3, 3, 3, 12, 2, 2, 2, 2, 2, 2]);
        assert_eq!(task.resolution(Allowed::of(2, 4)), 0.0);
        let weights = [1.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        let task = balanced_accuracy(&labels, 4, Some(&weights[..]), 0.0, 4).unwrap();
        assert!(task.resolution(Allowed::of(2, 4)) > 0.0);
    }
}
