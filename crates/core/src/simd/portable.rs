//! Plain Rust: arrays, which the compiler vectorises as well as the target allows.

use super::isa::Job;
use super::lanes::{FloatLanes, Lanes, RowLanes, Sealed};
use super::vector::Vector;
use super::{ATANH_F64, LN_POLY_F32, Whole};
use std::ops::{Add, Div, Mul, Sub};

/// The token that every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portable;

impl Portable {
    /// Lanes of 16-bit whole numbers.
    pub fn short(self) -> Short {
        Short
    }

    /// Lanes of i32/f32.
    pub fn single(self) -> Single {
        Single
    }

    /// Lanes of i64/f64.
    pub fn double(self) -> Double {
        Double
    }
}

/// Eight lanes of 16-bit whole numbers.
#[derive(Clone, Copy, Debug)]
pub struct Short;

/// Eight lanes of i32/f32.
#[derive(Clone, Copy, Debug)]
pub struct Single;

/// Four lanes of i64/f64.
#[derive(Clone, Copy, Debug)]
pub struct Double;

/// Lanes of any type.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Array<T, const N: usize>([T; N]);

impl<T: Copy, const N: usize> Array<T, N> {
    /// Applies a function to each lane.
    #[inline(always)]
    fn map<U>(self, f: impl Fn(T) -> U) -> Array<U, N> {
        Array(self.0.map(f))
    }

    /// Applies a function to each pair of lanes.
    #[inline(always)]
    fn zip<U>(self, other: Self, f: impl Fn(T, T) -> U) -> Array<U, N> {
        Array(std::array::from_fn(|l| f(self.0[l], other.0[l])))
    }

    /// Applies a function to each lane and its bit.
    #[inline(always)]
    fn masked(self, bits: u64, f: impl Fn(T, bool) -> T) -> Self {
        Array(std::array::from_fn(|l| f(self.0[l], bits >> l & 1 == 1)))
    }
}

// SAFETY: an array consists of its elements.
unsafe impl<T: Copy, const N: usize> Vector<T> for Array<T, N> {}

macro_rules! operator {
    ($op:ident $method:ident: $($type:ty, $by:expr;)+) => {$(
        impl<const N: usize> $op for Array<$type, N> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.zip(other, $by)
            }
        }
    )+};
}

operator!(Add add: i32, i32::wrapping_add; i64, i64::wrapping_add; u16, u16::wrapping_add;
    Whole, Whole::plus; f32, |a, b| a + b; f64, |a, b| a + b;);
operator!(Sub sub: i32, i32::wrapping_sub; i64, i64::wrapping_sub; u16, u16::wrapping_sub;
    f32, |a, b| a - b; f64, |a, b| a - b;);
operator!(Mul mul: Whole, Whole::times; f32, |a, b| a * b; f64, |a, b| a * b;);
operator!(Div div: f32, |a, b| a / b; f64, |a, b| a / b;);

#[inline(always)]
fn ln_ratio_f32(a: f32, b: f32, shift: f32) -> f32 {
    let bits = (a / b).to_bits();
    let exponent = (bits >> 23) as i32 - 127;
    let t = f32::from_bits((bits & 0x007f_ffff) | 0x3f80_0000) - 1.0;
    let mut p = LN_POLY_F32[6];
    for k in (0..6).rev() {
        p = p * t + LN_POLY_F32[k];
    }
    (p + shift) + exponent as f32 * std::f32::consts::LN_2
}

#[inline(always)]
fn ln_ratio_f64(a: f64, b: f64, shift: f64) -> f64 {
    let bits = (a / b).to_bits();
    let exponent = (bits.wrapping_sub(super::SQRT_HALF_BITS) as i64) >> 52;
    let m = f64::from_bits(bits.wrapping_sub((exponent << 52) as u64));
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut p = ATANH_F64[10];
    for k in (0..10).rev() {
        p = p * s2 + ATANH_F64[k];
    }
    let value = (s * p + shift) + exponent as f64 * std::f64::consts::LN_2;
    if a > 0.0 && b > 0.0 { value } else { 0.0 }
}

