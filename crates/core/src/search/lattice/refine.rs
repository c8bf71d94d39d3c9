//! Turns approximate tables into the exact best tree.
//!
//! Every table entry is within ε of the exact value of the same subproblem, because each tree's
//! lane total is within ε of its exact cost (`LaneTask::lane_error`). So the exact optimum of a
//! node is among the splits whose lane value is within 2ε of the least. Only these are followed,
//! with exact integer costs. Ties go to fewer leaves, then to the first column, so the tree does
//! not depend on the backend or the number of threads.

use super::combine::Problem;
use super::geometry::{Best, MAX_DEPTH, PREFIX, best_at};
use super::lane_error;
use crate::data::{Sample, add};
use crate::search::nodes::Found;
use crate::search::{Monitor, Stop};
use crate::simd::{LaneInt, LaneReal};
use crate::task::{LaneError, LaneTask, Task};
use crate::tree::Tree;
use rustc_hash::FxHashMap;

/// What a lattice is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Most levels.
    pub depth: usize,
    /// The best tree is searched for each of these numbers of leaves (`[usize::MAX]`: as many as
    /// the depth allows).
    pub budgets: &'a [usize],
    /// With one budget: trees that cost this much or more need not be found, only bounded.
    pub cutoff: i64,
}

impl Query<'_> {
    /// Most leaves of a tree.
    pub fn leaves(&self) -> usize {
        self.budgets.iter().copied().max().unwrap_or(1)
    }

    /// Number of levels of a lattice over these rows.
    pub fn levels(&self, sample: &Sample) -> usize {
        let splits = self.leaves().saturating_sub(1);
        self.depth.min(sample.n_columns()).min(MAX_DEPTH).min(splits)
    }
}

impl Query<'static> {
    /// For trees that only the depth limits.
    pub fn full(depth: usize, cutoff: i64) -> Self {
        Query { depth, budgets: &[usize::MAX], cutoff }
    }
}

/// Result of a lattice.
#[derive(Clone, Debug)]
pub struct Solved {
    /// The exact best tree for each budget, or the leaf if the tree only had to be bounded.
    pub found: Vec<Found>,
    /// Lower bound on the cost of every tree: the cost of `found`, unless that only had to be
    /// bounded.
    pub lower: Vec<i64>,
    /// Approximate best cost with each column at the root, without the price that every split has;
    /// empty for trees of depth 0 or 1.
    pub root_values: Vec<f64>,
    /// Largest difference of these values from the costs; 0 if they are exact.
    pub slack: f64,
}

/// A subtree in the arena.
#[derive(Clone, Copy, Debug)]
struct RefinedNode {
    cost: i64,
    leaves: u32,
    /// Column (`LEAF` for none), and the subtrees where it is true and where it is false.
    column: u32,
    sides: [u32; 2],
}

/// No column, and no subtree: a leaf.
const LEAF: u32 = u32::MAX;

/// Bytes of a subtree and its entry in the memo, while both tables are moved to twice their size.
const SUBTREE: usize = 3 * size_of::<RefinedNode>() + 4 * size_of::<(u128, u32)>();

/// A split with its lane values.
struct Candidate {
    /// Value of both sides, with the price.
    value: f64,
    /// Value of the side where the column is false.
    of_no: f64,
    column: usize,
    /// Number of leaves of the sides where the column is true and where it is false.
    shares: (usize, usize),
}

/// Columns and required values, ascending in column; unused places are zero.
type Literals = [(usize, bool); MAX_DEPTH];

/// Literals, and the number of places in use.
type Itemset = (Literals, usize);

struct Refiner<'a, T, I, R> {
    task: &'a T,
    problem: &'a Problem<I, R>,
    sample: &'a Sample,
    best: &'a [Best<R>; MAX_DEPTH],
    /// Cost units per lane unit.
    unit: f64,
    /// Largest difference between lane values of any cell and costs.
    error: LaneError,
    monitor: &'a Monitor<'a>,
    arena: Vec<RefinedNode>,
    /// Subtrees by itemset and budget.
    memo: FxHashMap<u128, u32>,
    /// Most subtrees in the memo.
    room: usize,
}

