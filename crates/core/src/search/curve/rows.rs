//! Rows of a node in the order of time, and what is the same for all nodes.

use crate::data::{BinaryMatrix, Column, Sample};
use crate::error::Error;
use crate::task::brier::Brier;
use crate::task::brier::antitonic::Fit;

/// A row's place in time: twice the index of its time, plus one for a censoring, so that the
/// events of a time come before its censorings.
pub type Code = u32;

/// Distinct rows of a node, sorted by [`Code`].
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Packed columns, `words` per row.
    pub bits: Vec<u64>,
    /// Time and kind of each row.
    pub code: Vec<Code>,
    /// Whole-numbered weight of each row.
    pub weight: Vec<f64>,
    /// Index of each row at the root.
    pub id: Vec<u32>,
    /// Words per row.
    pub words: usize,
    /// Identifies the set of rows, whatever the order.
    pub hash: u128,
    /// Number of the caller's rows.
    pub count: f64,
    /// No tree on these rows loses less, apart from the price of its leaves.
    pub floor: f64,
}

impl Rows {
    /// Number of distinct rows.
    pub fn len(&self) -> usize {
        self.code.len()
    }

    /// Value of column `c` in row `r`.
    #[inline]
    pub fn get(&self, r: usize, c: usize) -> bool {
        self.bits[r * self.words + c / 64] >> (c % 64) & 1 == 1
    }

    fn reset(&mut self, words: usize, capacity: usize) {
        self.bits.resize(capacity * words, 0);
        self.code.resize(capacity, 0);
        self.weight.resize(capacity, 0.0);
        self.id.resize(capacity, 0);
        self.words = words;
        (self.hash, self.count, self.floor) = (0, 0.0, 0.0);
    }

    fn truncate(&mut self, len: usize) {
        self.bits.truncate(len * self.words);
        self.code.truncate(len);
        self.weight.truncate(len);
        self.id.truncate(len);
    }

    /// The rows where column `c` is true, and those where it is false.
    pub fn split(&self, c: usize, tables: &Tables, yes: &mut Rows, no: &mut Rows) {
        let (words, n) = (self.words, self.len());
        yes.reset(words, n);
        no.reset(words, n);
        let mut ends = [0, 0];
        for r in 0..n {
            let side = usize::from(!self.get(r, c));
            let to = if side == 0 { &mut *yes } else { &mut *no };
            let end = ends[side];
            to.bits[end * words..(end + 1) * words]
                .copy_from_slice(&self.bits[r * words..(r + 1) * words]);
            to.code[end] = self.code[r];
            to.weight[end] = self.weight[r];
            let id = self.id[r];
            to.id[end] = id;
            let about = &tables.about[id as usize];
            to.hash = to.hash.wrapping_add(about.hash);
            to.count += about.count;
            to.floor += about.floor;
            ends[side] += 1;
        }
        yes.truncate(ends[0]);
        no.truncate(ends[1]);
    }
}

/// What adds up over rows, apart from their weight.
///
/// Rows with equal columns are never separated; hash and floor of such a group are those of
/// its first row, and zero for the others.
#[derive(Clone, Copy, Debug, Default)]
pub struct About {
    /// Random number.
    pub hash: u128,
    /// Number of the caller's rows.
    pub count: f64,
    /// Least loss of any non-increasing curve on the group (or of the reference model).
    pub floor: f64,
}

/// Constants of a search.
#[derive(Debug)]
pub struct Tables {
    /// Per time: the time to the end, normalised.
    pub plain: Vec<f64>,
    /// Per time: integral of 1/G to the end, normalised.
    pub censoring: Vec<f64>,
    /// Per time: 1/G.
    pub inverse_censoring: Vec<f64>,
    /// Per row.
    pub about: Vec<About>,
    /// Columns searched.
    pub columns: Vec<Column>,
    /// Whether any row's weight differs from its count.
    pub weighted: bool,
    /// Groups of rows with equal columns.
    pub n_groups: usize,
    /// Floor of all rows without the reference model.
    pub free_floor: f64,
}

/// Largest total weight in whole numbers: f64 adds them exactly.
const MAX_TOTAL: f64 = (1u64 << 51) as f64;

