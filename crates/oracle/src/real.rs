//! Numbers of 512 bits, for sums and quotients in which `f64` loses digits.
//!
//! Sums and products of doubles are exact as long as their bits fit; further bits are cut off at
//! 2⁻⁵¹¹ of the result. Quotients, roots and logarithms are within 2⁻⁴⁹⁰ of the true result: 147
//! digits.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub};
use std::sync::LazyLock;

const LIMBS: usize = 8;
const BITS: i64 = 64 * LIMBS as i64;
/// Number of bits that quotients and roots are rounded to, so that whole results come out whole.
const KEPT: i64 = 500;

/// A real number, or infinity. By definition `sign · Σ limbs[k] 2^(64k) · 2^exponent`, where the
/// highest bit of a number that is not 0 is set.
#[derive(Clone, Copy, Debug)]
pub struct Real {
    sign: i8,
    exponent: i64,
    limbs: [u64; LIMBS],
}

impl Real {
    /// Zero.
    pub const ZERO: Real = Real { sign: 0, exponent: 0, limbs: [0; LIMBS] };
    /// Larger than any number.
    pub const INFINITY: Real = Real { sign: 1, exponent: i64::MAX, limbs: [u64::MAX; LIMBS] };

    /// A whole number.
    pub fn whole(value: u64) -> Real {
        let mut limbs = [0; LIMBS];
        limbs[0] = value;
        Real { sign: 1, exponent: 0, limbs }.normal()
    }

    /// Whether it is a number.
    pub fn is_finite(self) -> bool {
        self.exponent != i64::MAX
    }

    /// The absolute value.
    pub fn abs(self) -> Real {
        Real { sign: self.sign.abs(), ..self }
    }

    /// The smaller of two.
    pub fn min(self, other: Real) -> Real {
        if other < self { other } else { self }
    }

    /// Shifts the highest set bit to the top.
    fn normal(mut self) -> Real {
        let Some(top) = self.limbs.iter().rposition(|&limb| limb != 0) else { return Real::ZERO };
        let gap = 64 * (LIMBS - 1 - top) + self.limbs[top].leading_zeros() as usize;
        self.limbs = up(&self.limbs, gap);
        self.exponent -= gap as i64;
        self
    }

    /// The nearest number of [`KEPT`] bits.
    fn rounded(mut self) -> Real {
        let low = (BITS - KEPT) as u32;
        let half = 1u64 << (low - 1);
        let raised = add(&mut self.limbs, &low_limb(half));
        if raised {
            self.limbs = down(&self.limbs, 1);
            self.limbs[LIMBS - 1] |= 1 << 63;
            self.exponent += 1;
        }
        self.limbs[0] &= !((1u64 << low) - 1);
        self
    }

    /// The mantissa, from 1 to 2, as the nearest double.
    fn leading(self) -> f64 {
        self.limbs[LIMBS - 1] as f64 / (1u64 << 63) as f64
    }

    /// The number scaled to between 1 and 2, and its exponent.
    fn apart(self) -> (Real, i64) {
        let exponent = self.exponent + BITS - 1;
        (Real { exponent: 1 - BITS, ..self }, exponent)
    }

    fn times_power_of_two(self, power: i64) -> Real {
        if self.sign == 0 { self } else { Real { exponent: self.exponent + power, ..self } }
    }

    /// 1/x by Newton's method, which doubles the digits four times.
    fn inverse(self) -> Real {
        assert!(self.sign != 0 && self.is_finite(), "divided by {self:?}");
        let (mantissa, exponent) = self.apart();
        let mut found = Real::from(1.0 / self.leading());
        let positive = mantissa.abs();
        for _ in 0..4 {
            found = found * (Real::from(2.0) - positive * found);
        }
        Real { sign: self.sign, ..found }.times_power_of_two(-exponent)
    }

    /// √x of a non-negative number.
    pub fn sqrt(self) -> Real {
        assert!(self.sign >= 0 && self.is_finite(), "no root");
        if self.sign == 0 {
            return self;
        }
        let (mantissa, exponent) = self.apart();
        let odd = exponent.rem_euclid(2);
        let mantissa = mantissa.times_power_of_two(odd);
        let mut found = Real::from(mantissa.to_f64().sqrt());
        for _ in 0..4 {
            found = (found + mantissa / found).times_power_of_two(-1);
        }
        found.rounded().times_power_of_two((exponent - odd) / 2)
    }

