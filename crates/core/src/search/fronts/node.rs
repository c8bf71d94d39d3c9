//! A set of rows with the sums of every pair of its columns: all leaves of depth two.

use crate::data::Sample;
use crate::search::branch::random_number;
use std::cell::OnceCell;
use std::rc::Rc;

/// Identity of a set of rows.
pub(super) type Key = (u128, usize);

/// Rows of one node of the search, with what is computed of them once.
pub(super) struct Node {
    pub sample: Sample,
    pub key: Key,
    /// Sums of the statistics over all rows, then the number of rows.
    pub total: Vec<i64>,
    children: Vec<[OnceCell<Rc<Node>>; 2]>,
    pairs: OnceCell<Rc<Pairs>>,
}

/// Sums of the statistics, the number of rows last, over the rows with one column or two.
pub(super) struct Pairs {
    record: usize,
    total: Vec<i64>,
    one: Vec<i64>,
    /// Records of pairs (f, g), f > g, at f(f − 1)/2 + g.
    two: Vec<i64>,
}

impl Node {
    pub fn new(sample: Sample) -> Node {
        let hash = sample.ids.iter().fold(0u128, |sum, &r| sum.wrapping_add(random_number(r)));
        let mut total = sample.total();
        total.push(sample.counts.iter().sum());
        let children = (0..sample.n_columns()).map(|_| Default::default()).collect();
        Node { key: (hash, sample.n_rows()), sample, total, children, pairs: OnceCell::new() }
    }

    /// The rows in which column `c` has the value; kept when `keep` allows the memory.
    pub fn child(&self, c: usize, value: bool, keep: &mut impl FnMut(usize) -> bool) -> Rc<Node> {
        let slot = &self.children[c][usize::from(value)];
        if let Some(child) = slot.get() {
            return child.clone();
        }
        let child = Rc::new(Node::new(self.sample.restrict(c, value)));
        let row = 8 * (child.sample.channels + child.sample.words() + 2);
        if keep(row * child.sample.n_rows() + 64 * child.sample.n_columns()) {
            slot.get_or_init(|| child.clone());
        }
        child
    }

    /// The pair sums; kept when `keep` allows the memory.
    pub fn pairs(&self, keep: &mut impl FnMut(usize) -> bool) -> Rc<Pairs> {
        if let Some(pairs) = self.pairs.get() {
            return pairs.clone();
        }
        let pairs = Rc::new(Pairs::new(&self.sample, &self.total));
        if keep(8 * (pairs.one.len() + pairs.two.len())) {
            self.pairs.get_or_init(|| pairs.clone());
        }
        pairs
    }
}

impl Pairs {
    fn new(sample: &Sample, total: &[i64]) -> Pairs {
        let (n, record) = (sample.n_columns(), sample.channels + 1);
        let mut pairs = Pairs {
            record,
            total: total.to_vec(),
            one: vec![0; n * record],
            two: vec![0; n * n.saturating_sub(1) / 2 * record],
        };
        match record {
            3 => pairs.accumulate::<3>(sample),
            4 => pairs.accumulate::<4>(sample),
            5 => pairs.accumulate::<5>(sample),
            6 => pairs.accumulate::<6>(sample),
            7 => pairs.accumulate::<7>(sample),
            8 => pairs.accumulate::<8>(sample),
            _ => pairs.accumulate_any(sample),
        }
        pairs
    }

    /// O(rows · (columns true in a row)²); `R` is the length of a record.
    fn accumulate<const R: usize>(&mut self, sample: &Sample) {
        let (one, _) = self.one.as_chunks_mut::<R>();
        let (two, _) = self.two.as_chunks_mut::<R>();
        let mut columns = Vec::with_capacity(sample.n_columns());
        let mut record = [0i64; R];
        for r in 0..sample.n_rows() {
            record[..R - 1].copy_from_slice(sample.statistics(r));
            record[R - 1] = sample.counts[r];
            true_columns(sample, r, &mut columns);
            for (i, &f) in columns.iter().enumerate() {
                add(&mut one[f], &record);
                let row = &mut two[f * f.saturating_sub(1) / 2..];
                for &g in &columns[..i] {
                    add(&mut row[g], &record);
                }
            }
        }
    }

    /// The same for records of any length.
    fn accumulate_any(&mut self, sample: &Sample) {
        let size = self.record;
        let mut columns = Vec::with_capacity(sample.n_columns());
        let mut record = vec![0i64; size];
        for r in 0..sample.n_rows() {
            record[..size - 1].copy_from_slice(sample.statistics(r));
            record[size - 1] = sample.counts[r];
            true_columns(sample, r, &mut columns);
            for (i, &f) in columns.iter().enumerate() {
                add(&mut self.one[f * size..(f + 1) * size], &record);
                for &g in &columns[..i] {
                    let at = (f * (f - 1) / 2 + g) * size;
                    add(&mut self.two[at..at + size], &record);
                }
            }
        }
    }

    pub fn total(&self) -> &[i64] {
        &self.total
    }

    fn one(&self, f: usize) -> &[i64] {
        &self.one[f * self.record..(f + 1) * self.record]
    }

    fn two(&self, f: usize, g: usize) -> &[i64] {
        let (f, g) = if f > g { (f, g) } else { (g, f) };
        let at = (f * (f - 1) / 2 + g) * self.record;
        &self.two[at..at + self.record]
    }

    /// Sums over the rows in which column `f` has the value.
    #[inline(always)]
    pub fn side(&self, f: usize, value: bool, out: &mut [i64]) {
        if value {
            out.copy_from_slice(self.one(f));
        } else {
            for ((o, t), a) in out.iter_mut().zip(&self.total).zip(self.one(f)) {
                *o = t - a;
            }
        }
    }

    /// Sums over the rows with the given values of columns `f` and `g`.
    #[inline(always)]
    pub fn cell(&self, f: usize, f_value: bool, g: usize, g_value: bool, out: &mut [i64]) {
        let both = self.two(f, g);
        match (f_value, g_value) {
            (true, true) => out.copy_from_slice(both),
            (true, false) => subtract(self.one(f), both, out),
            (false, true) => subtract(self.one(g), both, out),
            (false, false) => {
                let singles = self.one(f).iter().zip(self.one(g));
                for (((o, t), (a, b)), ab) in out.iter_mut().zip(&self.total).zip(singles).zip(both)
                {
                    *o = t - a - b + ab;
                }
            }
        }
    }
}

fn true_columns(sample: &Sample, r: usize, out: &mut Vec<usize>) {
    out.clear();
    for (w, &word) in sample.row(r).iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            out.push(w * 64 + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

#[inline(always)]
fn add(sum: &mut [i64], record: &[i64]) {
    for (s, v) in sum.iter_mut().zip(record) {
        *s += v;
    }
}

#[inline(always)]
fn subtract(a: &[i64], b: &[i64], out: &mut [i64]) {
    for ((o, a), b) in out.iter_mut().zip(a).zip(b) {
        *o = a - b;
    }
}
