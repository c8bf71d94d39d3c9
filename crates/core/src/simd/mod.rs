//! The few vector operations of the lattice kernels, behind one small trait.
//!
//! A kernel is written once over [`Lanes`] and compiled for AVX-512, AVX2 and portable
//! code, each in single (i32/f32) and double (i64/f64) width. Integer sums are exact on
//! every backend, so backends differ only in the rounding of leaf losses, which the
//! refinement step absorbs (see `search::lattice::refine`).

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
pub mod portable;
pub mod reals;

use std::fmt;

/// Integer of a lane.
pub trait LaneInt: Copy + Send + Sync + Default + PartialOrd + fmt::Debug + 'static {
    /// Largest sum that a lane adds up and converts without loss.
    const MAX_SUM: i64;
    /// From an exact statistic known to fit.
    fn from_i64(v: i64) -> Self;
    /// Widens.
    fn to_i64(self) -> i64;
    /// Difference.
    fn minus(self, other: Self) -> Self;
}

impl LaneInt for i32 {
    const MAX_SUM: i64 = i32::MAX as i64;
    #[inline(always)]
    fn from_i64(v: i64) -> Self {
        v as i32
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        i64::from(self)
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}

impl LaneInt for i64 {
    /// The AVX2 conversion to f64 is exact below 2^52.
    const MAX_SUM: i64 = 1 << 51;
    #[inline(always)]
    fn from_i64(v: i64) -> Self {
        v
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}

/// Real of a lane.
pub trait LaneReal: Copy + Default + Send + Sync + PartialOrd + fmt::Debug + 'static {
    /// Rounds to the lane's precision.
    fn from_f64(v: f64) -> Self;
    /// Widens, exactly.
    fn to_f64(self) -> f64;
    /// Unit roundoff.
    const ROUNDOFF: f64;
    /// Bound on the absolute error of `Lanes::ln_ratio` for integers converted to reals,
    /// apart from two roundings relative to the result and three relative to the shift
    /// (its own conversion included).
    const LN_ERROR: f64;
    /// +∞.
    const INFINITY: Self;
}

impl LaneReal for f32 {
    const ROUNDOFF: f64 = 5.960_464_477_539_063e-8;
    // 1.3e-6 of the polynomial, 0.7e-6 of conversions, reciprocal and evaluation.
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

/// A vector of lanes: integers to add exactly, reals to compare.
///
/// # Safety
/// Every method requires the instruction set of the implementing type, and pointers valid
/// for [`Lanes::N`] elements. Methods are inlined into functions that enable it.
#[allow(missing_docs)] // the names say it all
#[allow(clippy::missing_safety_doc)]
pub trait Lanes: Copy + 'static {
    /// Number of lanes.
    const N: usize;
    type I: LaneInt;
    type R: LaneReal;
    type Int: Copy;
    type Real: Copy;
    /// A narrower vector over the same elements, for tails; `Self` where there is none.
    type Half: Lanes<I = Self::I, R = Self::R>;

