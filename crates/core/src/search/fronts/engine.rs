//! What searches for fronts share: nodes and what is known of them within a memory limit, trees
//! that share their parts, and the least weighted cost of trees of two levels by pair sums.

use super::curves::Curves;
use super::node::{Key, Node, Pace, Pairs};
use super::triangle;
use super::weighted::SHALLOW;
use crate::data::{BinaryMatrix, Sample, Smallest};
use crate::error::Error;
use crate::search::curve::rows::Rows;
use crate::search::memo::Memo;
use crate::search::{Monitor, Settings, Stop};
use crate::task::FrontTask;
use crate::task::label_costs::LabelCosts;
use crate::tree::{LEAF, Tree};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Bytes of a known subproblem apart from its columns, with its place in a table that is half full.
const LEAST_BYTES: usize = 256;

/// Shares of the memory limit that are left for trees and points, and for the memo.
const TREES: usize = 4;
const MEMO: usize = 4;

/// Weights of the components of a cost, and of every leaf but the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weights<const K: usize> {
    pub components: [f64; K],
    pub leaf: f64,
}

impl<const K: usize> Weights<K> {
    #[inline(always)]
    pub fn of(&self, cost: &[i64; K]) -> f64 {
        cost.iter().zip(&self.components).map(|(&c, w)| c as f64 * w).sum()
    }
}

/// A tree with the label of every leaf, sharing its parts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan {
    Leaf {
        label: u32,
    },
    /// The caller's feature; plans of the rows with and without it.
    Split {
        feature: u32,
        yes: u32,
        no: u32,
    },
}

/// A tree and its cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point<const K: usize> {
    pub cost: [i64; K],
    pub leaves: u32,
    pub plan: u32,
}

/// The least weighted cost of trees of two levels at most, and one that has it.
#[derive(Clone, Debug)]
pub(super) struct Least<const K: usize> {
    pub value: f64,
    /// `None` where no tree is allowed.
    pub point: Option<Point<K>>,
    /// The least value of either side of every column.
    pub sides: Vec<[f64; 2]>,
}

/// Least weighted costs of the four leaves of two splits, `[value of one][value of the other]`.
type Cells = [[f64; 2]; 2];

/// Steps, of a nanosecond or so, that a leaf takes.
const LEAF_STEPS: usize = 100;

/// A choice for one side of a split at depth two: a leaf, or a split on a column.
const NO_SPLIT: u32 = u32::MAX;

pub(super) struct Engine<'a, T, const K: usize> {
    pub task: &'a T,
    pub settings: Settings,
    pub smallest: Smallest,
    /// Most leaves, `u32::MAX` when the depth alone limits them.
    pub max_leaves: u32,
    pub monitor: &'a Monitor<'a>,
    pub weights: Weights<K>,
    curves: Option<Curves<'a>>,
    pub plans: Vec<Plan>,
    /// Plan of a leaf of every label.
    leaf_plans: Vec<u32>,
    pub scratch: Vec<[i64; K]>,
    /// Least weighted costs of the leaves of every pair of columns.
    cells: Vec<Cells>,
    least: FxHashMap<(Key, usize), Rc<Least<K>>>,
    /// Magnitudes of the components, to scale multipliers and rounding.
    pub size: [f64; K],
    /// All rows, once they are there.
    pub first: Option<Rc<Node>>,
    /// The weighted costs of labels as linear forms, where they are.
    pub forms: Option<Vec<Vec<f64>>>,
    /// The same as a task, if it was asked for.
    pub linear: Option<Rc<LabelCosts>>,
    /// Of deeper trees.
    pub memo: Option<Memo<f64, Point<K>>>,
    pub memo_bytes: usize,
    bytes: usize,
    /// Bytes of `least` among them.
    least_bytes: usize,
    limit: usize,
}

