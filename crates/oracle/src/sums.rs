//! Losses of a leaf that follow from sums over its rows, each from its definition.

use crate::Real;
use crate::survival::clear_of_rounding;

fn total(rows: &[usize], weight: &[f64]) -> Real {
    rows.iter().map(|&i| Real::from(weight[i])).sum()
}

/// Summed cost of the cheapest label, for `costs[row][label]`; 0 without rows.
pub fn cheapest_label(rows: &[usize], costs: &[Vec<f64>], weight: &[f64]) -> Real {
    let Some(&first) = rows.first() else { return Real::ZERO };
    let labels = 0..costs[first].len();
    labels.map(|k| cost_of_label(rows, costs, weight, k)).fold(Real::INFINITY, Real::min)
}

/// Summed cost of one label.
pub fn cost_of_label(rows: &[usize], costs: &[Vec<f64>], weight: &[f64], label: usize) -> Real {
    rows.iter().map(|&i| Real::from(weight[i]) * Real::from(costs[i][label])).sum()
}

/// Misclassified weight as a share of the weight of its class, averaged over the classes.
pub fn balanced_errors(rows: &[usize], labels: &[usize], n_classes: usize, weight: &[f64]) -> Real {
    let of_class = |k: usize, rows: &[usize]| -> Real {
        rows.iter().filter(|&&i| labels[i] == k).map(|&i| Real::from(weight[i])).sum()
    };
    let all: Vec<usize> = (0..labels.len()).collect();
    let present = (0..n_classes).map(|k| (k, of_class(k, &all))).filter(|(_, w)| *w > Real::ZERO);
    let shares: Vec<Real> = present.map(|(k, whole)| of_class(k, rows) / whole).collect();
    let largest = shares.iter().copied().fold(Real::ZERO, |a, b| if b > a { b } else { a });
    (shares.iter().copied().sum::<Real>() - largest) / Real::whole(shares.len() as u64)
}

/// Weight of every row in every class, if each row has one label.
pub fn one_hot(labels: &[usize], n_classes: usize) -> Vec<Vec<f64>> {
    let of_row = |&label: &usize| (0..n_classes).map(|k| f64::from(u8::from(k == label))).collect();
    labels.iter().map(of_row).collect()
}

/// The positive weights of the classes, and the total weight, for `shares[row][class]`.
fn of_classes(rows: &[usize], shares: &[Vec<f64>], weight: &[f64]) -> (Real, Vec<Real>) {
    let n_classes = shares.first().map_or(0, Vec::len);
    let of_class = |k: usize| {
        rows.iter().map(|&i| Real::from(weight[i]) * Real::from(shares[i][k])).sum::<Real>()
    };
    let classes: Vec<Real> = (0..n_classes).map(of_class).filter(|w| *w > Real::ZERO).collect();
    (classes.iter().copied().sum(), classes)
}

/// Weight times Σ p(1 − p) over the classes, for `shares[row][class]`.
pub fn gini(rows: &[usize], shares: &[Vec<f64>], weight: &[f64]) -> Real {
    let (total, classes) = of_classes(rows, shares, weight);
    classes.iter().map(|&w| w * (total - w) / total).sum()
}

/// Weight times −Σ p ln p over the classes, for `shares[row][class]`.
pub fn entropy(rows: &[usize], shares: &[Vec<f64>], weight: &[f64]) -> Real {
    let (total, classes) = of_classes(rows, shares, weight);
    classes.iter().map(|&w| -(w * (w / total).ln())).sum()
}

/// Σ wy, Σ wm and Σ wy ln(y/m) of counts y given exposure m, 0 ln 0 = 0.
fn of_counts(
    rows: &[usize],
    count: &[f64],
    exposure: &[f64],
    weight: &[f64],
) -> (Real, Real, Real) {
    let of = |i: usize, value: f64| Real::from(weight[i]) * Real::from(value);
    let counted = rows.iter().filter(|&&i| count[i] > 0.0);
    let log = |i: usize| (Real::from(count[i]) / Real::from(exposure[i])).ln();
    (
        rows.iter().map(|&i| of(i, count[i])).sum(),
        rows.iter().map(|&i| of(i, exposure[i])).sum(),
        counted.map(|&i| of(i, count[i]) * log(i)).sum(),
    )
}