    /// ln x of a positive number: x = 2^k c y with c = j/32 and y near 1; ln y by the series of
    /// 2 artanh((y − 1)/(y + 1)).
    pub fn ln(self) -> Real {
        static OF_TWO: LazyLock<Real> = LazyLock::new(|| near_one(Real::from(2.0)));
        static OF_THIRTY_SECONDS: LazyLock<Vec<Real>> = LazyLock::new(|| {
            (0..=32).map(|j| near_one(Real::from(1.0 + j as f64 / 32.0))).collect()
        });
        assert!(self.sign > 0 && self.is_finite(), "no logarithm of {self:?}");
        let (mantissa, exponent) = self.apart();
        let nearest = ((mantissa.leading() - 1.0) * 32.0).round();
        let rest = mantissa / Real::from(1.0 + nearest / 32.0);
        let powers = Real::from(exponent as f64) * *OF_TWO;
        powers + OF_THIRTY_SECONDS[nearest as usize] + near_one(rest)
    }

    /// The nearest double, or the even one of two that are equally near.
    pub fn to_f64(self) -> f64 {
        if !self.is_finite() {
            return f64::INFINITY;
        }
        if self.sign == 0 {
            return 0.0;
        }
        let top = self.exponent + BITS - 1;
        let sign = f64::from(self.sign);
        if top > 1023 {
            return sign * f64::INFINITY;
        }
        // Numbers below the smallest normal number have less precision.
        let precision = if top >= -1022 { 53 } else { 53 - (-1022 - top) };
        if precision < 0 {
            return sign * 0.0;
        }
        let cut = (BITS - precision) as usize;
        let mut kept = down(&self.limbs, cut)[0];
        let half = self.limbs[(cut - 1) / 64] >> ((cut - 1) % 64) & 1 == 1;
        let below = up(&self.limbs, LIMBS * 64 - cut + 1).iter().any(|&limb| limb != 0);
        if half && (below || kept & 1 == 1) {
            kept += 1;
        }
        let unit = top - precision + 1;
        let power = match unit {
            -1022.. => f64::from_bits(((unit + 1023) as u64) << 52),
            _ => f64::from_bits(1 << (unit + 1074)),
        };
        sign * (kept as f64 * power)
    }
}

/// ln y by its series, for y near 1.
fn near_one(y: Real) -> Real {
    let one = Real::from(1.0);
    let z = (y - one) / (y + one);
    if z.sign == 0 {
        return Real::ZERO;
    }
    // z² is at most 1/9.
    static ODD_PARTS: LazyLock<Vec<Real>> = LazyLock::new(|| {
        let odd = (0..BITS / 3 + 2).map(|k| Real::whole(2 * k as u64 + 1));
        odd.map(|odd| Real::from(1.0) / odd).collect()
    });
    let (mut sum, mut power) = (Real::ZERO, z);
    let square = z * z;
    for part in ODD_PARTS.iter() {
        if power.exponent <= z.exponent - BITS {
            break;
        }
        sum += power * *part;
        power *= square;
    }
    sum.times_power_of_two(1)
}

fn low_limb(value: u64) -> [u64; LIMBS] {
    let mut limbs = [0; LIMBS];
    limbs[0] = value;
    limbs
}

/// Shifts towards the top; bits beyond it are lost.
fn up(limbs: &[u64; LIMBS], by: usize) -> [u64; LIMBS] {
    let (whole, bits) = (by / 64, by % 64);
    std::array::from_fn(|k| {
        let at = |k: Option<usize>| k.and_then(|k| limbs.get(k)).copied().unwrap_or(0);
        let low = if bits == 0 { 0 } else { at(k.checked_sub(whole + 1)) >> (64 - bits) };
        at(k.checked_sub(whole)) << bits | low
    })
}

/// Shifts towards the bottom; bits below it are lost.
fn down(limbs: &[u64; LIMBS], by: usize) -> [u64; LIMBS] {
    let (whole, bits) = (by / 64, by % 64);
    std::array::from_fn(|k| {
        let at = |k: usize| limbs.get(k).copied().unwrap_or(0);
        let high = if bits == 0 { 0 } else { at(k + whole + 1) << (64 - bits) };
        at(k + whole) >> bits | high
    })
}

/// Adds, and returns whether a bit is carried beyond the top.
fn add(limbs: &mut [u64; LIMBS], other: &[u64; LIMBS]) -> bool {
    let mut carry = false;
    for (limb, &more) in limbs.iter_mut().zip(other) {
        let (sum, one) = limb.overflowing_add(more);
        let (sum, two) = sum.overflowing_add(u64::from(carry));
        (*limb, carry) = (sum, one || two);
    }
    carry
}

