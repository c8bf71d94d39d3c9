//! Nodes of a task whose leaf costs are functions of sums. Nodes with few levels left are solved by
//! a lattice; others are split by every column.

use super::Problem;
use super::start::SumGrower;
use super::subsets::Subsets;
use crate::data::{Column, Sample};
use crate::search::Stop;
use crate::search::lattice::{self, Extent, Query};
use crate::search::nodes::{
    Allowed, Below, Bounded, Cost, Found, Known, Listed, Look, NOTHING, Nodes, Parent, Pending,
    Rooted, key_in_context, splits_that_pay,
};
use crate::search::{Precision, Settings, branch};
use crate::task::LaneTask;
use crate::tree::Tree;
use std::cmp::Reverse;
use std::sync::Arc;

/// Depth of the lattice whose best trees order the columns of a node.
const LOOK_AHEAD: usize = 3;

/// Depth of lattices that only give bounds.
const RELAXED_DEPTH: usize = 4;

/// The nodes of one problem, for one thread.
pub struct SumNodes<'a, T> {
    pub problem: &'a Problem<'a, T>,
    /// Settings of the search. Its lattices may run on fewer threads.
    pub settings: Settings,
    /// Most bytes that a lattice of this thread may use.
    share: usize,
    /// Whether a lattice at the root solves all numbers of leaves instead of one.
    pub all_sizes: bool,
}

/// Rows, and what is known about them without a search.
pub struct SumNode {
    pub sample: Sample,
    /// Cost as a leaf; `i64::MAX` if there are too few rows or events.
    leaf: i64,
    /// Cost of the finest partition.
    finest: i64,
    /// Identifies the rows.
    rows: u128,
}

/// Values that belong to all columns of a node.
pub struct OpenSumNode {
    prices: Vec<i64>,
    /// Questions whose sides contain, or are contained in, those of others.
    subsets: Option<Subsets>,
}

/// Columns in the order in which they are tried, with their bounds.
pub struct SumQueue {
    order: Vec<usize>,
    /// Bound at each position of the order; `i64::MAX` once it was taken.
    open: Vec<i64>,
    /// Bounds on the trees of both sides, `[column][value]`.
    sides: Vec<[i64; 2]>,
    next: usize,
}

/// A column at a node.
#[derive(Clone, Copy, Debug)]
pub struct SumSplit {
    pub column: usize,
    price: i64,
    bound: i64,
    sides: [i64; 2],
}

impl Bounded<i64> for SumSplit {
    #[inline]
    fn bound(&self) -> i64 {
        self.bound
    }
}

impl Pending<OpenSumNode, SumSplit, i64> for SumQueue {
    /// Equally good questions are ordered by their columns, as in a lattice.
    fn next(&mut self, open: &OpenSumNode) -> Option<(usize, SumSplit)> {
        let SumQueue { order, open: bounds, sides, next } = self;
        if *next == order.len() {
            return None;
        }
        if let Some(subsets) = open.subsets.as_ref().filter(|_| *next % 2 == 1) {
            // The question with the lowest bound; of several, the most balanced one.
            let rank = |&k: &usize| (bounds[k], Reverse(subsets.ones(order[k])));
            let least = (*next..order.len()).min_by_key(rank).expect("not empty");
            order[*next..=least].rotate_right(1);
            bounds[*next..=least].rotate_right(1);
        }
        let column = order[*next];
        let bound = std::mem::replace(&mut bounds[*next], i64::MAX);
        *next += 1;
        let split = SumSplit { column, price: open.prices[column], bound, sides: sides[column] };
        Some((column, split))
    }

    fn still_open(&self) -> i64 {
        self.open.iter().copied().min().unwrap_or(i64::MAX)
    }

    fn done(&self) -> f64 {
        self.next as f64 / self.order.len().max(1) as f64
    }
}

pub fn add(sides: [i64; 2], price: i64) -> i64 {
    sides[0].plus(sides[1]).plus(price)
}

impl SumNode {
    /// Cost of the finest partition, a lower bound for every tree.
    pub fn floor(&self) -> i64 {
        self.finest
    }
}

impl<'a, T: LaneTask> SumNodes<'a, T> {
    pub fn new(problem: &'a Problem<'a, T>, settings: &Settings) -> Self {
        let (settings, share) = (settings.clone(), settings.bytes());
        SumNodes { problem, settings, share, all_sizes: false }
    }

