//! Nodes of a task whose costs are computed by the caller. They work like those of sums, with real
//! costs and with the bounds that the task offers, which are requested for all questions of a node
//! at once.

use super::Problem;
use super::extract::{side_records, total_record};
use super::lattice;
use crate::data::{Column, Sample};
use crate::search::lattice::MAX_DEPTH;
use crate::search::nodes::{Allowed, Bounded, Found, InOrder, Known, Look, Nodes, Parent, Rooted};
use crate::search::{Monitor, Settings, Stop};
use crate::tree::Tree;
use std::sync::Arc;

/// Depth of the lattice whose best trees order the columns of a node.
const LOOK_AHEAD: usize = 3;

/// The nodes of one problem, for one thread.
pub struct BatchNodes<'a> {
    problem: &'a Problem<'a>,
    settings: Settings,
    /// Most bytes that a lattice of this thread may use.
    share: usize,
    monitor: &'a Monitor<'a>,
    /// Costs that differ by no more than this are ties.
    pub slack: f64,
}

/// What is known about a node before any search.
#[derive(Clone, Copy, Debug)]
pub struct Prior {
    /// Cost as a leaf.
    pub leaf: f64,
    /// Least cost of a split.
    pub price: f64,
    /// A lower bound on the cost of every tree.
    pub lower: f64,
}

/// Rows, and what is known about them.
pub struct BatchNode {
    pub sample: Sample,
    pub prior: Prior,
    rows: u128,
}

/// Both sides of every column: for each column the true side, then the false side.
pub struct OpenBatchNode {
    sides: Vec<Prior>,
}

/// A column at a node.
#[derive(Clone, Copy, Debug)]
pub struct BatchSplit {
    column: usize,
    price: f64,
    bound: f64,
}

impl Bounded<f64> for BatchSplit {
    #[inline]
    fn bound(&self) -> f64 {
        self.bound
    }
}

impl<'a> BatchNodes<'a> {
    pub fn new(problem: &'a Problem<'a>, settings: &Settings, monitor: &'a Monitor<'a>) -> Self {
        let (settings, share) = (settings.clone(), settings.bytes());
        BatchNodes { problem, settings, share, monitor, slack: 0.0 }
    }

    /// Leaf cost, price and bound of many sets of rows.
    ///
    /// A tree is a leaf, or pays for a split in addition to its leaves (look-ahead).
    fn priors(&self, records: &[i64]) -> Result<Vec<Prior>, Stop> {
        let leaf = self.problem.leaf_costs(records)?;
        let price = self.problem.prices(records)?;
        let bound = self.problem.lower_bounds(records)?;
        let prior = |((leaf, price), bound): ((f64, f64), f64)| Prior {
            leaf,
            price,
            lower: leaf.min(bound + price),
        };
        Ok(leaf.into_iter().zip(price).zip(bound).map(prior).collect())
    }

    /// The node of these rows.
    pub fn node(&self, sample: Sample) -> Result<BatchNode, Stop> {
        let prior = self.priors(&total_record(&sample))?[0];
        Ok(BatchNode { prior, rows: sample.key(), sample })
    }

    /// Both sides of every column.
    pub fn sides_of(&self, sample: &Sample) -> Result<Vec<Prior>, Stop> {
        let everything: Vec<u32> = (0..sample.n_rows() as u32).collect();
        self.priors(&side_records(sample, &everything))
    }

    /// The rows where a column is false, and the rows where it is true.
    fn parts(sample: &Sample, column: usize, sides: &[Prior]) -> [BatchNode; 2] {
        [false, true].map(|value| {
            let part = sample.restrict(column, value);
            let prior = sides[2 * column + usize::from(!value)];
            BatchNode { prior, rows: part.key(), sample: part }
        })
    }

    /// Deepest lattice on this sample within the memory limit.
    pub fn lattice_depth(&self, sample: &Sample, most_leaves: usize) -> usize {
        let (left, threads) = (self.room(), self.settings.threads());
        let fits = |d: &usize| lattice::bytes(sample, *d, most_leaves, threads) <= left;
        let deepest = self.settings.switches.lattice_depth.clamp(1, MAX_DEPTH);
        (1..=deepest).rev().find(fits).unwrap_or(0)
    }

    /// Bytes that the memo leaves to lattices.
    fn room(&self) -> usize {
        self.settings.bytes().saturating_sub(self.problem.remembered()).min(self.share)
    }

    pub fn lattice(
        &self,
        sample: &Sample,
        depth: usize,
        budgets: &[usize],
    ) -> Result<lattice::Solved, Stop> {
        let BatchNodes { problem, settings, monitor, .. } = self;
        let share = problem.tables.share(self.room());
        let solved = lattice::solve(problem, sample, depth, budgets, settings, share, monitor)?;
        for (found, lower) in solved.found.iter().zip(&solved.lower) {
            problem.seen.differs.add(found.cost - lower);
        }
        Ok(solved)
    }

