//! Plain Rust lanes: arrays that the compiler vectorises as far as the target allows.

use super::{ATANH_F64, LN_POLY_F32, Lanes};

/// Eight lanes of i32/f32.
#[derive(Clone, Copy, Debug)]
pub struct Single;

/// Four lanes of i64/f64.
#[derive(Clone, Copy, Debug)]
pub struct Double;

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

macro_rules! portable {
    ($name:ident, $n:literal, $i:ty, $r:ty, $ln:ident) => {
        impl Lanes for $name {
            const N: usize = $n;
            type I = $i;
            type R = $r;
            type Int = [$i; $n];
            type Real = [$r; $n];
            type Half = Self;

            #[inline(always)]
            unsafe fn load(p: *const $i) -> [$i; $n] {
                // SAFETY: the caller passes a pointer to N elements.
                unsafe { p.cast::<[$i; $n]>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn store(p: *mut $i, v: [$i; $n]) {
                // SAFETY: the caller passes a pointer to N elements.
                unsafe { p.cast::<[$i; $n]>().write_unaligned(v) }
            }
            #[inline(always)]
            unsafe fn splat(v: $i) -> [$i; $n] {
                [v; $n]
            }
            #[inline(always)]
            unsafe fn add(a: [$i; $n], b: [$i; $n]) -> [$i; $n] {
                std::array::from_fn(|l| a[l].wrapping_add(b[l]))
            }
            #[inline(always)]
            unsafe fn sub(a: [$i; $n], b: [$i; $n]) -> [$i; $n] {
                std::array::from_fn(|l| a[l].wrapping_sub(b[l]))
            }
            #[inline(always)]
            unsafe fn max(a: [$i; $n], b: [$i; $n]) -> [$i; $n] {
                std::array::from_fn(|l| a[l].max(b[l]))
            }
            #[inline(always)]
            unsafe fn min(a: [$i; $n], b: [$i; $n]) -> [$i; $n] {
                std::array::from_fn(|l| a[l].min(b[l]))
            }
            #[inline(always)]
            unsafe fn add_where(acc: [$i; $n], bits: u64, v: $i) -> [$i; $n] {
                std::array::from_fn(|l| acc[l].wrapping_add(v & -((bits >> l & 1) as $i)))
            }
            #[inline(always)]
            unsafe fn if_less(
                a: [$i; $n],
                b: [$i; $n],
                yes: [$r; $n],
                no: [$r; $n],
            ) -> [$r; $n] {
                std::array::from_fn(|l| if a[l] < b[l] { yes[l] } else { no[l] })
            }
            #[inline(always)]
            unsafe fn to_real(v: [$i; $n]) -> [$r; $n] {
                v.map(|x| x as $r)
            }
            #[inline(always)]
            unsafe fn load_real(p: *const $r) -> [$r; $n] {
                // SAFETY: the caller passes a pointer to N elements.
                unsafe { p.cast::<[$r; $n]>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn store_real(p: *mut $r, v: [$r; $n]) {
                // SAFETY: the caller passes a pointer to N elements.
                unsafe { p.cast::<[$r; $n]>().write_unaligned(v) }
            }
            #[inline(always)]
            unsafe fn splat_real(v: $r) -> [$r; $n] {
                [v; $n]
            }
            #[inline(always)]
            unsafe fn add_real(a: [$r; $n], b: [$r; $n]) -> [$r; $n] {
                std::array::from_fn(|l| a[l] + b[l])
            }
            #[inline(always)]
            unsafe fn mul_real(a: [$r; $n], b: [$r; $n]) -> [$r; $n] {
                std::array::from_fn(|l| a[l] * b[l])
            }
            #[inline(always)]
            unsafe fn div_real(a: [$r; $n], b: [$r; $n]) -> [$r; $n] {
                std::array::from_fn(|l| a[l] / b[l])
            }
            #[inline(always)]
            unsafe fn min_real(a: [$r; $n], b: [$r; $n]) -> [$r; $n] {
                std::array::from_fn(|l| if a[l] < b[l] { a[l] } else { b[l] })
            }
            #[inline(always)]
            unsafe fn ln_ratio(a: [$r; $n], b: [$r; $n], shift: [$r; $n]) -> [$r; $n] {
                std::array::from_fn(|l| $ln(a[l], b[l], shift[l]))
            }
            #[inline(always)]
            unsafe fn min_across(v: &[[$r; $n]; 8], n: usize, out: &mut [$r; 8]) {
                for (least, lanes) in out.iter_mut().zip(v).take(n) {
                    *least = lanes.iter().copied().fold(<$r>::INFINITY, <$r>::min);
                }
            }
        }
    };
}

portable!(Single, 8, i32, f32, ln_ratio_f32);
portable!(Double, 4, i64, f64, ln_ratio_f64);
