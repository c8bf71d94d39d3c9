//! The data of a search over ranks, and the rows of a node in the order of every column.

use crate::data::{RankMatrix, add, random_number, size};
use crate::task::LaneTask;
use rustc_hash::FxHashSet;

/// Distinct rows over the columns that are worth splitting on.
#[derive(Clone, Debug)]
pub struct Table {
    /// Columns of the caller, ascending. None is constant, equal to another or the reverse of
    /// another.
    pub columns: Vec<usize>,
    /// Ranks of the distinct rows, `[column][row]`.
    ranks: Vec<u32>,
    /// Number of distinct rows.
    pub n_rows: usize,
    /// Number of statistics per row.
    pub channels: usize,
    /// `[row][channel]`, summed over equal rows.
    pub sums: Vec<i64>,
    /// Number of the caller's rows and events, in one integer; see [`size`].
    pub sizes: Vec<i64>,
    /// Cost of every row as a part, rounded down. Costs are counted from the sum of these.
    pub floors: Vec<i64>,
}

impl Table {
    /// Merges rows with equal ranks in all columns; O(rows · columns · log rows).
    pub fn new<T: LaneTask>(task: &T, matrix: &RankMatrix) -> Self {
        let (channels, statistics, events) = (task.channels(), task.statistics(), task.events());
        let columns = useful_columns(matrix);
        let mut order: Vec<u32> = (0..matrix.n_rows() as u32).collect();
        let ranks: Vec<&[u32]> = columns.iter().map(|&c| matrix.column(c)).collect();
        let by_ranks = |&a: &u32, &b: &u32| {
            let mut pairs = ranks.iter().map(|ranks| ranks[a as usize].cmp(&ranks[b as usize]));
            pairs.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        };
        order.sort_unstable_by(|a, b| by_ranks(a, b).then(a.cmp(b)));
        let (mut distinct, mut sums, mut sizes) = (Vec::<u32>::new(), Vec::new(), Vec::new());
        for &r in &order {
            let at = r as usize;
            let record = &statistics[at * channels..][..channels];
            let of_row = size(1, i64::from(events.get(at).is_some_and(|&event| event)));
            match distinct.last() {
                Some(last) if by_ranks(last, &r).is_eq() => {
                    let begin = sums.len() - channels;
                    add(&mut sums[begin..], record);
                    *sizes.last_mut().expect("a row") += of_row;
                }
                _ => {
                    distinct.push(r);
                    sums.extend_from_slice(record);
                    sizes.push(of_row);
                }
            }
        }
        let of_column = |ranks: &&[u32]| distinct.iter().map(|&r| ranks[r as usize]).collect();
        let taken: Vec<Vec<u32>> = ranks.iter().map(of_column).collect();
        let floor = |record: &[i64]| task.row_cost(record);
        let floors = sums.chunks_exact(channels).map(floor).collect();
        let n_rows = distinct.len();
        Table { columns, ranks: taken.concat(), n_rows, channels, sums, sizes, floors }
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// Ranks of a column.
    #[inline]
    pub fn column(&self, k: usize) -> &[u32] {
        &self.ranks[k * self.n_rows..][..self.n_rows]
    }

    /// Statistics of a row.
    #[inline]
    pub fn record(&self, row: u32) -> &[i64] {
        &self.sums[row as usize * self.channels..][..self.channels]
    }

    /// All rows.
    pub fn all(&self) -> Rows {
        let mut rows = Rows::default();
        for k in 0..self.n_columns().max(1) {
            let begin = rows.order.len();
            rows.order.extend(0..self.n_rows as u32);
            if k < self.n_columns() {
                let ranks = self.column(k);
                rows.order[begin..].sort_by_key(|&r| ranks[r as usize]);
            }
        }
        rows.count = self.n_rows;
        rows.sum(self);
        rows
    }
}

/// Columns that split the rows; of columns with the same splits, the first.
fn useful_columns(matrix: &RankMatrix) -> Vec<usize> {
    let mut seen = FxHashSet::default();
    let mut useful = Vec::new();
    for c in 0..matrix.n_columns() {
        let ranks = matrix.column(c);
        let most = ranks.iter().copied().max().unwrap_or(0);
        let least = ranks.iter().copied().min().unwrap_or(0);
        if least == most {
            continue;
        }
        // Of a column and its reverse, the one that starts lower.
        let sign = ranks.iter().map(|&r| (r - least).cmp(&(most - r))).find(|sign| sign.is_ne());
        let reversed = sign == Some(std::cmp::Ordering::Greater);
        let oriented = |&r: &u32| if reversed { most - r } else { r - least };
        if seen.insert(ranks.iter().map(oriented).collect::<Vec<u32>>()) {
            useful.push(c);
        }
    }
    useful
}

/// Rows of a node.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Number of distinct rows.
    pub count: usize,
    /// The rows in the order of each column, `[column][position]`.
    order: Vec<u32>,
    /// Sums of their statistics.
    pub total: Vec<i64>,
    /// Number of the caller's rows and events, see [`size`].
    pub size: i64,
    /// Sum of their costs as parts.
    pub floor: i64,
    /// Identifies the rows.
    pub hash: u128,
}