    /// The part of the allowance that a node with these priors can use.
    pub fn useful_of(&self, prior: &Prior, n_columns: usize, allowed: Allowed) -> Allowed {
        let Prior { leaf, price, lower } = *prior;
        if lower >= leaf {
            return allowed.at_most(0, 1);
        }
        // With s splits the penalty is paid s times, and other prices are not negative.
        let splits = (leaf - (lower - price)) / self.problem.penalty;
        // A NaN or infinite quotient saturates.
        let splits = if splits.is_nan() { usize::MAX } else { splits as usize };
        allowed.at_most(n_columns.min(splits), usize::MAX)
    }

    /// Solves a node by one lattice.
    fn by_lattice(
        &self,
        node: &BatchNode,
        allowed: Allowed,
        all_sizes: bool,
    ) -> Result<Look<Self>, Stop> {
        let budgets: Vec<usize> = match (all_sizes, allowed.is_full()) {
            (true, _) => (1..=allowed.leaves).collect(),
            (false, true) => vec![usize::MAX],
            (false, false) => vec![allowed.leaves],
        };
        let found = self.lattice(&node.sample, allowed.depth, &budgets)?.found;
        Ok(Look::of_budgets(found.into_iter().map(|Found { cost, tree }| (cost, tree))))
    }
}

impl Nodes for BatchNodes<'_> {
    type Cost = f64;
    type Node = BatchNode;
    type Open = OpenBatchNode;
    type Queue = InOrder<BatchSplit>;
    type Split = BatchSplit;
    type Subtree = Arc<Tree>;

    const ALL_SIZES: bool = true;

    fn slack(&self) -> f64 {
        self.slack
    }

    fn leaf(&self, node: &BatchNode) -> Known<f64, Arc<Tree>> {
        Known::exact(node.prior.leaf, Arc::new(Tree::leaf()))
    }

    fn useful(&self, node: &BatchNode, allowed: Allowed) -> Allowed {
        self.useful_of(&node.prior, node.sample.n_columns(), allowed)
    }

    fn bound(&self, node: &BatchNode) -> f64 {
        node.prior.lower
    }

    fn key(&self, node: &BatchNode) -> u128 {
        node.rows
    }

    fn look(
        &mut self,
        node: &BatchNode,
        parent: Option<Parent<Self>>,
        allowed: Allowed,
        _cut: f64,
    ) -> Result<Look<Self>, Stop> {
        let (sample, full) = (&node.sample, allowed.is_full());
        let reach = self.lattice_depth(sample, if full { usize::MAX } else { allowed.leaves });
        if reach == 0 {
            return Err(Stop::Memory);
        }
        if allowed.depth <= reach {
            return self.by_lattice(node, allowed, parent.is_some() && !full);
        }
        let (sides, price) = (self.sides_of(sample)?, node.prior.price);
        let split = |column: usize| {
            let bound = sides[2 * column].lower + sides[2 * column + 1].lower + price;
            BatchSplit { column, price, bound }
        };
        let mut splits: Vec<BatchSplit> = (0..sample.n_columns()).map(split).collect();
        let values = self.lattice(sample, reach.min(LOOK_AHEAD), &[usize::MAX])?.root_values;
        if !values.is_empty() {
            splits.sort_by(|a, b| values[a.column].total_cmp(&values[b.column]));
        }
        Ok(Look::Open(OpenBatchNode { sides }, InOrder::new(splits)))
    }

    fn price(&self, split: &BatchSplit) -> f64 {
        split.price
    }

    fn sides(
        &mut self,
        node: &BatchNode,
        open: &OpenBatchNode,
        split: &BatchSplit,
    ) -> Result<[BatchNode; 2], Stop> {
        Ok(Self::parts(&node.sample, split.column, &open.sides))
    }

    fn column(&self, node: &BatchNode, split: &BatchSplit) -> Column {
        node.sample.columns[split.column]
    }

    /// The smaller side is cheaper, and may already rule out the column.
    fn first_side(&self, sides: &[BatchNode; 2]) -> usize {
        usize::from(sides[1].sample.n_rows() <= sides[0].sample.n_rows())
    }

    fn join(&mut self, node: &BatchNode, split: &BatchSplit, trees: [&Arc<Tree>; 2]) -> Arc<Tree> {
        Arc::new(Tree::on(self.column(node, split), trees.map(Arc::as_ref)))
    }
}

impl Rooted for BatchNodes<'_> {
    fn workers(&self, node: &BatchNode, allowed: Allowed) -> Vec<Self> {
        let (sample, full) = (&node.sample, allowed.is_full());
        let most_leaves = if full { usize::MAX } else { allowed.leaves };
        let reach = self.lattice_depth(sample, most_leaves).min(allowed.depth - 1);
        let each = lattice::bytes(sample, reach, most_leaves, 1);
        let shared = self.settings.shared(reach, each);
        let share = (self.settings.bytes() - self.settings.memo_bytes()) / shared.len().max(1);
        let worker = |settings| BatchNodes { settings, share, ..*self };
        shared.into_iter().map(worker).collect()
    }
}
