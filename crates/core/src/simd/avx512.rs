//! AVX-512: 512-bit vectors, and 256-bit vectors with masks for tails.

use super::isa::{Job, isa, short_lanes};
use super::lanes::{self, FloatLanes, Lanes, RowLanes, Sealed};
use super::vector::Vector;
use super::{ATANH_F64, LN_POLY_F32, SQRT_HALF_BITS, Whole, avx2};
use std::arch::x86_64::*;

isa!($ /// AVX-512 with F, BW, DQ and VL.
    Avx512: "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx2" "fma" "bmi1" "bmi2" "popcnt");

impl Avx512 {
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

/// Sixteen lanes of 16-bit whole numbers; rows of a lattice are short, so no wider vector is used.
#[derive(Clone, Copy, Debug)]
pub struct Short(Avx512);

/// Eight lanes of 16-bit whole numbers.
#[derive(Clone, Copy, Debug)]
pub struct ShortHalf(Avx512);

/// Sixteen lanes of i32/f32.
#[derive(Clone, Copy, Debug)]
pub struct Single(Avx512);

/// Eight lanes of i32/f32.
#[derive(Clone, Copy, Debug)]
pub struct SingleHalf(Avx512);

/// Eight lanes of i64/f64.
#[derive(Clone, Copy, Debug)]
pub struct Double(Avx512);

vector!(U16x16(__m256i): u16, Add add _mm256_add_epi16, Sub sub _mm256_sub_epi16);
vector!(Wholex16(__m256i): Whole, Add add _mm256_adds_epu16, Mul mul _mm256_mullo_epi16);
vector!(U16x8(__m128i): u16, Add add _mm_add_epi16, Sub sub _mm_sub_epi16);
vector!(Wholex8(__m128i): Whole, Add add _mm_adds_epu16, Mul mul _mm_mullo_epi16);
vector!(I32x16(__m512i): i32, Add add _mm512_add_epi32, Sub sub _mm512_sub_epi32);
vector!(F32x16(__m512): f32, Add add _mm512_add_ps, Sub sub _mm512_sub_ps,
    Mul mul _mm512_mul_ps, Div div _mm512_div_ps);
vector!(I32x8(__m256i): i32, Add add _mm256_add_epi32, Sub sub _mm256_sub_epi32);
vector!(F32x8(__m256): f32, Add add _mm256_add_ps, Sub sub _mm256_sub_ps,
    Mul mul _mm256_mul_ps, Div div _mm256_div_ps);
vector!(I64x8(__m512i): i64, Add add _mm512_add_epi64, Sub sub _mm512_sub_epi64);
vector!(F64x8(__m512d): f64, Add add _mm512_add_pd, Sub sub _mm512_sub_pd,
    Mul mul _mm512_mul_pd, Div div _mm512_div_pd);
vector!(U16x32(__m512i): u16, Add add _mm512_add_epi16, Sub sub _mm512_sub_epi16);
vector!(U32x16(__m512i): u32);

impl Sealed for Single {}
impl Sealed for SingleHalf {}
impl Sealed for Double {}

#[inline]
#[target_feature(enable = "avx512bw,avx512vl")]
fn add_words_where(acc: __m256i, bits: u64, v: __m256i) -> __m256i {
    _mm256_mask_add_epi16(acc, bits as u16, acc, v)
}

#[inline]
#[target_feature(enable = "avx512bw,avx512vl")]
fn add_half_where(acc: __m128i, bits: u64, v: __m128i) -> __m128i {
    _mm_mask_add_epi16(acc, bits as u8, acc, v)
}

#[inline]
#[target_feature(enable = "avx512bw,avx512vl")]
fn words_if_less(a: __m256i, b: __m256i, yes: __m256i, no: __m256i) -> __m256i {
    _mm256_mask_blend_epi16(_mm256_cmplt_epu16_mask(a, b), no, yes)
}

#[inline]
#[target_feature(enable = "avx512bw,avx512vl")]
fn half_if_less(a: __m128i, b: __m128i, yes: __m128i, no: __m128i) -> __m128i {
    _mm_mask_blend_epi16(_mm_cmplt_epu16_mask(a, b), no, yes)
}

short_lanes!(Short: U16x16 Wholex16,
    _mm256_set1_epi16 _mm256_max_epu16 _mm256_min_epu16
    add_words_where words_if_less avx2::least_of_halves);
short_lanes!(ShortHalf: U16x8 Wholex8,
    _mm_set1_epi16 _mm_max_epu16 _mm_min_epu16
    add_half_where half_if_less avx2::least_of_eight);

impl Lanes for Single {
    type I = i32;
    type R = f32;
    type Int = I32x16;
    type Real = F32x16;
    type Half = SingleHalf;

