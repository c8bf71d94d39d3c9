//! Sums over the rows with one or two given columns, or the costs of these rows as a leaf.

use super::alike::Kinds;
use super::curves::Curves;
use super::leaves::{Leaves, NO_LEAF};
use super::node::{FrontNode, Pace};
use super::triangle;
use crate::data::add;
use crate::search::curve::kernel::Splits;
use crate::search::{Monitor, Settings, Stop};
use crate::task::FrontTask;

/// Number of steps (of about a nanosecond) that computing the cost of a leaf takes.
pub(super) const LEAF_STEPS: usize = 100;

/// All leaves of depth two of a node: the sums of their rows if costs are linear in these,
/// otherwise their costs, which do not depend on the weights.
pub(super) struct Pairs<const K: usize> {
    /// Length of a record: the sums of the statistics and the size.
    record: usize,
    total: Vec<i64>,
    one: Vec<i64>,
    /// Records of pairs (f, g), f > g, at f(f − 1)/2 + g.
    two: Vec<i64>,
    /// Costs of both sides of every column, and of the four cells of every pair.
    sides: Vec<[[i64; K]; 2]>,
    cells: Vec<[[i64; K]; 4]>,
}

/// Buffers for the sums and the costs of one leaf.
#[derive(Default)]
pub(super) struct Scratch<const K: usize> {
    record: Vec<i64>,
    pub costs: Vec<[i64; K]>,
}

impl<const K: usize> Scratch<K> {
    pub fn new(node: &FrontNode<K>) -> Self {
        Scratch { record: vec![0; node.total.len()], costs: Vec::new() }
    }
}

impl<const K: usize> Pairs<K> {
    /// Bytes for a node: the result, and what is needed in addition while it is computed.
    pub fn bytes(node: &FrontNode<K>, both: bool, linear: bool) -> (usize, usize) {
        let n = node.sample.n_columns();
        let two = if both { triangle::pairs(n) } else { 0 };
        let (record, costs) = (size_of_val(&node.total[..]), size_of::<[[i64; K]; 2]>());
        // One bit per row and column, in whole words.
        let bits = if both { n * node.sample.n_rows().div_ceil(8) } else { 0 };
        if linear {
            return ((n + two) * record, bits);
        }
        (n * record + (n + 2 * two) * costs, two * record + bits)
    }

    /// The sums of single columns, and with `both` also of pairs; O(rows · (columns true in a
    /// row)²), or O(rows · columns² / 64) if many rows have the same statistics.
    pub fn new<T: FrontTask<K>>(
        node: &FrontNode<K>,
        both: bool,
        leaves: &Leaves<T, K>,
        settings: &Settings,
        monitor: &Monitor,
    ) -> Result<Self, Stop> {
        let (n, record) = (node.sample.n_columns(), node.sample.channels + 1);
        let two = if both { triangle::pairs(n) } else { 0 };
        let pace = &mut Pace::new(monitor);
        let mut pairs = Pairs {
            record,
            total: node.total.clone(),
            one: vec![0; n * record],
            two: vec![0; two * record],
            sides: Vec::new(),
            cells: Vec::new(),
        };
        let kinds = if both { Kinds::of(&node.sample) } else { None };
        match (&kinds, record) {
            (Some(kinds), _) => {
                kinds.add(settings.backend(), &mut pairs.one, &mut pairs.two, pace)?;
            }
            (None, 3) => pairs.accumulate::<3>(node, pace)?,
            (None, 4) => pairs.accumulate::<4>(node, pace)?,
            (None, 5) => pairs.accumulate::<5>(node, pace)?,
            (None, 6) => pairs.accumulate::<6>(node, pace)?,
            (None, 7) => pairs.accumulate::<7>(node, pace)?,
            (None, 8) => pairs.accumulate::<8>(node, pace)?,
            (None, _) => pairs.accumulate_any(node, pace)?,
        }
        if !leaves.linear {
            match &leaves.curves {
                Some(curves) => pairs.cost_curves(node, leaves, curves, settings, pace)?,
                None => pairs.cost_sums(node, leaves, settings, pace)?,
            }
            pairs.two = Vec::new();
        }
        Ok(pairs)
    }

    /// The costs of all sides and cells, from their sums; O(columns²).
    fn cost_sums<T: FrontTask<K>>(
        &mut self,
        node: &FrontNode<K>,
        leaves: &Leaves<T, K>,
        settings: &Settings,
        pace: &mut Pace,
    ) -> Result<(), Stop> {
        let mut scratch = Scratch::new(node);
        for f in 0..node.sample.n_columns() {
            let mut side = |value| {
                self.side(f, value, &mut scratch.record);
                leaves.cost(&scratch.record, &mut scratch.costs)
            };
            let sides = [side(false), side(true)];
            self.sides.push(sides);
        }
        let mut cells = vec![[[NO_LEAF; K]; 4]; self.two.len() / self.record];
        let n_threads = triangle::useful_threads(4 * LEAF_STEPS * cells.len(), settings);
        let state = || (Scratch::new(node), pace.clone());
        triangle::fill_rows(&mut cells, n_threads, state, |(scratch, pace), f, row| {
            pace.spend(4 * LEAF_STEPS * f)?;
            for (g, cells) in row.iter_mut().enumerate() {
                for (at, cell) in cells.iter_mut().enumerate() {
                    self.sums_of_cell(f, at > 1, g, at % 2 == 1, &mut scratch.record);
                    *cell = leaves.cost(&scratch.record, &mut scratch.costs);
                }
            }
            Ok(())
        })?;
        self.cells = cells;
        Ok(())
    }

