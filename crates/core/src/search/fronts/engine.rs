//! What all searches for fronts share: rows, weights, memos, trees, and a memory limit.

use super::curves::Curves;
use super::leaves::{Budget, Leaves};
use super::node::FrontNode;
use super::pairs::Pairs;
use super::plans::Plans;
use super::weighing::{Weighing, Weights};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::search::curve::rows::Rows;
use crate::search::lattice::Pool;
use crate::search::memo::Memo;
use crate::search::nodes::full_leaves;
use crate::search::{Monitor, Settings, Stop};
use crate::task::FrontTask;
use crate::tree::{LEAF, Tree};
use std::sync::Arc;

/// The fraction (one in `TREES`) of the memory limit that is reserved for trees and points.
const TREES: usize = 4;

/// A tree and its cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point<const K: usize> {
    pub cost: [i64; K],
    pub leaves: u32,
    pub plan: u32,
}

/// Most leaves if that is fewer than the depth allows.
fn leaf_limit(settings: &Settings, sample: &Sample) -> u32 {
    let depth = settings.limits.max_depth.min(sample.n_columns());
    let full = full_leaves(depth).min(sample.n_rows());
    settings.limits.max_leaves.filter(|&l| l < full).map_or(u32::MAX, |l| l as u32)
}

/// The state of a search.
pub(super) struct Engine<'a, T, const K: usize> {
    pub task: &'a T,
    pub settings: Settings,
    pub monitor: &'a Monitor<'a>,
    /// Whether dominated points are listed, too.
    pub keep_all: bool,
    /// Most leaves; `u32::MAX` if only the depth limits them.
    pub max_leaves: u32,
    pub leaves: Leaves<'a, T, K>,
    /// All rows.
    pub root: Arc<FrontNode<K>>,
    /// Sizes of the components, used to scale multipliers and rounding.
    pub size: [f64; K],
    pub plans: Plans,
    pub weighing: Weighing<K>,
    /// Tables of lattices.
    pub tables: Pool,
    /// Memory that nodes and the memo may use.
    pub budget: Budget,
    /// Bytes of the points of subproblems that wait for other subproblems.
    waiting: usize,
    pub scratch: Vec<[i64; K]>,
}

impl<'a, T: FrontTask<K>, const K: usize> Engine<'a, T, K> {
    pub fn new(
        task: &'a T,
        features: &BinaryMatrix,
        settings: &Settings,
        monitor: &'a Monitor<'a>,
    ) -> Result<Self, Error> {
        let (statistics, channels) = (task.statistics(), task.channels());
        let sample = Sample::with_kinds(features, statistics, channels, &[], task.events());
        let curves = task.curve_statistics();
        let curves = curves.map(|task| Curves::new(task, features, settings)).transpose()?;
        let rows = curves.as_ref().map_or_else(Rows::default, |curves| curves.all.clone());
        let max_leaves = leaf_limit(settings, &sample);
        let root = FrontNode::new(sample, rows, curves.as_ref());
        let reach = task.reach(&root.total[..root.total.len() - 1]);
        let weighing = Weighing::new(task, Weights { components: [1.0; K], leaf: 0.0 });
        let (smallest, linear) = (settings.limits.smallest(), weighing.forms.is_some());
        let limit = settings.bytes();
        Ok(Engine {
            task,
            // The planted objective is that of the whole search. It does not apply to weighted
            // searches, whose leaves have a price instead of a limit.
            settings: settings
                .with_switches(|s| s.planted = None)
                .with_limits(|s| s.max_leaves = None),
            monitor,
            keep_all: false,
            max_leaves,
            leaves: Leaves { task, smallest, curves, linear },
            root: Arc::new(root),
            size: reach.map(|(low, high)| (high.max(0) - low.min(0)).max(1) as f64),
            plans: Plans::default(),
            weighing,
            tables: Pool::new(limit),
            budget: Budget::new(limit - limit / TREES - settings.memo_bytes()),
            waiting: 0,
            scratch: Vec::new(),
        })
    }

    /// Removes what is only valid under other weights.
    pub fn set_weights(&mut self, weights: Weights<K>) {
        if weights != self.weighing.weights {
            self.budget.give_back(self.weighing.near_bytes);
            self.weighing = Weighing::new(self.task, weights);
        }
    }

    /// The memo, under the present weights, of nodes with more than two levels below them.
    pub fn memo(&mut self) -> Memo<f64, Point<K>> {
        let memo = self.weighing.memo.take();
        memo.unwrap_or_else(|| Memo::new(self.settings.memo_bytes()))
    }

    /// Price of a split as a weighted cost.
    pub fn price(&self) -> f64 {
        let Weights { components, leaf } = &self.weighing.weights;
        components[0] * self.task.price() as f64 + leaf
    }

    pub fn child(&self, node: &FrontNode<K>, c: usize, value: bool) -> Arc<FrontNode<K>> {
        node.child(c, value, self.leaves.curves.as_ref(), &self.budget)
    }

    /// The leaves of trees of depth at most `depth` ≤ 2.
    pub fn pairs(&self, node: &FrontNode<K>, depth: usize) -> Result<Arc<Pairs<K>>, Stop> {
        node.pairs(depth > 1, &self.leaves, &self.settings, self.monitor, &self.budget)
    }

    /// Stops if a limit is reached; the current points use this many bytes.
    pub fn check(&self, bytes: usize) -> Result<(), Stop> {
        let left = self.left();
        if bytes + self.tables.held() > left {
            // No table is used while points are listed.
            self.tables.clear();
        }
        if bytes > left { Err(Stop::Memory) } else { self.monitor.check() }
    }

    /// Runs a step while points with this many bytes wait.
    pub fn meanwhile<V>(&mut self, bytes: usize, of: impl FnOnce(&mut Self) -> V) -> V {
        self.waiting += bytes;
        let found = of(self);
        self.waiting -= bytes;
        found
    }

    /// Remaining bytes of the limit.
    pub fn left(&self) -> usize {
        let used =
            self.plans.bytes() + self.budget.used() + self.weighing.memo_bytes + self.waiting;
        self.settings.bytes().saturating_sub(used)
    }

    /// Sums of every leaf of a tree, followed by the size; empty at splits.
    pub fn leaf_records(&self, root: &FrontNode<K>, tree: &Tree) -> Vec<Vec<i64>> {
        let sample = &root.sample;
        let mut records = vec![Vec::new(); tree.n_nodes()];
        for r in 0..sample.n_rows() {
            let mut node = 0;
            while let Ok(feature) = usize::try_from(tree.feature[node]) {
                let has = sample
                    .column_of(feature)
                    .is_some_and(|c| sample.get(r, c) != sample.columns[c].flipped);
                node = if has { tree.left[node] } else { tree.right[node] } as usize;
            }
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

    /// The leaf with the least weighted cost for these sums (size last).
    pub fn leaf_point(&mut self, record: &[i64]) -> Option<Point<K>> {
        self.leaves.costs(record, &mut self.scratch);
        let (_, label) = self.weighing.weights.least(&self.scratch)?;
        Some(Point { cost: self.scratch[label], leaves: 1, plan: self.plans.leaf(label) })
    }

    /// A split on column `c` of `sample`, with two trees.
    pub fn join(&mut self, sample: &Sample, c: usize, yes: &Point<K>, no: &Point<K>) -> Point<K> {
        Point {
            cost: self.task.combine(&yes.cost, &no.cost),
            leaves: yes.leaves + no.leaves,
            plan: self.plans.split(sample, c, yes.plan, no.plan),
        }
    }
}