    #[inline(always)]
    fn half(self) -> SingleHalf {
        SingleHalf(self.0)
    }
    #[inline(always)]
    fn run<J: Job<Self>>(self, job: J) -> J::Output {
        self.0.run(self, job)
    }
    compiled! {
        fn splat(self, v: i32) -> I32x16 { I32x16(_mm512_set1_epi32(v)) }
        fn splat_real(self, v: f32) -> F32x16 { F32x16(_mm512_set1_ps(v)) }
        fn max(a: I32x16, b: I32x16) -> I32x16 { I32x16(_mm512_max_epi32(a.0, b.0)) }
        fn min(a: I32x16, b: I32x16) -> I32x16 { I32x16(_mm512_min_epi32(a.0, b.0)) }
        fn add_where(acc: I32x16, bits: u64, v: i32) -> I32x16 {
            I32x16(_mm512_mask_add_epi32(acc.0, bits as u16, acc.0, _mm512_set1_epi32(v)))
        }
        fn if_less(a: I32x16, b: I32x16, yes: F32x16, no: F32x16) -> F32x16 {
            F32x16(_mm512_mask_blend_ps(_mm512_cmplt_epi32_mask(a.0, b.0), no.0, yes.0))
        }
        fn to_real(v: I32x16) -> F32x16 { F32x16(_mm512_cvtepi32_ps(v.0)) }
        fn min_real(a: F32x16, b: F32x16) -> F32x16 { F32x16(_mm512_min_ps(a.0, b.0)) }
        fn min_across(v: &[F32x16; 8], n: usize, out: &mut [f32; 8]) {
            // Fold to 256 bits, then use the tree of the half-width lanes.
            let mut halves = [_mm256_setzero_ps(); 8];
            for i in 0..8 {
                let (low, high) = (_mm512_castps512_ps256(v[i].0), _mm512_extractf32x8_ps::<1>(v[i].0));
                halves[i] = _mm256_min_ps(low, high);
            }
            avx2::min_across(halves, n, out);
        }
    }
}

impl FloatLanes for Single {
    compiled! {
        fn less_bits(a: F32x16, b: F32x16) -> u64 { u64::from(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a.0, b.0)) }
        fn ln_ratio(a: F32x16, b: F32x16, shift: F32x16) -> F32x16 {
            let r = _mm512_rcp14_ps(b.0);
            let r = _mm512_mul_ps(r, _mm512_fnmadd_ps(b.0, r, _mm512_set1_ps(2.0)));
            let bits = _mm512_castps_si512(_mm512_mul_ps(a.0, r));
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
            p = _mm512_fmadd_ps(p, t, _mm512_add_ps(shift.0, _mm512_set1_ps(LN_POLY_F32[0])));
            let ln2 = _mm512_set1_ps(std::f32::consts::LN_2);
            F32x16(_mm512_fmadd_ps(_mm512_cvtepi32_ps(exponent), ln2, p))
        }
    }
}

impl Lanes for SingleHalf {
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
            I32x8(_mm256_mask_add_epi32(acc.0, bits as u8, acc.0, _mm256_set1_epi32(v)))
        }
        fn if_less(a: I32x8, b: I32x8, yes: F32x8, no: F32x8) -> F32x8 {
            F32x8(_mm256_mask_blend_ps(_mm256_cmplt_epi32_mask(a.0, b.0), no.0, yes.0))
        }
        fn to_real(v: I32x8) -> F32x8 { F32x8(_mm256_cvtepi32_ps(v.0)) }
        fn min_real(a: F32x8, b: F32x8) -> F32x8 { F32x8(_mm256_min_ps(a.0, b.0)) }
        fn min_across(v: &[F32x8; 8], n: usize, out: &mut [f32; 8]) {
            let [a, b, c, d, e, f, g, h] = *v;
            avx2::min_across([a.0, b.0, c.0, d.0, e.0, f.0, g.0, h.0], n, out);
        }
    }
}

