//! The tree of at most two levels with the least weighted cost, from the leaves of pairs of
//! columns. It does not make a plan, so threads may search for several trees at a time.

use super::leaves::{Budget, Leaves, NO_LEAF};
use super::node::{FrontNode, Pace};
use super::pairs::{Pairs, Scratch};
use super::weighing::Weights;
use crate::data::Smallest;
use crate::search::{Monitor, Settings, Stop};
use crate::task::FrontTask;

/// Depth of trees that the pairs of a node cover.
pub(super) const SHALLOW: usize = 2;

/// The least weighted cost of trees of at most two levels, and a tree that attains it.
#[derive(Clone, Debug)]
pub(super) struct Least<const K: usize> {
    pub value: f64,
    /// `None` if no tree is allowed.
    pub tree: Option<Small<K>>,
    /// The least value of either side of every column.
    pub sides: Vec<[f64; 2]>,
}

/// A tree over the columns of a node.
#[derive(Clone, Debug)]
pub(super) enum Small<const K: usize> {
    Leaf {
        cost: [i64; K],
        label: usize,
    },
    /// The false and the true side.
    Split {
        column: usize,
        sides: Box<[Small<K>; 2]>,
    },
}

/// State of a search for such trees.
pub(super) struct Shallow<'e, 'a, T, const K: usize> {
    pub leaves: &'e Leaves<'a, T, K>,
    pub weights: Weights<K>,
    /// The weighted costs of labels as linear forms, if they are linear.
    pub forms: Option<&'e [Vec<f64>]>,
    /// Price of a split as a weighted cost.
    pub price: f64,
    pub settings: &'e Settings,
    pub budget: &'e Budget,
    pub monitor: &'e Monitor<'a>,
}

/// Least weighted costs of the four leaves of two splits, `[value of one][value of the other]`.
type Cells = [[f64; 2]; 2];

/// For one side of a split at depth two: the choice of a leaf instead of a column.
const NO_SPLIT: u32 = u32::MAX;

impl<T: FrontTask<K>, const K: usize> Shallow<'_, '_, T, K> {
    /// The best tree of at most `depth` ≤ 2.
    pub fn least(&self, node: &FrontNode<K>, depth: usize) -> Result<Least<K>, Stop> {
        self.monitor.check()?;
        let n = node.sample.n_columns();
        let depth = depth.min(n);
        let mut scratch = Scratch::new(node);
        self.leaves.costs(&node.total, &mut scratch.costs);
        let (value, tree) = self.leaf(&scratch);
        let mut best = Least { value, tree, sides: vec![[f64::INFINITY; 2]; n] };
        let size = node.total[node.total.len() - 1];
        if depth == 0 || !self.leaves.smallest.allows_split(size) {
            return Ok(best);
        }
        let Self { leaves, settings, monitor, budget, .. } = *self;
        let pairs = node.pairs(depth > 1, leaves, settings, monitor, budget)?;
        let mut choice = vec![[NO_SPLIT; 2]; n];
        for (f, sides) in best.sides.iter_mut().enumerate() {
            for (side, value) in sides.iter_mut().zip([false, true]) {
                pairs.costs_of_side(leaves, f, value, &mut scratch);
                *side = self.leaf(&scratch).0;
            }
        }
        if depth == 2 {
            self.pair_values(&pairs, &mut best.sides, &mut choice)?;
        }
        let mut root = None;
        for (f, [no, yes]) in best.sides.iter().enumerate() {
            let value = no + yes + self.price;
            if value < best.value {
                best.value = value;
                root = Some(f);
            }
        }
        if let Some(f) = root {
            let mut side =
                |value| self.side(&pairs, (f, value), choice[f][usize::from(value)], &mut scratch);
            if let (Some(no), Some(yes)) = (side(false), side(true)) {
                best.tree = Some(Small::Split { column: f, sides: Box::new([no, yes]) });
            }
        }
        Ok(best)
    }

    /// The leaf with the least weighted cost among these, and that cost.
    fn leaf(&self, scratch: &Scratch<K>) -> (f64, Option<Small<K>>) {
        match self.weights.least(&scratch.costs) {
            Some((value, label)) => {
                (value, Some(Small::Leaf { cost: scratch.costs[label], label }))
            }
            None => (f64::INFINITY, None),
        }
    }

    /// The best second split on either side of every column.
    fn pair_values(
        &self,
        pairs: &Pairs<K>,
        sides: &mut [[f64; 2]],
        choice: &mut [[u32; 2]],
    ) -> Result<(), Stop> {
        let mut pace = Pace::new(self.monitor);
        let smallest = self.leaves.smallest;
        let linear = self.forms.map(|forms| Linear::new(forms, pairs, sides.len(), smallest));
        for f in 1..sides.len() {
            pace.spend(8 * f)?;
            for g in 0..f {
                let cells = match &linear {
                    Some(linear) => linear.cells(pairs, f, g),
                    None => self.cells(pairs.cells(f, g)),
                };
                let mut offer = |f: usize, a: usize, g: usize, value: f64| {
                    if value < sides[f][a] {
                        sides[f][a] = value;
                        choice[f][a] = g as u32;
                    }
                };
                for a in 0..2 {
                    offer(f, a, g, cells[a][0] + cells[a][1] + self.price);
                    offer(g, a, f, cells[0][a] + cells[1][a] + self.price);
                }
            }
            self.monitor.count(4 * f as u64);
        }
        Ok(())
    }

    #[inline(always)]
    fn cells(&self, costs: &[[i64; K]; 4]) -> Cells {
        let value = |at: usize| match &costs[at] {
            cost if cost[0] == NO_LEAF => f64::INFINITY,
            cost => self.weights.of(cost),
        };
        [[value(0), value(1)], [value(2), value(3)]]
    }

    /// The tree for `choice` on one side of a column.
    fn side(
        &self,
        pairs: &Pairs<K>,
        side: (usize, bool),
        choice: u32,
        scratch: &mut Scratch<K>,
    ) -> Option<Small<K>> {
        if choice == NO_SPLIT {
            pairs.costs_of_side(self.leaves, side.0, side.1, scratch);
            return self.leaf(scratch).1;
        }
        let column = choice as usize;
        let mut cell = |value| {
            pairs.costs_of_cell(self.leaves, side, (column, value), scratch);
            self.leaf(scratch).1
        };
        Some(Small::Split { column, sides: Box::new([cell(false)?, cell(true)?]) })
    }
}

/// Leaves whose weighted costs are linear in the sums: the cells of a pair follow from one product
/// per label.
struct Linear<'e> {
    forms: &'e [Vec<f64>],
    /// Value of every label for all rows, and for the rows with each column.
    total: Vec<f64>,
    one: Vec<f64>,
    smallest: Smallest,
}

impl<'e> Linear<'e> {
    fn new<const K: usize>(
        forms: &'e [Vec<f64>],
        pairs: &Pairs<K>,
        n_columns: usize,
        smallest: Smallest,
    ) -> Self {
        let of = |sums: &[i64]| forms.iter().map(|form| product(form, sums)).collect::<Vec<f64>>();
        let (total, one) = (of(pairs.total()), (0..n_columns).flat_map(|f| of(pairs.one(f))));
        let one = one.collect();
        Linear { total, one, forms, smallest }
    }

    /// Least weighted cost of the leaves `[value of f][value of g]`.
    #[inline(always)]
    fn cells<const K: usize>(&self, pairs: &Pairs<K>, f: usize, g: usize) -> Cells {
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
