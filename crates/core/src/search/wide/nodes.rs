//! Nodes with costs of 128 bits, which are split by every column in turn.

use crate::data::{Column, Sample, Smallest, add};
use crate::search::nodes::{
    Allowed, Bounded, Cost, InOrder, Known, Listed, Look, Nodes, Parent, Rooted, key_in_context,
    splits_that_pay,
};
use crate::search::{Monitor, Settings, Stop};
use crate::task::wide::Wide;
use crate::tree::Tree;
use std::sync::Arc;

impl Cost for i128 {
    const MOST: i128 = i128::MAX;
    const NONE: i128 = 0;
    const UNIT: i128 = 1;
    #[inline(always)]
    fn plus(self, other: i128) -> i128 {
        self.saturating_add(other)
    }
    #[inline(always)]
    fn minus(self, other: i128) -> i128 {
        self.saturating_sub(other)
    }
}

/// The nodes of one problem.
pub struct WideNodes<'a> {
    task: &'a dyn Wide,
    monitor: &'a Monitor<'a>,
    smallest: Smallest,
    price: i128,
    /// Cost of each distinct row as a leaf; no tree separates these rows further.
    row_costs: Arc<[i128]>,
}

/// Rows, and what is known about them without a search.
pub struct WideNode {
    pub sample: Sample,
    leaf: i128,
    finest: i128,
    rows: u128,
}

/// A column at a node.
#[derive(Clone, Copy, Debug)]
pub struct WideSplit {
    pub column: usize,
    price: i128,
    bound: i128,
    /// Cost of the false and the true side as leaves.
    leaves: [i128; 2],
}

impl Bounded<i128> for WideSplit {
    fn bound(&self) -> i128 {
        self.bound
    }
}

impl<'a> WideNodes<'a> {
    /// Prepares for nodes whose rows come from `sample`.
    pub fn new(
        task: &'a dyn Wide,
        sample: &Sample,
        settings: &Settings,
        monitor: &'a Monitor<'a>,
    ) -> Self {
        let row_costs = (0..sample.n_rows()).map(|r| task.leaf_cost(sample.statistics(r)));
        let (smallest, price) = (settings.limits.smallest(), task.split_price());
        WideNodes { task, monitor, smallest, price, row_costs: row_costs.collect() }
    }

    /// The node of these rows.
    pub fn node(&self, sample: Sample) -> WideNode {
        let leaf = self.leaf_of(&sample.total, sample.total_size());
        let of_row = |&id: &u32| self.row_costs[id as usize];
        let finest = sample.ids.iter().map(of_row).fold(0, i128::plus);
        WideNode { leaf, finest, rows: sample.key(), sample }
    }

    fn leaf_of(&self, sums: &[i64], size: i64) -> i128 {
        let allowed = self.smallest.allows_leaf(size) && self.task.allows_leaf(sums);
        if allowed { self.task.leaf_cost(sums) } else { i128::MOST }
    }

    /// All columns, with the bounds that follow from the sums over both sides. O(rows · columns).
    fn splits(&self, sample: &Sample) -> Vec<WideSplit> {
        let (n, channels) = (sample.n_columns(), sample.channels);
        let mut yes = vec![0i64; n * channels];
        let (mut size, mut finest) = (vec![0i64; n], vec![0i128; n]);
        let mut all = 0i128;
        for r in 0..sample.n_rows() {
            let (record, of_row) = (sample.statistics(r), sample.size(r));
            let cost = self.row_costs[sample.ids[r] as usize];
            all = all.plus(cost);
            for c in sample.true_columns(r) {
                add(&mut yes[c * channels..], record);
                size[c] += of_row;
                finest[c] = finest[c].plus(cost);
            }
        }
        let mut no = vec![0i64; channels];
        let split = |column: usize| {
            let yes = &yes[column * channels..][..channels];
            no.iter_mut().zip(&sample.total).zip(yes).for_each(|((no, all), yes)| *no = all - yes);
            let sizes = [sample.total_size() - size[column], size[column]];
            let leaves = [self.leaf_of(&no, sizes[0]), self.leaf_of(yes, sizes[1])];
            let test = self.task.feature_price(
                sample.columns[column].feature,
                &sample.tested,
                &sample.total,
            );
            let price = self.price.plus(test);
            let finest = [all.minus(finest[column]), finest[column]];
            let side = |side: usize| leaves[side].lesser(finest[side].plus(self.price));
            // A side that is too small for a leaf is too small for a tree.
            let allowed = leaves.iter().all(|&leaf| leaf < i128::MOST);
            let bound = if allowed { side(0).plus(side(1)).plus(price) } else { i128::MOST };
            WideSplit { column, price, bound, leaves }
        };
        (0..n).map(split).collect()
    }
}

