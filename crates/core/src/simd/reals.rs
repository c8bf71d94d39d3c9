//! Lanes of f64 for kernels that walk over rows: masked sums and plain arithmetic.

/// A vector of f64 lanes.
///
/// # Safety
/// Every method requires the instruction set of the implementing type, and pointers valid
/// for [`Reals::N`] elements. Methods are inlined into functions that enable it.
#[allow(missing_docs)] // the names say it all
#[allow(clippy::missing_safety_doc)]
pub trait Reals: Copy + 'static {
    /// Number of lanes, at most 8.
    const N: usize;
    type V: Copy;

    unsafe fn splat(v: f64) -> Self::V;
    unsafe fn store(p: *mut f64, v: Self::V);
    /// Adds `v` in the lanes whose bit (lowest bit = first lane) is set.
    unsafe fn add_where(acc: Self::V, bits: u32, v: f64) -> Self::V;
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    /// a·b + c, rounded once or twice.
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `x > 0 ? yes : no`, lane by lane.
    unsafe fn if_positive(x: Self::V, yes: Self::V, no: Self::V) -> Self::V;
}

/// Four lanes of plain Rust.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Reals for Portable {
    const N: usize = 4;
    type V = [f64; 4];

    #[inline(always)]
    unsafe fn splat(v: f64) -> [f64; 4] {
        [v; 4]
    }
    #[inline(always)]
    unsafe fn store(p: *mut f64, v: [f64; 4]) {
        // SAFETY: the caller passes a pointer to N elements.
        unsafe { p.cast::<[f64; 4]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn add_where(acc: [f64; 4], bits: u32, v: f64) -> [f64; 4] {
        std::array::from_fn(|l| acc[l] + if bits >> l & 1 == 1 { v } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn add(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|l| a[l] + b[l])
    }
    #[inline(always)]
    unsafe fn sub(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|l| a[l] - b[l])
    }
    #[inline(always)]
    unsafe fn mul(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|l| a[l] * b[l])
    }
    #[inline(always)]
    unsafe fn div(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|l| a[l] / b[l])
    }
    #[inline(always)]
    unsafe fn max(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|l| if a[l] > b[l] { a[l] } else { b[l] })
    }
    #[inline(always)]
    unsafe fn mul_add(a: [f64; 4], b: [f64; 4], c: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|l| a[l] * b[l] + c[l])
    }
    #[inline(always)]
    unsafe fn if_positive(x: [f64; 4], yes: [f64; 4], no: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|l| if x[l] > 0.0 { yes[l] } else { no[l] })
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Reals;
    use std::arch::x86_64::*;

    /// Eight lanes with masks.
    #[derive(Clone, Copy, Debug)]
    pub struct Avx512;

    /// Four lanes.
    #[derive(Clone, Copy, Debug)]
    pub struct Avx2;

    // SAFETY of all blocks below: the trait's contract (instruction set, valid pointers).
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Reals for Avx512 {
        const N: usize = 8;
        type V = __m512d;

        #[inline(always)]
        unsafe fn splat(v: f64) -> __m512d {
            unsafe { _mm512_set1_pd(v) }
        }
        #[inline(always)]
        unsafe fn store(p: *mut f64, v: __m512d) {
            unsafe { _mm512_storeu_pd(p, v) }
        }
        #[inline(always)]
        unsafe fn add_where(acc: __m512d, bits: u32, v: f64) -> __m512d {
            unsafe { _mm512_mask_add_pd(acc, bits as u8, acc, _mm512_set1_pd(v)) }
        }
        #[inline(always)]
        unsafe fn add(a: __m512d, b: __m512d) -> __m512d {
            unsafe { _mm512_add_pd(a, b) }
        }
        #[inline(always)]
        unsafe fn sub(a: __m512d, b: __m512d) -> __m512d {
            unsafe { _mm512_sub_pd(a, b) }
        }
        #[inline(always)]
        unsafe fn mul(a: __m512d, b: __m512d) -> __m512d {
            unsafe { _mm512_mul_pd(a, b) }
        }
        #[inline(always)]
        unsafe fn div(a: __m512d, b: __m512d) -> __m512d {
            unsafe { _mm512_div_pd(a, b) }
        }
        #[inline(always)]
        unsafe fn max(a: __m512d, b: __m512d) -> __m512d {
            unsafe { _mm512_max_pd(a, b) }
        }
        #[inline(always)]
        unsafe fn mul_add(a: __m512d, b: __m512d, c: __m512d) -> __m512d {
            unsafe { _mm512_fmadd_pd(a, b, c) }
        }
        #[inline(always)]
        unsafe fn if_positive(x: __m512d, yes: __m512d, no: __m512d) -> __m512d {
            unsafe {
                let positive = _mm512_cmp_pd_mask::<_CMP_GT_OQ>(x, _mm512_setzero_pd());
                _mm512_mask_blend_pd(positive, no, yes)
            }
        }
    }

    // SAFETY of all blocks below: the trait's contract (instruction set, valid pointers).
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Reals for Avx2 {
        const N: usize = 4;
        type V = __m256d;

        #[inline(always)]
        unsafe fn splat(v: f64) -> __m256d {
            unsafe { _mm256_set1_pd(v) }
        }
        #[inline(always)]
        unsafe fn store(p: *mut f64, v: __m256d) {
            unsafe { _mm256_storeu_pd(p, v) }
        }
        #[inline(always)]
        unsafe fn add_where(acc: __m256d, bits: u32, v: f64) -> __m256d {
            unsafe {
                let lane = _mm256_set_epi64x(8, 4, 2, 1);
                let set = _mm256_and_si256(_mm256_set1_epi64x(i64::from(bits)), lane);
                let mask = _mm256_castsi256_pd(_mm256_cmpeq_epi64(set, lane));
                _mm256_add_pd(acc, _mm256_and_pd(mask, _mm256_set1_pd(v)))
            }
        }
        #[inline(always)]
        unsafe fn add(a: __m256d, b: __m256d) -> __m256d {
            unsafe { _mm256_add_pd(a, b) }
        }
        #[inline(always)]
        unsafe fn sub(a: __m256d, b: __m256d) -> __m256d {
            unsafe { _mm256_sub_pd(a, b) }
        }
        #[inline(always)]
        unsafe fn mul(a: __m256d, b: __m256d) -> __m256d {
            unsafe { _mm256_mul_pd(a, b) }
        }
        #[inline(always)]
        unsafe fn div(a: __m256d, b: __m256d) -> __m256d {
            unsafe { _mm256_div_pd(a, b) }
        }
        #[inline(always)]
        unsafe fn max(a: __m256d, b: __m256d) -> __m256d {
            unsafe { _mm256_max_pd(a, b) }
        }
        #[inline(always)]
        unsafe fn mul_add(a: __m256d, b: __m256d, c: __m256d) -> __m256d {
            unsafe { _mm256_fmadd_pd(a, b, c) }
        }
        #[inline(always)]
        unsafe fn if_positive(x: __m256d, yes: __m256d, no: __m256d) -> __m256d {
            unsafe {
                let positive = _mm256_cmp_pd::<_CMP_GT_OQ>(x, _mm256_setzero_pd());
                _mm256_blendv_pd(no, yes, positive)
            }
        }
    }
}
