//! Fixed-point statistics: real per-row values as integers whose sums are exact.

use crate::precise::Precise;

/// Largest exponent of a scale: so much less than f64 has that costs may be finer still.
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
    /// Whether the values were integers already, so that nothing was rounded.
    pub whole: bool,
    /// By how many units rounding moved each value, summed.
    pub moved: f64,
    /// By which share of itself it moved any value at most.
    pub moved_share: f64,
}

impl Fixed {
    /// Scales non-negative finite `values` by the largest power of two that keeps their sum
    /// within 2^`bits`; integer values are kept as they are.
    pub fn new(values: &[f64], bits: u32) -> Self {
        Fixed::counted(values.iter().copied(), |_| 1.0, bits)
    }

    /// As [`Fixed::new`], where so many rows have each of the values.
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
            // Two spare bits for the rounding of the values and of the sum.
            (bits as i32 - 2 - total.log2().floor() as i32).min(FINEST)
        };
        let scale = power_of_two(exponent);
        let (mut moved, mut moved_share) = (0.0, 0.0_f64);
        let rounded = |(at, v): (usize, f64)| {
            // Powers of two scale exactly, and so do differences to the nearest integer. No call of
            // a library, as `round` may be, where the conversion is an instruction.
            let exact = v * scale;
            let below = exact as i64;
            let over = exact - below as f64;
            let (near, off) = if over >= 0.5 { (below + 1, 1.0 - over) } else { (below, over) };
            if off > 0.0 {
                moved += count(at) * off;
                moved_share = moved_share.max(off / exact);
            }
            near
        };
        let values = values.enumerate().map(rounded).collect();
        // The differences are exact, and their sum is off by less than this.
        Fixed { values, exponent, total, whole, moved: moved * (1.0 + 1e-6), moved_share }
    }

    /// The same values in the largest unit that they all are multiples of, down to 1, where nothing
    /// was rounded: their sums have as few bits as they can.
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

/// The power of two that values are divided by before anything is computed from them: 0, so that
/// they stay as they are, unless the largest is so large or so small that sums, squares or scales
/// may leave the range of f64.
pub(super) fn unit_exponent(values: impl Iterator<Item = f64>) -> i32 {
    let most = values.map(f64::abs).fold(0.0, f64::max);
    let exponent = if most > 0.0 { most.log2().floor() as i32 } else { 0 };
    if exponent.abs() > 200 { exponent } else { 0 }
}

/// value · 2^exponent, where 2^exponent itself may be out of range.
pub(crate) fn times_power(value: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    value * power_of_two(half) * power_of_two(exponent - half)
}

/// total / weight · 2^`exponent`, where the quotient itself may be out of range.
pub(super) fn mean_times_power(total: f64, weight: f64, exponent: i32) -> f64 {
    if exponent == 0 {
        return total / weight;
    }
    let of_weight = weight.log2().floor() as i32;
    times_power(total / times_power(weight, -of_weight), exponent - of_weight)
}

/// Bits that the total of a task's costs may take, so that the prices of many splits fit beside it.
pub(super) const COST_BITS: u32 = 50;

/// Bits that sums up to `total` are shifted left by to give costs: room for prices that are
/// fractions of a unit.
pub(super) fn room(total: i64) -> u32 {
    COST_BITS.saturating_sub((total.max(1) as f64).log2().ceil() as u32)
}

/// A penalty per leaf as a search charges it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Penalty {
    /// Price of a split, in units of cost.
    pub price: i64,
    /// Excess of a leaf over the price, in units of the objective.
    pub excess: f64,
}

impl Penalty {
    /// `penalty` per leaf in the objective, of which one is `unit` units of cost. Apart from
    /// prices no two trees differ by more than `most`: where that is the price, or more, trees
    /// are compared by splits and then by cost, so that charging more changes no order.
    pub fn new(penalty: f64, unit: f64, most: i64) -> Penalty {
        let price = (penalty * unit).round();
        if price <= most as f64 {
            return Penalty { price: price as i64, excess: 0.0 };
        }
        let price = most.saturating_add(1);
        Penalty { price, excess: (penalty - price as f64 / unit).max(0.0) }
    }
}

/// 2^exponent as f64.
#[inline]
pub fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        // No multiplications: searches ask for it in every cell that they refine.
        -1022..=1023 => f64::from_bits(((exponent + 1023) as u64) << 52),
        _ => 2f64.powi(exponent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // In eighths: 0.8 and 5.6, two spare bits.
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