    /// The node of these rows.
    pub fn node(&self, sample: Sample) -> SumNode {
        let Problem { task, bounds, .. } = self.problem;
        let smallest = self.settings.limits.smallest();
        let allowed = task.allows_leaf(smallest, sample.total_size(), &sample.total);
        let leaf = if allowed { task.leaf_cost(&sample.total) } else { i64::MAX };
        SumNode { leaf, finest: bounds.finest(&sample), rows: sample.key(), sample }
    }

    /// Deepest lattice on these rows, for this number of leaves, that the memory limit allows.
    pub fn lattice_depth(&self, sample: &Sample, leaves: usize) -> usize {
        let (settings, room) = (&self.settings, self.room());
        let deepest = settings.switches.lattice_depth.clamp(1, lattice::MAX_DEPTH);
        let extent = self.extent(sample, leaves);
        let fits = |&depth: &usize| extent(depth, settings.threads()).bytes(sample) <= room;
        (1..=deepest).rev().find(fits).unwrap_or(0)
    }

    /// Size of lattices on these rows, by depth and threads; O(rows).
    fn extent(&self, sample: &Sample, leaves: usize) -> impl Fn(usize, usize) -> Extent {
        let (task, settings) = (self.problem.task, &self.settings);
        let deepest = settings.switches.lattice_depth.clamp(1, lattice::MAX_DEPTH);
        let precision = lattice::choose_precision(task, sample, deepest, settings);
        let channels = lattice::channels(task, settings);
        move |depth, n_threads| Extent { depth, leaves, channels, n_threads, precision }
    }

    /// Bytes that the memo leaves to a lattice.
    fn room(&self) -> usize {
        let used = self.problem.memo.as_ref().map_or(0, branch::MemoOf::<Self>::bytes);
        self.settings.bytes().saturating_sub(used).min(self.share)
    }

    /// Finds best trees by one lattice.
    pub fn lattice(&self, sample: &Sample, query: Query) -> Result<lattice::Solved, Stop> {
        self.lattice_of(self.problem.task, sample, query, &self.settings)
    }

    /// As [`lattice`](Self::lattice), for another task on the same rows, or with other settings.
    fn lattice_of<U: LaneTask>(
        &self,
        task: &U,
        sample: &Sample,
        query: Query,
        settings: &Settings,
    ) -> Result<lattice::Solved, Stop> {
        let Problem { tables, monitor, .. } = self.problem;
        let room = self.room();
        let precision = lattice::choose_precision(task, sample, query.levels(sample), settings);
        if precision == Precision::Exact
            && let Some(solved) =
                super::tables::solve(task, sample, query, settings, room, monitor)?
        {
            return Ok(solved);
        }
        lattice::solve(task, sample, query, precision, settings, tables.share(room), monitor)
    }

    /// The best tree with each column at the root (`None` if there is none), if one pass over the
    /// rows finds them all.
    pub fn each_root(
        &self,
        sample: &Sample,
        allowed: Allowed,
    ) -> Result<Option<Vec<Option<Found>>>, Stop> {
        let Problem { task, monitor, .. } = self.problem;
        let Allowed { depth, leaves } = Allowed::of(allowed.depth, allowed.leaves);
        if depth == 1 {
            let costs = SumGrower { search: self, sample, by_impurity: false }.costs()?;
            let leaf = &Tree::leaf();
            let split = |(&column, cost)| {
                (cost < i64::MAX).then(|| Found { cost, tree: Tree::on(column, [leaf; 2]) })
            };
            return Ok(Some(sample.columns.iter().zip(costs).map(split).collect()));
        }
        let query = Query { depth, budgets: &[leaves], cutoff: i64::MAX };
        super::tables::each_root(*task, sample, query, &self.settings, self.room(), monitor)
    }

    /// Solves a node by one lattice.
    fn by_lattice(
        &self,
        node: &SumNode,
        allowed: Allowed,
        all_sizes: bool,
        cut: i64,
    ) -> Result<Look<Self>, Stop> {
        if all_sizes {
            let budgets: Vec<usize> = (1..=allowed.leaves).collect();
            let query = Query { depth: allowed.depth, budgets: &budgets, cutoff: i64::MAX };
            let found = self.lattice(&node.sample, query)?.found;
            return Ok(Look::of_budgets(found.into_iter().map(|f| (f.cost, f.tree))));
        }
        let query = Query { depth: allowed.depth, budgets: &[allowed.budget()], cutoff: cut };
        let mut solved = self.lattice(&node.sample, query)?;
        let Found { cost, tree } = solved.found.remove(0);
        let lower = solved.lower[0];
        let proven = lower >= cost;
        Ok(Look::solved(if proven {
            Known::exact(cost, Arc::new(tree))
        } else {
            Known::bound(lower)
        }))
    }