/// Subtracts a number that is no larger.
fn take(limbs: &mut [u64; LIMBS], other: &[u64; LIMBS]) {
    let mut borrow = false;
    for (limb, &less) in limbs.iter_mut().zip(other) {
        let (rest, one) = limb.overflowing_sub(less);
        let (rest, two) = rest.overflowing_sub(u64::from(borrow));
        (*limb, borrow) = (rest, one || two);
    }
}

impl fmt::Display for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_f64().fmt(f)
    }
}

impl From<f64> for Real {
    fn from(value: f64) -> Real {
        if value == f64::INFINITY {
            return Real::INFINITY;
        }
        assert!(value.is_finite(), "{value} is no number");
        let bits = value.abs().to_bits();
        let (biased, fraction) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
        let (mantissa, exponent) =
            if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
        let sign = if value < 0.0 { -1 } else { 1 };
        Real { sign, exponent, limbs: low_limb(mantissa) }.normal()
    }
}

impl Add for Real {
    type Output = Real;

    fn add(self, other: Real) -> Real {
        if !self.is_finite() || !other.is_finite() {
            return Real::INFINITY;
        }
        let (large, small) = if self.abs() < other.abs() { (other, self) } else { (self, other) };
        if small.sign == 0 || large.exponent - small.exponent >= BITS {
            return large;
        }
        let moved = down(&small.limbs, (large.exponent - small.exponent) as usize);
        let mut sum = large;
        if large.sign != small.sign {
            take(&mut sum.limbs, &moved);
            return sum.normal();
        }
        if add(&mut sum.limbs, &moved) {
            sum.limbs = down(&sum.limbs, 1);
            sum.limbs[LIMBS - 1] |= 1 << 63;
            sum.exponent += 1;
        }
        sum
    }
}

impl Neg for Real {
    type Output = Real;

    fn neg(self) -> Real {
        assert!(self.is_finite(), "less than any number");
        Real { sign: -self.sign, ..self }
    }
}

impl Sub for Real {
    type Output = Real;

    fn sub(self, other: Real) -> Real {
        self + -other
    }
}

impl Mul for Real {
    type Output = Real;

    fn mul(self, other: Real) -> Real {
        if self.sign == 0 || other.sign == 0 {
            return Real::ZERO;
        }
        if !self.is_finite() || !other.is_finite() {
            return Real::INFINITY;
        }
        let mut product = [0u64; 2 * LIMBS];
        // Doubles have a single limb that is not 0.
        let (few, many) = if other.limbs[LIMBS - 2] == 0 { (other, self) } else { (self, other) };
        for (i, &a) in few.limbs.iter().enumerate().filter(|(_, limb)| **limb != 0) {
            let mut carry = 0u128;
            for (j, &b) in many.limbs.iter().enumerate() {
                let sum = u128::from(a) * u128::from(b) + u128::from(product[i + j]) + carry;
                product[i + j] = sum as u64;
                carry = sum >> 64;
            }
            product[i + LIMBS] = carry as u64;
        }
        let mut exponent = self.exponent + other.exponent + BITS;
        let mut limbs: [u64; LIMBS] = product[LIMBS..].try_into().expect("half of them");
        if limbs[LIMBS - 1] >> 63 == 0 {
            limbs = up(&limbs, 1);
            limbs[0] |= product[LIMBS - 1] >> 63;
            exponent -= 1;
        }
        Real { sign: self.sign * other.sign, exponent, limbs }
    }
}

impl Div for Real {
    type Output = Real;

    fn div(self, other: Real) -> Real {
        if self.sign == 0 || !self.is_finite() {
            return self;
        }
        (self * other.inverse()).rounded()
    }
}

impl AddAssign for Real {
    fn add_assign(&mut self, other: Real) {
        *self = *self + other;
    }
}

impl MulAssign for Real {
    fn mul_assign(&mut self, other: Real) {
        *self = *self * other;
    }
}