/// Half the Poisson deviance of a leaf at its own rate: Σ wy ln(y/m) − Y ln(Y/M).
pub fn half_deviance(rows: &[usize], count: &[f64], exposure: &[f64], weight: &[f64]) -> Real {
    let (all, exposed, saturated) = of_counts(rows, count, exposure, weight);
    if all == Real::ZERO {
        return all;
    }
    clear_of_rounding(&[saturated, -(all * (all / exposed).ln())])
}

/// The absolute terms of the deviance: those of the saturated model, of the leaf, and the count.
pub fn deviance_terms(rows: &[usize], count: &[f64], exposure: &[f64], weight: &[f64]) -> Real {
    let (all, exposed, saturated) = of_counts(rows, count, exposure, weight);
    if all == Real::ZERO {
        return all;
    }
    saturated.abs() + (all * (all / exposed).ln()).abs() + all
}

/// Weighted squared distances from the weighted mean.
pub fn squared_error(rows: &[usize], target: &[f64], weight: &[f64]) -> Real {
    let total = total(rows, weight);
    if total == Real::ZERO {
        return Real::ZERO;
    }
    let sum = rows.iter().map(|&i| Real::from(weight[i]) * Real::from(target[i])).sum::<Real>();
    // Distances from the mean times the total weight, which need no division.
    let distance = |i: usize| total * Real::from(target[i]) - sum;
    let squares = rows.iter().map(|&i| Real::from(weight[i]) * distance(i) * distance(i));
    squares.sum::<Real>() / (total * total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_those_worked_by_hand() {
        let (rows, labels, weight) = ([0, 1, 2], [0, 1, 1], [1.0, 1.0, 2.0]);
        let classes = one_hot(&labels, 3);
        assert_eq!(gini(&rows, &classes, &weight), 4.0 * 2.0 * 0.25 * 0.75);
        let expected = 4.0f64.ln() + 3.0 * (4.0f64 / 3.0).ln();
        assert!((entropy(&rows, &classes, &weight).to_f64() - expected).abs() < 1e-15);
        // Class weights 2.5 and 1.5.
        let shares = [vec![1.0, 0.0], vec![0.5, 0.5], vec![0.5, 0.5]];
        assert_eq!(gini(&rows, &shares, &weight), 2.0 * 2.5 * 1.5 / 4.0);
        assert_eq!(squared_error(&rows, &[1.0, 3.0, 4.0], &weight), 4.0 + 0.0 + 2.0);
        let costs = [vec![0.0, 3.0], vec![2.0, 0.0], vec![1.0, 1.0]];
        assert_eq!(cheapest_label(&rows, &costs, &weight), 4.0);
        // Class 0 contributes half of the mean, and the row of class 1 with weight 1 a third of the
        // other half.
        let errors = |rows: &[usize]| balanced_errors(rows, &labels, 3, &weight);
        assert_eq!(errors(&rows), 0.5);
        assert_eq!(errors(&[0, 1]).to_f64(), 1.0 / 6.0);
    }

    #[test]
    fn an_outlier_hides_no_error() {
        let (target, weight) = ([1e100, 0.0, 1e-30], [1e-12, 1e12, 1.0]);
        let loss = |rows: &[usize]| squared_error(rows, &target, &weight);
        assert!(loss(&[0, 1, 2]) > loss(&[0, 1]));
        assert_eq!(squared_error(&[0, 1], &[1e13 + 1.0, 1e13], &[1.0; 2]), 0.5);
        let costs = [vec![0.0, 1e60], vec![0.25, -1e60]];
        assert_eq!(cheapest_label(&[0, 1], &costs, &[1.0; 2]), 0.0);
    }
}
