//! AVX2 lanes: 256-bit vectors.

use super::{ATANH_F64, LN_POLY_F32, Lanes, SQRT_HALF_BITS};
use std::arch::x86_64::*;

/// Eight lanes of i32/f32.
#[derive(Clone, Copy, Debug)]
pub struct Single;

/// Four lanes of i64/f64.
#[derive(Clone, Copy, Debug)]
pub struct Double;

/// ln(a·r) + shift, for `r` the reciprocal of the divisor.
///
/// # Safety
/// Needs AVX2 and FMA.
#[inline(always)]
#[allow(clippy::undocumented_unsafe_blocks)]
pub(super) unsafe fn ln_of_product(a: __m256, r: __m256, shift: __m256) -> __m256 {
    unsafe {
        let bits = _mm256_castps_si256(_mm256_mul_ps(a, r));
        let exponent = _mm256_sub_epi32(_mm256_srli_epi32::<23>(bits), _mm256_set1_epi32(127));
        let one = _mm256_set1_ps(1.0);
        let mantissa = _mm256_or_si256(
            _mm256_and_si256(bits, _mm256_set1_epi32(0x007f_ffff)),
            _mm256_castps_si256(one),
        );
        let t = _mm256_sub_ps(_mm256_castsi256_ps(mantissa), one);
        let mut p = _mm256_set1_ps(LN_POLY_F32[6]);
        for k in (1..6).rev() {
            p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(LN_POLY_F32[k]));
        }
        p = _mm256_fmadd_ps(p, t, _mm256_add_ps(shift, _mm256_set1_ps(LN_POLY_F32[0])));
        let ln2 = _mm256_set1_ps(std::f32::consts::LN_2);
        _mm256_fmadd_ps(_mm256_cvtepi32_ps(exponent), ln2, p)
    }
}

/// Minimum over the lanes of eight vectors by a transposing tree.
///
/// # Safety
/// Needs AVX2.
#[inline(always)]
#[allow(clippy::undocumented_unsafe_blocks)]
pub(super) unsafe fn min_across(v: &[__m256; 8], n: usize, out: &mut [f32; 8]) {
    unsafe {
        let pair = |a, b| _mm256_min_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let quad = |ab, cd| {
            _mm256_min_ps(
                _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
                _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
            )
        };
        let low = quad(pair(v[0], v[1]), pair(v[2], v[3]));
        let low = _mm_min_ps(_mm256_castps256_ps128(low), _mm256_extractf128_ps::<1>(low));
        _mm_storeu_ps(out.as_mut_ptr(), low);
        if n > 4 {
            let high = quad(pair(v[4], v[5]), pair(v[6], v[7]));
            let high = _mm_min_ps(_mm256_castps256_ps128(high), _mm256_extractf128_ps::<1>(high));
            _mm_storeu_ps(out.as_mut_ptr().add(4), high);
        }
    }
}

