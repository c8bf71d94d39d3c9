//! The price of a split for tasks of label costs. Many prices order trees in the same way; this is
//! the one that fits best into lanes. See docs/maths/label-costs.md.

use super::fixed::power_of_two;
use std::ops::RangeInclusive;

/// Most bits for the fraction of a unit.
const MAX_FRACTION_BITS: u32 = 20;

/// The price of a split as the search charges it, in cost units.
///
/// With whole costs and at most q splits, trees compare by E + s·p with E whole and s ≤ q. So only
/// the position of p among the fractions with denominators up to q matters. Any number strictly
/// between the same two fractions gives the same order, without ties between sizes. Just above such
/// a fraction, ties go to the tree with fewer leaves. The number with the fewest bits keeps lanes
/// exact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    pub charged: i64,
    /// Charge in addition to the true price.
    pub tie: i64,
    /// Costs are multiples of 2^grain.
    pub grain: u32,
    /// Bits of the fraction of a grain.
    pub bits: u32,
    /// Whether trees of equal cost have the same number of leaves.
    pub orders: bool,
    /// Number of splits that may pay for themselves.
    pub affordable: f64,
}

impl Price {
    /// `price` is in units of the statistics, which are shifted by `up` to give costs. Uses the
    /// finest of the `grains` that leaves room for a fraction.
    pub fn new(
        price: f64,
        up: u32,
        mut grains: RangeInclusive<u32>,
        single_leaf: i64,
        max_leaves: usize,
    ) -> Self {
        // A tree never pays more than the cost of a single leaf.
        let most = single_leaf.saturating_add(1).min(1 << 56 >> up) << up;
        let exact = (price * power_of_two(up as i32)).min(most as f64).round() as i64;
        let affordable = if price > 0.0 { single_leaf as f64 / price } else { f64::INFINITY };
        let affordable = affordable.floor().max(1.0);
        let grain = *grains.start();
        let plain = Price { charged: exact, tie: 0, grain, bits: 0, orders: false, affordable };
        let splits = ((max_leaves - 1) as f64).min(affordable).max(1.0);
        let ordering = |grain: u32| {
            let price = price * power_of_two((up - grain) as i32);
            let price = price.min((single_leaf << (up - grain)) as f64 + 1.0);
            // Slightly fewer bits than the total has, because of the mantissa of double lanes.
            let room = grain - u32::from(grain < up);
            let (numerator, bits) = between(price, splits).filter(|&(_, bits)| bits <= room)?;
            let charged = numerator << (grain - bits);
            Some(Price { charged, tie: charged - exact, grain, bits, orders: true, affordable })
        };
        grains.find_map(ordering).unwrap_or(plain)
    }

    /// Whether lanes of whole grains can hold the price, or a fraction with few bits.
    pub fn is_exact(&self) -> bool {
        self.orders || self.charged % (1i64 << self.grain) == 0
    }
}

/// The fraction numerator/2^bits with the fewest bits strictly between two neighbouring fractions
/// with denominators up to `most`, where `price` is between them or is the lower one.
fn between(price: f64, most: f64) -> Option<(i64, u32)> {
    // A price is a product of three numbers. If it equals a fraction up to the rounding of the
    // product and of its multiple below, it is taken as that fraction.
    let tolerance = 4.0 * f64::EPSILON * price;
    let (mut low, mut high) = ((-1i64, 1i64), (i64::MAX, 1i64));
    for b in 1..=(most.min(1025.0) as i64) {
        let a = ((price + tolerance) * b as f64).floor() as i64;
        if i128::from(a) * i128::from(low.1) > i128::from(low.0) * i128::from(b) {
            low = (a, b);
        }
        if i128::from(a + 1) * i128::from(high.1) < i128::from(high.0) * i128::from(b) {
            high = (a + 1, b);
        }
    }
    let fraction = |bits: u32| {
        let numerator = ((i128::from(low.0) << bits) / i128::from(low.1) + 1) as i64;
        let below = i128::from(numerator) * i128::from(high.1) < i128::from(high.0) << bits;
        below.then_some((numerator, bits))
    };
    if most > 1024.0 { None } else { (0..=MAX_FRACTION_BITS).find_map(fraction) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charged_prices_order_trees_as_true_ones_do() {
        for (price, most) in [(0.0, 31), (0.3, 31), (1.0 / 3.0, 7), (34.535, 31), (4.79, 60)] {
            let (numerator, bits) = between(price, most as f64).unwrap();
            let charged = numerator as f64 / (1u64 << bits) as f64;
            assert!(bits <= 13, "{price}: {bits} bits");
            for splits in 1..=most {
                for whole in -2000..2000 {
                    let of = |price: f64| f64::from(whole) + f64::from(splits) * price;
                    let (truth, used) = (of(price), of(charged));
                    // A tie must go to fewer splits.
                    let expected = if truth.abs() < 1e-9 { 1.0 } else { truth.signum() };
                    assert!(used.signum() == expected && used.abs() > 1e-9);
                }
            }
        }
        assert_eq!(between(0.0, 31.0), Some((1, 5)));
    }
}
