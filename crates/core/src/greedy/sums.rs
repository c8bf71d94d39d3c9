//! The decrease, at every threshold, of an objective that is a function of summed statistics.
//!
//! The rows of a node are summed over blocks of codes, in the order in which they are stored; this
//! gives the decrease at the ends of all blocks. If the cost of a leaf is concave in its sums, the
//! decrease within a block is at most that at a corner of the box that the sums pass through from
//! one end to the other. So only blocks that may contain the best threshold are read row by row.

use super::columns::Column;
use super::{Choice, Criterion, Group, Interrupted};
use crate::data::{rows_of, size};
use crate::task::Questions;

/// A gain of at most this many units, per unit that rounding may add to a leaf, is rounding.
const ROUNDING: i64 = 64;

/// Most blocks of a wide column. The number is small in tests, so that their small samples have all
/// kinds.
const BLOCKS: usize = if cfg!(test) { 16 } else { 1024 };

/// Number of rows of a node per block; bounding a block takes as long as scoring two cuts.
const ROWS_OF_BLOCK: usize = if cfg!(test) { 2 } else { 16 };

/// Smallest number of rows of a node for which blocks are worthwhile.
const LARGE: usize = if cfg!(test) { 20 } else { 8 * ROWS_OF_BLOCK };

/// A narrow column has blocks if the node has at least one row per this many levels.
const SPARSE: usize = 4;

/// Most channels for which corners are used.
const CHANNELS: usize = 4;

/// Blocks are skipped if they cannot come this close, relatively, to the largest decrease at the
/// end of a block. This is far more than the difference at which decreases are equal.
const CLOSE: f64 = 1e-6;

/// Scores by integer sums, which are exact and do not depend on the order of the rows.
pub(super) struct Sums<'a, T> {
    task: &'a T,
    /// Size of every row, its statistics, and the negative parts of the signed channels.
    records: Vec<i64>,
    /// Number of integers per record.
    width: usize,
    /// Number of channels of statistics.
    channels: usize,
    /// Channels whose statistics may have either sign.
    signed: Vec<usize>,
    /// Whether decreases within a block are bounded by its corners.
    bounded: bool,
    /// Statistics of the node, without its size.
    all: Vec<i64>,
    right: Vec<i64>,
    corner: Vec<i64>,
    /// Smallest and largest sums on the left within a block.
    reach: [Vec<i64>; 2],
    /// Columns that are tested above the node.
    path: Vec<usize>,
    leaf: i64,
}

/// Sums of a node's rows over blocks of codes of a column.
struct Blocks {
    /// Number of codes per block, as a power of two.
    shift: u32,
    /// A record per block.
    sums: Vec<i64>,
    /// Decrease at the end of every block; NaN if this is not a threshold.
    falls: Vec<f64>,
}