impl<'a, T: FrontTask<K>, const K: usize> Engine<'a, T, K> {
    pub fn new(
        task: &'a T,
        features: &BinaryMatrix,
        settings: &Settings,
        monitor: &'a Monitor<'a>,
    ) -> Result<Self, Error> {
        let curves = task.curve_statistics();
        let curves = curves.map(|task| Curves::new(task, features, settings)).transpose()?;
        let weights = Weights { components: [1.0; K], leaf: 0.0 };
        Ok(Engine {
            task,
            // What is planted is an objective of the whole search, not of weighted ones, whose
            // leaves have a price and no limit.
            settings: settings
                .with_switches(|s| s.planted = None)
                .with_limits(|s| s.max_leaves = None),
            smallest: settings.limits.smallest(),
            max_leaves: u32::MAX,
            monitor,
            weights,
            curves,
            plans: Vec::new(),
            leaf_plans: Vec::new(),
            scratch: Vec::new(),
            cells: Vec::new(),
            least: FxHashMap::default(),
            size: [1.0; K],
            first: None,
            forms: task.linear(&weights.components),
            linear: None,
            memo: None,
            memo_bytes: 0,
            bytes: 0,
            least_bytes: 0,
            limit: settings.bytes(),
        })
    }

    /// The node of all rows.
    pub fn root(&mut self, sample: Sample) -> Rc<Node> {
        let curves = self.curves.as_ref();
        let rows = curves.map_or_else(Rows::default, |curves| curves.all.clone());
        let root = Rc::new(Node::new(sample, rows, curves));
        let reach = self.task.reach(&root.total[..root.total.len() - 1]);
        self.size = reach.map(|(low, high)| (high.max(0) - low.min(0)).max(1) as f64);
        self.first = Some(root.clone());
        root
    }

    pub fn set_weights(&mut self, weights: Weights<K>) {
        if weights != self.weights {
            self.least.clear();
            self.bytes -= std::mem::take(&mut self.least_bytes);
            self.weights = weights;
            self.forms = self.task.linear(&weights.components);
            (self.memo, self.memo_bytes, self.linear) = (None, 0, None);
        }
    }

    /// What is known under the present weights of nodes with more than two levels below them.
    pub fn memo(&mut self) -> Memo<f64, Point<K>> {
        self.memo.take().unwrap_or_else(|| Memo::new(self.limit / MEMO))
    }

    /// Price of a split in weighted cost.
    pub fn price(&self) -> f64 {
        self.weights.components[0] * self.task.price() as f64 + self.weights.leaf
    }

    pub fn child(&mut self, node: &Node, c: usize, value: bool) -> Rc<Node> {
        let keep = &mut |bytes| keep(&mut self.bytes, kept(self.limit), bytes);
        node.child(c, value, self.curves.as_ref(), keep)
    }

    /// Sums for trees of at most `depth` ≤ 2.
    pub fn pairs(&mut self, node: &Node, depth: usize) -> Result<Rc<Pairs>, Stop> {
        let keep = &mut |bytes| keep(&mut self.bytes, kept(self.limit), bytes);
        node.pairs(depth > 1, self.curves.as_ref(), self.monitor, self.limit, keep)
    }

    /// Plans and points take memory, too.
    pub fn check(&self, points: usize) -> Result<(), Stop> {
        let points = points * size_of::<Point<K>>();
        if points > self.left() { Err(Stop::Memory) } else { self.monitor.check() }
    }

    /// Bytes that are left of the limit.
    pub fn left(&self) -> usize {
        let used = self.plans.len() * size_of::<Plan>() + self.bytes + self.memo_bytes;
        self.limit.saturating_sub(used)
    }

    pub fn plan_leaf(&mut self, label: usize) -> u32 {
        while self.leaf_plans.len() <= label {
            self.leaf_plans.push(self.plans.len() as u32);
            self.plans.push(Plan::Leaf { label: self.leaf_plans.len() as u32 - 1 });
        }
        self.leaf_plans[label]
    }

    /// A split on column `c` of `sample`.
    pub fn plan_split(&mut self, sample: &Sample, c: usize, yes: u32, no: u32) -> u32 {
        let column = sample.columns[c];
        let (yes, no) = if column.flipped { (no, yes) } else { (yes, no) };
        self.plans.push(Plan::Split { feature: column.feature as u32, yes, no });
        self.plans.len() as u32 - 1
    }

    /// The tree of a plan with the label of every node's leaf, −1 at splits.
    pub fn tree(&self, plan: u32) -> (Tree, Vec<i64>) {
        match self.plans[plan as usize] {
            Plan::Leaf { label } => (Tree::leaf(), vec![i64::from(label)]),
            Plan::Split { feature, yes, no } => {
                let ((yes, yes_labels), (no, no_labels)) = (self.tree(yes), self.tree(no));
                let labels = [vec![-1], yes_labels, no_labels].concat();
                (Tree::split(feature as usize, &yes, &no), labels)
            }
        }
    }

