//! The fall of an objective that is a function of summed statistics, at every threshold.
//!
//! The rows of a node are summed over blocks of codes, in the order in which they are stored; that
//! gives the fall at the ends of all blocks. Where the cost of a leaf is concave in its sums, a fall
//! within a block is at most that of a corner of the box that the sums pass through on the way from
//! one end to the other: only blocks that may hold the best threshold are read row by row.

use super::columns::Column;
use super::{Choice, Criterion, Group, Interrupted};
use crate::data::{rows_of, size};
use crate::task::Questions;

/// Gains of so many units, for each that rounding may add to a leaf, are rounding.
const ROUNDING: i64 = 64;

/// Blocks of a wide column, and the fewest rows of a node that are worth them; few in the tests,
/// so that their small samples have all kinds.
const BLOCKS: usize = if cfg!(test) { 8 } else { 1024 };
const LARGE: usize = if cfg!(test) { 16 } else { 4 * BLOCKS };

/// A narrow column has blocks in a node with one row for so many levels, or more.
const SPARSE: usize = 4;

/// Most channels whose corners are looked at.
const CHANNELS: usize = 4;

/// Blocks are left out that cannot come this close, relatively, to the largest fall at the end of a
/// block: far more than the difference at which falls are equal.
const CLOSE: f64 = 1e-6;

/// Sums of integers decide: they are exact and do not depend on the order of the rows.
pub(super) struct Sums<'a, T> {
    task: &'a T,
    /// Of every row its size, then its statistics.
    records: Vec<i64>,
    /// Integers per record.
    width: usize,
    /// Whether falls within a block are bounded by its corners.
    bounded: bool,
    /// Of the node, without its size.
    all: Vec<i64>,
    right: Vec<i64>,
    corner: Vec<i64>,
    /// Columns tested above the node.
    path: Vec<usize>,
    leaf: i64,
}

/// What the rows of a node sum to over blocks of codes of a column.
struct Blocks {
    /// Codes per block, as a power of two.
    shift: u32,
    /// Records.
    sums: Vec<i64>,
    /// Fall at the end of every block; NaN where it is no threshold.
    falls: Vec<f64>,
}

impl<'a, T: Questions> Sums<'a, T> {
    pub fn new(task: &'a T) -> Self {
        let (events, channels) = (task.events(), task.channels());
        let event = |row: usize| i64::from(events.get(row).is_some_and(|&event| event));
        let rows = task.statistics().chunks_exact(channels).enumerate();
        let records = rows
            .flat_map(|(row, own)| [size(1, event(row))].into_iter().chain(own.iter().copied()))
            .collect();
        let zeros = vec![0; channels];
        // Sums that fall and rise again leave the box between the ends of a block.
        let bounded = channels <= CHANNELS
            && task.concave_cost(&zeros).is_some()
            && task.statistics().iter().all(|&value| value >= 0);
        let (all, right, corner) = (zeros.clone(), zeros.clone(), zeros);
        let (width, path, leaf) = (channels + 1, vec![], 0);
        Sums { task, records, width, bounded, all, right, corner, path, leaf }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.records.len() / self.width
    }

    fn feature_price(&self, column: usize) -> i64 {
        self.task.feature_price(column, &self.path, &self.all)
    }

    /// Fall of a cut with these sums on the left.
    fn fall(&mut self, price: i64, left: &[i64]) -> f64 {
        for ((right, all), left) in self.right.iter_mut().zip(&self.all).zip(left) {
            *right = all - left;
        }
        let sides = self.task.leaf_cost(left) + self.task.leaf_cost(&self.right);
        (self.leaf - sides - price) as f64
    }