impl Nodes for WideNodes<'_> {
    type Cost = i128;
    type Node = WideNode;
    type Open = ();
    type Queue = InOrder<WideSplit>;
    type Split = WideSplit;
    type Subtree = Arc<Tree>;

    const ALL_SIZES: bool = false;

    fn leaf(&self, node: &WideNode) -> Known<i128, Arc<Tree>> {
        Known::exact(node.leaf, Arc::new(Tree::leaf()))
    }

    /// At most as many splits as there are columns, or as could pay for themselves.
    fn useful(&self, node: &WideNode, allowed: Allowed) -> Allowed {
        let mut depth = node.sample.n_columns();
        if self.price > 0 && node.leaf < i128::MOST {
            depth = depth.min(splits_that_pay(node.leaf.minus(node.finest), self.price));
        }
        allowed.at_most(depth, usize::MAX)
    }

    fn bound(&self, node: &WideNode) -> i128 {
        node.leaf.lesser(node.finest.plus(self.price))
    }

    fn key(&self, node: &WideNode) -> u128 {
        if !self.task.is_priced() {
            return node.rows;
        }
        let context = |feature: usize| self.task.context(feature, &node.sample.tested);
        key_in_context(node.rows, &node.sample, context)
    }

    fn look(
        &mut self,
        node: &WideNode,
        _parent: Option<Parent<Self>>,
        allowed: Allowed,
        _cut: i128,
    ) -> Result<Look<Self>, Stop> {
        let sample = &node.sample;
        let mut splits = self.splits(sample);
        self.monitor.count(splits.len() as u64);
        let both = |split: &WideSplit| split.leaves[0].plus(split.leaves[1]).plus(split.price);
        splits.retain(|split| split.bound < i128::MOST);
        if allowed.depth > 1 {
            splits.sort_by_key(|split| (both(split), split.column));
            return Ok(Look::Open((), InOrder::new(splits)));
        }
        let best = splits.iter().min_by_key(|split| (both(split), split.column));
        let known = match best.filter(|split| both(split) < node.leaf) {
            None => self.leaf(node),
            Some(split) => {
                let leaf = Tree::leaf();
                let tree = Tree::on(sample.columns[split.column], [&leaf, &leaf]);
                Known::exact(both(split), Arc::new(tree))
            }
        };
        Ok(Look::solved(known))
    }

    fn price(&self, split: &WideSplit) -> i128 {
        split.price
    }

    fn sides(
        &mut self,
        node: &WideNode,
        _open: &(),
        split: &WideSplit,
    ) -> Result<[WideNode; 2], Stop> {
        self.monitor.check()?;
        Ok([false, true].map(|value| self.node(node.sample.restrict(split.column, value))))
    }

    fn column(&self, node: &WideNode, split: &WideSplit) -> Column {
        node.sample.columns[split.column]
    }

    /// The true side has fewer rows.
    fn first_side(&self, _sides: &[WideNode; 2]) -> usize {
        1
    }

    fn leaves(&self, tree: &Arc<Tree>) -> usize {
        tree.n_leaves()
    }

    fn join(&mut self, node: &WideNode, split: &WideSplit, trees: [&Arc<Tree>; 2]) -> Arc<Tree> {
        Arc::new(Tree::on(self.column(node, split), trees.map(Arc::as_ref)))
    }
}

impl Rooted for WideNodes<'_> {
    fn workers(&self, _node: &WideNode, _allowed: Allowed) -> Vec<Self> {
        Vec::new()
    }
}

impl Listed for WideNodes<'_> {
    fn questions(
        &mut self,
        node: &WideNode,
        _allowed: Option<Allowed>,
    ) -> Result<((), Vec<WideSplit>), Stop> {
        let splits = self.splits(&node.sample).into_iter();
        Ok(((), splits.filter(|split| split.bound < i128::MOST).collect()))
    }
}
