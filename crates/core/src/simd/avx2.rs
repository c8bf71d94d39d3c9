//! AVX2: 256-bit vectors.

use super::isa::{Job, isa, short_lanes};
use super::lanes::{self, FloatLanes, Lanes, RowLanes, Sealed};
use super::vector::Vector;
use super::{ATANH_F64, LN_POLY_F32, SQRT_HALF_BITS, Whole};
use std::arch::x86_64::*;

isa!($ /// AVX2 with FMA.
    Avx2: "avx2" "fma" "bmi1" "bmi2" "popcnt");

impl Avx2 {
    /// Lanes of 16-bit whole numbers.
    pub fn short(self) -> Short {
        Short(self)
    }

    /// Lanes of i32/f32.
    pub fn single(self) -> Single {
        Single(self)
    }

    /// Lanes of i64/f64.
    pub fn double(self) -> Double {
        Double(self)
    }
}

/// Sixteen lanes of 16-bit whole numbers.
#[derive(Clone, Copy, Debug)]
pub struct Short(Avx2);

/// Eight lanes of 16-bit whole numbers.
#[derive(Clone, Copy, Debug)]
pub struct ShortHalf(Avx2);

/// Eight lanes of i32/f32.
#[derive(Clone, Copy, Debug)]
pub struct Single(Avx2);

/// Four lanes of i64/f64.
#[derive(Clone, Copy, Debug)]
pub struct Double(Avx2);

vector!(I32x8(__m256i): i32, Add add _mm256_add_epi32, Sub sub _mm256_sub_epi32);
vector!(F32x8(__m256): f32, Add add _mm256_add_ps, Sub sub _mm256_sub_ps,
    Mul mul _mm256_mul_ps, Div div _mm256_div_ps);
vector!(I64x4(__m256i): i64, Add add _mm256_add_epi64, Sub sub _mm256_sub_epi64);
vector!(F64x4(__m256d): f64, Add add _mm256_add_pd, Sub sub _mm256_sub_pd,
    Mul mul _mm256_mul_pd, Div div _mm256_div_pd);
vector!(U16x16(__m256i): u16, Add add _mm256_add_epi16, Sub sub _mm256_sub_epi16);
vector!(Wholex16(__m256i): Whole, Add add _mm256_adds_epu16, Mul mul _mm256_mullo_epi16);
vector!(U16x8(__m128i): u16, Add add _mm_add_epi16, Sub sub _mm_sub_epi16);
vector!(Wholex8(__m128i): Whole, Add add _mm_adds_epu16, Mul mul _mm_mullo_epi16);
vector!(F32x4(__m128): f32);
vector!(U16x4(u64): u16);

impl Sealed for Single {}
impl Sealed for Double {}

/// ln(a·r) + shift, where `r` is the reciprocal of the divisor.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn ln_of_product(a: __m256, r: __m256, shift: __m256) -> __m256 {
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

/// Minimum over the lanes of each of eight vectors, by a transposing tree.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn min_across(v: [__m256; 8], n: usize, out: &mut [f32; 8]) {
    F32x4(least_of_four(v[0], v[1], v[2], v[3])).store(&mut out[..4]);
    if n > 4 {
        F32x4(least_of_four(v[4], v[5], v[6], v[7])).store(&mut out[4..]);
    }
}

/// Minimum over the lanes of each of four vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn least_of_four(a: __m256, b: __m256, c: __m256, d: __m256) -> __m128 {
    let ab = _mm256_min_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let cd = _mm256_min_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    let all = _mm256_min_ps(
        _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
        _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
    );
    _mm_min_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all))
}

/// `v` in the lanes whose bit is set.
#[inline]
#[target_feature(enable = "avx2")]
fn words_where(bits: u64, v: __m256i) -> __m256i {
    let lane = _mm256_setr_epi16(
        1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, -32768,
    );
    let set = _mm256_and_si256(_mm256_set1_epi16(bits as i16), lane);
    _mm256_and_si256(_mm256_cmpeq_epi16(set, lane), v)
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_words_where(acc: __m256i, bits: u64, v: __m256i) -> __m256i {
    _mm256_add_epi16(acc, words_where(bits, v))
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_half_where(acc: __m128i, bits: u64, v: __m128i) -> __m128i {
    let v = words_where(bits, _mm256_castsi128_si256(v));
    _mm_add_epi16(acc, _mm256_castsi256_si128(v))
}

/// AVX2 does not compare unsigned words, but it has a maximum.
#[inline]
#[target_feature(enable = "avx2")]
fn words_if_less(a: __m256i, b: __m256i, yes: __m256i, no: __m256i) -> __m256i {
    _mm256_blendv_epi8(yes, no, _mm256_cmpeq_epi16(_mm256_max_epu16(a, b), a))
}

#[inline]
#[target_feature(enable = "avx2")]
fn half_if_less(a: __m128i, b: __m128i, yes: __m128i, no: __m128i) -> __m128i {
    _mm_blendv_epi8(yes, no, _mm_cmpeq_epi16(_mm_max_epu16(a, b), a))
}

/// Minimum over the lanes of each of eight vectors of unsigned words.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn least_of_eight(v: [__m128i; 8]) -> __m128i {
    let mut pairs = [_mm_setzero_si128(); 4];
    for (i, pair) in pairs.iter_mut().enumerate() {
        let (a, b) = (v[2 * i], v[2 * i + 1]);
        *pair = _mm_min_epu16(_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b));
    }
    let fours = [(pairs[0], pairs[1]), (pairs[2], pairs[3])]
        .map(|(a, b)| _mm_min_epu16(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)));
    let [a, b] = fours;
    _mm_min_epu16(_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b))
}

