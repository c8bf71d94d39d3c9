//! Groups rows with the same statistics and stores their columns as bits, so that sums over pairs
//! of columns are counts of bits.

use super::node::Pace;
use super::triangle;
use crate::data::{Sample, column_bitsets};
use crate::search::Stop;
use crate::simd::{Backend, Job, Lanes, with_token};

/// A row with more pairs than this takes longer to add up than to sort.
const WORTH_SORTING: usize = 200;

/// Rows with the same statistics and size.
struct Alike {
    /// The statistics, followed by the size.
    record: Vec<i64>,
    /// Rows in which each column is true, as bits: `[column][words]`.
    bits: Vec<u64>,
    words: usize,
}

/// The rows of a sample, grouped by their statistics.
pub struct Kinds(Vec<Alike>);

impl Kinds {
    /// `None` if adding up the rows one by one takes fewer steps than counting the bits of all
    /// pairs of columns.
    pub fn of(sample: &Sample) -> Option<Kinds> {
        let (n_rows, n) = (sample.n_rows(), sample.n_columns());
        let trues = |r: usize| sample.row(r).iter().map(|w| w.count_ones() as usize).sum::<usize>();
        let one_by_one: usize = (0..n_rows).map(|r| triangle::pairs(trues(r) + 1)).sum();
        if one_by_one < WORTH_SORTING * n_rows {
            return None;
        }
        let key = |r: u32| (sample.statistics(r as usize), sample.size(r as usize));
        let mut order: Vec<u32> = (0..n_rows as u32).collect();
        order.sort_unstable_by(|&a, &b| key(a).cmp(&key(b)));
        let kinds = || order.chunk_by(|&a, &b| key(a) == key(b));
        let words: usize = kinds().map(|rows| rows.len().div_ceil(64)).sum();
        let record = sample.channels + 1;
        let counted = triangle::pairs(n + 1) * (words + kinds().count() * record);
        if counted >= one_by_one * record {
            return None;
        }
        let alike = |rows: &[u32]| {
            let (statistics, size) = key(rows[0]);
            let mut bits = Vec::new();
            column_bitsets(rows.len(), n, |i| sample.row(rows[i] as usize), &mut bits);
            let record = statistics.iter().copied().chain([size]).collect();
            Alike { record, bits, words: rows.len().div_ceil(64) }
        };
        Some(Kinds(kinds().map(alike).collect()))
    }

    /// Adds the sums of columns, and those of pairs (f, g), f > g, at f(f − 1)/2 + g.
    pub fn add(
        &self,
        backend: Backend,
        one: &mut [i64],
        two: &mut [i64],
        pace: &mut Pace,
    ) -> Result<(), Stop> {
        for Alike { record, bits, words } in &self.0 {
            let size = record.len();
            for f in 0..one.len() / size {
                pace.spend((f + 1) * words)?;
                let (before, own) = (&bits[..f * words], &bits[f * words..][..*words]);
                let n_true: u32 = own.iter().map(|word| word.count_ones()).sum();
                if n_true > 0 {
                    add(&mut one[f * size..][..size], record, n_true);
                    let row = &mut two[triangle::pairs(f) * size..][..f * size];
                    let job = Row { own, before, record, row };
                    with_token!(backend, token => token.single().run(job));
                }
            }
        }
        Ok(())
    }
}

/// Pairs of a column with the columns before it.
struct Row<'a> {
    own: &'a [u64],
    before: &'a [u64],
    record: &'a [i64],
    row: &'a mut [i64],
}

impl<L> Job<L> for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: L) {
        let Row { own, before, record, row } = self;
        let columns = before.chunks_exact(own.len());
        for (column, sums) in columns.zip(row.chunks_exact_mut(record.len())) {
            let both = own.iter().zip(column).map(|(a, b)| (a & b).count_ones()).sum();
            add(sums, record, both);
        }
    }
}

#[inline(always)]
fn add(sums: &mut [i64], record: &[i64], times: u32) {
    for (sum, value) in sums.iter_mut().zip(record) {
        *sum += i64::from(times) * value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::search::Monitor;

    #[test]
    fn counts_are_the_sums_over_rows() {
        let (n_rows, n) = (700, 60);
        let byte = |r: usize, f: usize| {
            let mixed = (r * n + f + 1) as u64;
            u8::from(mixed.wrapping_mul(mixed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60 < 7)
        };
        let bytes: Vec<u8> = (0..n_rows).flat_map(|r| (0..n).map(move |f| byte(r, f))).collect();
        let matrix = BinaryMatrix::from_bytes(n_rows, n, &bytes).unwrap();
        let statistics: Vec<i64> = (0..n_rows as i64).flat_map(|r| [r % 3, 5 - r % 2]).collect();
        let sample = Sample::new(&matrix, &statistics, 2);
        let kinds = Kinds::of(&sample).expect("six kinds of rows");
        let n = sample.n_columns();
        let (mut one, mut two) = (vec![0; 3 * n], vec![0; 3 * triangle::pairs(n)]);
        let (mut by_row, mut by_rows) = (one.clone(), two.clone());
        for r in 0..sample.n_rows() {
            let record = [sample.statistics(r), &[sample.size(r)]].concat();
            let columns: Vec<usize> = sample.true_columns(r).collect();
            for (i, &f) in columns.iter().enumerate() {
                add(&mut by_row[3 * f..][..3], &record, 1);
                for &g in &columns[..i] {
                    add(&mut by_rows[3 * triangle::place(f, g)..][..3], &record, 1);
                }
            }
        }
        let monitor = Monitor::new(None, &|| false);
        for backend in Backend::available() {
            one.fill(0);
            two.fill(0);
            let end = kinds.add(backend, &mut one, &mut two, &mut Pace::new(&monitor));
            assert!(end.is_ok());
            assert_eq!((&one, &two), (&by_row, &by_rows));
        }
    }
}