/// The exact best tree for each leaf budget. With one budget, it is the leaf if no tree costs less
/// than the cutoff or the leaf. Subtrees are remembered in `room` bytes.
#[allow(clippy::too_many_arguments)]
pub fn refine<T: LaneTask, I: LaneInt, R: LaneReal>(
    task: &T,
    problem: &Problem<I, R>,
    sample: &Sample,
    best: &[Best<R>; MAX_DEPTH],
    unit: f64,
    query: Query,
    room: usize,
    monitor: &Monitor,
) -> Result<Solved, Stop> {
    let Query { budgets, cutoff, .. } = query;
    let mut refiner = Refiner {
        task,
        problem,
        sample,
        best,
        unit,
        error: lane_error(task, problem, &sample.sums, problem.depth),
        monitor,
        arena: Vec::new(),
        memo: FxHashMap::default(),
        room: room / SUBTREE,
    };
    let leaf = task.leaf_cost(&sample.total);
    let (root_values, slack) = (refiner.root_values(budgets), refiner.slack(refiner.error, leaf));
    if let ([_], false) = (budgets, root_values.is_empty()) {
        let least = root_values.iter().copied().fold(f64::INFINITY, f64::min);
        let least = (least + task.split_price() as f64 - slack).floor() as i64;
        let allowed = task.allows_leaf(problem.smallest, sample.total_size(), &sample.total);
        if allowed && least >= leaf.min(cutoff) {
            let (found, lower) = (Found { cost: leaf, tree: Tree::leaf() }, leaf.min(least));
            return Ok(Solved { found: vec![found], lower: vec![lower], root_values, slack });
        }
    }
    let rows: Vec<u32> = (0..sample.n_rows() as u32).collect();
    let mut found = Vec::with_capacity(budgets.len());
    for &budget in budgets {
        let node = refiner.exact(([(0, false); MAX_DEPTH], 0), &rows, budget)?;
        let cost = refiner.arena[node as usize].cost;
        found.push(Found { cost, tree: refiner.tree(node) });
    }
    let lower = found.iter().map(|f| f.cost).collect();
    Ok(Solved { found, lower, root_values, slack })
}

