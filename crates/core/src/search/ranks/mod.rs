//! Search over all thresholds of columns of ranks.
//!
//! [`rows`] stores the rows of a node in the order of every column, and [`nodes`] provides the
//! nodes of the branch and bound: intervals of thresholds, which are bisected, best first. Trees of
//! two levels are found at once: [`pairs`] chooses thresholds of the root, and [`kernel`] evaluates
//! many of them at a time with the [`losses`] of the task. See docs/maths/thresholds.md.

mod cost;
mod kernel;
mod losses;
mod nodes;
mod pairs;
mod proofs;
mod rows;

use super::branch::Branch;
use super::grow::{self, Shape};
use super::lattice;
use super::memo::Memo;
use super::nodes::full_leaves;
use super::resolve::{SolvedAgain, resolved, worth};
use super::root::{About, Search};
use super::sums::SumScale;
use super::{Checked, Measured, Monitor, Precision, Settings, Solution, Stop};
use crate::data::{BinaryMatrix, RankMatrix, Smallest, add};
use crate::error::Error;
use crate::simd::{LaneInt, LaneReal};
use crate::task::{Placed, Swept};
use crate::tree::Tree;
use cost::Pair;
use nodes::{RankGrower, RankNode, RankNodes};
use rows::Table;
use std::borrow::Cow;

/// Most work of a search with 128-bit costs, which tries thresholds one by one; a minute or two.
const SHORT_WORK: f64 = (1u64 << 28) as f64;

/// Most bits of all questions as binary features, for the same searches.
const FEW_BITS: f64 = (1u64 << 32) as f64;

/// Largest depth of the greedy trees that a search starts from.
const DEEPEST_GREEDY: usize = 8;

/// Largest error of single lanes, as a share of the total.
const BLURRED: f64 = 1e-3;

/// Rows in the form that lanes add up.
enum Width {
    Single(Vec<i32>),
    Double(Vec<i64>),
}

/// Data in the form that all searches share.
struct Problem<'a, T> {
    task: &'a T,
    matrix: &'a RankMatrix,
    monitor: &'a Monitor<'a>,
    settings: &'a Settings,
    table: Table,
    memo: Option<Memo<Pair, i32>>,
    width: Width,
    /// Number of low bits that lanes drop, per channel.
    shift: Vec<u32>,
    /// Cost units per lane unit.
    unit: f64,
    /// Upper bound on the error of lane losses of trees with two leaves, in lane units.
    error: f64,
    /// See [`Swept::least_error`].
    least_error: f64,
    /// Price of a split, including the part that breaks ties.
    price: i64,
    /// The part of the price that only orders trees of equal cost.
    tie: i64,
    /// The most by which rounding can raise the cost of fewer rows above that of more rows.
    slack: i64,
    smallest: Smallest,
    /// Minimum sums of the last numbers in a leaf: counts, rows and events. Empty if leaves may
    /// have any size.
    minima: Vec<i64>,
}