    /// Whether solving two nodes, one level lower, for each of the `open` columns takes less time
    /// than a lattice, which corresponds to (n − depth + 1) / depth such pairs. If lattices are
    /// small, the preparation of nodes counts, too.
    fn few(open: usize, depth: usize, n_columns: usize) -> bool {
        let effort = if depth > LOOK_AHEAD { 1 } else { 4 };
        effort * open * depth <= n_columns - depth
    }

    /// Prices of a split on each column at the root of `sample`.
    pub fn prices(&self, sample: &Sample) -> Vec<i64> {
        let task = self.problem.task;
        let price = task.split_price();
        if !T::PRICED {
            return vec![price; sample.n_columns()];
        }
        let test = |feature| task.feature_price(feature, &sample.tested, &sample.total);
        sample.columns.iter().map(|column| price.saturating_add(test(column.feature))).collect()
    }

    /// Whether bounds for the sides of one question are also used for the sides of others.
    fn hands_on(&self) -> bool {
        let any_leaves = self.settings.limits.any_leaves() || self.settings.switches.relax_leaves;
        let free = any_leaves && self.problem.task.minima().is_empty();
        free && !T::PRICED && self.settings.switches.equivalent_points
    }

    fn subsets(&self, sample: &Sample, allowed: Allowed) -> Subsets {
        // Rounding of every leaf, before and after rows are left out.
        let leaves = allowed.leaves.min(sample.n_rows()) as i64;
        let slack = 2 * leaves * self.problem.task.cost_rounding();
        Subsets::new(sample, |id| self.problem.bounds.row_cost(id), slack)
    }

    /// Bound on trees whose leaves may have any size.
    fn any_leaves(&self, node: &SumNode, allowed: Allowed) -> Result<i64, Stop> {
        let sample = &node.sample;
        let budget = allowed.budget();
        if allowed.depth > self.lattice_depth(sample, budget) {
            return Ok(node.finest);
        }
        let settings = &self.settings.with_limits(|s| {
            s.min_leaf = 1;
            s.min_events = 0;
        });
        // Nothing has to be found, only bounded.
        let query = Query { depth: allowed.depth, budgets: &[budget], cutoff: i64::MIN };
        Ok(self.lattice_of(self.problem.task, sample, query, settings)?.lower[0])
    }

    /// Bounds from one lattice on trees of any depth: on all trees, and on those with each column
    /// at the root.
    fn relaxed(&self, sample: &Sample, reach: usize) -> Result<Option<(i64, Vec<i64>)>, Stop> {
        let task = self.problem.task;
        let bounded = self.settings.switches.equivalent_points && task.split_price() > 0;
        let Some(relaxed) = task.relaxed().filter(|_| bounded && reach > 1) else {
            return Ok(None);
        };
        if !lattice::fits_channels(relaxed.channels()) {
            return Ok(None);
        }
        let sample = sample.with_channel(|record| record.iter().copied().min().unwrap_or(0));
        let query = Query::full(RELAXED_DEPTH.min(reach - 1), i64::MAX);
        let solved = self.lattice_of(&relaxed, &sample, query, &self.settings)?;
        let columns = match &solved.root_values[..] {
            values @ [_, ..] if solved.slack == 0.0 => {
                let price = task.split_price();
                values.iter().map(|&v| (v as i64).saturating_add(price)).collect()
            }
            _ => vec![i64::MIN; sample.n_columns()],
        };
        Ok(Some((solved.lower[0], columns)))
    }

    /// Bounds on trees with each column at the root, including columns that a better one rules out.
    fn column_bounds(&self, sample: &Sample, allowed: Allowed) -> Result<Vec<i64>, Stop> {
        let Allowed { depth, .. } = allowed.at_most(sample.n_columns(), usize::MAX);
        if depth < 2 {
            return SumGrower { search: self, sample, by_impurity: false }.costs();
        }
        if depth <= self.lattice_depth(sample, allowed.budget()) {
            let query = Query { depth, budgets: &[allowed.budget()], cutoff: i64::MIN };
            let solved = self.lattice(sample, query)?;
            if !solved.root_values.is_empty() {
                let price = self.problem.task.split_price() as f64 - solved.slack;
                return Ok(solved.root_values.iter().map(|v| (v + price).floor() as i64).collect());
            }
        }
        Ok(vec![NOTHING; sample.n_columns()])
    }

