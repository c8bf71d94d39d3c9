//! The best tree of a table, in exact costs.
//!
//! Every cell of an itemset is evaluated once, from the deepest level to the root. Leaving out one
//! column pairs the cells of an itemset: two of them are the sides of a split of the smaller one.
//! Costs are kept for every number of leaves, so that of equally good trees the one with the fewest
//! leaves is found, and then the one with the first column, as a search over rows does.

use super::cells::{PATTERNS, for_each, of_literals};
use super::fill::Records;
use super::{MOST_DEPTH, Table};
use crate::data::{Column, Smallest, size};
use crate::error::Error;
use crate::search::certificate::Measured;
use crate::search::root::{About, Search};
use crate::search::sums::SumScale;
use crate::search::{Checked, Monitor, Settings, Solution, Status, Stop, too_wide};
use crate::task::{LaneTask, Placed};
use crate::tree::Tree;

/// More than any tree costs, with room for a sum of three.
const NONE: i64 = i64::MAX / 4;

/// Below every cost, with room to add prices.
const NOTHING: i64 = i64::MIN / 8;

/// Cells between two looks at the clock.
const CELLS_PER_CHECK: u64 = 1 << 14;

/// Rows of every record in every leaf of a tree, leaves counted in preorder.
#[derive(Clone, Debug, Default)]
pub struct Leaves {
    /// Record of each entry.
    pub record: Vec<usize>,
    /// Its leaf.
    pub leaf: Vec<usize>,
    /// Rows of the record in the leaf.
    pub count: Vec<i64>,
}

/// What a search over a table found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The best tree.
    pub tree: Tree,
    cost: i64,
    lower: i64,
    stop: Option<Stop>,
    nodes: u64,
}

/// The best tree for a task over the rows of a table.
///
/// # Errors
/// Where the table does not hold the rows of the records, and for limits that no tree keeps.
pub fn search<T: LaneTask>(
    task: &T,
    table: &Table,
    records: Records,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Found, Error> {
    check_rows(table, records)?;
    let (total, settings) = (table.of(&[]), checked(table, settings)?);
    let (limits, channels) = (&settings.limits, task.channels());
    let leaf = task.leaf_cost(&total[..channels]);
    let mut best = (leaf, Tree::leaf());
    let (mut stop, mut lower) = (None, leaf);
    let deepest = limits.max_depth.min(table.shape.n_features);
    // Shallower tables take little, and are there when a limit ends the deepest.
    for depth in 1..=deepest {
        match Costs::new(task, table, depth, limits.smallest(), monitor) {
            Ok(costs) => {
                best = costs.best(limits.most_leaves());
                lower = best.0;
            }
            Err(reason) => {
                (stop, lower) = (Some(reason), NOTHING);
                break;
            }
        }
    }
    let (cost, tree) = best;
    Ok(Found { tree, cost, lower, stop, nodes: monitor.nodes() })
}

/// What was found, with its certificate. The objective is that of the rows in the leaves of the
/// tree; where these were not counted it is that of the sums, right to the resolution of the task.
///
/// # Errors
/// Where the values span too wide a range for a certificate.
pub fn certify<T: LaneTask>(
    task: &T,
    table: &Table,
    records: Records,
    settings: &Settings,
    monitor: &Monitor,
    found: &Found,
    leaves: Option<&Leaves>,
) -> Result<Solution, Error> {
    let (total, settings) = (table.of(&[]), checked(table, settings)?);
    let Found { tree, cost, lower, stop, nodes } = found.clone();
    monitor.count(nodes);
    let by_cost = || {
        let splits = tree.n_leaves() as i64 - 1;
        Measured::plain(task.objective_of_cost(cost - task.tie_price() * splits))
    };
    let measured = leaves.map_or_else(by_cost, |Leaves { record, leaf, count }| {
        let rows = Placed::counted(record, leaf, count, tree.n_leaves());
        let Measured { objective, magnitude } = task.objective(rows);
        let tests = task.tree_price(&tree, rows);
        Measured { objective: objective + tests, magnitude: magnitude + tests }
    });
    let measure = |_: &Tree| measured;
    let channels = task.channels();
    let scale = SumScale::new(task, &measure, &total[..channels], settings.limits.allowed());
    let about = About {
        n_distinct_rows: records.n_records(),
        n_columns: table.shape.n_features,
        kernel: "partial-sums".into(),
    };
    let search = Search::new(&scale, &settings, monitor, (cost, tree), lower);
    let solution = search.finish(stop, about);
    if solution.status == Status::Unresolved {
        return Err(too_wide(task.widest(), solution.objective, solution.lower_bound));
    }
    Ok(solution)
}

/// Settings whose limits are possible for the rows of a table.
fn checked(table: &Table, settings: &Settings) -> Result<Checked, Error> {
    let (counts, depth) = (&table.of(&[])[table.shape.channels..], settings.limits.max_depth);
    if depth > table.shape.depth {
        let reason = format!("{depth} is more than the depth of the sums, {}", table.shape.depth);
        return Err(Error::invalid("max_depth", reason));
    }
    settings.checked(counts[0] as usize, counts[1] as usize)
}

/// Refuses a table that does not hold every row of the records once.
fn check_rows(table: &Table, records: Records) -> Result<(), Error> {
    let count = |record: usize| records.counts.map_or(1, |counts| counts[record]);
    let n_rows: i64 = (0..records.n_records()).map(count).sum();
    let held = table.n_rows();
    if held != n_rows {
        let reason = format!("hold {held} rows, the outcomes are those of {n_rows}");
        return Err(Error::invalid("sums", reason));
    }
    let channels = records.channels;
    let mut total = vec![0i64; channels];
    for (record, statistics) in records.statistics.chunks_exact(channels.max(1)).enumerate() {
        let add = |(sum, v): (&mut i64, &i64)| *sum = sum.wrapping_add(v * count(record));
        total.iter_mut().zip(statistics).for_each(add);
    }
    if total != table.of(&[])[..channels] {
        let reason = "are not those of the outcomes: rows have changed, or were counted twice";
        return Err(Error::invalid("sums", reason));
    }
    Ok(())
}

/// Best costs of all cells, up to a depth.
struct Costs<'a, T> {
    task: &'a T,
    table: &'a Table,
    depth: usize,
    smallest: Smallest,
    /// `[size][(rank, pattern, leaves − 1)]` for itemsets that are above the deepest.
    values: Vec<Vec<i64>>,
}