impl<'a, T: Swept> Problem<'a, T> {
    fn new(
        task: &'a T,
        matrix: &'a RankMatrix,
        settings: &'a Settings,
        monitor: &'a Monitor<'a>,
    ) -> Self {
        let table = Table::new(task, matrix);
        // Rows without weight do not change a sum.
        let (weighed, costly) =
            (table.sums.chunks_exact(table.channels.max(1)), task.loss_channels());
        let weighed: Vec<i64> = weighed
            .filter(|row| row[..costly].iter().any(|&v| v != 0))
            .flatten()
            .copied()
            .collect();
        let of_width = |single: bool, roundoff: f64, ln_error: f64| {
            let shift = lattice::shifts_of(task, single, &weighed);
            let error = task.lane_error(&weighed, &shift, 4, roundoff, ln_error);
            let total = task.leaf_cost(&sum(&table)) as f64 / task.lane_unit(&shift);
            let least = task.least_error(&weighed, &shift, roundoff, ln_error);
            (shift, error.of(total), least)
        };
        let single = of_width(true, f32::ROUNDOFF, f32::LN_ERROR);
        let blurred = single.1 > BLURRED * task.lane_scale(&weighed, &single.0);
        let precision = settings.switches.precision.unwrap_or(match blurred {
            true => Precision::Double,
            false => Precision::Single,
        });
        let (shift, error, least_error) = match precision {
            Precision::Short | Precision::Single => single,
            Precision::Double | Precision::Exact => of_width(false, f64::ROUNDOFF, f64::LN_ERROR),
        };
        let Smallest { rows, events } = settings.limits.smallest();
        let limited = rows > 1 || events > 0 || !task.minima().is_empty();
        let minima = if limited { [task.minima(), &[rows, events]].concat() } else { vec![] };
        let width = match precision {
            Precision::Short | Precision::Single => {
                Width::Single(lanes_of(&table, &shift, limited))
            }
            Precision::Double | Precision::Exact => {
                Width::Double(lanes_of(&table, &shift, limited))
            }
        };
        let memo = settings.switches.cache.then(|| Memo::new(settings.bytes()));
        let leaves = full_leaves(settings.limits.max_depth).min(table.n_rows) as i64;
        let tie = if task.orders_sizes() || task.tie_price() > 0 { 0 } else { 1 };
        Problem {
            unit: task.lane_unit(&shift),
            price: task.split_price() + tie,
            tie: task.tie_price() + tie,
            slack: 2 * leaves * task.cost_rounding(),
            smallest: settings.limits.smallest(),
            task,
            matrix,
            monitor,
            settings,
            table,
            memo,
            width,
            shift,
            error,
            least_error,
            minima,
        }
    }

    fn is_limited(&self) -> bool {
        !self.minima.is_empty()
    }

    /// Whether rows with this size and these sums may form a leaf.
    fn allows_sums(&self, sums: &[i64], size: i64) -> bool {
        self.task.allows_leaf(self.smallest, size, sums)
    }

    /// Whether these rows may form a leaf.
    fn allows(&self, rows: &rows::Rows) -> bool {
        self.allows_sums(&rows.total, rows.size)
    }

    /// Number of a question in the numbering of the caller.
    fn question(&self, column: usize, rank: u32) -> usize {
        self.matrix.question(self.table.columns[column], rank)
    }

    /// Cost of a tree.
    fn cost(&self, tree: &Tree) -> i64 {
        let Problem { task, matrix, price, .. } = *self;
        let leaf_of = tree.partition_by(matrix.n_rows(), |row, q| matrix.holds(row, q));
        let channels = task.channels();
        let mut sums = vec![0i64; channels * tree.n_leaves()];
        for (&leaf, record) in leaf_of.iter().zip(task.statistics().chunks_exact(channels)) {
            add(&mut sums[leaf * channels..][..channels], record);
        }
        let leaves: i64 = sums.chunks_exact(channels).map(|sums| task.leaf_cost(sums)).sum();
        leaves + (tree.n_leaves() as i64 - 1) * price
    }

    /// Most splits of a tree that may be optimal, if no tree costs less than `floor`.
    fn most_splits(&self, floor: i64) -> i64 {
        let by_price = match self.task.split_price() {
            ..=0 => i64::MAX,
            price => self.task.leaf_cost(&sum(&self.table)).saturating_sub(floor) / price + 1,
        };
        let leaves = self.settings.limits.allowed().leaves.min(self.table.n_rows);
        by_price.min(i64::try_from(leaves).unwrap_or(i64::MAX) - 1).max(0)
    }

    /// A branch and bound over the nodes of these data.
    fn branch(&self) -> Branch<'_, RankNodes<'_, T>> {
        Branch { nodes: RankNodes::new(self), memo: self.memo.as_ref(), monitor: self.monitor }
    }
}

/// Sums of the statistics over all rows.
fn sum(table: &Table) -> Vec<i64> {
    let mut total = vec![0; table.channels];
    table.sums.chunks_exact(table.channels.max(1)).for_each(|row| add(&mut total, row));
    total
}

/// Records of the rows for the lanes, with rows and events if leaves have a minimum.
fn lanes_of<I: LaneInt>(table: &Table, shift: &[u32], limited: bool) -> Vec<I> {
    let mut lanes = Vec::new();
    for (record, &size) in table.sums.chunks_exact(table.channels).zip(&table.sizes) {
        let of_channel = |(&v, &s): (&i64, &u32)| I::from_i64(lattice::lane_value(v, s));
        lanes.extend(record.iter().zip(shift).map(of_channel));
        if limited {
            lanes.extend(kernel::counts_of(size).map(I::from_i64));
        }
    }
    lanes
}