impl FloatLanes for SingleHalf {
    compiled! {
        fn less_bits(a: F32x8, b: F32x8) -> u64 { u64::from(_mm256_cmp_ps_mask::<_CMP_LT_OQ>(a.0, b.0)) }
        fn ln_ratio(a: F32x8, b: F32x8, shift: F32x8) -> F32x8 {
            let r = _mm256_rcp14_ps(b.0);
            let r = _mm256_mul_ps(r, _mm256_fnmadd_ps(b.0, r, _mm256_set1_ps(2.0)));
            F32x8(avx2::ln_of_product(a.0, r, shift.0))
        }
    }
}

impl Lanes for Double {
    type I = i64;
    type R = f64;
    type Int = I64x8;
    type Real = F64x8;
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
        fn splat(self, v: i64) -> I64x8 { I64x8(_mm512_set1_epi64(v)) }
        fn splat_real(self, v: f64) -> F64x8 { F64x8(_mm512_set1_pd(v)) }
        fn max(a: I64x8, b: I64x8) -> I64x8 { I64x8(_mm512_max_epi64(a.0, b.0)) }
        fn min(a: I64x8, b: I64x8) -> I64x8 { I64x8(_mm512_min_epi64(a.0, b.0)) }
        fn add_where(acc: I64x8, bits: u64, v: i64) -> I64x8 {
            I64x8(_mm512_mask_add_epi64(acc.0, bits as u8, acc.0, _mm512_set1_epi64(v)))
        }
        fn if_less(a: I64x8, b: I64x8, yes: F64x8, no: F64x8) -> F64x8 {
            F64x8(_mm512_mask_blend_pd(_mm512_cmplt_epi64_mask(a.0, b.0), no.0, yes.0))
        }
        fn to_real(v: I64x8) -> F64x8 { F64x8(_mm512_cvtepi64_pd(v.0)) }
        fn min_real(a: F64x8, b: F64x8) -> F64x8 { F64x8(_mm512_min_pd(a.0, b.0)) }
        fn min_across(v: &[F64x8; 8], n: usize, out: &mut [f64; 8]) {
            for i in 0..n.min(8) {
                out[i] = _mm512_reduce_min_pd(v[i].0);
            }
        }
    }
}

impl FloatLanes for Double {
    compiled! {
        fn less_bits(a: F64x8, b: F64x8) -> u64 { u64::from(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(a.0, b.0)) }
        fn ln_ratio(a: F64x8, b: F64x8, shift: F64x8) -> F64x8 {
            let zero = _mm512_setzero_pd();
            let positive = _mm512_cmp_pd_mask::<_CMP_GT_OQ>(a.0, zero)
                & _mm512_cmp_pd_mask::<_CMP_GT_OQ>(b.0, zero);
            let bits = _mm512_castpd_si512(_mm512_div_pd(a.0, b.0));
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
                _mm512_fmadd_pd(s, p, shift.0),
            );
            F64x8(_mm512_maskz_mov_pd(positive, value))
        }
    }
}

impl Double {
    compiled! {
        fn widened(v: U16x8) -> F64x8 { F64x8(_mm512_cvtepi32_pd(_mm256_cvtepu16_epi32(v.0))) }
        /// The positions in the low words of two vectors of sixteen.
        fn words(first: U32x16, second: U32x16) -> U16x32 {
            let low = _mm512_castsi256_si512(_mm512_cvtepi32_epi16(first.0));
            U16x32(_mm512_inserti64x4::<1>(low, _mm512_cvtepi32_epi16(second.0)))
        }
        /// Picks the counters at these positions from `a` followed by `b`.
        fn permuted(a: U16x32, positions: U16x32, b: U16x32) -> U16x32 {
            U16x32(_mm512_permutex2var_epi16(a.0, positions.0, b.0))
        }
        /// `base` + position of every set bit, packed from the first lane on.
        fn compressed(self, mask: u16, base: u32) -> U32x16 {
            let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let ids = _mm512_add_epi32(lanes, _mm512_set1_epi32(base.cast_signed()));
            U32x16(_mm512_maskz_compress_epi32(mask, ids))
        }
    }
}

