//! Sorts and ranks numbers by counting the digits of their bits, in time linear in the number of
//! rows.

/// Bits of a digit.
const DIGIT: u32 = 11;

/// Runs of at most this many rows are sorted by insertion.
const SHORT: usize = 24;

/// A column of numbers as ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    /// Position of every row's value among the distinct values; NaN comes after all of them.
    pub ranks: Vec<u32>,
    /// The distinct values, ascending; −0 is stored as 0.
    pub distinct: Vec<f64>,
}

impl Ranks {
    /// Ranks fewer than 2³² values; O(n).
    pub fn new(values: &[f64]) -> Self {
        Ranks::unless(values, &mut || false).expect("nothing interrupts")
    }

    /// As [`new`](Self::new), but returns `None` as soon as `interrupted` returns true. It is
    /// called between the passes over the rows.
    pub fn unless(values: &[f64], interrupted: &mut dyn FnMut() -> bool) -> Option<Self> {
        let rows = sorted_unless(values, interrupted)?;
        let mut ranks = vec![0; values.len()];
        let mut distinct = Vec::with_capacity(values.len());
        let mut last = f64::NAN;
        for &row in &rows {
            // Adding 0 turns −0 into 0.
            let value = values[row as usize] + 0.0;
            if value != last {
                if value.is_nan() {
                    ranks[row as usize] = distinct.len() as u32;
                    continue;
                }
                last = value;
                distinct.push(value);
            }
            ranks[row as usize] = distinct.len() as u32 - 1;
        }
        distinct.shrink_to_fit();
        Some(Ranks { ranks, distinct })
    }
}

/// A number with the same order as the values: equal for −0 and 0, and largest for NaN.
fn key(value: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    if value.is_nan() {
        return u64::MAX;
    }
    let bits = (value + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// Rows in the order of their values, NaN last; rows with equal values keep their order. O(n).
fn sorted_unless(values: &[f64], interrupted: &mut dyn FnMut() -> bool) -> Option<Vec<u32>> {
    let mut rows: Vec<u32> = (0..values.len() as u32).collect();
    sort_unless(&mut rows, |row| key(values[row as usize]), interrupted)?;
    Some(rows)
}

/// Sorts rows by their keys; rows with equal keys keep their order. O(n).
///
/// The upper half of the bits in which the keys differ is sorted digit by digit. The rows that are
/// still tied are usually few, or all have one key; otherwise they are sorted by the lower half.
pub fn sort_by_keys(rows: &mut [u32], key: impl Fn(u32) -> u64) {
    sort_unless(rows, key, &mut || false);
}

/// As [`sort_by_keys`]; leaves the rows in no useful order if `interrupted` returns true.
fn sort_unless(
    rows: &mut [u32],
    key: impl Fn(u32) -> u64,
    interrupted: &mut dyn FnMut() -> bool,
) -> Option<()> {
    let mut scratch = [vec![0; rows.len()], vec![0; rows.len()]];
    sort(rows, &key, &mut scratch, interrupted)
}

fn sort(
    rows: &mut [u32],
    key: &impl Fn(u32) -> u64,
    scratch: &mut [Vec<u64>; 2],
    interrupted: &mut dyn FnMut() -> bool,
) -> Option<()> {
    if interrupted() {
        return None;
    }
    if rows.len() <= SHORT {
        insertion_sort(rows, key);
        return Some(());
    }
    let (mut least, mut most, mut last, mut is_sorted) = (u64::MAX, 0, 0, true);
    let (first, mut differ) = (key(rows[0]), 0);
    for &row in &*rows {
        let key = key(row);
        (least, most) = (least.min(key), most.max(key));
        (last, is_sorted) = (key, is_sorted & (last <= key));
        differ |= key ^ first;
    }
    if is_sorted {
        return Some(());
    }
    // For whole numbers the lowest bits are all 0.
    let equal = differ.trailing_zeros();
    let width = 64 - (most - least).leading_zeros();
    let low = width.saturating_sub(32).max(equal);
    let width = width - low;
    let high = |row: u32| (key(row) - least) >> low;
    let [pairs, other] = scratch;
    let (pairs, other) = (&mut pairs[..rows.len()], &mut other[..rows.len()]);
    for (pair, &row) in pairs.iter_mut().zip(&*rows) {
        *pair = high(row) << 32 | u64::from(row);
    }
    let sorted = sort_by_upper_half(pairs, other, width, interrupted)?;
    for (row, &pair) in rows.iter_mut().zip(&*sorted) {
        *row = pair as u32;
    }
    if low == equal {
        return Some(());
    }
    let mut long = Vec::new();
    let mut begin = 0;
    for at in 1..=sorted.len() {
        if at < sorted.len() && sorted[at] >> 32 == sorted[begin] >> 32 {
            continue;
        }
        match at - begin {
            1 => {}
            2..=SHORT => insertion_sort(&mut rows[begin..at], key),
            _ => long.push(begin..at),
        }
        begin = at;
    }
    for run in long {
        sort(&mut rows[run], key, scratch, interrupted)?;
    }
    Some(())
}

/// Sorts pairs of a 32-bit number and a row by the number. Only the lowest `width` bits of the
/// numbers are in use. Pairs with equal numbers keep their order, and a digit that is the same in
/// all pairs takes no pass. Returns the slice, of the two, that holds the result, or `None` once
/// `interrupted`.
fn sort_by_upper_half<'a>(
    pairs: &'a mut [u64],
    other: &'a mut [u64],
    width: u32,
    interrupted: &mut dyn FnMut() -> bool,
) -> Option<&'a mut [u64]> {
    let (mut from, mut to) = (pairs, other);
    // A few rows do not justify many counters.
    let most = from.len().max(2).ilog2().clamp(4, DIGIT);
    let digits = width.div_ceil(most).max(1);
    // Digits of equal width.
    let bits = width.div_ceil(digits).max(1);
    let mask = (1u64 << bits) - 1;
    let mut counts = vec![0u32; (digits as usize) << bits];
    for &pair in &*from {
        for digit in 0..digits {
            let value = pair >> (32 + digit * bits) & mask;
            counts[((digit as usize) << bits) + value as usize] += 1;
        }
    }
    for (digit, starts) in (0..digits).zip(counts.chunks_exact_mut(1 << bits)) {
        let shift = 32 + digit * bits;
        if interrupted() {
            return None;
        }
        if starts.contains(&(from.len() as u32)) {
            continue;
        }
        let mut sum = 0;
        for start in &mut *starts {
            (*start, sum) = (sum, sum + *start);
        }
        for &pair in &*from {
            let start = &mut starts[(pair >> shift & mask) as usize];
            to[*start as usize] = pair;
            *start += 1;
        }
        (from, to) = (to, from);
    }
    Some(from)
}