    /// At least the fall of every cut whose sums on the left lie between these.
    fn most(&mut self, price: i64, from: &[i64], to: &[i64]) -> f64 {
        let mut least = f64::INFINITY;
        for corner in 0..1usize << from.len() {
            for (c, ((left, right), all)) in
                self.corner.iter_mut().zip(&mut self.right).zip(&self.all).enumerate()
            {
                *left = if corner >> c & 1 == 1 { to[c] } else { from[c] };
                *right = all - *left;
            }
            let cost = |sums| self.task.concave_cost(sums).unwrap_or(f64::NEG_INFINITY);
            least = least.min(cost(&self.corner) + cost(&self.right));
        }
        let rounding = (ROUNDING * self.task.cost_rounding()) as f64;
        (self.leaf - price) as f64 - least + rounding
    }

    /// Sums over the blocks of a column, and the falls at their ends; none where its rows are
    /// better read one by one.
    fn blocks(&mut self, column: usize, group: &Group) -> Option<Blocks> {
        let (rows, asked) = (group.columns.rows(group.rows.clone()), group.columns.column(column));
        let (shift, worth) = match asked {
            Column::Narrow { levels, .. } => (0, *levels <= SPARSE * rows.len()),
            Column::Wide { levels, .. } => {
                let shift = levels.div_ceil(BLOCKS).next_power_of_two().trailing_zeros();
                (shift, self.bounded && rows.len() >= LARGE)
            }
        };
        if !worth {
            return None;
        }
        let mut sums = vec![0; (((asked.levels() - 1) >> shift) + 1) * self.width];
        match asked {
            Column::Narrow { codes, .. } => self.add(rows, |row| codes[row].into(), &mut sums),
            Column::Wide { codes, .. } => {
                self.add(rows, |row| (codes[row] >> shift) as usize, &mut sums);
            }
        }
        let price = self.feature_price(column);
        let mut falls = vec![f64::NAN; sums.len() / self.width];
        let mut left = vec![0; self.width];
        for (fall, own) in falls.iter_mut().zip(sums.chunks_exact(self.width)) {
            if own[0] != 0 {
                left.iter_mut().zip(own).for_each(|(left, own)| *left += own);
                if group.allows(left[0]) {
                    *fall = self.fall(price, &left[1..]);
                }
            }
        }
        Some(Blocks { shift, sums, falls })
    }

    fn add(&self, rows: &[u32], block: impl Fn(usize) -> usize, sums: &mut [i64]) {
        match self.width {
            2 => self.add_records::<2>(rows, block, sums),
            3 => self.add_records::<3>(rows, block, sums),
            4 => self.add_records::<4>(rows, block, sums),
            width => {
                for &row in rows {
                    let own = &self.records[row as usize * width..][..width];
                    let sum = &mut sums[block(row as usize) * width..][..width];
                    sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
                }
            }
        }
    }

    fn add_records<const W: usize>(
        &self,
        rows: &[u32],
        block: impl Fn(usize) -> usize,
        sums: &mut [i64],
    ) {
        let (records, sums) = (self.records.as_chunks::<W>().0, sums.as_chunks_mut::<W>().0);
        for row in rows.iter().map(|&row| row as usize) {
            let (own, sum) = (&records[row], &mut sums[block(row)]);
            for c in 0..W {
                sum[c] += own[c];
            }
        }
    }