/// The best tree for `task` over all thresholds of the ranks, or, after a limit, the best tree
/// found and a bound.
///
/// # Errors
///
/// If no numbers resolve the optimum because the values span too wide a range.
pub fn over_thresholds<T: Swept>(
    task: &T,
    matrix: &RankMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Solution, Error> {
    if !lattice::fits_channels(task.loss_channels()) {
        return Err(Error::invalid("y", "too many classes for this search (32 at most)"));
    }
    let search = OverThresholds { task, matrix };
    let first = search.solve(task, settings, monitor, None)?;
    resolved(&search, task, settings, monitor, first)
}

/// The search over all thresholds.
struct OverThresholds<'a, T> {
    task: &'a T,
    matrix: &'a RankMatrix,
}

impl<T: Swept> SolvedAgain<T> for OverThresholds<'_, T> {
    fn solve(
        &self,
        task: &T,
        settings: &Checked,
        monitor: &Monitor,
        known: Option<Solution>,
    ) -> Result<Solution, Error> {
        Ok(solve_once((task, self.task), self.matrix, settings, monitor, known))
    }

    fn measured(&self, tree: &Tree) -> Measured {
        measured(self.task, self.matrix, tree)
    }

    fn in_128_bits(&self, settings: &Checked) -> Result<Option<Cow<'_, BinaryMatrix>>, Error> {
        let levels = settings.limits.max_depth.saturating_sub(1).min(64) as i32;
        let [rows, questions] = [self.matrix.n_rows(), self.matrix.n_questions()].map(|n| n as f64);
        let is_short = questions.powi(levels) * rows <= SHORT_WORK && questions * rows <= FEW_BITS;
        is_short.then(|| self.matrix.written().map(Cow::Owned)).transpose()
    }
}

/// Objective of a tree.
fn measured(task: &impl Swept, matrix: &RankMatrix, tree: &Tree) -> Measured {
    let leaf_of = tree.partition_by(matrix.n_rows(), |row, q| matrix.holds(row, q));
    task.objective(Placed::rows(&leaf_of, tree.n_leaves()))
}

/// One search, by the given task or one with the same objective. If a tree is known, finds only
/// trees that are better by enough to matter.
fn solve_once<T: Swept>(
    (task, given): (&T, &T),
    matrix: &RankMatrix,
    settings: &Checked,
    monitor: &Monitor,
    known: Option<Solution>,
) -> Solution {
    let problem = Problem::new(task, matrix, settings, monitor);
    let mut branch = problem.branch();
    let root = branch.nodes.node(problem.table.all(), None);
    let floor = root.rows.floor;
    let measure = |tree: &Tree| measured(given, matrix, tree);
    let ties = (problem.tie, problem.most_splits(floor));
    let scale = SumScale::with_ties(task, &measure, settings.limits.allowed(), floor, ties);
    let best = match &known {
        None => (Pair::of(root.any_leaf), Tree::leaf()),
        Some(known) => {
            let cost = problem.cost(&known.tree);
            let units = measure(&known.tree).magnitude / task.unit_value();
            let worth = if scale.is_exact() { 0 } else { worth(units, cost) };
            (Pair::of(cost - floor - worth), known.tree.clone())
        }
    };
    let lower = branch.nodes.least(&root).min(best.0.value);
    let mut search =
        Search::new(&scale, settings, monitor, best, Pair::of(lower)).keeping_the_first();
    if let Some(known) = &known {
        search = search.after(known);
    }
    search.record();
    let stop = run(&problem, &mut search, &mut branch, &root).err();
    let about = About {
        n_distinct_rows: problem.table.n_rows,
        n_columns: problem.table.n_columns(),
        kernel: format!(
            "{}-{}",
            settings.backend().name(),
            if matches!(problem.width, Width::Single(_)) { "single" } else { "double" }
        ),
    };
    // A search that has ended has proven its tree, so later stops do not matter.
    search.finish(stop, about)
}

