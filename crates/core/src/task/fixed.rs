//! Fixed-point statistics: real values per row, stored as integers so that sums are exact.

use crate::precise::Precise;

/// Largest exponent of a scale. It leaves enough of the range of f64 for costs to be finer still.
const FINEST: i32 = 900;

/// Values times 2^`exponent`, rounded to integers.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// The integers.
    pub values: Vec<i64>,
    /// Binary exponent of the scale.
    pub exponent: i32,
    /// Sum of the values, before they were scaled.
    pub total: f64,
    /// Whether the values were integers, so that nothing was rounded.
    pub whole: bool,
    /// Sum of the absolute changes by rounding, in units.
    pub moved: f64,
    /// Largest relative change of a value by rounding.
    pub moved_share: f64,
}

impl Fixed {
    /// Scales non-negative finite `values` by the largest power of two that keeps their sum within
    /// 2^`bits`. Integers are kept as they are.
    pub fn new(values: &[f64], bits: u32) -> Self {
        Fixed::counted(values.iter().copied(), |_| 1.0, bits)
    }

    /// As [`Fixed::new`], for values that stand for several rows each.
    pub fn counted(
        values: impl Iterator<Item = f64> + Clone,
        count: impl Fn(usize) -> f64,
        bits: u32,
    ) -> Self {
        let (mut total, mut whole) = (Precise::default(), true);
        values.clone().enumerate().for_each(|(at, v)| {
            total.add_times(v, count(at));
            whole &= v as i64 as f64 == v;
        });
        let total = total.value();
        let whole = whole && total <= power_of_two(bits as i32);
        let exponent = if total == 0.0 || whole {
            0
        } else {
            // Two bits are reserved for rounding the values and the sum.
            (bits as i32 - 2 - total.log2().floor() as i32).min(FINEST)
        };
        let scale = power_of_two(exponent);
        let (mut moved, mut moved_share) = (0.0, 0.0_f64);
        let rounded = |(at, v): (usize, f64)| {
            // Scaling by a power of two is exact, and so is the difference to the nearest integer.
            let exact = v * scale;
            let near = nearest(exact);
            let off = (exact - near as f64).abs();
            if off > 0.0 {
                moved += count(at) * off;
                moved_share = moved_share.max(off / exact);
            }
            near
        };
        let values = values.enumerate().map(rounded).collect();
        // The differences are exact, and the error of their sum is smaller than this margin.
        Fixed { values, exponent, total, whole, moved: moved * (1.0 + 1e-6), moved_share }
    }

    /// The same values in the largest unit, not below 1, that divides all of them, if nothing was
    /// rounded. Their sums then have as few bits as possible.
    pub fn in_least_bits(mut self) -> Self {
        let zeros = self.values.iter().filter(|&&v| v != 0).map(|v| v.trailing_zeros()).min();
        if self.moved == 0.0 && self.exponent > 0 {
            let spare = zeros.unwrap_or(0).min(self.exponent.unsigned_abs());
            self.values.iter_mut().for_each(|v| *v >>= spare);
            self.exponent -= spare as i32;
        }
        self
    }

    /// 2^exponent.
    pub fn scale(&self) -> f64 {
        power_of_two(self.exponent)
    }
}

/// Exponent of the power of two that values are divided by before anything is computed. It is 0,
/// which leaves the values unchanged, unless the largest value is so large or small that sums,
/// squares or scales may leave the range of f64.
pub(super) fn unit_exponent(values: impl Iterator<Item = f64>) -> i32 {
    let most = values.map(f64::abs).fold(0.0, f64::max);
    let exponent = if most > 0.0 { most.log2().floor() as i32 } else { 0 };
    if exponent.abs() > 200 { exponent } else { 0 }
}

/// value · 2^exponent, even if 2^exponent itself is out of range.
pub(crate) fn times_power(value: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    value * power_of_two(half) * power_of_two(exponent - half)
}

/// total / weight · 2^`exponent`, even if the quotient itself is out of range.
pub(super) fn mean_times_power(total: f64, weight: f64, exponent: i32) -> f64 {
    if exponent == 0 {
        return total / weight;
    }
    let of_weight = weight.log2().floor() as i32;
    times_power(total / times_power(weight, -of_weight), exponent - of_weight)
}

/// Most bits of the total of a task's costs; the rest is for the prices of many splits.
pub(super) const COST_BITS: u32 = 50;

/// Number of bits by which sums up to `total` are shifted left to give costs, which leaves room for
/// prices that are fractions of a unit.
pub(super) fn room(total: i64) -> u32 {
    COST_BITS.saturating_sub((total.max(1) as f64).log2().ceil() as u32)
}

/// A penalty per leaf, as a search charges it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Penalty {
    /// Price of a split, in units of cost.
    pub price: i64,
    /// Penalty of a leaf beyond the price of a split, in units of the objective.
    pub excess: f64,
}