impl Sum for Real {
    fn sum<I: Iterator<Item = Real>>(numbers: I) -> Real {
        numbers.fold(Real::ZERO, Real::add)
    }
}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Real) -> Option<Ordering> {
        let sizes = || {
            let limbs = self.limbs.iter().rev().cmp(other.limbs.iter().rev());
            let larger = self.exponent.cmp(&other.exponent).then(limbs);
            if self.sign > 0 { larger } else { larger.reverse() }
        };
        let signs = self.sign.cmp(&other.sign);
        Some(if self.sign == 0 { signs } else { signs.then_with(sizes) })
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Real) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialEq<f64> for Real {
    fn eq(&self, other: &f64) -> bool {
        *self == Real::from(*other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instances::Random;

    /// A number of decimal digits after the point.
    fn decimal(whole: u64, digits: &str) -> Real {
        let ten = Real::from(10.0);
        let (mut value, mut scale) = (Real::whole(whole), Real::from(1.0));
        for digit in digits.bytes() {
            value = value * ten + Real::whole(u64::from(digit - b'0'));
            scale *= ten;
        }
        value / scale
    }

    fn assert_near(one: Real, other: Real, bits: i64) {
        let off = (one - other).abs();
        let most = other.abs().times_power_of_two(-bits);
        assert!(off < most || off == 0.0, "{} and {}", one.to_f64(), other.to_f64());
    }

    #[test]
    fn logarithms_have_their_known_digits() {
        // Sixty digits of OEIS A002162, A002391 and A002392.
        let known = [
            (2.0, 0, "693147180559945309417232121458176568075500134360255254120680"),
            (3.0, 1, "098612288668109691395245236922525704647490557822749451734694"),
            (10.0, 2, "302585092994045684017991454684364207601101488628772976033327"),
        ];
        for (x, whole, digits) in known {
            let off = (Real::from(x).ln() - decimal(whole, digits)).abs();
            assert!(off < decimal(0, &format!("{}1", "0".repeat(59))), "{}", off.to_f64());
        }
        assert_eq!(Real::from(1.0).ln(), 0.0);
    }

    #[test]
    fn the_logarithm_of_a_product_is_the_sum() {
        let random = &mut Random::new(1);
        for _ in 0..200 {
            let mut number = || Real::from(10f64.powf(600.0 * random.unit() - 300.0));
            let (a, b) = (number(), number());
            assert_near((a * b).ln() - a.ln(), b.ln(), 470);
            assert_near((a * a).sqrt(), a, 495);
        }
    }

    #[test]
    fn sums_and_products_of_doubles_are_exact() {
        let random = &mut Random::new(2);
        let mut number = || Real::from((random.unit() - 0.5) * 10f64.powf(40.0 * random.unit()));
        for _ in 0..1000 {
            let (a, b, c) = (number(), number(), number());
            assert_eq!((a + b) * c, a * c + b * c);
            assert_eq!((a + b) + c - b - a, c);
            assert_eq!(a * b / b, a);
            assert_eq!((a + b) * (a - b), a * a - b * b);
        }
        let (huge, tiny) = (Real::from(1e60), Real::from(1e-60));
        assert_eq!(huge + tiny - huge, tiny);
    }

    #[test]
    fn doubles_come_back_and_halves_go_to_the_even_one() {
        let mut bits = Random::new(3);
        let values =
            (0..5000).map(|_| f64::from_bits(bits.bits())).filter(|value| value.is_finite());
        let odd = [0.0, 5e-324, 1e-310, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, -1.5];
        for value in values.chain(odd) {
            assert_eq!(Real::from(value).to_f64(), value);
        }
        let half = Real::from(1.0 / (1u64 << 53) as f64);
        let one = Real::from(1.0);
        assert_eq!((one + half).to_f64(), 1.0);
        assert_eq!((one + half + half + half).to_f64(), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!((one + half + Real::from(1e-60)).to_f64(), 1.0 + f64::EPSILON);
        assert_eq!((Real::from(5e-324) / Real::from(2.0)).to_f64(), 0.0);
        assert_eq!((Real::from(1.5e-323) / Real::from(2.0)).to_f64(), 1e-323);
        assert_eq!((Real::from(f64::MAX) + Real::from(f64::MAX)).to_f64(), f64::INFINITY);
    }

    #[test]
    fn rounding_is_that_of_the_processor() {
        let random = &mut Random::new(4);
        for _ in 0..5000 {
            let mut number = || random.unit() * 10f64.powf(200.0 * random.unit() - 180.0);
            let (a, b) = (number(), number() + 1e-200);
            let (x, y) = (Real::from(a), Real::from(b));
            assert_eq!((x * y).to_f64(), a * b);
            assert_eq!((x / y).to_f64(), a / b);
            assert_eq!((x - y).to_f64(), a - b);
            assert_eq!(x.sqrt().to_f64(), a.sqrt());
        }
    }

    #[test]
    fn numbers_are_ordered() {
        let ascending = [-1e300, -2.0, -1.0, -5e-324, 0.0, 1e-300, 1.0, 1.5, 2.0, f64::INFINITY];
        for pair in ascending.windows(2) {
            assert!(Real::from(pair[0]) < Real::from(pair[1]), "{pair:?}");
        }
        assert!(Real::from(1.0) + Real::from(1e-100) > Real::from(1.0));
        let (more, two) = (Real::INFINITY, Real::from(2.0));
        assert!([more / two, more * two, more + two, two + more].iter().all(|one| *one == more));
    }
}
