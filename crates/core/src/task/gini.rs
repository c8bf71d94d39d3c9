//! Gini impurity: the probability that two rows drawn from a leaf have different classes.

use super::Weights;
use super::impurity::{Impurity, Kind};
use crate::error::Error;

/// The loss of a leaf is its weight times Σ p(1 − p) over the shares p of the classes. `labels` are
/// in `0..n_classes`; `leaf_penalty` is per leaf in the normalised objective (loss / weight).
pub fn gini<'a>(
    labels: &[usize],
    n_classes: usize,
    weights: impl Into<Weights<'a>>,
    leaf_penalty: f64,
) -> Result<Impurity, Error> {
    Impurity::new(Kind::Gini, labels, n_classes, weights.into(), leaf_penalty)
}

/// The same with uncertain classes: `shares[row][k]` is the share of class k in a row; shares are
/// non-negative and sum to 1.
pub fn gini_of_shares<'a>(
    shares: &[f64],
    n_classes: usize,
    weights: impl Into<Weights<'a>>,
    leaf_penalty: f64,
) -> Result<Impurity, Error> {
    Impurity::of_shares(Kind::Gini, shares, n_classes, weights.into(), leaf_penalty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Placed, ScalarTask, Statistics, Task};

    #[test]
    fn cost_and_objective_agree() {
        let (labels, weights) = ([2, 0, 2, 0, 2], [1.0, 1.0, 1.0, 1.0, 2.0]);
        let task = gini(&labels, 3, Some(&weights[..]), 0.25).unwrap();
        let mut sums = [0; 3];
        for record in task.statistics()[..12].chunks(3) {
            for (s, v) in sums.iter_mut().zip(record) {
                *s += v;
            }
        }
        // One leaf has two rows of each class, the other is pure.
        let expected = 4.0 * 0.5 / 6.0;
        let cost = task.combine(&task.leaf_cost(&sums), &task.leaf_cost(&task.statistics()[12..]));
        assert!(
            (task.objective(Placed::rows(&[0, 0, 0, 0, 1], 2)).objective - (expected + 0.5)).abs()
                < 1e-15
        );
        assert!((task.objective_of_cost(cost) - (expected + 0.5)).abs() < 1e-13);
    }
}