impl<'a, T: LaneTask> Costs<'a, T> {
    fn new(
        task: &'a T,
        table: &'a Table,
        depth: usize,
        smallest: Smallest,
        monitor: &Monitor,
    ) -> Result<Self, Stop> {
        let entries = |size: usize| (table.itemsets.of_size(size) << size) << (depth - size);
        let values = (0..depth).map(|size| vec![NONE; entries(size)]).collect();
        let mut costs = Costs { task, table, depth, smallest, values };
        for size in (0..=depth).rev() {
            costs.level(size, monitor)?;
        }
        Ok(costs)
    }

    /// Most leaves of a tree on a cell of so many columns.
    fn most(&self, size: usize) -> usize {
        1 << (self.depth - size)
    }

    fn leaf(&self, sums: &[i64]) -> i64 {
        let channels = self.task.channels();
        let allowed = self.smallest.allows_leaf(size(sums[channels], sums[channels + 1]));
        if allowed { self.task.leaf_cost(&sums[..channels]) } else { NONE }
    }

    /// Where the costs of a cell begin.
    fn place(&self, itemset: &[usize], pattern: usize) -> usize {
        let size = itemset.len();
        ((self.table.itemsets.rank(itemset) << size) + pattern) << (self.depth - size)
    }

    /// Price of testing a column on the rows of a cell with these sums.
    fn price(&self, column: usize, tested: &[usize], sums: impl FnOnce() -> Vec<i64>) -> i64 {
        let price = self.task.split_price();
        if !T::PRICED {
            return price;
        }
        price + self.task.feature_price(column, tested, &sums()[..self.task.channels()])
    }

    /// Evaluates the cells of all itemsets of a size as leaves, and offers pairs of them as splits to
    /// those with one column less.
    fn level(&mut self, size: usize, monitor: &Monitor) -> Result<(), Stop> {
        let (most, mut checked, mut stop) = (self.most(size), 0, None);
        let mut own = vec![NONE; most << size];
        let table = self.table;
        for_each(table, size, &mut |itemset, cells| {
            if stop.is_some() {
                return;
            }
            checked += 1 << size;
            if checked >= CELLS_PER_CHECK {
                monitor.count(checked);
                (checked, stop) = (0, monitor.check().err());
            }
            if size < self.depth {
                let place = self.place(itemset, 0);
                for (pattern, cell) in cells.iter().enumerate() {
                    self.values[size][place + pattern * most] = self.leaf(cell);
                }
                own.copy_from_slice(&self.values[size][place..][..most << size]);
            } else {
                own.iter_mut().zip(cells).for_each(|(own, cell)| *own = self.leaf(cell));
            }
            for left_out in 0..size {
                self.offer(itemset, left_out, cells, &own);
            }
        });
        monitor.count(checked);
        stop.map_or(Ok(()), Err)
    }

