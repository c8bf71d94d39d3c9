//! Least weighted cost of the trees of a subproblem, by which fronts are bounded.
//!
//! For weights w on the components of a cost, min Σ w·cost is totally ordered and separable. Down
//! to depth two, the pairs of a node contain every leaf. Deeper trees are found by branch and
//! bound, which uses lattices if the weighted costs of labels are linear in the sums.

use super::engine::{Engine, Point};
use super::node::{FrontNode, Place};
use super::shallow::{SHALLOW, product};
use crate::data::{Column, Sample};
use crate::search::branch::Branch;
use crate::search::lattice::{self, Extent, Query, Solved};
use crate::search::memo::Kept;
use crate::search::nodes::{
    Allowed, Bounded, Cost, InOrder, Known, Look, Nodes, Parent, full_leaves,
};
use crate::search::{Precision, Stop};
use crate::task::fixed::power_of_two;
use crate::task::label_costs::LabelCosts;
use crate::task::{FrontTask, ScalarTask, Statistics, Ties};
use crate::tree::{LEAF, Tree};
use std::sync::Arc;

impl<const K: usize> Kept for Point<K> {
    fn bytes(&self) -> usize {
        0
    }
}

/// Nodes of the branch and bound under the present weights.
pub(super) struct Weighted<'e, 'a, T, const K: usize> {
    engine: &'e mut Engine<'a, T, K>,
}

/// Rows, and what follows for them from the weights.
pub(super) struct At<const K: usize> {
    rows: Arc<FrontNode<K>>,
    leaf: Known<f64, Point<K>>,
    /// A lower bound on the cost of every tree.
    floor: f64,
}

/// A column to split on.
#[derive(Clone, Copy)]
pub(super) struct WeightedSplit {
    column: usize,
    /// Lower bounds for the false and the true side.
    floors: [f64; 2],
    bound: f64,
}

impl Bounded<f64> for WeightedSplit {
    fn bound(&self) -> f64 {
        self.bound
    }
}

impl<T: FrontTask<K>, const K: usize> Nodes for Weighted<'_, '_, T, K> {
    type Cost = f64;
    type Node = At<K>;
    /// The best tree of two levels.
    type Open = Known<f64, Point<K>>;
    type Queue = InOrder<WeightedSplit>;
    type Split = WeightedSplit;
    type Subtree = Point<K>;

    const ALL_SIZES: bool = false;

    fn leaf(&self, node: &At<K>) -> Known<f64, Point<K>> {
        node.leaf.clone()
    }

    fn useful(&self, node: &At<K>, allowed: Allowed) -> Allowed {
        let size = node.rows.total[node.rows.total.len() - 1];
        let splits = self.engine.leaves.smallest.allows_split(size);
        allowed.at_most(if splits { node.rows.sample.n_columns() } else { 0 }, usize::MAX)
    }

    fn bound(&self, node: &At<K>) -> f64 {
        node.floor
    }

    fn key(&self, node: &At<K>) -> u128 {
        node.rows.key
    }

    fn look(
        &mut self,
        node: &At<K>,
        _parent: Option<Parent<Self>>,
        allowed: Allowed,
        cut: f64,
    ) -> Result<Look<Self>, Stop> {
        let engine = &mut *self.engine;
        engine.check(0)?;
        let deep = allowed.depth > SHALLOW;
        if deep && let Some(known) = engine.by_lattice(&node.rows, allowed.depth)? {
            return Ok(Look::solved(known));
        }
        let (near, tree) = engine.shallow(&node.rows, allowed.depth.min(SHALLOW))?;
        let known = Known { value: near.value, tree };
        if !deep {
            return Ok(Look::solved(known));
        }
        let (floors, price) = (engine.floors(&node.rows)?, engine.price());
        let sum = |sides: &[f64; 2]| sides[0] + sides[1] + price;
        let mut splits: Vec<(f64, WeightedSplit)> = Vec::with_capacity(floors.len());
        for (column, (floors, near)) in floors.into_iter().zip(&near.sides).enumerate() {
            splits.push((sum(near), WeightedSplit { column, floors, bound: sum(&floors) }));
        }
        splits.sort_by(|a, b| a.0.total_cmp(&b.0));
        let splits: Vec<WeightedSplit> = splits.into_iter().map(|(_, split)| split).collect();
        // If costs are linear, bounds leave few of them.
        if !engine.leaves.linear {
            let open = splits.iter().filter(|split| split.bound < known.value.min(cut));
            engine.look_ahead(&node.rows, allowed.depth, open.map(|split| split.column))?;
        }
        Ok(Look::Open(known, InOrder::new(splits)))
    }

    fn first(&self, _node: &At<K>, near: &Known<f64, Point<K>>) -> Known<f64, Point<K>> {
        near.clone()
    }

    fn price(&self, _split: &WeightedSplit) -> f64 {
        self.engine.price()
    }

    fn sides(
        &mut self,
        node: &At<K>,
        _near: &Known<f64, Point<K>>,
        split: &WeightedSplit,
    ) -> Result<[At<K>; 2], Stop> {
        Ok([false, true].map(|value| {
            let rows = self.engine.child(&node.rows, split.column, value);
            self.engine.at(&rows, split.floors[usize::from(value)])
        }))
    }