/// The same for vectors of twice as many words.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn least_of_halves(v: [__m256i; 8]) -> __m128i {
    least_of_eight(
        v.map(|v| _mm_min_epu16(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v))),
    )
}

short_lanes!(Short: U16x16 Wholex16,
    _mm256_set1_epi16 _mm256_max_epu16 _mm256_min_epu16
    add_words_where words_if_less least_of_halves);
short_lanes!(ShortHalf: U16x8 Wholex8,
    _mm_set1_epi16 _mm_max_epu16 _mm_min_epu16
    add_half_where half_if_less least_of_eight);

impl Lanes for Single {
    type I = i32;
    type R = f32;
    type Int = I32x8;
    type Real = F32x8;
    type Half = Self;

    #[inline(always)]
    fn half(self) -> Self {
        self
    }
    #[inline(always)]
    fn run<J: Job<Self>>(self, job: J) -> J::Output {
        self.0.run(self, job)
    }
    compiled! {
        fn splat(self, v: i32) -> I32x8 { I32x8(_mm256_set1_epi32(v)) }
        fn splat_real(self, v: f32) -> F32x8 { F32x8(_mm256_set1_ps(v)) }
        fn max(a: I32x8, b: I32x8) -> I32x8 { I32x8(_mm256_max_epi32(a.0, b.0)) }
        fn min(a: I32x8, b: I32x8) -> I32x8 { I32x8(_mm256_min_epi32(a.0, b.0)) }
        fn add_where(acc: I32x8, bits: u64, v: i32) -> I32x8 {
            let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let set = _mm256_and_si256(_mm256_set1_epi32(bits as i32), lane);
            let mask = _mm256_cmpeq_epi32(set, lane);
            I32x8(_mm256_add_epi32(acc.0, _mm256_and_si256(mask, _mm256_set1_epi32(v))))
        }
        fn if_less(a: I32x8, b: I32x8, yes: F32x8, no: F32x8) -> F32x8 {
            let less = _mm256_castsi256_ps(_mm256_cmpgt_epi32(b.0, a.0));
            F32x8(_mm256_blendv_ps(no.0, yes.0, less))
        }
        fn to_real(v: I32x8) -> F32x8 { F32x8(_mm256_cvtepi32_ps(v.0)) }
        fn min_real(a: F32x8, b: F32x8) -> F32x8 { F32x8(_mm256_min_ps(a.0, b.0)) }
        fn min_across(v: &[F32x8; 8], n: usize, out: &mut [f32; 8]) {
            let [a, b, c, d, e, f, g, h] = *v;
            min_across([a.0, b.0, c.0, d.0, e.0, f.0, g.0, h.0], n, out);
        }
    }
}

impl FloatLanes for Single {
    compiled! {
        fn less_bits(a: F32x8, b: F32x8) -> u64 {
            _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(a.0, b.0)).cast_unsigned().into()
        }
        fn ln_ratio(a: F32x8, b: F32x8, shift: F32x8) -> F32x8 {
            let r = _mm256_rcp_ps(b.0);
            let r = _mm256_mul_ps(r, _mm256_fnmadd_ps(b.0, r, _mm256_set1_ps(2.0)));
            F32x8(ln_of_product(a.0, r, shift.0))
        }
    }
}

impl Lanes for Double {
    type I = i64;
    type R = f64;
    type Int = I64x4;
    type Real = F64x4;
    type Half = Self;