    /// Offers the thresholds at the ends of the blocks of a column, and those within the blocks
    /// that may hold one with a fall above `least`.
    fn offer_blocks(
        &mut self,
        column: usize,
        blocks: &Blocks,
        least: f64,
        group: &Group,
        choice: &mut Choice,
    ) {
        let Group { columns, smallest, total, .. } = *group;
        let asked = columns.column(column);
        let (fall_price, price) = (self.feature_price(column), self.price(column));
        let (mut before, mut after) = (vec![0; self.width], vec![0; self.width]);
        // The last code of the block before, and the fall at its end.
        let mut end: Option<(u32, f64)> = None;
        let mut at = group.rows.start;
        let each = blocks.sums.chunks_exact(self.width).zip(&blocks.falls).enumerate();
        for (block, (own, &fall)) in each.filter(|(_, (own, _))| own[0] != 0) {
            for ((after, before), own) in after.iter_mut().zip(&before).zip(own) {
                *after = before + own;
            }
            let inside = match asked {
                Column::Wide { order, .. } if blocks.shift > 0 => {
                    &order[at..at + rows_of(own[0]) as usize]
                }
                _ => &[],
            };
            at += inside.len();
            let [first, last] = match inside {
                [first, .., last] => [asked.code(*first), asked.code(*last)],
                [only] => [asked.code(*only); 2],
                [] => [block as u32; 2],
            };
            if let Some((below, fall)) = end {
                choice.offer(column, [below, first], fall, price);
            }
            if first != last
                && smallest.allows_leaf(after[0])
                && smallest.allows_leaf(total - before[0])
                && self.most(fall_price, &before[1..], &after[1..]) > choice.least().max(least)
            {
                self.offer_rows(column, inside, &mut before, group, choice);
            }
            end = Some((last, fall));
            before.copy_from_slice(&after);
        }
    }

    /// Offers every threshold between rows in the order of a column, of which those before them sum
    /// to `left`.
    fn offer_rows(
        &mut self,
        column: usize,
        rows: &[u32],
        left: &mut [i64],
        group: &Group,
        choice: &mut Choice,
    ) {
        let asked = group.columns.column(column);
        let (fall_price, price) = (self.feature_price(column), self.price(column));
        let mut above = rows.first().map_or(0, |&row| asked.code(row));
        for pair in rows.windows(2) {
            let own = &self.records[pair[0] as usize * self.width..][..self.width];
            left.iter_mut().zip(own).for_each(|(left, own)| *left += own);
            let below = std::mem::replace(&mut above, asked.code(pair[1]));
            if below != above && group.allows(left[0]) {
                let fall = self.fall(fall_price, &left[1..]);
                choice.offer(column, [below, above], fall, price);
            }
        }
    }

    fn price(&self, column: usize) -> i64 {
        self.task.split_price().saturating_add(self.feature_price(column))
    }
}

impl<T: Questions> Criterion for Sums<'_, T> {
    fn enter(&mut self, rows: &[u32], path: &[usize]) -> bool {
        let mut all = vec![0; self.width];
        self.add(rows, |_| 0, &mut all);
        self.all.copy_from_slice(&all[1..]);
        self.path.clear();
        self.path.extend(path);
        self.leaf = self.task.leaf_cost(&self.all);
        self.task.splits_help(&self.all)
    }

    fn size(&self, row: u32) -> i64 {
        self.records[row as usize * self.width]
    }

    fn choose(
        &mut self,
        group: &Group,
        choice: &mut Choice,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        let n_columns = group.columns.len();
        let mut blocks = Vec::with_capacity(n_columns);
        for column in 0..n_columns {
            if interrupted() {
                return Err(Interrupted);
            }
            blocks.push(self.blocks(column, group));
        }
        let falls = blocks.iter().flatten().flat_map(|blocks| &blocks.falls);
        let largest = falls.copied().filter(|&fall| fall > choice.nothing).fold(0.0, f64::max);
        let least = if largest > 0.0 { largest * (1.0 - CLOSE) } else { f64::NEG_INFINITY };
        let mut scratch = Vec::new();
        for (column, blocks) in blocks.iter().enumerate() {
            match blocks {
                Some(blocks) => self.offer_blocks(column, blocks, least, group, choice),
                None => {
                    if interrupted() {
                        return Err(Interrupted);
                    }
                    let order = group.columns.ordered(column, group.rows.clone(), &mut scratch);
                    let mut left = vec![0; self.width];
                    self.offer_rows(column, order, &mut left, group, choice);
                }
            }
        }
        Ok(())
    }

    fn rounding(&self) -> f64 {
        (ROUNDING * self.task.cost_rounding()) as f64
    }

    fn leaf(&self) -> i64 {
        self.leaf
    }
}