fn insertion_sort(rows: &mut [u32], key: &impl Fn(u32) -> u64) {
    for i in 1..rows.len() {
        let row = rows[i];
        let own = key(row);
        let mut at = i;
        while at > 0 && key(rows[at - 1]) > own {
            rows[at] = rows[at - 1];
            at -= 1;
        }
        rows[at] = row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bristlecone_oracle::instances::Random;

    /// Ranks straight from the definition, sorted by comparisons.
    fn plainly(values: &[f64]) -> Ranks {
        let mut distinct: Vec<f64> =
            values.iter().filter(|v| !v.is_nan()).map(|v| v + 0.0).collect();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        let rank = |v: &f64| distinct.iter().filter(|&d| d < v || v.is_nan()).count() as u32;
        let ranks: Vec<u32> = values.iter().map(rank).collect();
        Ranks { ranks, distinct }
    }

    fn real(random: &mut Random) -> f64 {
        random.unit() - 0.5
    }

    #[test]
    fn ranks_are_dense_and_zeros_equal() {
        let found = Ranks::new(&[2.5, -0.0, 7.0, 0.0, f64::NAN, 2.5]);
        assert_eq!(found.ranks, [1, 0, 2, 0, 3, 1]);
        assert_eq!(found.distinct, [0.0, 2.5, 7.0]);
        assert_eq!(found.distinct[0].to_bits(), 0);
        assert_eq!(Ranks::new(&[]), Ranks::default());
    }

    #[test]
    fn ranks_are_those_of_comparisons() {
        let tiny = f64::from_bits(1);
        let special = [
            0.0,
            -0.0,
            tiny,
            -tiny,
            f64::MIN_POSITIVE,
            -f64::MIN_POSITIVE,
            f64::MAX,
            f64::MIN,
            1.0,
            f64::from_bits(1.0f64.to_bits() + 1),
            1e-300,
            -1e300,
            f64::NAN,
        ];
        for seed in 0..40 {
            let random = &mut Random::new(seed);
            let n = [1, 2, 20, 300, 1500][random.below(5)];
            let columns: [Vec<f64>; 7] = [
                (0..n).map(|_| real(random)).collect(),
                (0..n).map(|_| random.pick(&special)).collect(),
                vec![-3.5; n],
                (0..n).map(|_| random.below(5) as f64 - 2.0).collect(),
                // Values that are close together: the upper halves of their bits are one number, or
                // a few.
                (0..n).map(|_| f64::from_bits((1u64 << 62) + random.below(n) as u64)).collect(),
                (0..n)
                    .map(|_| {
                        let far: f64 = [0.0, 1e9, -1e-9][random.below(3)];
                        far + random.below(40) as f64 * far.abs() * f64::EPSILON
                    })
                    .collect(),
                (0..n).map(|_| real(random) * 10f64.powi(random.below(600) as i32 - 300)).collect(),
            ];
            for values in &columns {
                assert_eq!(Ranks::new(values), plainly(values), "seed {seed}");
            }
        }
    }

    #[test]
    fn an_interrupt_ends_the_ranking_of_a_column_at_any_pass() {
        let random = &mut Random::new(0);
        let values: Vec<f64> = (0..5000).map(|_| real(random)).collect();
        let mut asked = 0;
        let mut count = || {
            asked += 1;
            false
        };
        assert_eq!(Ranks::unless(&values, &mut count), Some(Ranks::new(&values)));
        assert!(asked > 3, "asked {asked} times");
        for last in 0..asked {
            let mut left = last;
            let mut interrupted = || {
                left -= 1;
                left < 0
            };
            assert_eq!(Ranks::unless(&values, &mut interrupted), None);
        }
    }

    #[test]
    fn equal_keys_keep_their_order() {
        for seed in 0..20 {
            let random = &mut Random::new(seed);
            let n = 1 + random.below(900);
            let most = [1, 3, 70, 5000][random.below(4)];
            let keys: Vec<u64> =
                (0..n).map(|_| random.below(most) as u64 * (u64::MAX / 5001)).collect();
            let mut rows: Vec<u32> = (0..n as u32).rev().collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|&row| keys[row as usize]);
            sort_by_keys(&mut rows, |row| keys[row as usize]);
            assert_eq!(rows, expected);
        }
    }
}
