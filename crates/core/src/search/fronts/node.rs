//! A set of rows with the sums of every pair of its columns: all leaves of depth two.

use crate::data::{BinaryMatrix, Sample};
use crate::search::{Monitor, Stop};
use crate::task::RowLeaves;
use std::cell::OnceCell;
use std::rc::Rc;

/// Steps between two looks at the monitor.
const STRIDE: usize = 1 << 16;

/// Looks at the monitor as work is done.
pub(super) struct Pace<'a> {
    monitor: &'a Monitor<'a>,
    work: usize,
}

impl<'a> Pace<'a> {
    pub fn new(monitor: &'a Monitor<'a>) -> Self {
        Pace { monitor, work: 0 }
    }

    /// So many steps are to be done.
    #[inline(always)]
    pub fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        self.work += steps;
        if self.work < STRIDE {
            return Ok(());
        }
        self.work = 0;
        self.monitor.check()
    }
}

/// Identity of a set of rows.
pub(super) type Key = (u128, usize);

/// The caller's rows behind the distinct ones, for leaves that follow from them.
pub(super) struct Members<'a> {
    pub leaves: &'a dyn RowLeaves,
    /// Distinct row that every row of the caller was merged into.
    distinct: Vec<u32>,
}

impl<'a> Members<'a> {
    /// Distinct rows are numbered in the order of their bits, as [`Sample::new`] does.
    pub fn new(leaves: &'a dyn RowLeaves, features: &BinaryMatrix) -> Self {
        let mut order: Vec<u32> = (0..features.n_rows() as u32).collect();
        let row = |r: u32| features.row(r as usize);
        order.sort_by(|&a, &b| row(a).cmp(row(b)));
        let mut distinct = vec![0; order.len()];
        let mut number = 0;
        for (at, &r) in order.iter().enumerate() {
            number += u32::from(at > 0 && row(order[at - 1]) != row(r));
            distinct[r as usize] = number;
        }
        Members { leaves, distinct }
    }

    /// Statistics 0 and 1 of a leaf of the distinct rows that are `inside`.
    pub fn leaf(&self, inside: impl Fn(usize) -> bool, share: i64) -> [i64; 2] {
        let of_leaf = |r: &&u32| inside(self.distinct[**r as usize] as usize);
        let rows: Vec<u32> = self.leaves.order().iter().filter(of_leaf).copied().collect();
        let mut leaf = [[0; 2]];
        self.leaves.fill(&rows, &vec![0; rows.len()], &mut leaf, &[share]);
        leaf[0]
    }

    /// The caller's rows of a sample in their order, each with its place in the sample.
    fn of(&self, sample: &Sample) -> (Vec<u32>, Vec<u32>) {
        let most = self.distinct.iter().max().map_or(0, |&m| m as usize + 1);
        let mut place = vec![u32::MAX; most];
        for (at, &id) in sample.ids.iter().enumerate() {
            place[id as usize] = at as u32;
        }
        let of_row = |&r: &u32| (r, place[self.distinct[r as usize] as usize]);
        self.leaves.order().iter().map(of_row).filter(|(_, at)| *at != u32::MAX).unzip()
    }
}

/// Rows of one node of the search, with what is computed of them once.
pub(super) struct Node {
    pub sample: Sample,
    pub key: Key,
    /// Sums of the statistics over all rows, then their size: numbers of rows and of events.
    pub total: Vec<i64>,
    children: Vec<[OnceCell<Rc<Node>>; 2]>,
    /// Sums of single columns alone, and with those of pairs.
    pairs: [OnceCell<Rc<Pairs>>; 2],
}

/// Sums of the statistics, the size last, over the rows with one column or two.
pub(super) struct Pairs {
    record: usize,
    total: Vec<i64>,
    one: Vec<i64>,
    /// Records of pairs (f, g), f > g, at f(f − 1)/2 + g.
    two: Vec<i64>,
    /// First two statistics of both sides of every column, and of the four cells of every
    /// pair, where they are not sums.
    sides: Vec<[[i64; 2]; 2]>,
    cells: Vec<[[i64; 2]; 4]>,
}

/// Bytes of a node apart from its rows and columns: itself, and what the allocator adds to each of
/// its lists.
const NODE_BYTES: usize = size_of::<Node>() + 12 * 16;