impl RowLanes for Double {
    type Counts = U16x32;
    const WIDE: usize = 2;

    compiled! {
        fn add_real_where(acc: F64x8, bits: u32, v: f64) -> F64x8 {
            F64x8(_mm512_mask_add_pd(acc.0, bits as u8, acc.0, _mm512_set1_pd(v)))
        }
        fn reciprocal(x: F64x8) -> F64x8 {
            // Two Newton steps take 14 bits to 28 and then to all; cheaper than a division.
            let one = _mm512_set1_pd(1.0);
            let r = _mm512_rcp14_pd(x.0);
            let r = _mm512_fmadd_pd(r, _mm512_fnmadd_pd(x.0, r, one), r);
            F64x8(_mm512_fmadd_pd(r, _mm512_fnmadd_pd(x.0, r, one), r))
        }
        fn max_real(a: F64x8, b: F64x8) -> F64x8 { F64x8(_mm512_max_pd(a.0, b.0)) }
        fn mul_add(a: F64x8, b: F64x8, c: F64x8) -> F64x8 {
            F64x8(_mm512_fmadd_pd(a.0, b.0, c.0))
        }
        fn if_positive(x: F64x8, yes: F64x8, no: F64x8) -> F64x8 {
            let positive = _mm512_cmp_pd_mask::<_CMP_GT_OQ>(x.0, _mm512_setzero_pd());
            F64x8(_mm512_mask_blend_pd(positive, no.0, yes.0))
        }
        fn no_counts(self) -> U16x32 { U16x32(_mm512_setzero_si512()) }
        fn count_where(acc: U16x32, bits: u32, v: u16) -> U16x32 {
            let v = _mm512_set1_epi16(v.cast_signed());
            U16x32(_mm512_mask_add_epi16(acc.0, bits, acc.0, v))
        }
        fn between(counts: U16x32, least: u16, most: u16) -> u32 {
            let least = _mm512_set1_epi16(least.cast_signed());
            let most = _mm512_set1_epi16(most.cast_signed());
            _mm512_cmpge_epu16_mask(counts.0, least) & _mm512_cmple_epu16_mask(counts.0, most)
        }
        fn compact(self, bits: u64, mask: u64) -> u64 { _pext_u64(bits, mask) }
    }

    #[inline(always)]
    fn load_counts(self, from: &[u16]) -> F64x8 {
        Self::widened(lanes::load(self, from))
    }

    #[inline(always)]
    fn narrow(self, from: &[u16], to: &mut [u16], rows: &[u32], width: usize, keep: u64) {
        let mut kept = [0u32; 80];
        let n = self.positions(keep, 0, &mut kept);
        let low = Self::words(lanes::load(self, &kept), lanes::load(self, &kept[16..]));
        let high = Self::words(lanes::load(self, &kept[32..]), lanes::load(self, &kept[48..]));
        for &row in rows {
            let at = row as usize * width;
            let (from, to) = (&from[at..][..width], &mut to[at..][..width]);
            let a = self.load_all(from);
            // One vector or two.
            let b = if width > 32 { self.load_all(&from[32..]) } else { a };
            Self::permuted(a, low, b).store(to);
            if n > 32 {
                Self::permuted(a, high, b).store(&mut to[32..]);
            }
        }
    }

    #[inline(always)]
    fn positions(self, bits: u64, base: u32, out: &mut [u32]) -> usize {
        let mut n = 0;
        for quarter in 0..4 {
            let mask = (bits >> (16 * quarter)) as u16;
            self.compressed(mask, base + 16 * quarter).store(&mut out[n..]);
            n += mask.count_ones() as usize;
        }
        n
    }
}
