//! Measures of a classifier, computed from true and false positives, false and true negatives.

use crate::Real;

/// (1 + β²)·precision·recall / (β²·precision + recall); 0 if that is 0/0.
pub fn f_measure(beta: f64, [tp, fp, fn_, _]: [Real; 4]) -> Real {
    if tp == Real::ZERO {
        return Real::ZERO;
    }
    let [precision, recall] = [tp / (tp + fp), tp / (tp + fn_)];
    let squared = Real::from(beta) * Real::from(beta);
    (Real::from(1.0) + squared) * precision * recall / (squared * precision + recall)
}

/// Matthews correlation of class and prediction; 0 if either takes a single value.
pub fn matthews([tp, fp, fn_, tn]: [Real; 4]) -> Real {
    let square = (tp + fp) * (tp + fn_) * (tn + fp) * (tn + fn_);
    if square == Real::ZERO { square } else { (tp * tn - fp * fn_) / square.sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_those_worked_by_hand() {
        let f_measure = |beta, counts: [f64; 4]| f_measure(beta, counts.map(Real::from)).to_f64();
        let matthews = |counts: [f64; 4]| matthews(counts.map(Real::from)).to_f64();
        let counts = [2.0, 1.0, 2.0, 3.0];
        // Precision 2/3 and recall 1/2.
        assert!((f_measure(1.0, counts) - 4.0 / 7.0).abs() < 1e-15);
        assert!((f_measure(2.0, counts) - 10.0 / 19.0).abs() < 1e-15);
        assert!((matthews(counts) - 4.0 / (3.0f64 * 4.0 * 4.0 * 5.0).sqrt()).abs() < 1e-15);
        assert_eq!(f_measure(1.0, [0.0, 1.0, 0.0, 1.0]), 0.0);
        assert_eq!(matthews([0.0, 0.0, 3.0, 1.0]), 0.0);
        assert_eq!(
            (f_measure(0.5, [3.0, 0.0, 0.0, 1.0]), matthews([1.0, 0.0, 0.0, 1.0])),
            (1., 1.)
        );
    }
}