    /// Columns, ordered by the value of the best shallow tree with each at the root.
    fn order(&self, sample: &Sample, reach: usize) -> Result<Vec<usize>, Stop> {
        let query = Query::full(reach.min(LOOK_AHEAD), i64::MIN);
        let mut order: Vec<usize> = (0..sample.n_columns()).collect();
        // Only the values are needed.
        let values = self.lattice(sample, query)?.root_values;
        if !values.is_empty() {
            order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        }
        Ok(order)
    }
}

impl<'a, T: LaneTask> Nodes for SumNodes<'a, T> {
    type Cost = i64;
    type Node = SumNode;
    type Open = OpenSumNode;
    type Queue = SumQueue;
    type Split = SumSplit;
    type Subtree = Arc<Tree>;

    const ALL_SIZES: bool = true;

    fn leaf(&self, node: &SumNode) -> Known<i64, Arc<Tree>> {
        Known::exact(node.leaf, Arc::new(Tree::leaf()))
    }

    /// At most as many splits as there are columns, or as could pay for themselves.
    fn useful(&self, node: &SumNode, allowed: Allowed) -> Allowed {
        let mut depth = node.sample.n_columns();
        let price = self.problem.task.split_price();
        if price > 0 && node.leaf < i64::MAX && self.settings.switches.equivalent_points {
            let saved = i128::from(node.leaf) - i128::from(node.finest);
            depth = depth.min(splits_that_pay(saved, price.into()));
        }
        allowed.at_most(depth, usize::MAX)
    }

    fn bound(&self, node: &SumNode) -> i64 {
        let price = self.problem.task.split_price().max(0);
        node.leaf.min(node.finest.saturating_add(price))
    }

    fn key(&self, node: &SumNode) -> u128 {
        if !T::PRICED {
            return node.rows;
        }
        let task = self.problem.task;
        key_in_context(node.rows, &node.sample, |feature| {
            task.context(feature, &node.sample.tested)
        })
    }

    fn look(
        &mut self,
        node: &SumNode,
        parent: Option<Parent<Self>>,
        allowed: Allowed,
        cut: i64,
    ) -> Result<Look<Self>, Stop> {
        let (sample, depth) = (&node.sample, allowed.depth);
        let full = allowed.is_full();
        let all_sizes = if parent.is_some() { !full } else { self.all_sizes };
        let leaves = if all_sizes { allowed.leaves } else { allowed.budget() };
        let reach = self.lattice_depth(sample, leaves);
        if reach == 0 {
            return Err(Stop::Memory);
        }
        if depth <= reach && (depth < LOOK_AHEAD || !full || all_sizes) {
            return self.by_lattice(node, allowed, all_sizes, cut);
        }
        let sides = self.problem.bounds.sides(sample, self.problem.monitor)?;
        let prices = self.prices(sample);
        let mut bounds: Vec<i64> =
            sides.iter().zip(&prices).map(|(&sides, &price)| add(sides, price)).collect();
        let limit = node.leaf.min(cut);
        let open = bounds.iter().filter(|&&bound| bound < limit).count();
        let few = full && Self::few(open, depth, sample.n_columns());
        if depth <= reach && !few {
            return self.by_lattice(node, allowed, false, cut);
        }
        let relaxed = if full && !few { self.relaxed(sample, reach)? } else { None };
        let mut order = if relaxed.is_none() && !few {
            self.order(sample, reach)?
        } else {
            (0..sample.n_columns()).collect()
        };
        if let Some((bound, columns)) = &relaxed {
            if *bound >= limit {
                let known =
                    if *bound >= node.leaf { self.leaf(node) } else { Known::bound(*bound) };
                return Ok(Look::solved(known));
            }
            for (bound, &relaxed) in bounds.iter_mut().zip(columns) {
                *bound = (*bound).max(relaxed);
            }
        }
        if few || relaxed.is_some() {
            order.sort_by_key(|&c| bounds[c]);
        }
        let open = order.iter().map(|&c| bounds[c]).collect();
        let subsets = self.hands_on().then(|| self.subsets(sample, allowed));
        let queue = SumQueue { order, open, sides, next: 0 };
        Ok(Look::Open(OpenSumNode { prices, subsets }, queue))
    }

    fn price(&self, split: &SumSplit) -> i64 {
        split.price
    }

    fn sides(
        &mut self,
        node: &SumNode,
        _open: &OpenSumNode,
        split: &SumSplit,
    ) -> Result<[SumNode; 2], Stop> {
        Ok([false, true].map(|value| self.node(node.sample.restrict(split.column, value))))
    }

    fn bound_of_side(&self, split: &SumSplit, _node: &SumNode, side: usize) -> i64 {
        split.sides[side]
    }

    fn column(&self, node: &SumNode, split: &SumSplit) -> Column {
        node.sample.columns[split.column]
    }

