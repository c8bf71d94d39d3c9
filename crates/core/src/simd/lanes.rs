//! Lanes: vectors with safe arithmetic, because only a token of their instruction set can make
//! them.

use super::vector::{self, Vector};
use super::{Job, LaneInt, LaneReal};
use std::ops::{Add, Div, Mul, Sub};

/// Implemented only by the tokens of this crate.
pub trait Sealed {}

/// The token of an instruction set and a width: integers that are added exactly, and losses that
/// are compared.
///
/// A token can make vectors, and vectors can be calculated with. The methods are inlined, so they
/// must be called from a [`Job`], which is compiled for the instruction set.
#[allow(missing_docs)] // the names say it all
pub trait Lanes: Sealed + Copy + 'static {
    /// Number of lanes.
    const N: usize = <Self::Int as Vector<Self::I>>::N;
    type I: LaneInt;
    type R: LaneReal;
    type Int: Vector<Self::I> + Add<Output = Self::Int> + Sub<Output = Self::Int>;
    type Real: Vector<Self::R> + Add<Output = Self::Real> + Mul<Output = Self::Real>;
    /// A narrower vector over the same elements, for tails; `Self` where there is none.
    type Half: Lanes<I = Self::I, R = Self::R>;

    fn half(self) -> Self::Half;

    /// Runs a job in a separate function that is compiled for the instruction set.
    fn run<J: Job<Self>>(self, job: J) -> J::Output;

    fn splat(self, v: Self::I) -> Self::Int;
    fn splat_real(self, v: Self::R) -> Self::Real;

    /// The first lanes of `from`.
    #[inline(always)]
    fn load(self, from: &[Self::I]) -> Self::Int {
        load(self, from)
    }

    /// The first lanes of `from`.
    #[inline(always)]
    fn load_real(self, from: &[Self::R]) -> Self::Real {
        load(self, from)
    }

    /// The lanes of `from` that start at position `at`, unchecked.
    ///
    /// # Safety
    ///
    /// `at + N <= from.len()`
    #[inline(always)]
    unsafe fn load_at(self, from: &[Self::I], at: usize) -> Self::Int {
        // SAFETY: as the caller promises; the token shows that the instruction set is there.
        unsafe { vector::load_at(from, at) }
    }

    /// The lanes of `from` that start at position `at`, unchecked.
    ///
    /// # Safety
    ///
    /// `at + N <= from.len()`
    #[inline(always)]
    unsafe fn load_real_at(self, from: &[Self::R], at: usize) -> Self::Real {
        // SAFETY: as above.
        unsafe { vector::load_at(from, at) }
    }

    fn max(a: Self::Int, b: Self::Int) -> Self::Int;
    fn min(a: Self::Int, b: Self::Int) -> Self::Int;
    /// Adds `v` in the lanes whose bit (lowest bit = first lane) is set.
    fn add_where(acc: Self::Int, bits: u64, v: Self::I) -> Self::Int;
    /// `a < b ? yes : no`, lane by lane.
    fn if_less(a: Self::Int, b: Self::Int, yes: Self::Real, no: Self::Real) -> Self::Real;
    /// Conversion, for integers in `[−MAX_SUM, MAX_SUM]`.
    fn to_real(v: Self::Int) -> Self::Real;
    fn min_real(a: Self::Real, b: Self::Real) -> Self::Real;
    /// Minimum over the lanes of each of the first `n` vectors.
    fn min_across(v: &[Self::Real; 8], n: usize, out: &mut [Self::R; 8]);
}

/// Lanes of floating-point losses, as most tasks have them.
pub trait FloatLanes:
    Lanes<Real: Sub<Output = <Self as Lanes>::Real> + Div<Output = <Self as Lanes>::Real>>
{
    /// Bit (lowest bit = first lane) of each lane where `a < b`.
    fn less_bits(a: Self::Real, b: Self::Real) -> u64;
    /// ln(a/b) + shift for positive a and b; some finite value otherwise.
    fn ln_ratio(a: Self::Real, b: Self::Real, shift: Self::Real) -> Self::Real;
}

