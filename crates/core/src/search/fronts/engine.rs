//! What searches for fronts share: nodes and what is known of them within a memory limit, trees
//! that share their parts, and what threads find ahead of the search.

use super::curves::Curves;
use super::leaves::{Budget, Leaves};
use super::node::{FrontNode, Place};
use super::pairs::{LEAF_STEPS, Pairs};
use super::shallow::{Least, SHALLOW, Shallow, Small};
use super::triangle;
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::search::curve::rows::Rows;
use crate::search::lattice::Pool;
use crate::search::memo::Memo;
use crate::search::threads::run_all;
use crate::search::{Monitor, Settings, Stop};
use crate::task::FrontTask;
use crate::task::label_costs::LabelCosts;
use crate::tree::{LEAF, Tree};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Bytes of what is known of a node apart from its columns, with its place in a table that is half
/// full and the boxes of a tree.
const NEAR_BYTES: usize = 544;

/// Of a lock.
const CALM: &str = "no panic while locked";

/// Share of the memory limit that is left for trees and points.
const TREES: usize = 4;

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

    /// The least of some costs and its place.
    #[inline(always)]
    pub fn least(&self, costs: &[[i64; K]]) -> Option<(f64, usize)> {
        let mut least = None;
        for (place, cost) in costs.iter().enumerate() {
            let value = self.of(cost);
            if value < least.map_or(f64::INFINITY, |(least, _)| least) {
                least = Some((value, place));
            }
        }
        least
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

/// What a thread found of nodes.
type Found<const K: usize> = Vec<(Place, Arc<Least<K>>)>;

/// What is known of a node down to two levels: the plan is that of the tree.
type Near<const K: usize> = (Arc<Least<K>>, Option<Point<K>>);

pub(super) struct Engine<'a, T, const K: usize> {
    pub task: &'a T,
    pub settings: Settings,
    /// Whether points are listed that others dominate, too.
    pub keep_all: bool,
    /// Most leaves, `u32::MAX` when the depth alone limits them.
    pub max_leaves: u32,
    pub monitor: &'a Monitor<'a>,
    pub weights: Weights<K>,
    pub leaves: Leaves<'a, T, K>,
    pub plans: Vec<Plan>,
    /// Plan of a leaf of every label.
    leaf_plans: Vec<u32>,
    pub scratch: Vec<[i64; K]>,
    near: FxHashMap<Place, Near<K>>,
    /// Magnitudes of the components, to scale multipliers and rounding.
    pub size: [f64; K],
    /// All rows, once they are there.
    pub first: Option<Arc<FrontNode<K>>>,
    /// The weighted costs of labels as linear forms, where they are.
    pub forms: Option<Vec<Vec<f64>>>,
    /// The same as a task, if it was asked for.
    pub linear: Option<Arc<LabelCosts>>,
    /// Of deeper trees.
    pub memo: Option<Memo<f64, Point<K>>>,
    pub memo_bytes: usize,
    /// Of lattices.
    pub tables: Pool,
    /// Of nodes, and of what is known of them.
    budget: Budget,
    /// Bytes of `near` among them.
    near_bytes: usize,
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
        let forms = task.linear(&weights.components);
        let (smallest, linear) = (settings.limits.smallest(), forms.is_some());
        let limit = settings.bytes();
        Ok(Engine {
            task,
            // What is planted is an objective of the whole search, not of weighted ones, whose
            // leaves have a price and no limit.
            settings: settings
                .with_switches(|s| s.planted = None)
                .with_limits(|s| s.max_leaves = None),
            keep_all: false,
            max_leaves: u32::MAX,
            monitor,
            weights,
            leaves: Leaves { task, smallest, curves, linear },
            plans: Vec::new(),
            leaf_plans: Vec::new(),
            scratch: Vec::new(),
            near: FxHashMap::default(),
            size: [1.0; K],
            first: None,
            forms,
            linear: None,
            memo: None,
            memo_bytes: 0,
            tables: Pool::new(limit),
            budget: Budget::new(limit - limit / TREES - settings.memo_bytes()),
            near_bytes: 0,
        })
    }

    /// The node of all rows.
    pub fn root(&mut self, sample: Sample) -> Arc<FrontNode<K>> {
        let curves = self.leaves.curves.as_ref();
        let rows = curves.map_or_else(Rows::default, |curves| curves.all.clone());
        let root = Arc::new(FrontNode::new(sample, rows, curves));
        let reach = self.task.reach(&root.total[..root.total.len() - 1]);
        self.size = reach.map(|(low, high)| (high.max(0) - low.min(0)).max(1) as f64);
        self.first = Some(root.clone());
        root
    }

    pub fn set_weights(&mut self, weights: Weights<K>) {
        if weights != self.weights {
            self.near.clear();
            self.budget.give_back(std::mem::take(&mut self.near_bytes));
            self.weights = weights;
            self.forms = self.task.linear(&weights.components);
            (self.memo, self.memo_bytes, self.linear) = (None, 0, None);
        }
    }

    /// What is known under the present weights of nodes with more than two levels below them.
    pub fn memo(&mut self) -> Memo<f64, Point<K>> {
        self.memo.take().unwrap_or_else(|| Memo::new(self.settings.memo_bytes()))
    }

    /// Price of a split in weighted cost.
    pub fn price(&self) -> f64 {
        self.weights.components[0] * self.task.price() as f64 + self.weights.leaf
    }

    pub fn child(&self, node: &FrontNode<K>, c: usize, value: bool) -> Arc<FrontNode<K>> {
        node.child(c, value, self.leaves.curves.as_ref(), &self.budget)
    }

    /// The leaves of trees of at most `depth` ≤ 2.
    pub fn pairs(&self, node: &FrontNode<K>, depth: usize) -> Result<Arc<Pairs<K>>, Stop> {
        node.pairs(depth > 1, &self.leaves, &self.settings, self.monitor, &self.budget)
    }

    /// Plans and points take memory, too.
    pub fn check(&self, points: usize) -> Result<(), Stop> {
        let points = points * size_of::<Point<K>>();
        if points > self.left() { Err(Stop::Memory) } else { self.monitor.check() }
    }

    /// Bytes that are left of the limit.
    pub fn left(&self) -> usize {
        let plans = self.plans.len() * size_of::<Plan>();
        self.settings.bytes().saturating_sub(plans + self.budget.used() + self.memo_bytes)
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
    pub fn leaf_records(&self, root: &FrontNode<K>, tree: &Tree) -> Vec<Vec<i64>> {
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
        let curves = self.leaves.curves.as_ref();
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

    /// A leaf with these sums (size last) and its least weighted cost.
    pub fn leaf_point(&mut self, record: &[i64]) -> Option<Point<K>> {
        self.leaves.costs(record, &mut self.scratch);
        let (_, label) = self.weights.least(&self.scratch)?;
        Some(Point { cost: self.scratch[label], leaves: 1, plan: self.plan_leaf(label) })
    }

    /// A split on column `c` of `sample` above two trees.
    pub fn join(&mut self, sample: &Sample, c: usize, yes: &Point<K>, no: &Point<K>) -> Point<K> {
        Point {
            cost: self.task.combine(&yes.cost, &no.cost),
            leaves: yes.leaves + no.leaves,
            plan: self.plan_split(sample, c, yes.plan, no.plan),
        }
    }

    /// Looks at the sides of questions at a node with `depth` left before the search does, on threads
    /// where that is worth it: where costs are not linear it will ask for nearly all of them.
    pub fn look_ahead(
        &mut self,
        node: &FrontNode<K>,
        depth: usize,
        columns: impl Iterator<Item = usize>,
    ) -> Result<(), Stop> {
        if self.leaves.linear || self.settings.threads() < 2 {
            return Ok(());
        }
        let n = node.sample.n_columns();
        let pairs = triangle::pairs(n);
        // Nodes below one side; every other one has the rows of one below another side.
        let nodes = match depth - SHALLOW {
            1 => 1,
            2 => 1 + n,
            _ => return Ok(()),
        };
        let is_near = |&(c, value): &(usize, bool)| {
            let child = node.kept_child(c, value);
            child.is_some_and(|child| self.near.contains_key(&child.place(SHALLOW)))
        };
        let sides = columns.flat_map(|c| [(c, false), (c, true)]);
        let sides: Vec<_> = sides.filter(|side| nodes > 1 || !is_near(side)).collect();
        let accumulated = node.sample.n_rows() * pairs / 8;
        let steps = |&(c, value): &(usize, bool)| match node.kept_child(c, value) {
            // Only the weights are new.
            Some(child) if child.has_pairs() => 16 * pairs,
            _ => accumulated + 4 * LEAF_STEPS * pairs,
        };
        let steps = nodes * sides.iter().map(steps).sum::<usize>();
        let n_threads = triangle::useful_threads(steps, &self.settings);
        let room = 2 * nodes * sides.len() * Self::near_bytes(n);
        if n_threads < 2 || !self.budget.take(room) {
            return Ok(());
        }
        let found = self.look_at(node, depth - 1, &sides, n_threads);
        self.budget.give_back(room);
        for (place, least) in found?.into_iter().flatten() {
            self.remember(place, (least, None));
        }
        Ok(())
    }

    /// What threads find of sides of a node, and of all sides of these if `depth` levels are more
    /// than pairs suffice for.
    fn look_at(
        &self,
        node: &FrontNode<K>,
        depth: usize,
        sides: &[(usize, bool)],
        n_threads: usize,
    ) -> Result<Vec<Found<K>>, Stop> {
        let alone = self.settings.with_resources(|s| s.n_threads = 1);
        let looks = self.looks(&alone);
        let (next, met) = (AtomicUsize::new(0), Mutex::new(FxHashSet::default()));
        let look = |node: &FrontNode<K>, found: &mut Found<K>| {
            let place = node.place(SHALLOW);
            let new = !self.near.contains_key(&place) && met.lock().expect(CALM).insert(place);
            if new {
                found.push((place, Arc::new(looks.least(node, SHALLOW)?)));
            }
            Ok(())
        };
        let mut found = vec![Vec::new(); n_threads];
        run_all(&mut found, &|found| {
            while let Some(&(c, value)) = sides.get(next.fetch_add(1, Relaxed)) {
                let child = self.child(node, c, value);
                look(&child, found)?;
                let below = if depth > SHALLOW { child.sample.n_columns() } else { 0 };
                for d in 0..below {
                    look(&self.child(&child, d, false), found)?;
                    look(&self.child(&child, d, true), found)?;
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// What looks for trees of two levels at most, with these settings.
    fn looks<'e>(&'e self, settings: &'e Settings) -> Shallow<'e, 'a, T, K> {
        Shallow {
            leaves: &self.leaves,
            weights: self.weights,
            forms: self.forms.as_deref(),
            price: self.price(),
            settings,
            budget: &self.budget,
            monitor: self.monitor,
        }
    }

    /// Least weighted cost of the trees of at most `depth` ≤ 2 over the rows of `node`.
    pub fn shallow(&mut self, node: &FrontNode<K>, depth: usize) -> Result<Near<K>, Stop> {
        let place = node.place(depth);
        let least = match self.near.get(&place) {
            Some((least, Some(point))) => return Ok((least.clone(), Some(*point))),
            Some((least, None)) => least.clone(),
            None => Arc::new(self.looks(&self.settings).least(node, depth)?),
        };
        let point = least.tree.as_ref().map(|tree| self.plant(&node.sample, tree));
        let near = (least, point);
        self.remember(place, near.clone());
        Ok(near)
    }

    fn remember(&mut self, place: Place, near: Near<K>) {
        let bytes = Self::near_bytes(near.0.sides.len());
        if let Some(known) = self.near.get_mut(&place) {
            *known = near;
        } else if self.budget.take(bytes) {
            self.near_bytes += bytes;
            self.near.insert(place, near);
        }
    }

    /// Bytes of what is known of a node with so many columns.
    fn near_bytes(n_columns: usize) -> usize {
        NEAR_BYTES + size_of::<[f64; 2]>() * n_columns
    }

    /// The plan of a tree over the columns of `sample`.
    fn plant(&mut self, sample: &Sample, tree: &Small<K>) -> Point<K> {
        match tree {
            Small::Leaf { cost, label } => {
                Point { cost: *cost, leaves: 1, plan: self.plan_leaf(*label) }
            }
            Small::Split { column, sides } => {
                let [no, yes] = [0, 1].map(|side| self.plant(sample, &sides[side]));
                self.join(sample, *column, &yes, &no)
            }
        }
    }

    /// A tree of low weighted cost: every split is the first of the best tree of two levels below
    /// it, and the last two levels are exact.
    pub fn dive(&mut self, node: &FrontNode<K>, depth: usize) -> Result<Option<Point<K>>, Stop> {
        let (_, near) = self.shallow(node, depth.min(SHALLOW))?;
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
}