impl Tables {
    /// The root and the constants for it.
    ///
    /// `floors` asks for the floor of every group of equal rows.
    pub fn new(
        task: &Brier,
        features: &BinaryMatrix,
        floors: bool,
    ) -> Result<(Rows, Tables), Error> {
        let n = task.n_rows();
        if u32::try_from(n).is_err() {
            return Err(Error::invalid("X", "more than 2^32 rows"));
        }
        let columns = Sample::new(features, &[], 0).columns;
        let words = columns.len().div_ceil(64).max(1);
        let scale = weight_scale(&task.weight);
        let mut all = Rows { words, bits: vec![0; n * words], ..Rows::default() };
        for r in 0..n {
            for (c, column) in columns.iter().enumerate() {
                let value = features.get(r, column.feature) != column.flipped;
                all.bits[r * words + c / 64] |= u64::from(value) << (c % 64);
            }
            all.code.push(2 * task.time_index(r) as Code + Code::from(!task.event[r]));
            all.weight.push((task.weight[r] * scale).round());
        }
        let packed = |r: u32| &all.bits[r as usize * words..(r as usize + 1) * words];
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_unstable_by(|&r, &s| {
            packed(r).cmp(packed(s)).then(all.code[r as usize].cmp(&all.code[s as usize]))
        });
        // Equal rows, group by group.
        let (mut merged, mut group): (Vec<(u32, f64, About)>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut reference = Vec::new();
        for (at, &r) in order.iter().enumerate() {
            let i = r as usize;
            let before = at.checked_sub(1).map(|at| order[at]);
            let same_group = before.is_some_and(|b| packed(b) == packed(r));
            if !same_group {
                reference.push(0.0);
            }
            if let Some(losses) = &task.reference {
                *reference.last_mut().expect("a group was begun") += losses[i] * task.weight[i];
            }
            match merged.last_mut() {
                Some((first, weight, about))
                    if same_group && all.code[*first as usize] == all.code[i] =>
                {
                    *weight += all.weight[i];
                    about.count += 1.0;
                }
                _ => {
                    merged.push((r, all.weight[i], About { count: 1.0, ..About::default() }));
                    group.push(reference.len() as u32 - 1);
                }
            }
        }
        let total: f64 = merged.iter().map(|row| row.1).sum();
        let (plain, censoring) = task.suffix_integrals(total);
        let weighted = merged.iter().any(|(_, weight, about)| *weight != about.count);
        let mut tables = Tables {
            plain,
            censoring,
            inverse_censoring: task.inverse_censoring.clone(),
            about: Vec::new(),
            columns,
            weighted,
            n_groups: reference.len(),
            free_floor: 0.0,
        };
        let mut start = 0;
        while start < merged.len() {
            let len = group[start..].iter().take_while(|&&g| g == group[start]).count();
            let rows = merged[start..start + len].iter();
            let curve = rows.map(|&(r, weight, _)| (all.code[r as usize], weight));
            let floor = if floors { tables.best_curve(curve) } else { 0.0 };
            tables.free_floor += floor;
            let head = &mut merged[start].2;
            head.floor = floor.max(reference[group[start] as usize] / task.total_weight());
            head.hash = random_number(group[start]);
            start += len;
        }
        let mut by_time: Vec<u32> = (0..merged.len() as u32).collect();
        by_time.sort_by_key(|&m| all.code[merged[m as usize].0 as usize]);
        let mut root = Rows { words, ..Rows::default() };
        for (id, m) in by_time.into_iter().enumerate() {
            let (r, weight, about) = merged[m as usize];
            root.bits.extend_from_slice(packed(r));
            root.code.push(all.code[r as usize]);
            root.weight.push(weight);
            root.id.push(id as u32);
            root.hash = root.hash.wrapping_add(about.hash);
            root.count += about.count;
            root.floor += about.floor;
            tables.about.push(about);
        }
        Ok((root, tables))
    }

    /// Loss of the best non-increasing curve on rows in the order of time.
    pub fn best_curve(&self, rows: impl Iterator<Item = (Code, f64)> + Clone) -> f64 {
        let mut fit = Fit::default();
        let (mut n, mut v): (f64, f64) = (rows.clone().map(|row| row.1).sum(), 0.0);
        let mut last: Option<usize> = None;
        for (code, weight) in rows {
            let k = (code / 2) as usize;
            if let Some(last) = last.filter(|&last| last != k) {
                fit.push(
                    v * (self.plain[last] - self.plain[k]),
                    n * (self.censoring[last] - self.censoring[k]),
                );
            }
            last = Some(k);
            n -= weight;
            if code % 2 == 0 {
                v += weight * self.inverse_censoring[k];
            }
        }
        if let Some(last) = last {
            fit.push(v * self.plain[last], n * self.censoring[last]);
        }
        fit.loss()
    }

    /// Loss of the Kaplan–Meier curve on rows in the order of time.
    pub fn kaplan_meier(&self, rows: impl Iterator<Item = (Code, f64)> + Clone) -> f64 {
        let (mut n, mut v): (f64, f64) = (rows.clone().map(|row| row.1).sum(), 0.0);
        let (mut survival, mut ratio, mut loss) = (1.0, 1.0 / n.max(1.0), 0.0);
        let mut last = 0;
        for (code, weight) in rows {
            let k = (code / 2) as usize;
            let (p, q) = (
                v * (self.plain[last] - self.plain[k]),
                n * (self.censoring[last] - self.censoring[k]),
            );
            loss += survival * survival * p + (1.0 - survival) * (1.0 - survival) * q;
            last = k;
            n -= weight;
            if weight == 0.0 {
                continue;
            }
            if code % 2 == 0 {
                survival = ratio * n;
                v += weight * self.inverse_censoring[k];
            } else {
                ratio = survival / n.max(1.0);
            }
        }
        let (p, q) = (v * self.plain[last], n * self.censoring[last]);
        loss + survival * survival * p + (1.0 - survival) * (1.0 - survival) * q
    }
}

/// A power of two (or one) that makes all weights whole numbers, as nearly as f64 allows.
fn weight_scale(weights: &[f64]) -> f64 {
    let total: f64 = weights.iter().sum();
    if total < MAX_TOTAL && weights.iter().all(|w| w.fract() == 0.0) {
        return 1.0;
    }
    (MAX_TOTAL / total).log2().floor().exp2()
}

/// A fixed 128-bit number per group of rows; sums of them identify sets of groups.
fn random_number(group: u32) -> u128 {
    let mix = |mut x: u64| {
        // splitmix64
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let low = mix(u64::from(group));
    u128::from(low) | u128::from(mix(low ^ 0x5851_f42d_4c95_7f2d)) << 64
}
