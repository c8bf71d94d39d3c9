//! AVX-512 lanes: 512-bit vectors, and 256-bit ones with masks for tails.

use super::{ATANH_F64, LN_POLY_F32, Lanes, SQRT_HALF_BITS};
use std::arch::x86_64::*;

/// Sixteen lanes of i32/f32.
#[derive(Clone, Copy, Debug)]
pub struct Single;

/// Eight lanes of i32/f32.
#[derive(Clone, Copy, Debug)]
pub struct SingleHalf;

/// Eight lanes of i64/f64.
#[derive(Clone, Copy, Debug)]
pub struct Double;

// SAFETY of all blocks below: the trait's contract (instruction set, valid pointers).
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Single {
    const N: usize = 16;
    type I = i32;
    type R = f32;
    type Int = __m512i;
    type Real = __m512;
    type Half = SingleHalf;

    #[inline(always)]
    unsafe fn load(p: *const i32) -> __m512i {
        unsafe { _mm512_loadu_epi32(p) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut i32, v: __m512i) {
        unsafe { _mm512_storeu_epi32(p, v) }
    }
    #[inline(always)]
    unsafe fn splat(v: i32) -> __m512i {
        unsafe { _mm512_set1_epi32(v) }
    }
    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_sub_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn max(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_max_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn min(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_min_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn add_where(acc: __m512i, bits: u64, v: i32) -> __m512i {
        unsafe { _mm512_mask_add_epi32(acc, bits as u16, acc, _mm512_set1_epi32(v)) }
    }
    #[inline(always)]
    unsafe fn if_less(a: __m512i, b: __m512i, yes: __m512, no: __m512) -> __m512 {
        unsafe { _mm512_mask_blend_ps(_mm512_cmplt_epi32_mask(a, b), no, yes) }
    }
    #[inline(always)]
    unsafe fn to_real(v: __m512i) -> __m512 {
        unsafe { _mm512_cvtepi32_ps(v) }
    }
    #[inline(always)]
    unsafe fn load_real(p: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn store_real(p: *mut f32, v: __m512) {
        unsafe { _mm512_storeu_ps(p, v) }
    }
    #[inline(always)]
    unsafe fn splat_real(v: f32) -> __m512 {
        unsafe { _mm512_set1_ps(v) }
    }
    #[inline(always)]
    unsafe fn add_real(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_real(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn div_real(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn min_real(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn ln_ratio(a: __m512, b: __m512, shift: __m512) -> __m512 {
        unsafe {
            let r = _mm512_rcp14_ps(b);
            let r = _mm512_mul_ps(r, _mm512_fnmadd_ps(b, r, _mm512_set1_ps(2.0)));
            let bits = _mm512_castps_si512(_mm512_mul_ps(a, r));
            let exponent = _mm512_sub_epi32(_mm512_srli_epi32::<23>(bits), _mm512_set1_epi32(127));
            let one = _mm512_set1_ps(1.0);
            // (bits & mantissa) | one
            let mantissa = _mm512_ternarylogic_epi32::<0xf8>(
                _mm512_castps_si512(one),
                bits,
                _mm512_set1_epi32(0x007f_ffff),
            );
            let t = _mm512_sub_ps(_mm512_castsi512_ps(mantissa), one);
            let mut p = _mm512_set1_ps(LN_POLY_F32[6]);
            for k in (1..6).rev() {
                p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(LN_POLY_F32[k]));
            }
            p = _mm512_fmadd_ps(p, t, _mm512_add_ps(shift, _mm512_set1_ps(LN_POLY_F32[0])));
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(exponent), _mm512_set1_ps(std::f32::consts::LN_2), p)
        }
    }
    #[inline(always)]
    unsafe fn min_across(v: &[__m512; 8], n: usize, out: &mut [f32; 8]) {
        unsafe {
            // Fold to 256 bits, then the tree of the half-width lanes.
            let mut halves = [_mm256_setzero_ps(); 8];
            for (half, &x) in halves.iter_mut().zip(v) {
                *half = _mm256_min_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps::<1>(x));
            }
            SingleHalf::min_across(&halves, n, out);
        }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for SingleHalf {
    const N: usize = 8;
    type I = i32;
    type R = f32;
    type Int = __m256i;
    type Real = __m256;
    type Half = Self;

    #[inline(always)]
    unsafe fn load(p: *const i32) -> __m256i {
        unsafe { _mm256_loadu_epi32(p) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut i32, v: __m256i) {
        unsafe { _mm256_storeu_epi32(p, v) }
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
        unsafe { _mm256_mask_add_epi32(acc, bits as u8, acc, _mm256_set1_epi32(v)) }
    }
    #[inline(always)]
    unsafe fn if_less(a: __m256i, b: __m256i, yes: __m256, no: __m256) -> __m256 {
        unsafe { _mm256_mask_blend_ps(_mm256_cmplt_epi32_mask(a, b), no, yes) }
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
            let r = _mm256_rcp14_ps(b);
            let r = _mm256_mul_ps(r, _mm256_fnmadd_ps(b, r, _mm256_set1_ps(2.0)));
            super::avx2::ln_of_product(a, r, shift)
        }
    }
    #[inline(always)]
    unsafe fn min_across(v: &[__m256; 8], n: usize, out: &mut [f32; 8]) {
        unsafe { super::avx2::min_across(v, n, out) }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Double {
    const N: usize = 8;
    type I = i64;
    type R = f64;
    type Int = __m512i;
    type Real = __m512d;
    type Half = Self;

    #[inline(always)]
    unsafe fn load(p: *const i64) -> __m512i {
        unsafe { _mm512_loadu_epi64(p) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut i64, v: __m512i) {
        unsafe { _mm512_storeu_epi64(p, v) }
    }
    #[inline(always)]
    unsafe fn splat(v: i64) -> __m512i {
        unsafe { _mm512_set1_epi64(v) }
    }
    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_sub_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn max(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_max_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn min(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_min_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn add_where(acc: __m512i, bits: u64, v: i64) -> __m512i {
        unsafe { _mm512_mask_add_epi64(acc, bits as u8, acc, _mm512_set1_epi64(v)) }
    }
    #[inline(always)]
    unsafe fn if_less(a: __m512i, b: __m512i, yes: __m512d, no: __m512d) -> __m512d {
        unsafe { _mm512_mask_blend_pd(_mm512_cmplt_epi64_mask(a, b), no, yes) }
    }
    #[inline(always)]
    unsafe fn to_real(v: __m512i) -> __m512d {
        unsafe { _mm512_cvtepi64_pd(v) }
    }
    #[inline(always)]
    unsafe fn load_real(p: *const f64) -> __m512d {
        unsafe { _mm512_loadu_pd(p) }
    }
    #[inline(always)]
    unsafe fn store_real(p: *mut f64, v: __m512d) {
        unsafe { _mm512_storeu_pd(p, v) }
    }
    #[inline(always)]
    unsafe fn splat_real(v: f64) -> __m512d {
        unsafe { _mm512_set1_pd(v) }
    }
    #[inline(always)]
    unsafe fn add_real(a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_add_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_real(a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_mul_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn div_real(a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_div_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn min_real(a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_min_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn ln_ratio(a: __m512d, b: __m512d, shift: __m512d) -> __m512d {
        unsafe {
            let zero = _mm512_setzero_pd();
            let positive = _mm512_cmp_pd_mask::<_CMP_GT_OQ>(a, zero)
                & _mm512_cmp_pd_mask::<_CMP_GT_OQ>(b, zero);
            let bits = _mm512_castpd_si512(_mm512_div_pd(a, b));
            let exponent = _mm512_srai_epi64::<52>(_mm512_sub_epi64(
                bits,
                _mm512_set1_epi64(SQRT_HALF_BITS as i64),
            ));
            let m = _mm512_castsi512_pd(_mm512_sub_epi64(bits, _mm512_slli_epi64::<52>(exponent)));
            let one = _mm512_set1_pd(1.0);
            let s = _mm512_div_pd(_mm512_sub_pd(m, one), _mm512_add_pd(m, one));
            let s2 = _mm512_mul_pd(s, s);
            let mut p = _mm512_set1_pd(ATANH_F64[10]);
            for k in (0..10).rev() {
                p = _mm512_fmadd_pd(p, s2, _mm512_set1_pd(ATANH_F64[k]));
            }
            let value = _mm512_fmadd_pd(
                _mm512_cvtepi64_pd(exponent),
                _mm512_set1_pd(std::f64::consts::LN_2),
                _mm512_fmadd_pd(s, p, shift),
            );
            _mm512_maskz_mov_pd(positive, value)
        }
    }
    #[inline(always)]
    unsafe fn min_across(v: &[__m512d; 8], n: usize, out: &mut [f64; 8]) {
        unsafe {
            for (least, &x) in out.iter_mut().zip(v).take(n) {
                *least = _mm512_reduce_min_pd(x);
            }
        }
    }
}
