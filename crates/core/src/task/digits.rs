//! Real numbers as integers of any size, so that sums over rows are exact.

use num_bigint::{BigInt, BigUint};
use num_traits::{ToPrimitive, Zero};
use std::ops::Range;

/// Bits of a channel.
const DIGIT: u32 = 32;

/// Largest number of rows whose digits can be summed.
pub const MOST_ROWS: usize = 1 << 31;

/// Numbers as integers over a common power of two.
pub(crate) struct Dyadic {
    pub integers: Vec<BigInt>,
    pub exponent: i32,
}

impl Dyadic {
    pub fn new(values: impl Iterator<Item = f64> + Clone) -> Dyadic {
        let parts = values.map(parts);
        let nonzero = parts.clone().filter(|&(mantissa, _)| mantissa != 0);
        let exponent = nonzero.map(|(_, exponent)| exponent).min().unwrap_or(0);
        let integer = |(mantissa, of): (i64, i32)| match mantissa {
            0 => BigInt::zero(),
            _ => BigInt::from(mantissa) << (of - exponent),
        };
        Dyadic { integers: parts.map(integer).collect(), exponent }
    }
}

/// A finite number as an odd integer (or 0) times a power of two.
pub(crate) fn parts(value: f64) -> (i64, i32) {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, (bits & ((1 << 52) - 1)) as i64);
    let (mantissa, exponent) =
        if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    if mantissa == 0 {
        return (0, 0);
    }
    let zeros = mantissa.trailing_zeros();
    let mantissa = mantissa >> zeros;
    (if value < 0.0 { -mantissa } else { mantissa }, exponent + zeros as i32)
}

/// Integers of any size for each row, split into channels.
#[derive(Clone, Debug)]
pub(crate) struct Digits {
    /// Channels of each number of a row.
    numbers: Vec<Range<usize>>,
    pub channels: usize,
    pub statistics: Vec<i64>,
}

impl Digits {
    /// `records` contains `width` numbers per row.
    pub fn new(records: &[BigInt], width: usize) -> Digits {
        let digits = |k: usize| {
            let of_number = records.iter().skip(k).step_by(width);
            of_number
                .map(|v| v.bits().div_ceil(u64::from(DIGIT)).max(1) as usize)
                .max()
                .unwrap_or(1)
        };
        let mut channels = 0;
        let number = |k| {
            let first = channels;
            channels += digits(k);
            first..channels
        };
        let numbers: Vec<Range<usize>> = (0..width).map(number).collect();
        let mut statistics = Vec::with_capacity(records.len() / width.max(1) * channels);
        for (at, value) in records.iter().enumerate() {
            let (sign, digits) = value.to_u32_digits();
            let sign = if sign == num_bigint::Sign::Minus { -1 } else { 1 };
            let of = |j: usize| digits.get(j).map_or(0, |&d| sign * i64::from(d));
            statistics.extend((0..numbers[at % width].len()).map(of));
        }
        Digits { numbers, channels, statistics }
    }

    /// The sum of one of the numbers.
    pub fn sum(&self, number: usize, sums: &[i64]) -> BigInt {
        let mut carry = 0i128;
        let of = |&digit: &i64| {
            let all = i128::from(digit) + carry;
            carry = all >> DIGIT;
            all as u32
        };
        let low: Vec<u32> = sums[self.numbers[number].clone()].iter().map(of).collect();
        let above = BigInt::from(carry) << (DIGIT as usize * low.len());
        above + BigInt::from(BigUint::new(low))
    }
}

/// One non-negative number per row, in units of 2^`exponent`.
#[derive(Clone, Debug)]
pub(crate) struct ExactSums {
    digits: Digits,
    pub exponent: i32,
}

impl ExactSums {
    pub fn new(values: impl Iterator<Item = f64> + Clone) -> ExactSums {
        // Most numbers fit into a machine word, which is much faster.
        let nonzero = || values.clone().map(parts).filter(|part| part.0 != 0);
        let exponent = nonzero().map(|part| part.1).min().unwrap_or(0);
        let bits = |(mantissa, of): (i64, i32)| (of - exponent) as u32 + mantissa.ilog2() + 1;
        let most = nonzero().map(bits).max().unwrap_or(0);
        if most <= 2 * DIGIT {
            let channels = most.div_ceil(DIGIT).max(1) as usize;
            let of_row = |(mantissa, of): (i64, i32)| {
                let word = if mantissa == 0 { 0 } else { (mantissa as u64) << (of - exponent) };
                let digits = [word & u64::from(u32::MAX), word >> DIGIT];
                digits.into_iter().take(channels).map(|digit| digit as i64)
            };
            let statistics = values.map(parts).flat_map(of_row).collect();
            let digits =
                Digits { numbers: std::iter::once(0..channels).collect(), channels, statistics };
            return ExactSums { digits, exponent };
        }
        let Dyadic { integers, exponent } = Dyadic::new(values);
        ExactSums { digits: Digits::new(&integers, 1), exponent }
    }

    /// The largest whole number of units that does not exceed a finite number.
    pub fn units_of(&self, value: f64) -> BigInt {
        let (mantissa, exponent) = parts(value);
        let shift = exponent - self.exponent;
        let mantissa = BigInt::from(mantissa);
        if shift >= 0 { mantissa << shift } else { mantissa >> shift.unsigned_abs() }
    }

