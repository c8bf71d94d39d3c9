//! Real statistics as integers, whose sums are exact.

use crate::error::Error;
use crate::task::fixed::power_of_two;

/// Totals stay within 2^61.
const BITS: i32 = 61;

/// Statistics of every row as whole multiples of one unit per channel, which is a power of two.
///
/// Integers up to 2^61 are exact, and so are reals that are all multiples of such a unit. Other
/// values are off by at most half a unit, which is at most 2^−60 of the channel's total. Sums of
/// integers do not depend on the order of rows, and differences do not drift.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// `[row][channel]`.
    pub values: Vec<i64>,
    /// Statistics per row.
    pub channels: usize,
    /// Value of one unit of each channel.
    pub units: Vec<f64>,
}

impl Statistics {
    /// Scales finite `values`, `[row][channel]`.
    pub fn new(values: &[f64], channels: usize) -> Result<Self, Error> {
        if channels == 0 || !values.len().is_multiple_of(channels) {
            return Err(Error::invalid("statistics", "one or more numbers per row"));
        }
        let mut exponents = Vec::with_capacity(channels);
        for c in 0..channels {
            let of_rows = values[c..].iter().step_by(channels);
            let total: f64 = of_rows.map(|v| v.abs()).sum();
            if !(total == 0.0 || (1e-200..1e200).contains(&total)) {
                let reason = format!("column {c} is not finite, or out of range");
                return Err(Error::invalid("statistics", reason));
            }
            let largest = if total == 0.0 { 0 } else { total.log2().floor() as i32 + 1 };
            exponents.push(BITS - 1 - largest);
        }
        let scales: Vec<f64> = exponents.iter().map(|&e| power_of_two(e)).collect();
        let scaled = |(i, v): (usize, &f64)| (v * scales[i % channels]).round() as i64;
        Ok(Statistics {
            values: values.iter().enumerate().map(scaled).collect(),
            channels,
            units: exponents.iter().map(|&e| power_of_two(-e)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_of_a_unit_sum_exactly() {
        let values = [1.0, 0.25, -3.0, 1e6, 2.0, -0.5];
        let statistics = Statistics::new(&values, 2).unwrap();
        for c in 0..2 {
            let sum: i64 = statistics.values[c..].iter().step_by(2).sum();
            let expected: f64 = values[c..].iter().step_by(2).sum();
            assert_eq!(sum as f64 * statistics.units[c], expected);
        }
    }

    #[test]
    fn reals_are_as_near_as_the_range_allows() {
        let values = [0.1, 1e9, -0.3, 1e-300];
        let statistics = Statistics::new(&values, 1).unwrap();
        for (v, &s) in values.iter().zip(&statistics.values) {
            assert!((s as f64 * statistics.units[0] - v).abs() <= 1e9 * power_of_two(-59));
        }
    }

    #[test]
    fn what_has_no_sum_is_refused() {
        for values in [[f64::NAN, 1.0], [f64::INFINITY, 1.0], [1e200, 1e200]] {
            assert!(Statistics::new(&values, 1).is_err());
        }
        assert_eq!(Statistics::new(&[0.0, 0.0], 1).unwrap().values, [0, 0]);
    }
}