impl Node {
    pub fn new(sample: Sample, members: Option<&Members>) -> Node {
        let mut total = sample.total.clone();
        if let Some(members) = members {
            let (rows, _) = members.of(&sample);
            let mut leaf = [[0; 2]];
            let share = [total[2] - total[3]];
            members.leaves.fill(&rows, &vec![0; rows.len()], &mut leaf, &share);
            total[..2].copy_from_slice(&leaf[0]);
        }
        total.push(sample.total_size());
        let children = (0..sample.n_columns()).map(|_| Default::default()).collect();
        Node {
            key: (sample.key(), sample.n_rows()),
            sample,
            total,
            children,
            pairs: Default::default(),
        }
    }

    /// The rows in which column `c` has the value; kept when `keep` allows the memory.
    pub fn child(
        &self,
        c: usize,
        value: bool,
        members: Option<&Members>,
        keep: &mut impl FnMut(usize) -> bool,
    ) -> Rc<Node> {
        let slot = &self.children[c][usize::from(value)];
        if let Some(child) = slot.get() {
            return child.clone();
        }
        let child = Rc::new(Node::new(self.sample.restrict(c, value), members));
        // Statistics, bits, counts, events and the number of a row.
        let row = 8 * (child.sample.channels + child.sample.words() + 2) + 4;
        let bytes = row * child.sample.n_rows() + 64 * child.sample.n_columns() + NODE_BYTES;
        if keep(bytes) {
            slot.get_or_init(|| child.clone());
        }
        child
    }

    /// The sums of columns, of pairs too where `both`; kept when `keep` allows the memory. Stops
    /// where they take more than `limit` bytes.
    pub fn pairs(
        &self,
        both: bool,
        members: Option<&Members>,
        monitor: &Monitor,
        limit: usize,
        keep: &mut impl FnMut(usize) -> bool,
    ) -> Result<Rc<Pairs>, Stop> {
        let slot = &self.pairs[usize::from(both)];
        if let Some(pairs) = slot.get() {
            return Ok(pairs.clone());
        }
        let n = self.sample.n_columns();
        let two = if both { n * n.saturating_sub(1) / 2 } else { 0 };
        let cells = if members.is_some() { 8 * two + 4 * n } else { 0 };
        let bytes = 8 * ((n + two) * (self.sample.channels + 1) + cells);
        if bytes > limit {
            return Err(Stop::Memory);
        }
        let pairs = Rc::new(Pairs::new(&self.sample, &self.total, both, members, monitor)?);
        if keep(bytes) {
            slot.get_or_init(|| pairs.clone());
        }
        Ok(pairs)
    }
}

impl Pairs {
    fn new(
        sample: &Sample,
        total: &[i64],
        both: bool,
        members: Option<&Members>,
        monitor: &Monitor,
    ) -> Result<Pairs, Stop> {
        let (n, record) = (sample.n_columns(), sample.channels + 1);
        let two = if both { n * n.saturating_sub(1) / 2 } else { 0 };
        let pace = &mut Pace::new(monitor);
        let mut pairs = Pairs {
            record,
            total: total.to_vec(),
            one: vec![0; n * record],
            two: vec![0; two * record],
            sides: Vec::new(),
            cells: Vec::new(),
        };
        match record {
            3 => pairs.accumulate::<3>(sample, pace)?,
            4 => pairs.accumulate::<4>(sample, pace)?,
            5 => pairs.accumulate::<5>(sample, pace)?,
            6 => pairs.accumulate::<6>(sample, pace)?,
            7 => pairs.accumulate::<7>(sample, pace)?,
            8 => pairs.accumulate::<8>(sample, pace)?,
            _ => pairs.accumulate_any(sample, pace)?,
        }
        if let Some(members) = members {
            pairs.read_rows(sample, members, pace)?;
        }
        Ok(pairs)
    }