    fn column(&self, node: &At<K>, split: &WeightedSplit) -> Column {
        node.rows.sample.columns[split.column]
    }

    /// The true side has at most as many rows, and may already rule out the column.
    fn first_side(&self, _sides: &[At<K>; 2]) -> usize {
        1
    }

    fn join(&mut self, node: &At<K>, split: &WeightedSplit, [no, yes]: [&Point<K>; 2]) -> Point<K> {
        self.engine.join(&node.rows.sample, split.column, yes, no)
    }
}

impl<'a, T: FrontTask<K>, const K: usize> Engine<'a, T, K> {
    /// Least weighted cost of trees of at most `depth` over the rows of `node`, and a tree that
    /// attains it; if the cost is not below `cut`, only a bound.
    pub fn least(
        &mut self,
        node: &Arc<FrontNode<K>>,
        depth: usize,
        cut: f64,
    ) -> Result<Known<f64, Point<K>>, Stop> {
        let depth = depth.min(node.sample.n_columns());
        if depth <= SHALLOW {
            let (least, tree) = self.shallow(node, depth)?;
            return Ok(Known { value: least.value, tree });
        }
        let floor = self.floor(node);
        let (at, monitor) = (self.at(node, floor), self.monitor);
        let memo = self.memo();
        let mut branch = Branch { nodes: Weighted { engine: self }, memo: Some(&memo), monitor };
        let known = branch.solve(&at, None, Allowed::of(depth, usize::MAX), cut);
        self.weighing.memo_bytes = memo.bytes();
        self.weighing.memo = Some(memo);
        known
    }

    /// Least weighted costs of the false and the true side of a split; if their sum is above
    /// `within`, only bounds.
    pub fn least_of_sides(
        &mut self,
        [no, yes]: [&Arc<FrontNode<K>>; 2],
        depth: usize,
        within: f64,
    ) -> Result<[f64; 2], Stop> {
        let left = within - self.price();
        // Pairs do not use a cut.
        let floor = if depth > SHALLOW { self.floor(no) } else { 0.0 };
        let yes = self.least(yes, depth, left - floor)?.value;
        let no = self.least(no, depth, left - yes)?.value;
        Ok([no, yes])
    }

    /// The least weighted cost from one lattice, if that is possible and fits into memory.
    fn by_lattice(
        &mut self,
        node: &FrontNode<K>,
        depth: usize,
    ) -> Result<Option<Known<f64, Point<K>>>, Stop> {
        let Some(task) = self.linear() else { return Ok(None) };
        let (settings, room) = (&self.settings, self.left());
        let channels = lattice::channels(&*task, settings);
        let extent = Extent {
            depth,
            leaves: usize::MAX,
            channels,
            n_threads: settings.threads(),
            precision: Precision::Double,
        };
        let fits = depth <= lattice::MAX_DEPTH.min(settings.switches.lattice_depth)
            && lattice::fits_channels(channels)
            && extent.bytes(&node.sample) <= room;
        if !fits {
            return Ok(None);
        }
        let width = task.channels();
        let of_id = |id: usize| &task.statistics()[id * width..(id + 1) * width];
        let sample = node.sample.with_statistics(width, of_id);
        let query = Query::full(depth, i64::MAX);
        let (monitor, share) = (self.monitor, self.tables.share(room));
        let precision = lattice::choose_precision(&*task, &sample, query.levels(&sample), settings);
        let solved = lattice::solve(&*task, &sample, query, precision, settings, share, monitor)?;
        let columns = self.of_columns(node, depth, &task, &solved);
        self.weighing.by_column = Some((node.place(depth), columns));
        let tree = &solved.found[0].tree;
        let records = self.leaf_records(node, tree);
        let point = self.best_labelled(&node.sample, tree, 0, &records);
        let value = point.map_or(f64::MOST, |point| self.value(&point));
        Ok(Some(Known { value, tree: point }))
    }

    /// Least weighted cost, up to rounding, of the trees that start with each column, from one
    /// lattice if that is possible and fits into memory.
    pub fn by_column(
        &mut self,
        node: &FrontNode<K>,
        depth: usize,
    ) -> Result<Option<Vec<f64>>, Stop> {
        let (place, n) = (node.place(depth), node.sample.n_columns());
        let is_last = |(of, values): &&(Place, Vec<f64>)| *of == place && values.len() == n;
        if self.weighing.by_column.as_ref().filter(is_last).is_none() {
            self.by_lattice(node, depth)?;
        }
        Ok(self.weighing.by_column.as_ref().filter(is_last).map(|(_, values)| values.clone()))
    }

    /// The same from a lattice of these costs over the rows of `node`.
    fn of_columns(
        &self,
        node: &FrontNode<K>,
        depth: usize,
        task: &LabelCosts,
        solved: &Solved,
    ) -> Vec<f64> {
        let floor = self.floor(node);
        let ties = task.ties(full_leaves(depth)).max(0);
        let further = task.split_price() as f64 - ties as f64 - solved.slack;
        let values = solved.root_values.iter();
        values.map(|value| floor + task.least_total(value + further)).collect()
    }