macro_rules! lanes {
    ($name:ident, $n:literal, $i:ty, $r:ty, $real:expr) => {
        impl Sealed for $name {}

        impl Lanes for $name {
            type I = $i;
            type R = $r;
            type Int = Array<$i, $n>;
            type Real = Array<$r, $n>;
            type Half = Self;

            #[inline(always)]
            fn half(self) -> Self {
                self
            }
            #[inline(never)]
            fn run<J: Job<Self>>(self, job: J) -> J::Output {
                job.run(self)
            }
            #[inline(always)]
            fn splat(self, v: $i) -> Self::Int {
                Array([v; $n])
            }
            #[inline(always)]
            fn splat_real(self, v: $r) -> Self::Real {
                Array([v; $n])
            }
            #[inline(always)]
            fn max(a: Self::Int, b: Self::Int) -> Self::Int {
                a.zip(b, Ord::max)
            }
            #[inline(always)]
            fn min(a: Self::Int, b: Self::Int) -> Self::Int {
                a.zip(b, Ord::min)
            }
            #[inline(always)]
            fn add_where(acc: Self::Int, bits: u64, v: $i) -> Self::Int {
                acc.masked(bits, |a, set| a.wrapping_add(v & <$i>::from(set).wrapping_neg()))
            }
            #[inline(always)]
            fn if_less(a: Self::Int, b: Self::Int, yes: Self::Real, no: Self::Real) -> Self::Real {
                let less = a.zip(b, |a, b| a < b).0;
                Array(std::array::from_fn(|l| if less[l] { yes.0[l] } else { no.0[l] }))
            }
            #[inline(always)]
            fn to_real(v: Self::Int) -> Self::Real {
                v.map($real)
            }
            #[inline(always)]
            fn min_real(a: Self::Real, b: Self::Real) -> Self::Real {
                a.zip(b, |a, b| if a < b { a } else { b })
            }
            #[inline(always)]
            fn min_across(v: &[Self::Real; 8], n: usize, out: &mut [$r; 8]) {
                for (least, lanes) in out.iter_mut().zip(v).take(n) {
                    *least = lanes.0[0];
                    lanes.0[1..].iter().for_each(|&v| *least = if v < *least { v } else { *least });
                }
            }
        }
    };
}

macro_rules! floats {
    ($name:ident, $n:literal, $ln:ident) => {
        impl FloatLanes for $name {
            #[inline(always)]
            fn less_bits(a: Self::Real, b: Self::Real) -> u64 {
                (0..$n).map(|l| u64::from(a.0[l] < b.0[l]) << l).sum()
            }
            #[inline(always)]
            fn ln_ratio(a: Self::Real, b: Self::Real, shift: Self::Real) -> Self::Real {
                Array(std::array::from_fn(|l| $ln(a.0[l], b.0[l], shift.0[l])))
            }
        }
    };
}

lanes!(Short, 8, u16, Whole, Whole);
lanes!(Single, 8, i32, f32, |x| x as f32);
lanes!(Double, 4, i64, f64, |x| x as f64);
floats!(Single, 8, ln_ratio_f32);
floats!(Double, 4, ln_ratio_f64);

impl RowLanes for Double {
    type Counts = Array<u16, 16>;

    #[inline(always)]
    fn add_real_where(acc: Self::Real, bits: u32, v: f64) -> Self::Real {
        acc.masked(bits.into(), |a, set| a + if set { v } else { 0.0 })
    }
    #[inline(always)]
    fn reciprocal(x: Self::Real) -> Self::Real {
        x.map(f64::recip)
    }
    #[inline(always)]
    fn max_real(a: Self::Real, b: Self::Real) -> Self::Real {
        a.zip(b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn mul_add(a: Self::Real, b: Self::Real, c: Self::Real) -> Self::Real {
        a * b + c
    }
    #[inline(always)]
    fn if_positive(x: Self::Real, yes: Self::Real, no: Self::Real) -> Self::Real {
        Array(std::array::from_fn(|l| if x.0[l] > 0.0 { yes.0[l] } else { no.0[l] }))
    }
    #[inline(always)]
    fn no_counts(self) -> Self::Counts {
        Array([0; 16])
    }
    #[inline(always)]
    fn load_counts(self, from: &[u16]) -> Self::Real {
        Array(*from.first_chunk().expect("as many counters as lanes")).map(f64::from)
    }
    #[inline(always)]
    fn count_where(acc: Self::Counts, bits: u32, v: u16) -> Self::Counts {
        acc.masked(bits.into(), |n, set| n.wrapping_add(v & u16::from(set).wrapping_neg()))
    }
}