    /// The same if leaves are curves; O(columns² · rows).
    fn cost_curves<T: FrontTask<K>>(
        &mut self,
        node: &FrontNode<K>,
        leaves: &Leaves<T, K>,
        curves: &Curves,
        settings: &Settings,
        pace: &mut Pace,
    ) -> Result<(), Stop> {
        let (columns, n) = (&node.sample.columns, node.sample.n_columns());
        let steps = node.sample.n_rows() * n.div_ceil(8);
        let cost = |leaf, Scratch { record, costs }: &mut Scratch<K>| {
            let statistics = curves.statistics(leaf, record[2] - record[3]);
            record[..2].copy_from_slice(&statistics);
            leaves.cost(record, costs)
        };
        let mut splits = Splits::default();
        let mut scratch = Scratch::new(node);
        pace.spend(steps)?;
        curves.splits(&node.rows, &mut splits);
        for f in 0..n {
            let of_column = curves.of_column(&splits, columns[f]).expect("a column has two sides");
            let mut side = |value| {
                self.side(f, value, &mut scratch.record);
                cost(of_column[usize::from(value)], &mut scratch)
            };
            let sides = [side(false), side(true)];
            self.sides.push(sides);
        }
        let mut cells = vec![[[NO_LEAF; K]; 4]; self.two.len() / self.record];
        let n_threads = triangle::useful_threads(2 * steps * cells.len() / n.max(1), settings);
        let state = || (Splits::default(), Scratch::new(node), pace.clone());
        triangle::fill_rows(&mut cells, n_threads, state, |(splits, scratch, pace), f, row| {
            pace.spend(steps)?;
            for (a, rows) in curves.sides(&node.rows, columns[f]).iter().enumerate() {
                curves.splits(rows, splits);
                for (g, cells) in row.iter_mut().enumerate() {
                    let of_column = curves.of_column(splits, columns[g]);
                    for b in 0..2 {
                        self.sums_of_cell(f, a == 1, g, b == 1, &mut scratch.record);
                        cells[2 * a + b] = match of_column {
                            Some(leaves) => cost(leaves[b], scratch),
                            // One cell is the whole side, and the other is empty.
                            None if scratch.record[self.record - 1] > 0 => self.sides[f][a],
                            None => [NO_LEAF; K],
                        };
                    }
                }
            }
            Ok(())
        })?;
        self.cells = cells;
        Ok(())
    }

    /// Sums of columns and pairs; `R` is the length of a record.
    fn accumulate<const R: usize>(
        &mut self,
        node: &FrontNode<K>,
        pace: &mut Pace,
    ) -> Result<(), Stop> {
        let (sample, both) = (&node.sample, !self.two.is_empty());
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
    fn accumulate_any(&mut self, node: &FrontNode<K>, pace: &mut Pace) -> Result<(), Stop> {
        let (sample, size, both) = (&node.sample, self.record, !self.two.is_empty());
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

    /// Sums over the rows in which column `f` is true.
    #[inline(always)]
    pub fn one(&self, f: usize) -> &[i64] {
        &self.one[f * self.record..(f + 1) * self.record]
    }

    /// Sums over the rows in which columns `f` and `g` are true, if costs are linear.
    #[inline(always)]
    pub fn two(&self, f: usize, g: usize) -> &[i64] {
        let (f, g) = if f > g { (f, g) } else { (g, f) };
        let at = triangle::place(f, g) * self.record;
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

    /// Costs of the four leaves of columns `f` > `g`, at 2 · (value of f) + (value of g), if costs
    /// are not linear.
    #[inline(always)]
    pub fn cells(&self, f: usize, g: usize) -> &[[i64; K]; 4] {
        &self.cells[triangle::place(f, g)]
    }

    /// Writes the costs of every label for the rows in which column `f` has the value.
    pub fn costs_of_side<T: FrontTask<K>>(
        &self,
        leaves: &Leaves<T, K>,
        f: usize,
        value: bool,
        scratch: &mut Scratch<K>,
    ) {
        if leaves.linear {
            self.side(f, value, &mut scratch.record);
            return leaves.costs(&scratch.record, &mut scratch.costs);
        }
        scratch.take(self.sides[f][usize::from(value)]);
    }

    /// The same for the rows with the given values of columns `f` and `g`.
    pub fn costs_of_cell<T: FrontTask<K>>(
        &self,
        leaves: &Leaves<T, K>,
        (f, f_value): (usize, bool),
        (g, g_value): (usize, bool),
        scratch: &mut Scratch<K>,
    ) {
        if leaves.linear {
            self.sums_of_cell(f, f_value, g, g_value, &mut scratch.record);
            return leaves.costs(&scratch.record, &mut scratch.costs);
        }
        let ((f, a), (g, b)) =
            if f > g { ((f, f_value), (g, g_value)) } else { ((g, g_value), (f, f_value)) };
        scratch.take(self.cells(f, g)[2 * usize::from(a) + usize::from(b)]);
    }
}

impl<const K: usize> Scratch<K> {
    /// Takes a cost, unless it is that of no leaf.
    fn take(&mut self, cost: [i64; K]) {
        self.costs.clear();
        self.costs.extend((cost[0] != NO_LEAF).then_some(cost));
    }
}

#[inline(always)]
fn subtract(a: &[i64], b: &[i64], out: &mut [i64]) {
    for ((o, a), b) in out.iter_mut().zip(a).zip(b) {
        *o = a - b;
    }
}