/// The first lanes of `from`, for any vector of a token.
#[inline(always)]
pub(super) fn load<L: Lanes, T: Copy, V: Vector<T>>(_: L, from: &[T]) -> V {
    assert!(from.len() >= V::N);
    // SAFETY: asserted; the token shows that the instruction set is there.
    unsafe { vector::load_at(from, 0) }
}

/// Wide lanes for kernels that walk over rows: masked sums and 16-bit counters.
///
/// There are at most 8 lanes, and at most 32 counters.
#[allow(missing_docs)] // the names say it all
pub trait RowLanes: FloatLanes<I = i64, R = f64> {
    type Counts: Vector<u16> + Add<Output = Self::Counts> + Sub<Output = Self::Counts>;
    const COUNTERS: usize = <Self::Counts as Vector<u16>>::N;
    /// Number of vectors that fit into the registers at a time; 1 or 2.
    const WIDE: usize = 1;

    /// Adds `v` in the lanes whose bit (lowest bit = first lane) is set.
    fn add_real_where(acc: Self::Real, bits: u32, v: f64) -> Self::Real;
    /// 1/x for 1 ≤ x < 2^53, to within 1.2 · 2^-53 of itself.
    fn reciprocal(x: Self::Real) -> Self::Real;
    fn max_real(a: Self::Real, b: Self::Real) -> Self::Real;
    /// a·b + c, rounded once or twice.
    fn mul_add(a: Self::Real, b: Self::Real, c: Self::Real) -> Self::Real;
    /// `x > 0 ? yes : no`, lane by lane.
    fn if_positive(x: Self::Real, yes: Self::Real, no: Self::Real) -> Self::Real;

    fn no_counts(self) -> Self::Counts;
    /// Converts N counters to reals.
    fn load_counts(self, from: &[u16]) -> Self::Real;
    /// Adds `v` to the counters whose bit is set.
    fn count_where(acc: Self::Counts, bits: u32, v: u16) -> Self::Counts;

    /// The first counters of `from`.
    #[inline(always)]
    fn load_all(self, from: &[u16]) -> Self::Counts {
        load(self, from)
    }

    /// Bit for each counter from `least` to `most`, both included.
    #[inline(always)]
    fn between(counts: Self::Counts, least: u16, most: u16) -> u32 {
        let mut values = [0; 32];
        counts.store(&mut values);
        let bit = |(lane, n)| u32::from((least..=most).contains(n)) << lane;
        values[..Self::COUNTERS].iter().enumerate().map(bit).sum()
    }

    /// The bits of `bits` where `mask` is set, packed from the lowest bit on.
    #[inline(always)]
    fn compact(self, bits: u64, mask: u64) -> u64 {
        let (mut out, mut left, mut n) = (0, mask, 0);
        while left != 0 {
            out |= (bits >> left.trailing_zeros() & 1) << n;
            left &= left - 1;
            n += 1;
        }
        out
    }

    /// From each of the given rows of `width` counters (COUNTERS or at most 64), writes those where
    /// `keep` is set to the start of the same row in `to`, in order.
    #[inline(always)]
    fn narrow(self, from: &[u16], to: &mut [u16], rows: &[u32], width: usize, keep: u64) {
        for &row in rows {
            let at = row as usize * width;
            let (from, to) = (&from[at..][..width], &mut to[at..][..width]);
            let (mut left, mut n) = (keep, 0);
            while left != 0 {
                to[n] = from[left.trailing_zeros() as usize];
                left &= left - 1;
                n += 1;
            }
        }
    }

    /// Writes `base` + position for every set bit and returns their number; `out` has room for 80.
    #[inline(always)]
    fn positions(self, bits: u64, base: u32, out: &mut [u32]) -> usize {
        let (mut left, mut n) = (bits, 0);
        while left != 0 {
            out[n] = base + left.trailing_zeros();
            left &= left - 1;
            n += 1;
        }
        n
    }
}