/// Searches shallow trees and grows greedy trees that look ahead first, then searches all trees.
fn run<'a, T: Swept>(
    problem: &'a Problem<'a, T>,
    search: &mut Search<Pair>,
    branch: &mut Branch<'a, RankNodes<'a, T>>,
    root: &RankNode,
) -> Result<(), Stop> {
    let allowed = problem.settings.limits.allowed();
    if search.is_closed() {
        return Ok(());
    }
    // After a limit, the part of a greedy tree that has grown is a tree, too.
    let greedy = |levels, search: &mut Search<Pair>, branch: &mut Branch<'a, RankNodes<'a, T>>| {
        let depth = allowed.depth.min(DEEPEST_GREEDY);
        let shape = Shape { depth, leaves: allowed.budget(), exact: levels, ahead: levels };
        let found = grow::greedy(&mut RankGrower(branch), root.clone(), shape, problem.monitor);
        search.offer(found.cost, found.tree);
    };
    greedy(0, search, branch);
    for depth in 1..allowed.depth.min(3) {
        search.at_root(branch, root, allowed.at_most(depth, usize::MAX), false)?;
    }
    for levels in [2, 3].into_iter().filter(|&levels| levels < allowed.depth) {
        greedy(levels, search, branch);
    }
    // With few leaves a third level is often enough.
    let is_sparse = !allowed.is_full() || problem.price > problem.tie;
    if is_sparse && allowed.depth > 3 {
        search.at_root(branch, root, allowed.at_most(3, usize::MAX), false)?;
    }
    search.at_root(branch, root, allowed, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::accuracy::Accuracy;
    use bristlecone_oracle::instances::Random;

    #[test]
    fn a_greedy_tree_costs_what_it_should_and_is_optimal_if_it_looks_all_the_way() {
        let mut better = 0;
        for seed in 0..60 {
            let random = &mut Random::new(seed);
            let (n, columns) = (30 + random.below(60), 1 + random.below(3));
            let ranks: Vec<u32> = (0..n * columns).map(|_| random.below(n) as u32).collect();
            let dense = |column: &[u32]| {
                let mut distinct = column.to_vec();
                distinct.sort_unstable();
                distinct.dedup();
                let place = |v| distinct.binary_search(v).unwrap() as u32;
                column.iter().map(place).collect::<Vec<u32>>()
            };
            let ranks = ranks.chunks_exact(n).flat_map(dense).collect();
            let matrix = RankMatrix::new(n, columns, ranks).unwrap();
            let labels: Vec<usize> = (0..n).map(|_| random.below(2)).collect();
            let task = Accuracy::new(&labels, 2, None, 0.0, 16).unwrap();
            let settings = Settings::default().with_limits(|s| s.max_depth = 4);
            let settings = settings.checked(n, n).unwrap();
            let never = || false;
            let monitor = Monitor::new(None, &never);
            let problem = Problem::new(&task, &matrix, &settings, &monitor);
            let mut branch = problem.branch();
            let root = branch.nodes.node(problem.table.all(), None);
            let cost = |tree: &Tree| problem.cost(tree) - root.rows.floor;
            let mut grown = |levels, leaves| {
                let shape = Shape { depth: 4, leaves, exact: levels, ahead: levels };
                let mut grower = RankGrower(&mut branch);
                let found = grow::greedy(&mut grower, root.clone(), shape, &monitor);
                assert_eq!(found.cost.value, cost(&found.tree), "seed {seed}");
                assert!(found.tree.depth() <= 4 && found.tree.n_leaves() <= leaves);
                found.cost.value
            };
            for levels in 1..4 {
                let by_leaves = [2, 3, 5, 8, usize::MAX].map(|leaves| grown(levels, leaves));
                assert!(by_leaves.is_sorted_by(|fewer, more| fewer >= more), "seed {seed}");
            }
            let [near, best] = [2, 4].map(|levels| grown(levels, usize::MAX));
            assert!(best <= near, "seed {seed}");
            better += usize::from(best < near);
            let optimal = over_thresholds(&task, &matrix, &settings, &monitor).unwrap();
            assert_eq!(best, cost(&optimal.tree), "seed {seed}");
        }
        assert!(better > 10, "{better}");
    }
}