    /// Sums of every leaf of a tree, the size last; empty at splits.
    pub fn leaf_records(&self, root: &Node, tree: &Tree) -> Vec<Vec<i64>> {
        let sample = &root.sample;
        let mut records = vec![Vec::new(); tree.n_nodes()];
        let mut leaf_of = Vec::with_capacity(sample.n_rows());
        for r in 0..sample.n_rows() {
            let mut node = 0;
            while let Ok(feature) = usize::try_from(tree.feature[node]) {
                let has = sample
                    .column_of(feature)
                    .is_some_and(|c| sample.get(r, c) != sample.columns[c].flipped);
                node = if has { tree.left[node] } else { tree.right[node] } as usize;
            }
            leaf_of.push(node);
            let record: &mut Vec<i64> = &mut records[node];
            record.resize(sample.channels + 1, 0);
            let own = sample.statistics(r).iter().copied().chain([sample.size(r)]);
            record.iter_mut().zip(own).for_each(|(sum, v)| *sum += v);
        }
        let curves = self.curves.as_ref();
        let leaves = curves.map(|curves| curves.leaves(sample, &root.rows, tree));
        for (node, record) in records.iter_mut().enumerate() {
            if tree.feature[node] == LEAF {
                record.resize(sample.channels + 1, 0);
                if let (Some(curves), Some(leaves)) = (curves, &leaves)
                    && let Some(leaf) = leaves[node]
                {
                    let share = record[2] - record[3];
                    record[..2].copy_from_slice(&curves.statistics(leaf, share));
                }
            }
        }
        records
    }

    /// Least weighted cost of a leaf with these sums (size last), and its label.
    #[inline(always)]
    fn leaf(&mut self, record: &[i64]) -> (f64, usize) {
        least_leaf(self.task, &self.weights, self.smallest, record, &mut self.scratch)
    }

    /// A leaf with these sums and its least weighted cost.
    pub fn leaf_point(&mut self, record: &[i64]) -> Option<Point<K>> {
        let (value, label) = self.leaf(record);
        let cost = *self.scratch.get(label)?;
        value.is_finite().then(|| Point { cost, leaves: 1, plan: self.plan_leaf(label) })
    }

    /// A split on column `c` of `sample` above two trees.
    pub fn join(&mut self, sample: &Sample, c: usize, yes: &Point<K>, no: &Point<K>) -> Point<K> {
        Point {
            cost: self.task.combine(&yes.cost, &no.cost),
            leaves: yes.leaves + no.leaves,
            plan: self.plan_split(sample, c, yes.plan, no.plan),
        }
    }

    /// Least weighted cost of the trees of at most `depth` ≤ 2 over the rows of `node`.
    pub fn shallow(&mut self, node: &Node, depth: usize) -> Result<Rc<Least<K>>, Stop> {
        let depth = depth.min(node.sample.n_columns());
        if let Some(known) = self.least.get(&(node.key, depth)) {
            return Ok(known.clone());
        }
        let least = Rc::new(self.by_pairs(node, depth)?);
        let bytes = LEAST_BYTES + size_of::<[f64; 2]>() * least.sides.len();
        if keep(&mut self.bytes, kept(self.limit), bytes) {
            self.least_bytes += bytes;
            self.least.insert((node.key, depth), least.clone());
        }
        Ok(least)
    }

    /// A tree of low weighted cost: every split is the first of the best tree of two levels below
    /// it, and the last two levels are exact.
    pub fn dive(&mut self, node: &Node, depth: usize) -> Result<Option<Point<K>>, Stop> {
        let near = self.shallow(node, depth.min(SHALLOW))?.point;
        let Some(point) = near.filter(|_| depth > SHALLOW) else { return Ok(near) };
        let Plan::Split { feature, .. } = self.plans[point.plan as usize] else { return Ok(near) };
        let Some(c) = node.sample.column_of(feature as usize) else { return Ok(near) };
        let yes = self.child(node, c, true);
        let yes = self.dive(&yes, depth - 1)?;
        let no = self.child(node, c, false);
        let no = self.dive(&no, depth - 1)?;
        let (Some(yes), Some(no)) = (yes, no) else { return Ok(near) };
        let far = self.join(&node.sample, c, &yes, &no);
        Ok(Some(if self.value(&far) < self.value(&point) { far } else { point }))
    }