    /// Splits of the itemset without one of its columns, on that column.
    fn offer(&mut self, itemset: &[usize], left_out: usize, cells: &[Vec<i64>], own: &[i64]) {
        let (size, most) = (itemset.len(), self.most(itemset.len()));
        let mut smaller = [0; MOST_DEPTH];
        let others = itemset.iter().enumerate().filter(|&(at, _)| at != left_out);
        others.zip(&mut smaller).for_each(|((_, &column), to)| *to = column);
        let smaller = &smaller[..size - 1];
        let place = self.place(smaller, 0);
        let low = (1 << left_out) - 1;
        debug_assert!(1 << (size - 1) <= PATTERNS);
        for pattern in 0..1usize << (size - 1) {
            let no = (pattern & !low) << 1 | pattern & low;
            let yes = no | 1 << left_out;
            let (of_yes, of_no) = (&own[yes * most..][..most], &own[no * most..][..most]);
            if of_yes.iter().all(|&cost| cost == NONE) || of_no.iter().all(|&cost| cost == NONE) {
                continue;
            }
            let sums = || cells[yes].iter().zip(&cells[no]).map(|(a, b)| a + b).collect();
            let price = self.price(itemset[left_out], smaller, sums);
            let values = &mut self.values[size - 1][place + 2 * pattern * most..][..2 * most];
            for (a, &yes) in of_yes.iter().enumerate().filter(|(_, cost)| **cost < NONE) {
                for (b, &no) in of_no.iter().enumerate().filter(|(_, cost)| **cost < NONE) {
                    let value = &mut values[a + b + 1];
                    *value = (*value).min(yes + no + price);
                }
            }
        }
    }

    /// The cheapest tree of at most so many leaves: of equal ones the smallest.
    fn best(&self, most_leaves: usize) -> (i64, Tree) {
        let of_root = &self.values[0][..most_leaves.min(self.most(0))];
        let costs = of_root.iter().enumerate().map(|(at, &cost)| (cost, at + 1));
        let (cost, leaves) = costs.min().expect("a leaf at least");
        (cost, self.tree(&mut Vec::new(), leaves, cost))
    }

    /// A tree of so many leaves and of this cost on the rows that have these values.
    fn tree(&self, literals: &mut Vec<(usize, bool)>, leaves: usize, cost: i64) -> Tree {
        if leaves == 1 {
            return Tree::leaf();
        }
        let tested: Vec<usize> = literals.iter().map(|literal| literal.0).collect();
        for column in (0..self.table.shape.n_features).filter(|column| !tested.contains(column)) {
            let sums = || of_literals(self.table, literals);
            let price = self.price(column, &tested, sums);
            let sides = [true, false].map(|value| {
                literals.push((column, value));
                let costs = self.costs_of(literals);
                literals.pop();
                costs
            });
            for of_yes in 1..leaves {
                let costs = [(0, of_yes), (1, leaves - of_yes)]
                    .map(|(side, n)| sides[side].get(n - 1).copied().unwrap_or(NONE));
                if costs.contains(&NONE) || costs[0] + costs[1] + price != cost {
                    continue;
                }
                let mut below = |value: bool, n: usize, cost: i64| {
                    literals.push((column, value));
                    let tree = self.tree(literals, n, cost);
                    literals.pop();
                    tree
                };
                let yes = below(true, of_yes, costs[0]);
                let no = below(false, leaves - of_yes, costs[1]);
                let flipped = self.table.shape.flipped[column];
                return Tree::on(Column { feature: column, flipped }, [&no, &yes]);
            }
        }
        unreachable!("the cost is that of a split")
    }

    /// Costs of the trees of every number of leaves on the rows that have these values.
    fn costs_of(&self, literals: &[(usize, bool)]) -> Vec<i64> {
        let size = literals.len();
        if size == self.depth {
            return vec![self.leaf(&of_literals(self.table, literals))];
        }
        let mut sorted = literals.to_vec();
        sorted.sort_unstable();
        let itemset: Vec<usize> = sorted.iter().map(|literal| literal.0).collect();
        let values = sorted.iter().enumerate();
        let pattern: usize = values.map(|(at, &(_, value))| usize::from(value) << at).sum();
        self.values[size][self.place(&itemset, pattern)..][..self.most(size)].to_vec()
    }
}