    /// The true side has fewer rows and may already rule out the column. With prices, the false
    /// side may do so sooner, because its tests cost more.
    fn first_side(&self, _sides: &[SumNode; 2]) -> usize {
        usize::from(!T::PRICED)
    }

    fn look_closer(
        &mut self,
        open: &OpenSumNode,
        split: &SumSplit,
        sides: &[SumNode; 2],
        allowed: Allowed,
        cut: i64,
    ) -> Result<Option<[i64; 2]>, Stop> {
        if open.subsets.is_none() || self.settings.limits.any_leaves() {
            return Ok(None);
        }
        let mut bounds = split.sides;
        let first = self.first_side(sides);
        for side in [first, 1 - first] {
            bounds[side] = bounds[side].max(self.any_leaves(&sides[side], allowed)?);
            if add(bounds, split.price) >= cut {
                break;
            }
        }
        Ok(Some(bounds))
    }

    fn learn(
        &self,
        node: &SumNode,
        open: &OpenSumNode,
        queue: &mut SumQueue,
        split: &SumSplit,
        below: &Below<i64, Arc<Tree>>,
        allowed: Allowed,
    ) {
        let SumQueue { order, open: bounds, sides, next } = queue;
        let (columns, bounds) = (&order[*next..], &mut bounds[*next..]);
        if let Some(subsets) = &open.subsets {
            for value in [false, true] {
                subsets.hand_on(split.column, value, below.sides[usize::from(value)], sides);
            }
            for (bound, &c) in bounds.iter_mut().zip(columns) {
                *bound = (*bound).max(add(sides[c], open.prices[c]));
            }
        }
        // A tree with another column at its root has a similar tree with this column at the root.
        let similar = below.known.value;
        if !allowed.is_full() || bounds.iter().all(|&bound| bound >= similar) {
            return;
        }
        if let Some(rise) = self.problem.bounds.exchange(&node.sample, split.column) {
            for (bound, &other) in bounds.iter_mut().zip(columns) {
                *bound = (*bound).max(similar.saturating_sub(rise[other]));
            }
        }
    }

    fn leaves(&self, tree: &Arc<Tree>) -> usize {
        if self.problem.task.orders_sizes() { 0 } else { tree.n_leaves() }
    }

    fn join(&mut self, node: &SumNode, split: &SumSplit, trees: [&Arc<Tree>; 2]) -> Arc<Tree> {
        Arc::new(Tree::on(self.column(node, split), trees.map(Arc::as_ref)))
    }
}

impl<T: LaneTask> Rooted for SumNodes<'_, T> {
    /// No workers if a switch lets threads share the cells of lattices, and these have enough
    /// cells.
    fn workers(&self, node: &SumNode, allowed: Allowed) -> Vec<Self> {
        let (sample, settings) = (&node.sample, &self.settings);
        let reach = self.lattice_depth(sample, allowed.budget()).min(allowed.depth - 1);
        let useful = || lattice::useful_threads(|| lattice::effort(sample, reach), settings);
        if settings.switches.cells_per_thread.is_some() && useful() == settings.threads() {
            return Vec::new();
        }
        let each = self.extent(sample, allowed.budget())(reach, 1).bytes(sample);
        let shared = settings.shared(reach, each);
        let share = (settings.bytes() - settings.memo_bytes()) / shared.len().max(1);
        let worker = |settings| SumNodes { settings, share, ..*self };
        shared.into_iter().map(worker).collect()
    }
}

impl<T: LaneTask> Listed for SumNodes<'_, T> {
    fn questions(
        &mut self,
        node: &SumNode,
        allowed: Option<Allowed>,
    ) -> Result<(OpenSumNode, Vec<SumSplit>), Stop> {
        let (prices, sides) = (self.prices(&node.sample), [NOTHING; 2]);
        let bounds = match allowed {
            Some(allowed) => self.column_bounds(&node.sample, allowed)?,
            None => vec![NOTHING; prices.len()],
        };
        let split = |(column, (&price, bound))| SumSplit { column, price, bound, sides };
        let splits = prices.iter().zip(bounds).enumerate().map(split).collect();
        Ok((OpenSumNode { prices, subsets: None }, splits))
    }
}

impl<T: LaneTask> Problem<'_, T> {
    /// Whether a tree costs no more than the finest partition of the rows, except for tie prices.
    pub fn is_finest(&self, node: &SumNode, cost: i64, tree: &Tree) -> bool {
        let ties = self.task.ties(tree.n_leaves());
        cost < i64::MAX && cost - ties <= node.finest
    }
}