    /// By the pair sums.
    fn by_pairs(&mut self, node: &Node, depth: usize) -> Result<Least<K>, Stop> {
        self.monitor.check()?;
        let n = node.sample.n_columns();
        let point = self.leaf_point(&node.total);
        let value = point.map_or(f64::INFINITY, |p| self.weights.of(&p.cost));
        let mut best = Least { value, point, sides: Vec::new() };
        let size = node.total[node.total.len() - 1];
        if depth == 0 || !self.smallest.allows_split(size) {
            best.sides = vec![[f64::INFINITY; 2]; n];
            return Ok(best);
        }
        let pairs = self.pairs(node, depth)?;
        let mut record = vec![0i64; node.total.len()];
        let mut choice = vec![[NO_SPLIT; 2]; n];
        best.sides = vec![[f64::INFINITY; 2]; n];
        for f in 0..n {
            for value in [false, true] {
                pairs.side(f, value, &mut record);
                best.sides[f][usize::from(value)] = self.leaf(&record).0;
            }
        }
        if depth == 2 {
            self.pair_values(&pairs, &mut best.sides, &mut choice)?;
        }
        let price = self.price();
        let mut root = None;
        for f in 0..n {
            let value = best.sides[f][0] + best.sides[f][1] + price;
            if value < best.value {
                best.value = value;
                root = Some(f);
            }
        }
        if let Some(f) = root {
            let no = self.side_point(node, &pairs, f, false, choice[f][0]);
            let yes = self.side_point(node, &pairs, f, true, choice[f][1]);
            if let (Some(yes), Some(no)) = (yes, no) {
                best.point = Some(self.join(&node.sample, f, &yes, &no));
            }
        }
        Ok(best)
    }

    /// Best second split of either side of every column.
    fn pair_values(
        &mut self,
        pairs: &Pairs,
        sides: &mut [[f64; 2]],
        choice: &mut [[u32; 2]],
    ) -> Result<(), Stop> {
        let mut pace = Pace::new(self.monitor);
        let price = self.price();
        let linear = self.forms.clone();
        let linear = linear.map(|forms| Linear::new(forms, pairs, sides.len(), self.smallest));
        if linear.is_none() {
            self.fill_cells(pairs, sides.len())?;
        }
        for f in 1..sides.len() {
            pace.spend(8 * f)?;
            for g in 0..f {
                let cells = match &linear {
                    Some(linear) => linear.cells(pairs, f, g),
                    None => self.cells[triangle::place(f, g)],
                };
                let mut offer = |f: usize, a: usize, g: usize, value: f64| {
                    if value < sides[f][a] {
                        sides[f][a] = value;
                        choice[f][a] = g as u32;
                    }
                };
                for a in 0..2 {
                    offer(f, a, g, cells[a][0] + cells[a][1] + price);
                    offer(g, a, f, cells[0][a] + cells[1][a] + price);
                }
            }
            self.monitor.count(4 * f as u64);
        }
        Ok(())
    }

    /// Leaves of all pairs of columns, one by one.
    fn fill_cells(&mut self, pairs: &Pairs, n_columns: usize) -> Result<(), Stop> {
        let Engine { task, weights, smallest, monitor, .. } = *self;
        let n_pairs = triangle::pairs(n_columns);
        self.cells.clear();
        self.cells.resize(n_pairs, Cells::default());
        let n_threads = triangle::useful_threads(4 * LEAF_STEPS * n_pairs, &self.settings);
        let state = || (vec![0i64; pairs.total().len()], Vec::new(), Pace::new(monitor));
        triangle::fill_rows(&mut self.cells, n_threads, state, |state, f, row| {
            let (record, scratch, pace) = state;
            pace.spend(4 * LEAF_STEPS * f)?;
            for (g, cells) in row.iter_mut().enumerate() {
                for (a, cells) in cells.iter_mut().enumerate() {
                    for (b, cell) in cells.iter_mut().enumerate() {
                        pairs.cell(f, a == 1, g, b == 1, record);
                        *cell = least_leaf(task, &weights, smallest, record, scratch).0;
                    }
                }
            }
            Ok(())
        })
    }