impl<'a, T: Questions> Sums<'a, T> {
    pub fn new(task: &'a T) -> Self {
        let (events, channels) = (task.events(), task.channels());
        let zeros = vec![0; channels];
        let bounded = channels <= CHANNELS && task.concave_cost(&zeros).is_some();
        let rows = task.statistics().chunks_exact(channels);
        let is_signed = |channel: &usize| rows.clone().any(|own| own[*channel] < 0);
        let signed: Vec<usize> = (0..channels).filter(|c| bounded && is_signed(c)).collect();
        let width = 1 + channels + signed.len();
        let mut records = Vec::with_capacity(rows.len() * width);
        for (row, own) in rows.enumerate() {
            let event = events.get(row).is_some_and(|&event| event);
            records.push(size(1, i64::from(event)));
            records.extend(own);
            records.extend(signed.iter().map(|&channel| own[channel].min(0)));
        }
        Sums {
            task,
            records,
            width,
            channels,
            signed,
            bounded,
            all: zeros.clone(),
            right: zeros.clone(),
            corner: zeros.clone(),
            reach: [zeros.clone(), zeros],
            path: vec![],
            leaf: 0,
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.records.len() / self.width
    }

    fn feature_price(&self, column: usize) -> i64 {
        self.task.feature_price(column, &self.path, &self.all)
    }

    /// Whether both sides of a cut with these sums on the left reach the minima of a leaf.
    fn allows(&self, left: &[i64]) -> bool {
        let minima = self.task.minima();
        let first = left.len() - minima.len();
        let mut counts = left[first..].iter().zip(&self.all[first..]).zip(minima);
        counts.all(|((left, all), least)| left >= least && all - left >= *least)
    }

    /// Decrease at a cut with these sums on the left.
    fn fall(&mut self, price: i64, left: &[i64]) -> f64 {
        for ((right, all), left) in self.right.iter_mut().zip(&self.all).zip(left) {
            *right = all - left;
        }
        let sides = self.task.leaf_cost(left) + self.task.leaf_cost(&self.right);
        (self.leaf - sides - price) as f64
    }

    /// Upper bound on the decrease at every cut within a block whose records sum to `own`, after
    /// sums of `before`; the decreases at the `ends` of the block are NaN if they are not known.
    fn most(&mut self, price: i64, before: &[i64], own: &[i64], ends: [f64; 2]) -> f64 {
        let n = self.channels;
        for c in 0..n {
            // In a channel whose sums only grow, they end at the end of the block.
            let sign = self.signed.iter().position(|&channel| channel == c);
            let negative = sign.map_or(0, |place| own[1 + n + place]);
            self.reach[0][c] = before[1 + c] + negative;
            self.reach[1][c] = before[1 + c] + own[1 + c] - negative;
        }
        // If no sum decreases, two corners are the ends.
        let corners = 1usize << n;
        let mut open = 0..corners;
        if self.signed.is_empty() {
            open = usize::from(!ends[0].is_nan())..corners - usize::from(!ends[1].is_nan());
        }
        let mut least = f64::INFINITY;
        for corner in open {
            for (c, ((left, right), all)) in
                self.corner.iter_mut().zip(&mut self.right).zip(&self.all).enumerate()
            {
                *left = self.reach[corner >> c & 1][c];
                *right = all - *left;
            }
            let cost = |sums| self.task.concave_cost(sums).unwrap_or(f64::NEG_INFINITY);
            least = least.min(cost(&self.corner) + cost(&self.right));
        }
        let of_corners = (self.leaf - price) as f64 - least;
        ends.into_iter().fold(of_corners, f64::max) + self.rounding()
    }

    /// Sums over the blocks of a column, and the decreases at their ends; `None` if its rows are
    /// better read one by one.
    fn blocks(&mut self, column: usize, group: &Group) -> Option<Blocks> {
        let (rows, asked) = (group.columns.rows(group.rows.clone()), group.columns.column(column));
        let (shift, worth) = match asked {
            Column::Narrow { levels, .. } => (0, *levels <= SPARSE * rows.len()),
            Column::Wide { levels, .. } => {
                let blocks = (rows.len() / ROWS_OF_BLOCK).clamp(1, BLOCKS);
                let shift = levels.div_ceil(blocks).next_power_of_two().trailing_zeros();
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
                let sums = &left[1..=self.channels];
                if group.allows(left[0]) && self.allows(sums) {
                    *fall = self.fall(price, sums);
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

    /// Offers the thresholds at the ends of the blocks of a column, and those within blocks that
    /// may contain one with a decrease above `least`.
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
        // The last code of the previous block, and the decrease at its end.
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
            let ends = [end.map_or(f64::NAN, |(_, fall)| fall), fall];
            if first != last
                && smallest.allows_leaf(after[0])
                && smallest.allows_leaf(total - before[0])
                && self.most(fall_price, &before, own, ends) > choice.least().max(least)
            {
                self.offer_rows(column, inside, &mut before, group, choice);
            }
            end = Some((last, fall));
            before.copy_from_slice(&after);
        }
    }

    /// Offers every threshold between rows in the order of a column; the rows before them sum to
    /// `left`.
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
            let sums = &left[1..=self.channels];
            if below != above && group.allows(left[0]) && self.allows(sums) {
                let fall = self.fall(fall_price, sums);
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
        self.all.copy_from_slice(&all[1..=self.channels]);
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

#[cfg(test)]
mod tests {
    use super::super::tests::Problem;
    use super::super::{Codes, Columns, Growth, Limits, subtree};
    use super::*;
    use crate::data::Smallest;
    use crate::greedy::Grown;
    use crate::survival::Observations;
    use crate::task::entropy::entropy_of_shares;
    use crate::task::gini::gini;
    use crate::task::label_costs::LabelCosts;
    use crate::task::likelihood::Likelihood;
    use crate::task::regression::Regression;
    use bristlecone_oracle::instances::Random;

    fn grown<T: Questions>(task: &T, codes: &[Vec<u32>], least: i64, bounded: bool) -> Grown {
        let mut sums = Sums::new(task);
        sums.bounded &= bounded;
        let columns = codes.iter().map(|codes| Codes::Ranks(codes.into())).collect();
        let columns = Columns::new(sums.n_rows(), columns);
        let smallest = Smallest { rows: least, events: 0 };
        let limits = Limits { max_depth: Some(4), max_leaf_nodes: None, smallest };
        subtree(Growth::new(sums, columns, limits, true), &limits, || false)
    }

    /// Every objective, whether its blocks are bounded or not.
    #[test]
    fn blocks_hide_no_threshold() {
        let mut wide = 0;
        for seed in 0..60 {
            let random = &mut Random::new(seed);
            let n = 30 + random.below(300);
            let problem = Problem::random(seed, n);
            let n = problem.time.len();
            let mut codes = problem.codes.clone();
            for most in [n, 2 * n, 40] {
                let values: Vec<f64> = (0..n).map(|_| random.below(most) as f64).collect();
                codes.push(crate::data::Ranks::new(&values).ranks);
            }
            let least = 1 + random.below(8) as i64;
            let labels: Vec<usize> = (0..n)
                .map(|i| usize::from(codes[0][i] % 7 < 3) + usize::from(random.chance(0.3)))
                .collect();
            let targets: Vec<f64> =
                (0..n).map(|i| f64::from(codes[1][i] % 5) + random.unit()).collect();
            let costs: Vec<f64> = (0..3 * n).map(|_| random.unit()).collect();
            let weights: Vec<f64> = (0..n).map(|_| 0.1 + random.unit()).collect();
            let of_row = |y: &usize| [0, 1, 2].map(|k| if *y == k { 0.6 } else { 0.2 });
            let shares: Vec<f64> = labels.iter().flat_map(of_row).collect();
            let prior = [0.0, 6.0][random.below(2)];
            let same = |a: Grown, b: Grown| {
                assert_eq!(a, b, "seed {seed}");
                usize::from(a.tree.n_leaves() > 4)
            };
            macro_rules! check {
                ($task:expr) => {{
                    let task = $task.unwrap();
                    wide +=
                        same(grown(&task, &codes, least, true), grown(&task, &codes, least, false));
                }};
            }
            check!(Ok::<_, crate::error::Error>(problem.task(prior, 1e-3)));
            check!(gini(&labels, 3, Some(&weights[..]), 1e-3));
            check!(entropy_of_shares(&shares, 3, Some(&weights[..]), 1e-3));
            check!(LabelCosts::of_costs(&costs, 3, None, 1e-3, 16));
            check!(LabelCosts::new(&labels, 3, Some(&weights[..]), 0.0, 16));
            check!(Regression::new(&targets, Some(&weights[..]), 0.0));
        }
        assert!(wide > 100);
    }

    /// The number of blocks of a column that may contain a better threshold than the best at their
    /// ends. Checks that their bounds hold for every path through them.
    fn blocks_read<T: Questions>(task: &T, codes: &[u32]) -> usize {
        let n = codes.len();
        let mut sums = Sums::new(task);
        let columns = Columns::new(n, vec![Codes::Ranks(codes.into())]);
        assert!(sums.enter(columns.rows(0..n), &[]));
        let total = (0..n as u32).map(|row| sums.size(row)).sum();
        let smallest = Smallest { rows: 1, events: 0 };
        let group = Group { columns: &columns, rows: 0..n, smallest, total };
        let blocks = sums.blocks(0, &group).unwrap();
        assert_eq!(blocks.falls.len(), BLOCKS);
        let mut left = vec![0; sums.width];
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&row| codes[row]);
        let largest = blocks.falls.iter().copied().filter(|f| !f.is_nan()).fold(0.0, f64::max);
        let (mut at, mut read) = (0, 0);
        let mut before = f64::NAN;
        for (own, &after) in blocks.sums.chunks_exact(sums.width).zip(&blocks.falls) {
            // Corners at known ends are skipped, which changes nothing.
            let most = sums.most(0, &left.clone(), own, [before, after]);
            let of_all = sums.most(0, &left.clone(), own, [f64::NAN; 2]);
            assert!(most == of_all || (most - of_all).abs() <= sums.rounding(), "{most} {of_all}");
            before = after;
            read += usize::from(most > largest);
            for _ in 0..rows_of(own[0]) {
                let record = sums.records[order[at] * sums.width..][..sums.width].to_vec();
                left.iter_mut().zip(&record).for_each(|(left, own)| *left += own);
                at += 1;
                let inside = left[1..=sums.channels].to_vec();
                assert!(sums.fall(0, &inside) <= most);
            }
        }
        read
    }

    #[test]
    fn most_of_the_blocks_are_left_out() {
        let n = 4096u32;
        // Rows with low codes have early events.
        let early = |i: u32| i * 2_357 % n < n / 2;
        let noise = |i: u32| f64::from(i * 997 % n) + 1.0;
        let time: Vec<f64> =
            (0..n).map(|i| if early(i) { 0.3 * noise(i) } else { noise(i) }).collect();
        let event: Vec<bool> = (0..n).map(|i| i % 3 > 0).collect();
        let obs = Observations { time: &time, event: &event, ..Observations::default() };
        let codes: Vec<u32> = (0..n).map(|i| i * 2_357 % n).collect();
        let likelihood = Likelihood::with_prior(&obs, 10.0, 0.0).unwrap();
        let target: Vec<f64> = (0..n).map(|i| f64::from(early(i)) + 1e-4 * noise(i)).collect();
        let error = Regression::new(&target, None, 0.0).unwrap();
        for read in [blocks_read(&likelihood, &codes), blocks_read(&error, &codes)] {
            assert!((1..=6).contains(&read), "{read}");
        }
    }
}