impl Rows {
    /// The rows in the order of a column.
    #[inline]
    pub fn in_order(&self, k: usize) -> &[u32] {
        &self.order[k * self.count..][..self.count]
    }

    fn sum(&mut self, table: &Table) {
        self.total.clear();
        self.total.resize(table.channels, 0);
        (self.size, self.floor, self.hash) = (0, 0, 0);
        for &r in &self.order[..self.count] {
            add(&mut self.total, table.record(r));
            self.size += table.sizes[r as usize];
            self.floor += table.floors[r as usize];
            self.hash = self.hash.wrapping_add(random_number(u64::from(r)));
        }
    }

    /// The rows whose rank in column `k` is above `rank`, and the others; O(rows · columns).
    pub fn split(&self, table: &Table, k: usize, rank: u32, sides: &mut [Rows; 2]) {
        let ranks = table.column(k);
        let n_yes = self.in_order(k).partition_point(|&r| ranks[r as usize] <= rank);
        let [no, yes] = sides;
        (no.count, yes.count) = (self.count - n_yes, n_yes);
        let n_columns = self.order.len() / self.count.max(1);
        // One more entry, for the row that is written to the wrong side.
        no.order.resize(n_columns * no.count + 1, 0);
        yes.order.resize(n_columns * yes.count + 1, 0);
        let (mut at_no, mut at_yes) = (0, 0);
        for &r in &self.order[..n_columns * self.count] {
            no.order[at_no] = r;
            yes.order[at_yes] = r;
            let is_yes = ranks[r as usize] <= rank;
            at_yes += usize::from(is_yes);
            at_no += usize::from(!is_yes);
        }
        no.order.truncate(n_columns * no.count);
        yes.order.truncate(n_columns * yes.count);
        let (few, many) = if yes.count <= no.count { (yes, no) } else { (no, yes) };
        few.sum(table);
        many.total.clear();
        many.total.extend(self.total.iter().zip(&few.total).map(|(all, few)| all - few));
        many.size = self.size - few.size;
        many.floor = self.floor - few.floor;
        many.hash = self.hash.wrapping_sub(few.hash);
    }
}

/// The thresholds that split the rows of a node.
#[derive(Clone, Debug, Default)]
pub struct Cuts {
    /// First threshold of each column, followed by the number of all thresholds.
    first: Vec<u32>,
    /// For each threshold, the number of rows up to it.
    pub below: Vec<u32>,
    /// For each threshold, the largest rank up to it.
    pub rank: Vec<u32>,
}

impl Cuts {
    /// Computes the thresholds for these rows; O(rows · columns).
    pub fn fill(&mut self, table: &Table, rows: &Rows) {
        self.first.clear();
        self.below.clear();
        self.rank.clear();
        for k in 0..table.n_columns() {
            self.first.push(self.below.len() as u32);
            let (ranks, order) = (table.column(k), rows.in_order(k));
            let Some(&first) = order.first() else { continue };
            let mut last = ranks[first as usize];
            for (at, &r) in order.iter().enumerate() {
                let rank = ranks[r as usize];
                if rank != last {
                    self.below.push(at as u32);
                    self.rank.push(last);
                    last = rank;
                }
            }
        }
        self.first.push(self.below.len() as u32);
    }

    /// Numbers of the thresholds of a column.
    #[inline]
    pub fn of(&self, k: usize) -> std::ops::Range<usize> {
        self.first[k] as usize..self.first[k + 1] as usize
    }

    /// Number of thresholds of all columns.
    pub fn len(&self) -> usize {
        self.below.len()
    }
}