    /// The tree that `choice` names for one side of column `f`.
    fn side_point(
        &mut self,
        node: &Node,
        pairs: &Pairs,
        f: usize,
        value: bool,
        choice: u32,
    ) -> Option<Point<K>> {
        let mut record = vec![0i64; node.total.len()];
        if choice == NO_SPLIT {
            pairs.side(f, value, &mut record);
            return self.leaf_point(&record);
        }
        let g = choice as usize;
        pairs.cell(f, value, g, true, &mut record);
        let yes = self.leaf_point(&record)?;
        pairs.cell(f, value, g, false, &mut record);
        let no = self.leaf_point(&record)?;
        Some(self.join(&node.sample, g, &yes, &no))
    }
}

/// Least weighted cost of a leaf with these sums (size last), and its label.
#[inline(always)]
fn least_leaf<T: FrontTask<K>, const K: usize>(
    task: &T,
    weights: &Weights<K>,
    smallest: Smallest,
    record: &[i64],
    scratch: &mut Vec<[i64; K]>,
) -> (f64, usize) {
    let (size, sums) = record.split_last().expect("a size");
    if !smallest.allows_leaf(*size) {
        return (f64::INFINITY, 0);
    }
    scratch.clear();
    task.leaf_candidates(sums, scratch);
    let mut least = (f64::INFINITY, 0);
    for (label, cost) in scratch.iter().enumerate() {
        let value = weights.of(cost);
        if value < least.0 {
            least = (value, label);
        }
    }
    least
}

/// Leaves whose weighted costs are linear in the sums: the cells of a pair follow from one
/// product per label.
struct Linear {
    forms: Vec<Vec<f64>>,
    /// Value of every label for all rows, and for the rows with each column.
    total: Vec<f64>,
    one: Vec<f64>,
    smallest: Smallest,
}

impl Linear {
    fn new(forms: Vec<Vec<f64>>, pairs: &Pairs, n_columns: usize, smallest: Smallest) -> Linear {
        let of = |sums: &[i64]| forms.iter().map(|form| product(form, sums)).collect::<Vec<f64>>();
        let (total, one) = (of(pairs.total()), (0..n_columns).flat_map(|f| of(pairs.one(f))));
        let one = one.collect();
        Linear { total, one, forms, smallest }
    }

    /// Least weighted cost of the leaves `[value of f][value of g]`.
    #[inline(always)]
    fn cells(&self, pairs: &Pairs, f: usize, g: usize) -> Cells {
        let (labels, both) = (self.forms.len(), pairs.two(f, g));
        let mut cells = [[f64::INFINITY; 2]; 2];
        for (k, form) in self.forms.iter().enumerate() {
            let ab = product(form, both);
            let (a, b) = (self.one[f * labels + k], self.one[g * labels + k]);
            cells[1][1] = cells[1][1].min(ab);
            cells[1][0] = cells[1][0].min(a - ab);
            cells[0][1] = cells[0][1].min(b - ab);
            cells[0][0] = cells[0][0].min(self.total[k] - a - b + ab);
        }
        let last = both.len() - 1;
        let (all, a, b, ab) =
            (pairs.total()[last], pairs.one(f)[last], pairs.one(g)[last], both[last]);
        let sizes = [[all - a - b + ab, b - ab], [a - ab, ab]];
        for (cells, sizes) in cells.iter_mut().zip(sizes) {
            for (cell, size) in cells.iter_mut().zip(sizes) {
                if !self.smallest.allows_leaf(size) {
                    *cell = f64::INFINITY;
                }
            }
        }
        cells
    }
}

#[inline(always)]
pub(super) fn product(form: &[f64], sums: &[i64]) -> f64 {
    form.iter().zip(sums).map(|(a, &s)| a * s as f64).sum()
}

/// Bytes of a memory limit that what is known of nodes may take.
fn kept(limit: usize) -> usize {
    limit - limit / TREES - limit / MEMO
}

fn keep(used: &mut usize, limit: usize, bytes: usize) -> bool {
    let fits = *used + bytes <= limit;
    if fits {
        *used += bytes;
    }
    fits
}