    /// The first two statistics of all sides and cells from the rows; O(columns² · rows).
    fn read_rows(
        &mut self,
        sample: &Sample,
        members: &Members,
        pace: &mut Pace,
    ) -> Result<(), Stop> {
        let both = !self.two.is_empty();
        let (rows, places) = members.of(sample);
        let mut cells = vec![0u8; rows.len()];
        let mut record = vec![0; self.record];
        for f in 0..sample.n_columns() {
            for (cell, &at) in cells.iter_mut().zip(&places) {
                *cell = u8::from(sample.get(at as usize, f));
            }
            let mut shares = [0; 2];
            for (value, share) in shares.iter_mut().enumerate() {
                self.sums_of_side(f, value == 1, &mut record);
                *share = record[2] - record[3];
            }
            let mut leaves = [[0; 2]; 2];
            members.leaves.fill(&rows, &cells, &mut leaves, &shares);
            self.sides.push(leaves);
            pace.spend(rows.len())?;
            for g in 0..if both { f } else { 0 } {
                pace.spend(rows.len())?;
                for (cell, &at) in cells.iter_mut().zip(&places) {
                    let at = at as usize;
                    *cell = 2 * u8::from(sample.get(at, f)) + u8::from(sample.get(at, g));
                }
                let mut shares = [0; 4];
                for (cell, share) in shares.iter_mut().enumerate() {
                    self.sums_of_cell(f, cell >= 2, g, cell % 2 == 1, &mut record);
                    *share = record[2] - record[3];
                }
                let mut leaves = [[0; 2]; 4];
                members.leaves.fill(&rows, &cells, &mut leaves, &shares);
                self.cells.push(leaves);
            }
        }
        Ok(())
    }

    /// O(rows · (columns true in a row)²); `R` is the length of a record.
    fn accumulate<const R: usize>(&mut self, sample: &Sample, pace: &mut Pace) -> Result<(), Stop> {
        let both = !self.two.is_empty();
        let (one, _) = self.one.as_chunks_mut::<R>();
        let (two, _) = self.two.as_chunks_mut::<R>();
        let mut columns = Vec::with_capacity(sample.n_columns());
        let mut record = [0i64; R];
        for r in 0..sample.n_rows() {
            record[..R - 1].copy_from_slice(sample.statistics(r));
            record[R - 1] = sample.size(r);
            true_columns(sample, r, &mut columns);
            for (i, &f) in columns.iter().enumerate() {
                add(&mut one[f], &record);
                pace.spend(i + 1)?;
                if !both {
                    continue;
                }
                let row = &mut two[f * f.saturating_sub(1) / 2..];
                for &g in &columns[..i] {
                    add(&mut row[g], &record);
                }
            }
        }
        Ok(())
    }

    /// The same for records of any length.
    fn accumulate_any(&mut self, sample: &Sample, pace: &mut Pace) -> Result<(), Stop> {
        let (size, both) = (self.record, !self.two.is_empty());
        let mut columns = Vec::with_capacity(sample.n_columns());
        let mut record = vec![0i64; size];
        for r in 0..sample.n_rows() {
            record[..size - 1].copy_from_slice(sample.statistics(r));
            record[size - 1] = sample.size(r);
            true_columns(sample, r, &mut columns);
            for (i, &f) in columns.iter().enumerate() {
                add(&mut self.one[f * size..(f + 1) * size], &record);
                pace.spend(size * (i + 1))?;
                for &g in &columns[..if both { i } else { 0 }] {
                    let at = (f * (f - 1) / 2 + g) * size;
                    add(&mut self.two[at..at + size], &record);
                }
            }
        }
        Ok(())
    }

    pub fn total(&self) -> &[i64] {
        &self.total
    }

    /// Sums over the rows with column `f`.
    #[inline(always)]
    pub fn one(&self, f: usize) -> &[i64] {
        &self.one[f * self.record..(f + 1) * self.record]
    }

    /// Sums over the rows with columns `f` and `g`.
    #[inline(always)]
    pub fn two(&self, f: usize, g: usize) -> &[i64] {
        let (f, g) = if f > g { (f, g) } else { (g, f) };
        let at = (f * (f - 1) / 2 + g) * self.record;
        &self.two[at..at + self.record]
    }

    /// Sums over the rows in which column `f` has the value.
    #[inline(always)]
    pub fn side(&self, f: usize, value: bool, out: &mut [i64]) {
        self.sums_of_side(f, value, out);
        if let Some(sides) = self.sides.get(f) {
            out[..2].copy_from_slice(&sides[usize::from(value)]);
        }
    }

    #[inline(always)]
    fn sums_of_side(&self, f: usize, value: bool, out: &mut [i64]) {
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
        self.sums_of_cell(f, f_value, g, g_value, out);
        if !self.cells.is_empty() {
            let ((f, a), (g, b)) =
                if f > g { ((f, f_value), (g, g_value)) } else { ((g, g_value), (f, f_value)) };
            let cell = 2 * usize::from(a) + usize::from(b);
            out[..2].copy_from_slice(&self.cells[f * (f - 1) / 2 + g][cell]);
        }
    }

    #[inline(always)]
    fn sums_of_cell(&self, f: usize, f_value: bool, g: usize, g_value: bool, out: &mut [i64]) {
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