    /// The number of a row.
    pub fn of_row(&self, row: usize) -> BigInt {
        let channels = self.digits.channels;
        self.digits.sum(0, &self.digits.statistics[row * channels..][..channels])
    }

    /// The number of a row if it fits into 64 bits.
    pub fn word(&self, row: usize) -> Option<u64> {
        let channels = self.digits.channels;
        match self.digits.statistics[row * channels..][..channels] {
            [low] => Some(low as u64),
            [low, high] => Some(low as u64 | (high as u64) << DIGIT),
            _ => None,
        }
    }

    /// The smallest number above 0.
    pub fn least(&self) -> BigInt {
        let records = self.digits.statistics.chunks_exact(self.digits.channels);
        let positive = records.filter(|record| record.iter().any(|&digit| digit > 0));
        let least = positive.min_by(|a, b| a.iter().rev().cmp(b.iter().rev()));
        least.map_or_else(BigInt::zero, |record| self.digits.sum(0, record))
    }

    /// The sums over the rows of every group; rows without a group are ignored.
    pub fn of_groups(&self, n: usize, group: impl Iterator<Item = Option<usize>>) -> Vec<BigInt> {
        let channels = self.digits.channels;
        let mut sums = vec![0i64; n * channels];
        for (record, group) in self.digits.statistics.chunks_exact(channels).zip(group) {
            if let Some(group) = group {
                let sums = sums[group * channels..][..channels].iter_mut();
                sums.zip(record).for_each(|(sum, digit)| *sum += digit);
            }
        }
        sums.chunks_exact(channels).map(|sums| self.digits.sum(0, sums)).collect()
    }
}

/// The quotient of two positive integers, or of 0 and a positive one, rounded to a double.
pub(crate) fn ratio(numerator: &BigInt, divisor: &BigInt) -> f64 {
    // Enough bits that dropping the others changes less than rounding does.
    let shift = divisor.bits() as i64 - numerator.bits() as i64 + 64;
    let quotient = if shift >= 0 {
        (numerator << shift as u64) / divisor
    } else {
        numerator / (divisor << shift.unsigned_abs())
    };
    let value = quotient.to_f64().unwrap_or(f64::INFINITY);
    super::fixed::times_power(value, i32::try_from(-shift).unwrap_or(i32::MIN / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_odd_integers_times_powers_of_two() {
        assert_eq!(parts(0.0), (0, 0));
        assert_eq!(parts(-12.0), (-3, 2));
        assert_eq!(parts(f64::MIN_POSITIVE / 4.0), (1, -1024));
        assert_eq!(parts(0.1).0 as f64 * 2f64.powi(parts(0.1).1), 0.1);
    }

    #[test]
    fn digits_add_up_over_rows_of_either_sign() {
        let big: BigInt = BigInt::from(1) << 200;
        let records = [big.clone() + 5, BigInt::from(-7), -big.clone(), BigInt::from(3)];
        let digits = Digits::new(&records, 2);
        let row = |r: usize| &digits.statistics[r * digits.channels..][..digits.channels];
        let sums: Vec<i64> = row(0).iter().zip(row(1)).map(|(a, b)| a + b).collect();
        assert_eq!(digits.sum(0, &sums), BigInt::from(5));
        assert_eq!(digits.sum(1, &sums), BigInt::from(-4));
        assert_eq!(digits.sum(0, row(1)), -big);
    }

    #[test]
    fn sums_of_groups_round_nothing() {
        let values = [1e20, 0.1, 0.0, 0.1, 7.0];
        let sums = ExactSums::new(values.into_iter());
        let groups = [Some(0), Some(0), Some(0), Some(1), None];
        let found = sums.of_groups(2, groups.into_iter());
        assert_eq!(&found[0] - sums.units_of(1e20), found[1]);
        assert_eq!(ratio(&found[1], &BigInt::from(1)) * 2f64.powi(sums.exponent), 0.1);
        assert_eq!(
            (sums.units_of(0.1), sums.units_of(0.1f64.next_down()) + 1),
            (found[1].clone(), found[1].clone())
        );
        assert_eq!(sums.units_of(0.25 * 2f64.powi(sums.exponent)), BigInt::zero());
        let small = ExactSums::new([3.0 * 2f64.powi(40), 0.0, 1.0].into_iter());
        let words: Vec<_> = (0..3).map(|row| small.word(row)).collect();
        assert_eq!((words, sums.word(0)), (vec![Some(3 << 40), Some(0), Some(1)], None));
        assert_eq!((sums.least(), sums.of_row(3)), (found[1].clone(), found[1].clone()));
    }

    #[test]
    fn ratios_round_once() {
        let big = BigInt::from(3) << 1500;
        assert_eq!(ratio(&BigInt::from(2), &BigInt::from(3)), 2.0 / 3.0);
        assert_eq!(ratio(&big, &(BigInt::from(7) << 1500)), 3.0 / 7.0);
        assert_eq!(ratio(&BigInt::zero(), &big), 0.0);
    }
}
