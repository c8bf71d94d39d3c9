//! The vector operations of the kernels, behind two small traits.
//!
//! A kernel is written once over [`Lanes`] (or [`RowLanes`]) and compiled for AVX-512, AVX2 and
//! portable code. Kernels of the lattice exist in single (i32/f32) and double (i64/f64) width, and
//! in short width (16-bit whole numbers) for tasks whose leaf costs the least of its sums. Integer
//! sums are exact on every backend, so backends differ only in the rounding of leaf losses, which
//! the refinement step absorbs (see `search::lattice::refine`).
//!
//! Only detection makes the token of an instruction set, and only a token makes vectors, so
//! arithmetic on vectors is safe (docs/decisions/0022). Another instruction set needs one file and
//! one line in `backend.rs`.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod backend;
mod isa;
mod lanes;
mod portable;
#[cfg(test)]
mod tests;
mod vector;

pub use backend::Backend;
pub(crate) use backend::{Kind, with_token};
pub use isa::Job;
pub use lanes::{FloatLanes, Lanes, RowLanes};
use std::fmt;
pub use vector::Vector;

/// Prefetches the memory at `place`. Any address is allowed.
#[inline(always)]
pub fn prefetch<V>(place: *const V) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint and reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Integer type of a lane.
pub trait LaneInt: Copy + Send + Sync + Default + PartialOrd + fmt::Debug + 'static {
    /// Largest sum that a lane can add up and convert without loss.
    const MAX_SUM: i64;
    /// Converts an exact statistic that is known to fit.
    fn from_i64(v: i64) -> Self;
    /// Converts to i64.
    fn to_i64(self) -> i64;
    /// Difference.
    fn minus(self, other: Self) -> Self;
}

macro_rules! lane_int {
    ($int:ty, $most:expr) => {
        impl LaneInt for $int {
            const MAX_SUM: i64 = $most;
            #[inline(always)]
            fn from_i64(v: i64) -> Self {
                v as $int
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    };
}

lane_int!(u16, u16::MAX as i64);
lane_int!(i32, i32::MAX as i64);
// The AVX2 conversion to f64 is exact below 2^52.
lane_int!(i64, 1 << 51);

/// Type of a loss in a lane.
pub trait LaneReal: Copy + Default + Send + Sync + PartialOrd + fmt::Debug + 'static {
    /// Rounds to the precision of the lane.
    fn from_f64(v: f64) -> Self;
    /// Converts to f64, exactly.
    fn to_f64(self) -> f64;
    /// Unit roundoff.
    const ROUNDOFF: f64;
    /// Bound on the absolute error of `Lanes::ln_ratio` for integers that were converted to reals,
    /// without two roundings relative to the result and three relative to the shift (including its
    /// own conversion).
    const LN_ERROR: f64;
    /// +∞.
    const INFINITY: Self;
}

/// A loss that is a 16-bit unsigned whole number. The largest value stands for infinity, and sums
/// saturate at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Whole(u16);

impl Whole {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Whole(self.0.saturating_add(other.0))
    }

    /// The low half of the product.
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Whole(self.0.wrapping_mul(other.0))
    }
}

impl LaneReal for Whole {
    const ROUNDOFF: f64 = 0.0;
    /// These lanes have no logarithm.
    const LN_ERROR: f64 = 0.0;
    const INFINITY: Whole = Whole(u16::MAX);
    #[inline(always)]
    fn from_f64(v: f64) -> Whole {
        Whole(v as u16)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        if self == Whole::INFINITY { f64::INFINITY } else { f64::from(self.0) }
    }
}

impl LaneReal for f32 {
    const ROUNDOFF: f64 = 5.960_464_477_539_063e-8;
    // 1.3e-6 from the polynomial, 0.7e-6 from conversions, reciprocal and evaluation.
    const LN_ERROR: f64 = 2.5e-6;
    const INFINITY: f32 = f32::INFINITY;
    #[inline(always)]
    fn from_f64(v: f64) -> f32 {
        v as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl LaneReal for f64 {
    const ROUNDOFF: f64 = 1.110_223_024_625_156_5e-16;
    const LN_ERROR: f64 = 4e-15;
    const INFINITY: f64 = f64::INFINITY;
    #[inline(always)]
    fn from_f64(v: f64) -> f64 {
        v
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
}

/// Degree-6 near-minimax polynomial of ln(1 + t) on [0, 1): error below 1.4e-6.
pub(crate) const LN_POLY_F32: [f32; 7] = [
    1.279_579_6e-6,
    0.999_861_54,
    -0.497_534_63,
    0.316_435_72,
    -0.191_681_49,
    0.083_870_605,
    -0.017_807_113,
];

/// Coefficients 2/(2k+1) of ln((1+s)/(1−s)) = Σ 2/(2k+1)·s^(2k+1), |s| ≤ 0.172.
pub(crate) const ATANH_F64: [f64; 11] = [
    2.0,
    2.0 / 3.0,
    2.0 / 5.0,
    2.0 / 7.0,
    2.0 / 9.0,
    2.0 / 11.0,
    2.0 / 13.0,
    2.0 / 15.0,
    2.0 / 17.0,
    2.0 / 19.0,
    2.0 / 21.0,
];

/// Bits of √½. Subtracting them before reading the exponent centres the mantissa on 1.
pub(crate) const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
