//! Measures of a classifier by its rows: true and false positives, false and true negatives.

/// (1 + β²)·precision·recall / (β²·precision + recall); 0 where that is 0/0.
pub fn f_measure(beta: f64, [tp, fp, fn_, _]: [f64; 4]) -> f64 {
    let precision_and_recall = if tp > 0.0 { [tp / (tp + fp), tp / (tp + fn_)] } else { [0.0; 2] };
    let [precision, recall] = precision_and_recall;
    let squared = beta * beta;
    let denominator = squared * precision + recall;
    if denominator > 0.0 { (1.0 + squared) * precision * recall / denominator } else { 0.0 }
}

/// Matthews correlation of class and prediction; 0 where either takes a single value.
pub fn matthews([tp, fp, fn_, tn]: [f64; 4]) -> f64 {
    let sides = [tp + fp, tp + fn_, tn + fp, tn + fn_];
    let root: f64 = sides.iter().map(|side| side.sqrt()).product();
    if root > 0.0 { (tp * tn - fp * fn_) / root } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_those_worked_by_hand() {
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