    #[inline(always)]
    fn half(self) -> Self {
        self
    }
    #[inline(always)]
    fn run<J: Job<Self>>(self, job: J) -> J::Output {
        self.0.run(self, job)
    }
    compiled! {
        fn splat(self, v: i64) -> I64x4 { I64x4(_mm256_set1_epi64x(v)) }
        fn splat_real(self, v: f64) -> F64x4 { F64x4(_mm256_set1_pd(v)) }
        fn max(a: I64x4, b: I64x4) -> I64x4 {
            I64x4(_mm256_blendv_epi8(b.0, a.0, _mm256_cmpgt_epi64(a.0, b.0)))
        }
        fn min(a: I64x4, b: I64x4) -> I64x4 {
            I64x4(_mm256_blendv_epi8(a.0, b.0, _mm256_cmpgt_epi64(a.0, b.0)))
        }
        fn add_where(acc: I64x4, bits: u64, v: i64) -> I64x4 {
            let lane = _mm256_setr_epi64x(1, 2, 4, 8);
            let set = _mm256_and_si256(_mm256_set1_epi64x(bits as i64), lane);
            let mask = _mm256_cmpeq_epi64(set, lane);
            I64x4(_mm256_add_epi64(acc.0, _mm256_and_si256(mask, _mm256_set1_epi64x(v))))
        }
        fn if_less(a: I64x4, b: I64x4, yes: F64x4, no: F64x4) -> F64x4 {
            let less = _mm256_castsi256_pd(_mm256_cmpgt_epi64(b.0, a.0));
            F64x4(_mm256_blendv_pd(no.0, yes.0, less))
        }
        fn to_real(v: I64x4) -> F64x4 {
            // Integers within ±2^51 change the mantissa of 1.5 · 2^52 to that plus v.
            let magic = _mm256_set1_pd(6_755_399_441_055_744.0);
            let bits = _mm256_add_epi64(v.0, _mm256_castpd_si256(magic));
            F64x4(_mm256_sub_pd(_mm256_castsi256_pd(bits), magic))
        }
        fn min_real(a: F64x4, b: F64x4) -> F64x4 { F64x4(_mm256_min_pd(a.0, b.0)) }
        fn min_across(v: &[F64x4; 8], n: usize, out: &mut [f64; 8]) {
            for i in 0..n.min(8) {
                let (low, high) = (_mm256_castpd256_pd128(v[i].0), _mm256_extractf128_pd::<1>(v[i].0));
                let least = _mm_min_pd(low, high);
                out[i] = _mm_cvtsd_f64(_mm_min_sd(least, _mm_unpackhi_pd(least, least)));
            }
        }
    }
}

impl FloatLanes for Double {
    compiled! {
        fn less_bits(a: F64x4, b: F64x4) -> u64 {
            _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(a.0, b.0)).cast_unsigned().into()
        }
        fn ln_ratio(a: F64x4, b: F64x4, shift: F64x4) -> F64x4 {
            let zero = _mm256_setzero_pd();
            let positive = _mm256_and_pd(
                _mm256_cmp_pd::<_CMP_GT_OQ>(a.0, zero),
                _mm256_cmp_pd::<_CMP_GT_OQ>(b.0, zero),
            );
            let bits = _mm256_castpd_si256(_mm256_div_pd(a.0, b.0));
            let centred = _mm256_sub_epi64(bits, _mm256_set1_epi64x(SQRT_HALF_BITS as i64));
            // AVX2 has no arithmetic shift of 64 bits, so bias the exponent to be non-negative
            // first.
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
                _mm256_fmadd_pd(s, p, shift.0),
            );
            F64x4(_mm256_and_pd(positive, value))
        }
    }
}

impl Double {
    compiled! {
        fn widened(v: U16x4) -> F64x4 {
            let words = _mm_cvtsi64_si128(v.0.cast_signed());
            F64x4(_mm256_cvtepi32_pd(_mm_cvtepu16_epi32(words)))
        }
    }
}

impl RowLanes for Double {
    type Counts = U16x16;

    compiled! {
        fn add_real_where(acc: F64x4, bits: u32, v: f64) -> F64x4 {
            let lane = _mm256_setr_epi64x(1, 2, 4, 8);
            let set = _mm256_and_si256(_mm256_set1_epi64x(i64::from(bits)), lane);
            let mask = _mm256_castsi256_pd(_mm256_cmpeq_epi64(set, lane));
            F64x4(_mm256_add_pd(acc.0, _mm256_and_pd(mask, _mm256_set1_pd(v))))
        }
        fn reciprocal(x: F64x4) -> F64x4 { F64x4(_mm256_div_pd(_mm256_set1_pd(1.0), x.0)) }
        fn max_real(a: F64x4, b: F64x4) -> F64x4 { F64x4(_mm256_max_pd(a.0, b.0)) }
        fn mul_add(a: F64x4, b: F64x4, c: F64x4) -> F64x4 {
            F64x4(_mm256_fmadd_pd(a.0, b.0, c.0))
        }
        fn if_positive(x: F64x4, yes: F64x4, no: F64x4) -> F64x4 {
            let positive = _mm256_cmp_pd::<_CMP_GT_OQ>(x.0, _mm256_setzero_pd());
            F64x4(_mm256_blendv_pd(no.0, yes.0, positive))
        }
        fn no_counts(self) -> U16x16 { U16x16(_mm256_setzero_si256()) }
        fn count_where(acc: U16x16, bits: u32, v: u16) -> U16x16 {
            U16x16(_mm256_add_epi16(acc.0, words_where(bits.into(), _mm256_set1_epi16(v.cast_signed()))))
        }
        fn compact(self, bits: u64, mask: u64) -> u64 { _pext_u64(bits, mask) }
    }

    #[inline(always)]
    fn load_counts(self, from: &[u16]) -> F64x4 {
        Self::widened(lanes::load(self, from))
    }
}