impl Penalty {
    /// `penalty` is per leaf in the objective, and `unit` is the number of cost units per unit of
    /// the objective. Without prices, no two trees differ by more than `most`. A price of at least
    /// that much orders trees by their number of splits first, so a higher charge would not change
    /// the order.
    pub fn new(penalty: f64, unit: f64, most: i64) -> Penalty {
        let price = (penalty * unit).round();
        if price <= most as f64 {
            return Penalty { price: price as i64, excess: 0.0 };
        }
        let price = most.saturating_add(1);
        Penalty { price, excess: (penalty - price as f64 / unit).max(0.0) }
    }
}

/// 2^exponent as an f64.
#[inline]
pub fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        // Without multiplications, because searches call this for every cell that they refine.
        -1022..=1023 => f64::from_bits(((exponent + 1023) as u64) << 52),
        _ => 2f64.powi(exponent),
    }
}

/// The nearest integer, away from zero at halves; the largest integers beyond the range of i64.
///
/// `f64::round` is a library call where the instruction set has no rounding; the conversion is one
/// instruction everywhere.
#[inline]
pub fn nearest(value: f64) -> i64 {
    let whole = value as i64;
    // Exact: a number with a fraction is small enough for its whole part to have no rounding.
    let over = value - whole as f64;
    whole.saturating_add(i64::from(over >= 0.5) - i64::from(over <= -0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_equals_rounding() {
        let halves = (-40..40).map(|i| f64::from(i) / 4.0);
        let edges = [0.5 - f64::EPSILON / 4.0, 2f64.powi(52) - 0.5, 2f64.powi(53) + 2.0, 1e300];
        let others = [f64::INFINITY, f64::NAN, f64::MIN_POSITIVE];
        for value in halves.chain(edges).chain(edges.map(|v| -v)).chain(others) {
            assert_eq!(nearest(value), value.round() as i64, "{value}");
        }
    }

    #[test]
    fn integers_stay_and_reals_use_the_range() {
        let whole = Fixed::new(&[1.0, 0.0, 7.0], 51);
        assert_eq!((whole.values.as_slice(), whole.exponent), (&[1, 0, 7][..], 0));
        let real = Fixed::new(&[0.1, 0.7, 1e-9], 51);
        let total: i64 = real.values.iter().sum();
        assert!(total <= 1 << 51 && total > 1 << 48);
        assert!((real.values[1] as f64 / real.scale() - 0.7).abs() < 1e-15);
        assert_eq!(Fixed::new(&[0.0], 51).values, [0]);
    }

    #[test]
    fn what_is_not_rounded_takes_no_bits_it_does_not_need() {
        let of = |values: &[f64]| Fixed::new(values, 51).in_least_bits();
        let eighths = of(&[0.5, 0.0, 2.125]);
        assert_eq!((eighths.values.as_slice(), eighths.exponent), (&[4, 0, 17][..], 3));
        assert_eq!(of(&[4.0, 8.0]).values, [4, 8]);
        assert!(of(&[1e-300, 0.0, 3e-301]).scale() <= power_of_two(FINEST));
        let rounded = of(&[0.1, 0.5]);
        assert_eq!(rounded.exponent, Fixed::new(&[0.1, 0.5], 51).exponent);
    }

    #[test]
    fn powers_of_two_are_exact() {
        for exponent in -1080..1030 {
            assert_eq!(power_of_two(exponent), 2f64.powi(exponent), "{exponent}");
        }
    }

    #[test]
    fn what_rounding_moves_is_counted() {
        assert_eq!(Fixed::new(&[3.0, 4.0], 51).moved, 0.0);
        let fixed = Fixed::new(&[0.1, 0.7], 4);
        // In eighths: 0.8 and 5.6, with two reserved bits.
        assert_eq!((fixed.exponent, fixed.values.as_slice()), (3, &[1, 6][..]));
        assert!((fixed.moved - 0.6).abs() < 1e-5);
    }

    #[test]
    fn units_beyond_the_usual_are_taken_out() {
        assert_eq!(unit_exponent([1e-30, 3.0].into_iter()), 0);
        let exponent = unit_exponent([0.0, -1e300].into_iter());
        assert_eq!(times_power(times_power(1e300, -exponent), exponent), 1e300);
        assert_eq!(times_power(1e-300, 900), 1e-300 * 2f64.powi(900));
        assert_eq!(mean_times_power(3e-305, 3e12, 900), 3e-305 * 2f64.powi(900) / 3e12);
    }

    #[test]
    fn whole_sums_leave_room_for_fractional_prices() {
        assert_eq!((room(0), room(1), room(40), room(1 << 50)), (50, 50, 44, 0));
        let penalty = Penalty::new(0.02, 40.0 * power_of_two(44), 40 << 44);
        assert!((penalty.price as f64 - 0.8 * power_of_two(44)).abs() <= 0.5);
        assert_eq!(penalty.excess, 0.0);
        let hopeless = Penalty::new(1000.0, 4.0, 100);
        assert_eq!((hopeless.price, hopeless.excess), (101, 1000.0 - 101.0 / 4.0));
    }
}
