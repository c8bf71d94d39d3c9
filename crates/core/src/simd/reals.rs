//! Lanes of f64 for kernels that walk over rows: masked sums and plain arithmetic.

/// A piece of a kernel; its method must be `#[inline(always)]`.
#[allow(clippy::missing_safety_doc)]
pub trait Job {
    /// Does it.
    ///
    /// # Safety
    /// Requires the instruction set of the [`Reals`] that it is written for.
    unsafe fn run(self);
}

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
    /// Number of lanes of counters, at most 32.
    const COUNTERS: usize;
    type C: Copy;
    /// Whether `compact` is worth calling.
    const COMPACTS: bool;

    /// Runs a job in a function of its own that enables the instruction set: registers are
    /// allocated for it alone.
    unsafe fn isolated(job: impl Job);

    unsafe fn splat(v: f64) -> Self::V;
    unsafe fn store(p: *mut f64, v: Self::V);
    /// Adds `v` in the lanes whose bit (lowest bit = first lane) is set.
    unsafe fn add_where(acc: Self::V, bits: u32, v: f64) -> Self::V;
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// 1/x for 1 ≤ x < 2^53, to within two units of the last place.
    unsafe fn reciprocal(x: Self::V) -> Self::V;
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    /// a·b + c, rounded once or twice.
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `x > 0 ? yes : no`, lane by lane.
    unsafe fn if_positive(x: Self::V, yes: Self::V, no: Self::V) -> Self::V;

    unsafe fn no_counts() -> Self::C;
    unsafe fn add_counts(a: Self::C, b: Self::C) -> Self::C;
    unsafe fn sub_counts(a: Self::C, b: Self::C) -> Self::C;
    /// Bit for each counter that is neither below `least` nor above `most`.
    #[inline(always)]
    unsafe fn between(counts: Self::C, least: u16, most: u16) -> u32 {
        let mut values = [0; 32];
        // SAFETY: passed on; there is room for COUNTERS values.
        unsafe { Self::store_counts(values.as_mut_ptr(), counts) }
        let bit = |(lane, n)| u32::from((least..=most).contains(n)) << lane;
        values[..Self::COUNTERS].iter().enumerate().map(bit).sum()
    }
    /// Adds `v` to the counters whose bit is set.
    unsafe fn count_where(acc: Self::C, bits: u32, v: u16) -> Self::C;
    unsafe fn store_counts(p: *mut u16, v: Self::C);
    /// COUNTERS counters.
    unsafe fn load_all(p: *const u16) -> Self::C;
    /// N counters as reals.
    unsafe fn load_counts(p: *const u16) -> Self::V;

    /// The bits of `bits` where `mask` is set, next to each other from the lowest on.
    #[inline(always)]
    unsafe fn compact(bits: u64, mask: u64) -> u64 {
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
    unsafe fn narrow(from: &[u16], to: &mut [u16], rows: &[u32], width: usize, keep: u64) {
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

    /// Writes `base` + position for every set bit, and returns how many; there is room for 64 and 16 more.
    #[inline(always)]
    unsafe fn positions(bits: u64, base: u32, out: *mut u32) -> usize {
        let (mut left, mut n) = (bits, 0);
        while left != 0 {
            // SAFETY: no more than 64 bits are set.
            unsafe { out.add(n).write(base + left.trailing_zeros()) }
            left &= left - 1;
            n += 1;
        }
        n
    }
}

/// Four lanes of plain Rust.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Reals for Portable {
    const N: usize = 4;
    type V = [f64; 4];
    const COUNTERS: usize = 16;
    type C = [u16; 16];
    const COMPACTS: bool = false;

    #[inline(never)]
    unsafe fn isolated(job: impl Job) {
        // SAFETY: plain Rust.
        unsafe { job.run() }
    }

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
    unsafe fn reciprocal(x: [f64; 4]) -> [f64; 4] {
        x.map(|x| 1.0 / x)
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
    #[inline(always)]
    unsafe fn no_counts() -> [u16; 16] {
        [0; 16]
    }
    #[inline(always)]
    unsafe fn load_all(p: *const u16) -> [u16; 16] {
        // SAFETY: the caller passes a pointer to COUNTERS elements.
        unsafe { p.cast::<[u16; 16]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn sub_counts(a: [u16; 16], b: [u16; 16]) -> [u16; 16] {
        std::array::from_fn(|l| a[l].wrapping_sub(b[l]))
    }
    #[inline(always)]
    unsafe fn add_counts(a: [u16; 16], b: [u16; 16]) -> [u16; 16] {
        std::array::from_fn(|l| a[l].wrapping_add(b[l]))
    }
    #[inline(always)]
    unsafe fn count_where(acc: [u16; 16], bits: u32, v: u16) -> [u16; 16] {
        std::array::from_fn(|l| acc[l].wrapping_add(v & ((bits >> l & 1) as u16).wrapping_neg()))
    }
    #[inline(always)]
    unsafe fn store_counts(p: *mut u16, v: [u16; 16]) {
        // SAFETY: the caller passes a pointer to COUNTERS elements.
        unsafe { p.cast::<[u16; 16]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn load_counts(p: *const u16) -> [f64; 4] {
        // SAFETY: the caller passes a pointer to N elements.
        unsafe { p.cast::<[u16; 4]>().read_unaligned() }.map(f64::from)
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Job, Reals};
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
        const COUNTERS: usize = 32;
        type C = __m512i;
        const COMPACTS: bool = true;

        #[inline]
        unsafe fn isolated(job: impl Job) {
            #[inline(never)]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt,fma")]
            unsafe fn apart(job: impl Job) {
                unsafe { job.run() }
            }
            unsafe { apart(job) }
        }

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
        unsafe fn reciprocal(x: __m512d) -> __m512d {
            unsafe {
                // Two steps of Newton's method: 14 bits, 28, all. Cheaper than a division.
                let one = _mm512_set1_pd(1.0);
                let r = _mm512_rcp14_pd(x);
                let r = _mm512_fmadd_pd(r, _mm512_fnmadd_pd(x, r, one), r);
                _mm512_fmadd_pd(r, _mm512_fnmadd_pd(x, r, one), r)
            }
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
        #[inline(always)]
        unsafe fn compact(bits: u64, mask: u64) -> u64 {
            unsafe { _pext_u64(bits, mask) }
        }
        #[inline(always)]
        unsafe fn narrow(from: &[u16], to: &mut [u16], rows: &[u32], width: usize, keep: u64) {
            unsafe {
                let mut lanes = [0u32; 80];
                let n = Self::positions(keep, 0, lanes.as_mut_ptr());
                let load = |p: *const u16| _mm512_loadu_si512(p.cast());
                let [low, high] = [0, 32].map(|at| {
                    let half = |at| _mm512_loadu_si512(lanes.as_ptr().add(at).cast());
                    let (a, b) = (half(at), half(at + 16));
                    let words = _mm512_castsi256_si512(_mm512_cvtepi32_epi16(a));
                    _mm512_inserti64x4::<1>(words, _mm512_cvtepi32_epi16(b))
                });
                for &row in rows {
                    let at = row as usize * width;
                    let (from, to) = (&from[at..][..width], &mut to[at..][..width]);
                    let a = load(from.as_ptr());
                    // One vector or two.
                    let b = if width > 32 { load(from.as_ptr().add(32)) } else { a };
                    let first = _mm512_permutex2var_epi16(a, low, b);
                    _mm512_storeu_si512(to.as_mut_ptr().cast(), first);
                    if n > 32 {
                        let rest = _mm512_permutex2var_epi16(a, high, b);
                        _mm512_storeu_si512(to.as_mut_ptr().add(32).cast(), rest);
                    }
                }
            }
        }
        #[inline(always)]
        unsafe fn no_counts() -> __m512i {
            unsafe { _mm512_setzero_si512() }
        }
        #[inline(always)]
        unsafe fn between(counts: __m512i, least: u16, most: u16) -> u32 {
            unsafe {
                let [least, most] = [least, most].map(|n| _mm512_set1_epi16(n.cast_signed()));
                _mm512_cmpge_epu16_mask(counts, least) & _mm512_cmple_epu16_mask(counts, most)
            }
        }
        #[inline(always)]
        unsafe fn load_all(p: *const u16) -> __m512i {
            unsafe { _mm512_loadu_si512(p.cast()) }
        }
        #[inline(always)]
        unsafe fn sub_counts(a: __m512i, b: __m512i) -> __m512i {
            unsafe { _mm512_sub_epi16(a, b) }
        }
        #[inline(always)]
        unsafe fn add_counts(a: __m512i, b: __m512i) -> __m512i {
            unsafe { _mm512_add_epi16(a, b) }
        }
        #[inline(always)]
        unsafe fn count_where(acc: __m512i, bits: u32, v: u16) -> __m512i {
            unsafe { _mm512_mask_add_epi16(acc, bits, acc, _mm512_set1_epi16(v.cast_signed())) }
        }
        #[inline(always)]
        unsafe fn store_counts(p: *mut u16, v: __m512i) {
            unsafe { _mm512_storeu_si512(p.cast(), v) }
        }
        #[inline(always)]
        unsafe fn load_counts(p: *const u16) -> __m512d {
            unsafe { _mm512_cvtepi32_pd(_mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()))) }
        }
        #[inline(always)]
        unsafe fn positions(bits: u64, base: u32, out: *mut u32) -> usize {
            unsafe {
                let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
                let mut n = 0;
                for quarter in 0..4 {
                    let mask = (bits >> (16 * quarter)) as u16;
                    let first = _mm512_set1_epi32((base + 16 * quarter).cast_signed());
                    let ids = _mm512_maskz_compress_epi32(mask, _mm512_add_epi32(lanes, first));
                    _mm512_storeu_si512(out.add(n).cast(), ids);
                    n += mask.count_ones() as usize;
                }
                n
            }
        }
    }

    // SAFETY of all blocks below: the trait's contract (instruction set, valid pointers).
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Reals for Avx2 {
        const N: usize = 4;
        type V = __m256d;
        const COUNTERS: usize = 16;
        type C = __m256i;
        const COMPACTS: bool = true;

        #[inline]
        unsafe fn isolated(job: impl Job) {
            #[inline(never)]
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,fma")]
            unsafe fn apart(job: impl Job) {
                unsafe { job.run() }
            }
            unsafe { apart(job) }
        }

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
        unsafe fn reciprocal(x: __m256d) -> __m256d {
            unsafe { _mm256_div_pd(_mm256_set1_pd(1.0), x) }
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
        #[inline(always)]
        unsafe fn compact(bits: u64, mask: u64) -> u64 {
            unsafe { _pext_u64(bits, mask) }
        }
        #[inline(always)]
        unsafe fn no_counts() -> __m256i {
            unsafe { _mm256_setzero_si256() }
        }
        #[inline(always)]
        unsafe fn load_all(p: *const u16) -> __m256i {
            unsafe { _mm256_loadu_si256(p.cast()) }
        }
        #[inline(always)]
        unsafe fn sub_counts(a: __m256i, b: __m256i) -> __m256i {
            unsafe { _mm256_sub_epi16(a, b) }
        }
        #[inline(always)]
        unsafe fn add_counts(a: __m256i, b: __m256i) -> __m256i {
            unsafe { _mm256_add_epi16(a, b) }
        }
        #[inline(always)]
        unsafe fn count_where(acc: __m256i, bits: u32, v: u16) -> __m256i {
            unsafe {
                let lane = _mm256_setr_epi16(
                    1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, -32768,
                );
                let set = _mm256_and_si256(_mm256_set1_epi16(bits as i16), lane);
                let mask = _mm256_cmpeq_epi16(set, lane);
                let value = _mm256_and_si256(mask, _mm256_set1_epi16(v.cast_signed()));
                _mm256_add_epi16(acc, value)
            }
        }
        #[inline(always)]
        unsafe fn store_counts(p: *mut u16, v: __m256i) {
            unsafe { _mm256_storeu_si256(p.cast(), v) }
        }
        #[inline(always)]
        unsafe fn load_counts(p: *const u16) -> __m256d {
            unsafe { _mm256_cvtepi32_pd(_mm_cvtepu16_epi32(_mm_loadl_epi64(p.cast()))) }
        }
    }
}