// SAFETY of all blocks below: the trait's contract (instruction set, valid pointers).
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Single {
    const N: usize = 8;
    type I = i32;
    type R = f32;
    type Int = __m256i;
    type Real = __m256;
    type Half = Self;

    #[inline(always)]
    unsafe fn load(p: *const i32) -> __m256i {
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut i32, v: __m256i) {
        unsafe { _mm256_storeu_si256(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn splat(v: i32) -> __m256i {
        unsafe { _mm256_set1_epi32(v) }
    }
    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_sub_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn max(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_max_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn min(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_min_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn add_where(acc: __m256i, bits: u64, v: i32) -> __m256i {
        unsafe {
            let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let set = _mm256_and_si256(_mm256_set1_epi32(bits as i32), lane);
            let mask = _mm256_cmpeq_epi32(set, lane);
            _mm256_add_epi32(acc, _mm256_and_si256(mask, _mm256_set1_epi32(v)))
        }
    }
    #[inline(always)]
    unsafe fn if_less(a: __m256i, b: __m256i, yes: __m256, no: __m256) -> __m256 {
        unsafe { _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(_mm256_cmpgt_epi32(b, a))) }
    }
    #[inline(always)]
    unsafe fn to_real(v: __m256i) -> __m256 {
        unsafe { _mm256_cvtepi32_ps(v) }
    }
    #[inline(always)]
    unsafe fn load_real(p: *const f32) -> __m256 {
        unsafe { _mm256_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn store_real(p: *mut f32, v: __m256) {
        unsafe { _mm256_storeu_ps(p, v) }
    }
    #[inline(always)]
    unsafe fn splat_real(v: f32) -> __m256 {
        unsafe { _mm256_set1_ps(v) }
    }
    #[inline(always)]
    unsafe fn add_real(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_real(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn div_real(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_div_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn min_real(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_min_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn ln_ratio(a: __m256, b: __m256, shift: __m256) -> __m256 {
        unsafe {
            let r = _mm256_rcp_ps(b);
            let r = _mm256_mul_ps(r, _mm256_fnmadd_ps(b, r, _mm256_set1_ps(2.0)));
            ln_of_product(a, r, shift)
        }
    }
    #[inline(always)]
    unsafe fn min_across(v: &[__m256; 8], n: usize, out: &mut [f32; 8]) {
        unsafe { min_across(v, n, out) }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Double {
    const N: usize = 4;
    type I = i64;
    type R = f64;
    type Int = __m256i;
    type Real = __m256d;
    type Half = Self;

    #[inline(always)]
    unsafe fn load(p: *const i64) -> __m256i {
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut i64, v: __m256i) {
        unsafe { _mm256_storeu_si256(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn splat(v: i64) -> __m256i {
        unsafe { _mm256_set1_epi64x(v) }
    }
    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_sub_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn max(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b)) }
    }
    #[inline(always)]
    unsafe fn min(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b)) }
    }
    #[inline(always)]
    unsafe fn add_where(acc: __m256i, bits: u64, v: i64) -> __m256i {
        unsafe {
            let lane = _mm256_setr_epi64x(1, 2, 4, 8);
            let set = _mm256_and_si256(_mm256_set1_epi64x(bits as i64), lane);
            let mask = _mm256_cmpeq_epi64(set, lane);
            _mm256_add_epi64(acc, _mm256_and_si256(mask, _mm256_set1_epi64x(v)))
        }
    }
    #[inline(always)]
    unsafe fn if_less(a: __m256i, b: __m256i, yes: __m256d, no: __m256d) -> __m256d {
        unsafe { _mm256_blendv_pd(no, yes, _mm256_castsi256_pd(_mm256_cmpgt_epi64(b, a))) }
    }
    #[inline(always)]
    unsafe fn to_real(v: __m256i) -> __m256d {
        unsafe {
            // Integers within ±2^51 change the mantissa of 1.5 · 2^52 to that plus v.
            let magic = _mm256_set1_pd(6_755_399_441_055_744.0);
            let bits = _mm256_add_epi64(v, _mm256_castpd_si256(magic));
            _mm256_sub_pd(_mm256_castsi256_pd(bits), magic)
        }
    }
    #[inline(always)]
    unsafe fn load_real(p: *const f64) -> __m256d {
        unsafe { _mm256_loadu_pd(p) }
    }
    #[inline(always)]
    unsafe fn store_real(p: *mut f64, v: __m256d) {
        unsafe { _mm256_storeu_pd(p, v) }
    }
    #[inline(always)]
    unsafe fn splat_real(v: f64) -> __m256d {
        unsafe { _mm256_set1_pd(v) }
    }
    #[inline(always)]
    unsafe fn add_real(a: __m256d, b: __m256d) -> __m256d {
        unsafe { _mm256_add_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_real(a: __m256d, b: __m256d) -> __m256d {
        unsafe { _mm256_mul_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn div_real(a: __m256d, b: __m256d) -> __m256d {
        unsafe { _mm256_div_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn min_real(a: __m256d, b: __m256d) -> __m256d {
        unsafe { _mm256_min_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn ln_ratio(a: __m256d, b: __m256d, shift: __m256d) -> __m256d {
        unsafe {
            let zero = _mm256_setzero_pd();
            let positive = _mm256_and_pd(
                _mm256_cmp_pd::<_CMP_GT_OQ>(a, zero),
                _mm256_cmp_pd::<_CMP_GT_OQ>(b, zero),
            );
            let bits = _mm256_castpd_si256(_mm256_div_pd(a, b));
            let centred = _mm256_sub_epi64(bits, _mm256_set1_epi64x(SQRT_HALF_BITS as i64));
            // No arithmetic 64-bit shift here: bias the exponent to be non-negative first.
            let biased = _mm256_srli_epi64::<52>(_mm256_add_epi64(
                centred,
                _mm256_set1_epi64x(1024_i64 << 52),
            ));
            let magic = _mm256_set1_pd(4_503_599_627_370_496.0);
            let exponent = _mm256_sub_pd(
                _mm256_castsi256_pd(_mm256_or_si256(biased, _mm256_castpd_si256(magic))),
                _mm256_set1_pd(4_503_599_627_370_496.0 + 1024.0),
            );
            let whole = _mm256_sub_epi64(
                _mm256_slli_epi64::<52>(biased),
                _mm256_set1_epi64x(1024_i64 << 52),
            );
            let m = _mm256_castsi256_pd(_mm256_sub_epi64(bits, whole));
            let one = _mm256_set1_pd(1.0);
            let s = _mm256_div_pd(_mm256_sub_pd(m, one), _mm256_add_pd(m, one));
            let s2 = _mm256_mul_pd(s, s);
            let mut p = _mm256_set1_pd(ATANH_F64[10]);
            for k in (0..10).rev() {
                p = _mm256_fmadd_pd(p, s2, _mm256_set1_pd(ATANH_F64[k]));
            }
            let value = _mm256_fmadd_pd(
                exponent,
                _mm256_set1_pd(std::f64::consts::LN_2),
                _mm256_fmadd_pd(s, p, shift),
            );
            _mm256_and_pd(positive, value)
        }
    }
    #[inline(always)]
    unsafe fn min_across(v: &[__m256d; 8], n: usize, out: &mut [f64; 8]) {
        unsafe {
            for (least, &x) in out.iter_mut().zip(v).take(n) {
                let low = _mm_min_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
                *least = _mm_cvtsd_f64(_mm_min_sd(low, _mm_unpackhi_pd(low, low)));
            }
        }
    }
}
