//! Lanes: vectors whose arithmetic is safe, since only a token of their instruction set makes
//! them.

use super::vector::{self, Vector};
use super::{Job, LaneInt, LaneReal};
use std::ops::{Add, Div, Mul, Sub};

/// Implemented by the tokens of this crate only.
pub trait Sealed {}

/// The token of an instruction set and a width: integers to add exactly, losses to compare.
///
/// Whoever holds it may make vectors; whoever holds a vector may calculate with it. Methods are
/// inlined, so that they belong in a [`Job`], which is compiled for the instruction set.
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

    /// Runs a job that is compiled for the instruction set, in a function of its own.
    fn run<J: Job<Self>>(self, job: J) -> J::Output;

    fn splat(self, v: Self::I) -> Self::Int;
    fn splat_real(self, v: Self::R) -> Self::Real;

    /// The lanes that `from` begins with.
    #[inline(always)]
    fn load(self, from: &[Self::I]) -> Self::Int {
        load(self, from)
    }

    /// The lanes that `from` begins with.
    #[inline(always)]
    fn load_real(self, from: &[Self::R]) -> Self::Real {
        load(self, from)
    }

    /// The lanes from position `at` of `from` on, unchecked.
    ///
    /// # Safety
    /// `at + N <= from.len()`
    #[inline(always)]
    unsafe fn load_at(self, from: &[Self::I], at: usize) -> Self::Int {
        // SAFETY: the caller's; the token is proof of the instruction set.
        unsafe { vector::load_at(from, at) }
    }

    /// The lanes from position `at` of `from` on, unchecked.
    ///
    /// # Safety
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

/// Lanes of floating-point losses, which leaves of any task have.
pub trait FloatLanes:
    Lanes<Real: Sub<Output = <Self as Lanes>::Real> + Div<Output = <Self as Lanes>::Real>>
{
    /// Bit (lowest bit = first lane) of each lane where `a < b`.
    fn less_bits(a: Self::Real, b: Self::Real) -> u64;
    /// ln(a/b) + shift for positive a and b; any finite value otherwise.
    fn ln_ratio(a: Self::Real, b: Self::Real, shift: Self::Real) -> Self::Real;
}

/// The vector that `from` begins with, of any of a token's vectors.
#[inline(always)]
pub(super) fn load<L: Lanes, T: Copy, V: Vector<T>>(_: L, from: &[T]) -> V {
    assert!(from.len() >= V::N);
    // SAFETY: asserted; the token is proof of the instruction set.
    unsafe { vector::load_at(from, 0) }
}

/// Wide lanes for kernels that walk over rows: masked sums, and 16-bit counters.
///
/// There are at most 8 lanes, and at most 32 of counters.
#[allow(missing_docs)] // the names say it all
pub trait RowLanes: FloatLanes<I = i64, R = f64> {
    type Counts: Vector<u16> + Add<Output = Self::Counts> + Sub<Output = Self::Counts>;
    const COUNTERS: usize = <Self::Counts as Vector<u16>>::N;
    /// Vectors at a time, as many as registers hold; 1 or 2.
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
    /// N counters as reals.
    fn load_counts(self, from: &[u16]) -> Self::Real;
    /// Adds `v` to the counters whose bit is set.
    fn count_where(acc: Self::Counts, bits: u32, v: u16) -> Self::Counts;

    /// The counters that `from` begins with.
    #[inline(always)]
    fn load_all(self, from: &[u16]) -> Self::Counts {
        load(self, from)
    }

    /// Bit for each counter that is neither below `least` nor above `most`.
    #[inline(always)]
    fn between(counts: Self::Counts, least: u16, most: u16) -> u32 {
        let mut values = [0; 32];
        counts.store(&mut values);
        let bit = |(lane, n)| u32::from((least..=most).contains(n)) << lane;
        values[..Self::COUNTERS].iter().enumerate().map(bit).sum()
    }

    /// The bits of `bits` where `mask` is set, next to each other from the lowest on.
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

    /// From these rows of `width` counters (COUNTERS or 64 at most), writes those where `keep`
    /// is set to the begin of the row in `to`, in order.
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

    /// Writes `base` + position for every set bit, and returns how many; `out` has room for 80.
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