    unsafe fn load(p: *const Self::I) -> Self::Int;
    unsafe fn store(p: *mut Self::I, v: Self::Int);
    unsafe fn splat(v: Self::I) -> Self::Int;
    unsafe fn add(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn sub(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn max(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn min(a: Self::Int, b: Self::Int) -> Self::Int;
    /// Adds `v` in the lanes whose bit (lowest bit = first lane) is set.
    unsafe fn add_where(acc: Self::Int, bits: u64, v: Self::I) -> Self::Int;
    /// `a < b ? yes : no`, lane by lane.
    unsafe fn if_less(a: Self::Int, b: Self::Int, yes: Self::Real, no: Self::Real) -> Self::Real;
    /// Conversion, for integers in `[−MAX_SUM, MAX_SUM]`.
    unsafe fn to_real(v: Self::Int) -> Self::Real;

    unsafe fn load_real(p: *const Self::R) -> Self::Real;
    unsafe fn store_real(p: *mut Self::R, v: Self::Real);
    unsafe fn splat_real(v: Self::R) -> Self::Real;
    unsafe fn add_real(a: Self::Real, b: Self::Real) -> Self::Real;
    unsafe fn mul_real(a: Self::Real, b: Self::Real) -> Self::Real;
    unsafe fn div_real(a: Self::Real, b: Self::Real) -> Self::Real;
    unsafe fn min_real(a: Self::Real, b: Self::Real) -> Self::Real;
    /// ln(a/b) + shift for positive a and b; any finite value otherwise.
    unsafe fn ln_ratio(a: Self::Real, b: Self::Real, shift: Self::Real) -> Self::Real;
    /// Minimum over the lanes of each of the first `n` vectors.
    unsafe fn min_across(v: &[Self::Real; 8], n: usize, out: &mut [Self::R; 8]);
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

/// Bits of √½: subtracting them before taking the exponent centres the mantissa on 1.
pub(crate) const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;

/// Instruction set chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// 512-bit vectors with lane masks (F, BW, DQ, VL).
    Avx512,
    /// 256-bit vectors with FMA.
    Avx2,
    /// Plain Rust, any machine.
    Portable,
}

impl Backend {
    /// The backends this machine runs, fastest first.
    pub fn available() -> Vec<Backend> {
        #[allow(unused_mut)]
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt")
                && is_x86_feature_detected!("fma")
            {
                all.push(Backend::Avx512);
            }
            if is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt")
            {
                all.push(Backend::Avx2);
            }
        }
        all.push(Backend::Portable);
        all
    }

    /// Lower-case name, as in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Avx512 => "avx512",
            Backend::Avx2 => "avx2",
            Backend::Portable => "portable",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every operation of a backend against scalar arithmetic.
    ///
    /// # Safety
    /// The machine must have the instruction set of `L`.
    unsafe fn check<L: Lanes>() {
        let n = L::N;
        let ints = |f: &dyn Fn(usize) -> i64| -> Vec<L::I> {
            (0..16).map(|i| L::I::from_i64(f(i))).collect()
        };
        let a = ints(&|i| (i * i * 31 + 5) as i64);
        let b = ints(&|i| (900 - i * 57) as i64);
        let mut out = ints(&|_| 0);
        // SAFETY: the caller vouches for the instruction set; all buffers hold 16 lanes.
        unsafe {
            let (va, vb) = (L::load(a.as_ptr()), L::load(b.as_ptr()));
            let mut expect = |v: L::Int, f: &dyn Fn(usize) -> i64| {
                L::store(out.as_mut_ptr(), v);
                assert_eq!(out[..n], ints(f)[..n]);
            };
            let (fa, fb) = (|i: usize| (i * i * 31 + 5) as i64, |i: usize| (900 - i * 57) as i64);
            expect(L::add(va, vb), &|i| fa(i) + fb(i));
            expect(L::sub(va, vb), &|i| fa(i) - fb(i));
            expect(L::max(va, vb), &|i| fa(i).max(fb(i)));
            expect(L::min(va, vb), &|i| fa(i).min(fb(i)));
            expect(L::add_where(va, 0b1010_0110_1100_0101, L::I::from_i64(1000)), &|i| {
                fa(i) + 1000 * (0b1010_0110_1100_0101 >> i & 1)
            });
            let mut reals = vec![L::R::from_f64(0.0); 16];
            let (one, two) =
                (L::splat_real(L::R::from_f64(1.0)), L::splat_real(L::R::from_f64(2.0)));
            L::store_real(reals.as_mut_ptr(), L::if_less(va, vb, one, two));
            for i in 0..n {
                assert_eq!(reals[i].to_f64(), if fa(i) < fb(i) { 1.0 } else { 2.0 });
            }
            let mut state = 1u64;
            for _ in 0..20_000 {
                // Integers up to 2^31, and shifts up to those that cancel their ratio.
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (a, b) = ((state >> 33) as f64 + 1.0, (state >> 50) as f64 + 1.0);
                for shift in [0.25, -21.3, f64::ln(b / a) + 0.1] {
                    let splat = |v| L::splat_real(L::R::from_f64(v));
                    let value = L::ln_ratio(splat(a), splat(b), splat(shift));
                    L::store_real(reals.as_mut_ptr(), value);
                    let exact = f64::ln(a / b) + shift;
                    let relative = 2.0 * exact.abs() + 3.0 * shift.abs();
                    // The scalar reference rounds as well.
                    let reference = 3e-16 * (1.0 + exact.abs() + shift.abs());
                    let bound = L::R::LN_ERROR + L::R::ROUNDOFF * relative + reference;
                    let error = (reals[0].to_f64() - exact).abs();
                    assert!(error <= bound, "ln({a} / {b}) + {shift}: off by {error:e}");
                }
            }
            // The loss of an empty or event-free cell is weight 0 times a finite number.
            for (x, y) in [(0.0, 0.0), (5.0, 0.0), (0.0, 5.0)] {
                let splat = |v| L::splat_real(L::R::from_f64(v));
                let zero = splat(0.0);
                let product = L::mul_real(zero, L::ln_ratio(splat(x), splat(y), zero));
                L::store_real(reals.as_mut_ptr(), product);
                assert_eq!(reals[n - 1].to_f64(), 0.0);
            }
            let mut rows = [one; 8];
            for (r, row) in rows.iter_mut().enumerate() {
                let values: Vec<L::R> =
                    (0..16).map(|i| L::R::from_f64(((i * 7 + r * 3) % 11) as f64)).collect();
                *row = L::load_real(values.as_ptr());
            }
            let mut least = [L::R::INFINITY; 8];
            L::min_across(&rows, 8, &mut least);
            for (r, v) in least.iter().enumerate() {
                let expected = (0..n).map(|i| (i * 7 + r * 3) % 11).min().unwrap();
                assert_eq!(v.to_f64(), expected as f64);
            }
            for sum in [L::I::MAX_SUM - 12345, 12345 - L::I::MAX_SUM, -1, 0, 1] {
                let exact = sum as f64;
                let lanes = ints(&|_| sum);
                let real = L::to_real(L::load(lanes.as_ptr()));
                L::store_real(reals.as_mut_ptr(), real);
                assert!((reals[0].to_f64() - exact).abs() <= exact.abs() * L::R::ROUNDOFF);
                let three = L::splat_real(L::R::from_f64(3.0));
                L::store_real(reals.as_mut_ptr(), L::div_real(real, three));
                let error = (reals[n - 1].to_f64() - exact / 3.0).abs();
                assert!(error <= exact.abs() * L::R::ROUNDOFF);
            }
        }
    }

    #[test]
    fn every_backend_computes_what_scalars_do() {
        for backend in Backend::available() {
            // SAFETY: only backends that this machine has are listed.
            unsafe {
                match backend {
                    #[cfg(target_arch = "x86_64")]
                    Backend::Avx512 => {
                        check::<avx512::Single>();
                        check::<avx512::SingleHalf>();
                        check::<avx512::Double>();
                    }
                    #[cfg(target_arch = "x86_64")]
                    Backend::Avx2 => {
                        check::<avx2::Single>();
                        check::<avx2::Double>();
                    }
                    _ => {
                        check::<portable::Single>();
                        check::<portable::Double>();
                    }
                }
            }
            println!("kernel tested: {}", backend.name());
        }
    }
}