impl<T: LaneTask, I: LaneInt, R: LaneReal> Refiner<'_, T, I, R> {
    /// Largest difference between lane values and costs for trees on these rows of a cell.
    fn error_of(&self, rows: &[u32], depth: usize) -> LaneError {
        match self.error {
            // Fewer rows and fewer leaves have a smaller rounding error.
            LaneError::Fixed(most) if most > 0.0 && depth < self.problem.depth => {
                let records = rows.iter().flat_map(|&r| self.sample.statistics(r as usize));
                let records: Vec<i64> = records.copied().collect();
                LaneError::Fixed(
                    lane_error(self.task, self.problem, &records, depth).of(0.0).min(most),
                )
            }
            error => error,
        }
    }

    /// Largest difference of lane values with an `error` for which trees on a cell with this cost
    /// as a leaf may be in either order; 0 if lanes are exact.
    fn slack(&self, error: LaneError, leaf: i64) -> f64 {
        match error.of(leaf as f64 / self.unit) {
            0.0 => 0.0,
            // Exact costs are rounded, too, by half a unit per leaf and price.
            error => 2.0 * error * self.unit + 64.0,
        }
    }

    /// The exact best tree on the rows of an itemset with at most `budget` leaves.
    fn exact(&mut self, itemset: Itemset, rows: &[u32], budget: usize) -> Result<u32, Stop> {
        let remaining = self.problem.depth - itemset.1;
        let budget = budget.min(1 << remaining);
        let key = packed(itemset, budget);
        if let Some(&known) = self.memo.get(&key) {
            return Ok(known);
        }
        let (sums, size) = self.sums(rows);
        let smallest = self.problem.smallest;
        let allowed = self.task.allows_leaf(smallest, size, &sums);
        let cost = if allowed { self.task.leaf_cost(&sums) } else { i64::MAX };
        let leaf = RefinedNode { cost, leaves: 1, column: LEAF, sides: [LEAF; 2] };
        let useful = budget > 1
            && rows.len() > 1
            && smallest.allows_split(size)
            && self.task.splits_help(&sums);
        let node = if !useful {
            leaf
        } else if remaining == 1 {
            self.best_last_split(itemset, rows, &sums, size, leaf)
        } else {
            self.best_split(itemset, rows, &sums, budget, leaf)?
        };
        let place = self.arena.len() as u32;
        self.arena.push(node);
        if self.memo.len() < self.room {
            self.memo.insert(key, place);
        }
        Ok(place)
    }

    /// The best of `leaf` and one split into two leaves.
    fn best_last_split(
        &self,
        itemset: Itemset,
        rows: &[u32],
        sums: &[i64],
        size: i64,
        leaf: RefinedNode,
    ) -> RefinedNode {
        let (task, sample) = (self.task, self.sample);
        let (n, channels) = (sample.n_columns(), sample.channels);
        let mut yes = vec![0i64; n * channels];
        let mut yes_size = vec![0i64; n];
        for &r in rows {
            let record = sample.statistics(r as usize);
            let size = sample.size(r as usize);
            for c in sample.true_columns(r as usize) {
                add(&mut yes[c * channels..], record);
                yes_size[c] += size;
            }
        }
        let smallest = self.problem.smallest;
        let mut no = vec![0i64; channels];
        let mut best = leaf;
        for c in (0..n).filter(|&c| !uses(itemset, c)) {
            let yes = &yes[c * channels..(c + 1) * channels];
            for ((no, total), yes) in no.iter_mut().zip(sums).zip(yes) {
                *no = total - yes;
            }
            let allows = |size, sums: &[i64]| task.allows_leaf(smallest, size, sums);
            if !allows(yes_size[c], yes) || !allows(size - yes_size[c], &no) {
                continue;
            }
            let cost = task.combine(&task.leaf_cost(yes), &task.leaf_cost(&no))
                + self.feature_price(itemset, c, sums);
            if cost < best.cost {
                best = RefinedNode { cost, leaves: 2, column: c as u32, sides: [LEAF; 2] };
            }
        }
        best
    }

    /// The best of `leaf` and a split with subtrees; only follows splits that the lane values
    /// allow.
    fn best_split(
        &mut self,
        itemset: Itemset,
        rows: &[u32],
        sums: &[i64],
        budget: usize,
        leaf: RefinedNode,
    ) -> Result<RefinedNode, Stop> {
        self.monitor.check()?;
        let n = self.sample.n_columns();
        let task = self.task;
        let price = task.split_price();
        // Children get all that their depth allows, or all ways of sharing the budget.
        let depth = self.problem.depth - itemset.1;
        let child_most = 1usize << (depth - 1);
        let shares: Vec<(usize, usize)> = if self.problem.unlimited {
            vec![(usize::MAX, usize::MAX)]
        } else {
            let most = budget.min(2 * child_most);
            let shares = (1..most).map(|a| (a, most - a));
            shares.filter(|&(a, b)| a <= child_most && b <= child_most).collect()
        };
        let mut candidates = Vec::new();
        let mut least = f64::INFINITY;
        for c in (0..n).filter(|&c| !uses(itemset, c)) {
            let (yes, no) = (with(itemset, c, true), with(itemset, c, false));
            let price = price + self.feature_price(itemset, c, sums);
            for &(a, b) in &shares {
                let of_no = self.lane_value(no, b);
                let value = self.lane_value(yes, a) + of_no + price as f64;
                least = least.min(value);
                candidates.push(Candidate { value, of_no, column: c, shares: (a, b) });
            }
        }
        let error = self.error_of(rows, depth);
        // Leaves with a cost of 0 have a cost of 0 in the lanes, too, so trees of such leaves
        // differ by whole prices.
        let pure = self.task.lane_pure(error.of(leaf.cost as f64 / self.unit)) * self.unit;
        let as_few = least + 0.5 * price as f64;
        if as_few < pure {
            candidates.retain(|one| one.value <= as_few);
            candidates.truncate(1);
        }
        let slack = self.slack(error, leaf.cost);
        let (bound, error) = (least + slack, slack / 2.0);
        let (mut best, mut place) = (leaf, (0, 0));
        if slack == 0.0 && best.cost as f64 <= least {
            return Ok(best);
        }
        // By value, then by column: good trees rule out others.
        candidates.sort_by(|one, other| one.value.total_cmp(&other.value));
        for Candidate { value, of_no, column: c, shares } in candidates {
            if value > bound.min(best.cost as f64 + error) || value.is_infinite() {
                break;
            }
            let (rows_yes, rows_no): (Vec<u32>, Vec<u32>) =
                rows.iter().partition(|&&r| self.sample.get(r as usize, c));
            if rows_yes.is_empty() || rows_no.is_empty() {
                continue;
            }
            let (subtrees, remembered) = (self.arena.len(), self.memo.len());
            let price = price + self.feature_price(itemset, c, sums);
            let yes = self.exact(with(itemset, c, true), &rows_yes, shares.0)?;
            let y = self.arena[yes as usize];
            let hopeless =
                y.cost == i64::MAX || (y.cost + price) as f64 + of_no > best.cost as f64 + error;
            let split = if hopeless {
                None
            } else {
                let no = self.exact(with(itemset, c, false), &rows_no, shares.1)?;
                let o = self.arena[no as usize];
                let leaves = y.leaves + o.leaves;
                let cost = if o.cost < i64::MAX { y.cost + o.cost + price } else { i64::MAX };
                Some(RefinedNode { cost, leaves, column: c as u32, sides: [yes, no] })
            };
            // Among shares of one budget: fewest leaves where the feature is true.
            let [_, when_true] = self.sample.columns[c].turned([shares.1, shares.0]);
            let at = (c, when_true);
            let better = |split: &RefinedNode| {
                (split.cost, split.leaves, at) < (best.cost, best.leaves, place)
                    && split.cost < i64::MAX
            };
            if let Some(split) = split.filter(better) {
                (best, place) = (split, at);
                // If equal costs mean equally many leaves, the first column wins.
                if slack == 0.0 && task.orders_sizes() && best.cost as f64 <= least {
                    break;
                }
            } else if self.memo.len() == remembered {
                // Nothing refers to the subtrees that were found.
                self.arena.truncate(subtrees);
            }
        }
        Ok(best)
    }

    /// Approximate best cost with each column at the root and the largest of the budgets.
    fn root_values(&self, budgets: &[usize]) -> Vec<f64> {
        if self.problem.depth < 2 {
            return Vec::new();
        }
        let most = budgets.iter().copied().max().unwrap_or(1) - 1;
        let root = ([(0, false); MAX_DEPTH], 0);
        let side = |c, value| self.lane_value(with(root, c, value), most);
        let sums = &self.sample.total;
        let price = |c| self.feature_price(root, c, sums) as f64;
        let columns = 0..self.sample.n_columns();
        columns.map(|c| side(c, true) + side(c, false) + price(c)).collect()
    }

    /// Price of column `c` on the rows of an itemset whose statistics are `sums`.
    fn feature_price(&self, itemset: Itemset, c: usize, sums: &[i64]) -> i64 {
        if !T::PRICED {
            return 0;
        }
        let feature = |c: usize| self.sample.columns[c].feature;
        let mut tested = self.sample.tested.clone();
        tested.extend(itemset.0[..itemset.1].iter().map(|&(c, _)| feature(c)));
        self.task.feature_price(feature(c), &tested, sums)
    }

    /// Approximate optimum of an itemset below the root, in cost units.
    fn lane_value(&self, itemset: Itemset, budget: usize) -> f64 {
        let (literals, m) = (&itemset.0[..itemset.1], itemset.1);
        let leaf = {
            let Some(sums) = self.lane_cell(literals) else { return f64::INFINITY };
            self.task.leaf_cost(&sums) as f64
        };
        let remaining = self.problem.depth - m;
        let slots = self.problem.slots[m];
        let slot = if self.problem.unlimited {
            0
        } else {
            let leaves = budget.min(1 << remaining);
            if leaves < 2 || slots == 0 {
                return leaf;
            }
            (leaves - 2).min(slots - 1)
        };
        let mut pattern = 0;
        let mut columns = [0usize; PREFIX];
        for (i, &(c, value)) in literals.iter().enumerate() {
            pattern |= usize::from(value) << i;
            columns[i] = c;
        }
        let row = self.problem.sums.geometry.row(&columns[..m - 1]);
        let at = best_at(row, slots, m, slot, pattern, columns[m - 1]);
        let split = (self.best[m].0[at].to_f64() + self.problem.price.to_f64()) * self.unit;
        leaf.min(split)
    }

    /// Statistics of an itemset from the lane sums, by inclusion–exclusion; `None` if it has too
    /// few rows or events.
    fn lane_cell(&self, literals: &[(usize, bool)]) -> Option<Vec<i64>> {
        let problem = self.problem;
        let mut sums = vec![0i64; problem.sums.channels];
        for subset in 0..1usize << literals.len() {
            let mut members = [0usize; MAX_DEPTH];
            let mut size = 0;
            let (mut negative, mut skip) = (false, false);
            for (i, &(c, value)) in literals.iter().enumerate() {
                let inside = subset >> i & 1 == 1;
                skip |= value && !inside;
                negative ^= inside && !value;
                if inside {
                    members[size] = c;
                    size += 1;
                }
            }
            if skip {
                continue;
            }
            for (c, sum) in sums.iter_mut().enumerate() {
                let term = problem.sums.positive(c, &members[..size]).to_i64();
                *sum += if negative { -term } else { term };
            }
        }
        if problem.minima.iter().any(|&(c, least)| sums[c] < least) {
            return None;
        }
        sums.truncate(problem.loss_channels);
        for (sum, &shift) in sums.iter_mut().zip(&problem.shift) {
            *sum = *sum << shift >> problem.lift;
        }
        Some(sums)
    }

    /// Statistics and size of rows.
    fn sums(&self, rows: &[u32]) -> (Vec<i64>, i64) {
        let mut sums = vec![0i64; self.sample.channels];
        let mut size = 0;
        for &r in rows {
            add(&mut sums, self.sample.statistics(r as usize));
            size += self.sample.size(r as usize);
        }
        (sums, size)
    }

    fn tree(&self, node: u32) -> Tree {
        let Some(&RefinedNode { column, sides: [yes, no], .. }) = self.arena.get(node as usize)
        else {
            return Tree::leaf();
        };
        let Some(&column) = self.sample.columns.get(column as usize) else {
            return Tree::leaf();
        };
        Tree::on(column, [&self.tree(no), &self.tree(yes)])
    }
}

fn uses(itemset: Itemset, column: usize) -> bool {
    itemset.0[..itemset.1].iter().any(|&(c, _)| c == column)
}

/// An itemset and a budget as one number: lattices have fewer than 2^23 columns, and complete trees
/// of their depth fewer than 2^8 leaves.
fn packed((literals, size): Itemset, budget: usize) -> u128 {
    let literal = |&(c, value): &(usize, bool)| 2 * c as u128 + u128::from(value) + 1;
    literals[..size].iter().fold(budget as u128, |key, of| key << 24 | literal(of))
}

/// The itemset with one more literal, in ascending order.
fn with(itemset: Itemset, column: usize, value: bool) -> Itemset {
    let (mut literals, size) = itemset;
    let at = literals[..size].partition_point(|&(c, _)| c < column);
    literals.copy_within(at..size, at + 1);
    literals[at] = (column, value);
    (literals, size + 1)
}