    /// The present weights as costs of labels for the distinct rows, if they are linear.
    fn linear(&mut self) -> Option<Arc<LabelCosts>> {
        if let Some(known) = &self.weighing.linear {
            return Some(known.clone());
        }
        let forms = self.weighing.forms.as_ref()?;
        let sample = &self.root.sample;
        let mut costs = Vec::with_capacity(forms.len() * sample.n_rows());
        for r in 0..sample.n_rows() {
            let of_row = forms.iter().map(|form| product(form, sample.statistics(r)));
            costs.extend(of_row);
        }
        for of_row in costs.chunks_exact_mut(forms.len()) {
            // Subtracting the same amount from every label does not change the order.
            let least = of_row.iter().copied().fold(f64::INFINITY, f64::min);
            of_row.iter_mut().for_each(|cost| *cost -= least);
        }
        let (price, most) =
            (self.price() / sample.n_rows() as f64, self.settings.limits.most_leaves());
        let task = LabelCosts::of_costs(&costs, forms.len(), None, price, most).ok()?;
        self.weighing.linear = Some(Arc::new(task));
        self.weighing.linear.clone()
    }

    /// A tree with the labels of least weighted cost; the records are the sums of its leaves.
    fn best_labelled(
        &mut self,
        sample: &Sample,
        tree: &Tree,
        node: usize,
        records: &[Vec<i64>],
    ) -> Option<Point<K>> {
        if tree.feature[node] == LEAF {
            return self.leaf_point(&records[node]);
        }
        let (c, [no, yes]) = sample.split_of(tree, node)?;
        let yes = self.best_labelled(sample, tree, yes, records)?;
        let no = self.best_labelled(sample, tree, no, records)?;
        Some(self.join(sample, c, &yes, &no))
    }

    fn at(&mut self, rows: &Arc<FrontNode<K>>, floor: f64) -> At<K> {
        let point = self.leaf_point(&rows.total);
        let value = point.map_or(f64::MOST, |p| self.weighing.weights.of(&p.cost));
        At { rows: rows.clone(), leaf: Known { value, tree: point }, floor }
    }

    /// An upper bound on what rounding changes in the least weighted cost: a few units for every
    /// leaf or row that is added, and, if labels cost linear forms, the rounding of rows to 2^−42
    /// of their sum over all labels. See docs/maths/fronts.md.
    pub fn rounding(&self) -> f64 {
        let rows = self.root.sample.n_rows();
        let labels = self.weighing.forms.as_ref().map_or(0, Vec::len);
        let sizes =
            self.weighing.weights.components.iter().zip(&self.size).map(|(w, s)| w.abs() * s);
        let size = sizes.sum::<f64>() + self.weighing.weights.leaf * 1024.0;
        let (sums, costs) = ((4 * rows + 64) as f64, (rows * labels) as f64);
        (sums * power_of_two(-53) + costs * power_of_two(-41)) * size
    }

    /// A lower bound, up to rounding, on the weighted cost of trees over the rows of `node`.
    pub fn floor(&self, node: &FrontNode<K>) -> f64 {
        match &self.weighing.forms {
            Some(forms) => {
                let sample = &node.sample;
                (0..sample.n_rows()).map(|r| least_of(forms, sample.statistics(r))).sum()
            }
            None => self.lowest(&node.total),
        }
    }

    /// Lower bounds for the false and the true side of every column.
    fn floors(&mut self, node: &FrontNode<K>) -> Result<Vec<[f64; 2]>, Stop> {
        let sample = &node.sample;
        let Some(forms) = &self.weighing.forms else {
            let pairs = self.pairs(node, SHALLOW)?;
            let mut record = vec![0; node.total.len()];
            let mut side = |c: usize, value: bool| {
                pairs.side(c, value, &mut record);
                self.lowest(&record)
            };
            return Ok((0..sample.n_columns()).map(|c| [side(c, false), side(c, true)]).collect());
        };
        // If the costs of labels are linear, the bound is that of one leaf per distinct row.
        let (mut all, mut yes) = (0.0, vec![0.0; sample.n_columns()]);
        for r in 0..sample.n_rows() {
            let least = least_of(forms, sample.statistics(r));
            all += least;
            sample.true_columns(r).for_each(|c| yes[c] += least);
        }
        Ok(yes.into_iter().map(|yes| [all - yes, yes]).collect())
    }

    /// Lower end of the weighted costs that rows with these sums (size last) can have.
    fn lowest(&self, record: &[i64]) -> f64 {
        let reach = self.task.reach(&record[..record.len() - 1]);
        let components = &self.weighing.weights.components;
        let least = |(w, (low, high)): (&f64, (i64, i64))| {
            if *w == 0.0 { 0.0 } else { (w * low as f64).min(w * high as f64) }
        };
        components.iter().zip(reach).map(least).sum()
    }
}

/// The minimum of linear forms.
fn least_of(forms: &[Vec<f64>], sums: &[i64]) -> f64 {
    let values = forms.iter().map(|form| product(form, sums));
    values.fold(f64::INFINITY, f64::min)
}
