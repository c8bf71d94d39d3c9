//! Misclassified weight, for any number of classes.

use super::label_costs::LabelCosts;
use super::{Weights, check_labels};
use crate::error::Error;

/// The accuracy task: a wrong label costs the weight of its row.
pub type Accuracy = LabelCosts;

impl LabelCosts {
    /// `labels` are in `0..n_classes`; `leaf_penalty` is the price of a leaf in the normalised
    /// objective (misclassified weight / total weight). Trees will have at most `max_leaves`
    /// leaves. If this is a small number, ties go to the tree with the fewest leaves.
    pub fn new<'a>(
        labels: &[usize],
        n_classes: usize,
        weights: impl Into<Weights<'a>>,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> Result<Self, Error> {
        check_labels(labels, n_classes)?;
        let weights = weights.into();
        let total = weights.total(labels.len())?;
        LabelCosts::of_classes(labels, n_classes, weights, total, leaf_penalty, max_leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Placed, ScalarTask, Statistics};

    #[test]
    fn a_leaf_predicts_its_heaviest_class() {
        let task =
            Accuracy::new(&[0, 1, 2, 1], 3, Some(&[1.0, 2.0, 0.5, 0.25][..]), 0.0, 4).unwrap();
        let mut sums = [0i64; 3];
        for record in task.statistics().chunks(3) {
            for (s, v) in sums.iter_mut().zip(record) {
                *s += v;
            }
        }
        assert!((task.objective_of_cost(task.leaf_cost(&sums)) - 0.4).abs() < 1e-15);
        assert!((task.objective(Placed::rows(&[0; 4], 1)).objective - 0.4).abs() < 1e-15);
    }
}
