//! A set of rows with the sums of every pair of its columns: all leaves of depth two.

use super::curves::Curves;
use super::triangle;
use crate::data::Sample;
use crate::search::curve::kernel::Splits;
use crate::search::curve::rows::Rows;
use crate::search::{Monitor, Stop};
use std::cell::OnceCell;
use std::rc::Rc;

/// Steps between two looks at the monitor.
const STRIDE: usize = 1 << 16;

/// Looks at the monitor as work is done.
#[derive(Clone)]
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

/// Rows of one node of the search, with what is computed of them once.
pub(super) struct Node {
    pub sample: Sample,
    pub key: Key,
    /// The same in the order of time, where leaves are curves.
    pub rows: Rows,
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
    /// `rows` are those of the sample in the order of time, where leaves are `curves`.
    pub fn new(sample: Sample, rows: Rows, curves: Option<&Curves>) -> Node {
        let mut total = sample.total.clone();
        if let Some(curves) = curves {
            let share = total[2] - total[3];
            total[..2].copy_from_slice(&curves.statistics(curves.leaf(&rows), share));
        }
        total.push(sample.total_size());
        let children = (0..sample.n_columns()).map(|_| Default::default()).collect();
        let key = (sample.key(), sample.n_rows());
        Node { key, sample, rows, total, children, pairs: Default::default() }
    }

    /// The rows in which column `c` has the value; kept when `keep` allows the memory.
    pub fn child(
        &self,
        c: usize,
        value: bool,
        curves: Option<&Curves>,
        keep: &mut impl FnMut(usize) -> bool,
    ) -> Rc<Node> {
        let slot = &self.children[c][usize::from(value)];
        if let Some(child) = slot.get() {
            return child.clone();
        }
        let sides = curves.map(|curves| curves.sides(&self.rows, self.sample.columns[c]));
        let rows = sides.map_or_else(Rows::default, |[no, yes]| if value { yes } else { no });
        let child = Rc::new(Node::new(self.sample.restrict(c, value), rows, curves));
        // Statistics, bits, counts, events and the number of a row.
        let row = 8 * (child.sample.channels + child.sample.words() + 2) + 4;
        let rows = row * child.sample.n_rows() + 8 * child.rows.mask.len();
        let bytes = rows + 64 * child.sample.n_columns() + NODE_BYTES;
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
        curves: Option<&Curves>,
        monitor: &Monitor,
        limit: usize,
        keep: &mut impl FnMut(usize) -> bool,
    ) -> Result<Rc<Pairs>, Stop> {
        let slot = &self.pairs[usize::from(both)];
        if let Some(pairs) = slot.get() {
            return Ok(pairs.clone());
        }
        let n = self.sample.n_columns();
        let two = if both { triangle::pairs(n) } else { 0 };
        let cells = if curves.is_some() { 8 * two + 4 * n } else { 0 };
        let bytes = 8 * ((n + two) * (self.sample.channels + 1) + cells);
        if bytes > limit {
            return Err(Stop::Memory);
        }
        let pairs = Rc::new(Pairs::new(self, both, curves, monitor)?);
        if keep(bytes) {
            slot.get_or_init(|| pairs.clone());
        }
        Ok(pairs)
    }
}

impl Pairs {
    fn new(
        node: &Node,
        both: bool,
        curves: Option<&Curves>,
        monitor: &Monitor,
    ) -> Result<Pairs, Stop> {
        let Node { sample, total, .. } = node;
        let (n, record) = (sample.n_columns(), sample.channels + 1);
        let two = if both { triangle::pairs(n) } else { 0 };
        let pace = &mut Pace::new(monitor);
        let mut pairs = Pairs {
            record,
            total: total.clone(),
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
        if let Some(curves) = curves {
            pairs.read_curves(node, curves, pace)?;
        }
        Ok(pairs)
    }

    /// The first two statistics of all sides and cells; O(columns² · rows).
    fn read_curves(&mut self, node: &Node, curves: &Curves, pace: &mut Pace) -> Result<(), Stop> {
        let (columns, n) = (&node.sample.columns, node.sample.n_columns());
        let mut splits = Splits::default();
        let mut record = vec![0; self.record];
        let steps = node.sample.n_rows() * n.div_ceil(8);
        pace.spend(steps)?;
        curves.splits(&node.rows, &mut splits);
        for f in 0..n {
            let leaves = curves.of_column(&splits, columns[f]).expect("a column has two sides");
            let side = |value: usize| {
                self.sums_of_side(f, value == 1, &mut record);
                curves.statistics(leaves[value], record[2] - record[3])
            };
            let sides = [0, 1].map(side);
            self.sides.push(sides);
        }
        if self.two.is_empty() {
            return Ok(());
        }
        let mut cells = vec![[[0; 2]; 4]; triangle::pairs(n)];
        let state = || (Splits::default(), vec![0; self.record], pace.clone());
        let (all, columns) = (&node.rows, &node.sample.columns);
        triangle::fill_rows(
            &mut cells,
            curves.useful_threads(n * steps),
            state,
            |state, f, row| {
                let (splits, record, pace) = state;
                pace.spend(steps)?;
                for (a, rows) in curves.sides(all, columns[f]).iter().enumerate() {
                    curves.splits(rows, splits);
                    for (g, cells) in row.iter_mut().enumerate() {
                        let leaves = curves.of_column(splits, columns[g]);
                        for b in 0..2 {
                            self.sums_of_cell(f, a == 1, g, b == 1, record);
                            let share = record[2] - record[3];
                            cells[2 * a + b] = match leaves {
                                Some(leaves) => curves.statistics(leaves[b], share),
                                // The whole side, or nothing.
                                None if record[self.record - 1] > 0 => self.sides[f][a],
                                None => [0; 2],
                            };
                        }
                    }
                }
                Ok(())
            },
        )?;
        self.cells = cells;
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
            columns.clear();
            columns.extend(sample.true_columns(r));
            for (i, &f) in columns.iter().enumerate() {
                add(&mut one[f], &record);
                pace.spend(i + 1)?;
                if !both {
                    continue;
                }
                let row = &mut two[triangle::pairs(f)..];
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
            columns.clear();
            columns.extend(sample.true_columns(r));
            for (i, &f) in columns.iter().enumerate() {
                add(&mut self.one[f * size..(f + 1) * size], &record);
                pace.spend(size * (i + 1))?;
                for &g in &columns[..if both { i } else { 0 }] {
                    let at = triangle::place(f, g) * size;
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
        let at = triangle::place(f, g) * self.record;
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
            out[..2].copy_from_slice(&self.cells[triangle::place(f, g)][cell]);
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
