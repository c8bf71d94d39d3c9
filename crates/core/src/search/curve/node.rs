//! Depth-first branch and bound over nodes, each a set of rows with a depth and a number of
//! leaves left.

use super::kernel::{Kernel, Parent, Splits};
use super::memo::{Known, Memo};
use super::rows::{Rows, Tables};
use crate::search::{Monitor, Settings, Stop};
use crate::tree::Tree;

/// What may still be spent below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Splits on any path.
    pub depth: usize,
    /// Leaves.
    pub leaves: usize,
}

/// The search's shared parts and one thread's buffers.
pub struct Nodes<'a> {
    /// Constants.
    pub tables: &'a Tables,
    /// Limits and switches.
    pub settings: &'a Settings,
    /// Clock and interrupt.
    pub monitor: &'a Monitor<'a>,
    /// Nodes met.
    pub memo: &'a Memo,
    /// Evaluates splits.
    pub kernel: Kernel,
    /// Price of a leaf.
    pub price: f64,
    rows_pool: Vec<Rows>,
    splits_pool: Vec<Splits>,
}

impl<'a> Nodes<'a> {
    /// With empty buffers.
    pub fn new(
        tables: &'a Tables,
        settings: &'a Settings,
        monitor: &'a Monitor<'a>,
        memo: &'a Memo,
        kernel: Kernel,
        price: f64,
    ) -> Self {
        let (rows_pool, splits_pool) = (Vec::new(), Vec::new());
        Nodes { tables, settings, monitor, memo, kernel, price, rows_pool, splits_pool }
    }

    /// The same search with buffers of its own, for another thread.
    pub fn another(&self) -> Self {
        let Nodes { tables, settings, monitor, memo, kernel, price, .. } = *self;
        Nodes::new(tables, settings, monitor, memo, kernel, price)
    }

    /// Losses of all single splits, in a buffer to give back with [`Nodes::drop_splits`].
    ///
    /// The parts of the floor are only there with `floors`.
    pub fn splits(&mut self, rows: &Rows, parent: Option<Parent>, floors: bool) -> Splits {
        let mut splits = self.splits_pool.pop().unwrap_or_default();
        self.kernel.splits(rows, self.tables, parent, floors, &mut splits);
        self.monitor.count(2 * self.tables.columns.len() as u64);
        splits
    }

    /// Returns a buffer.
    pub fn drop_splits(&mut self, splits: Splits) {
        self.splits_pool.push(splits);
    }

    /// The two sides of a split, in buffers to give back with [`Nodes::drop_rows`].
    pub fn sides(&mut self, rows: &Rows, split: &Candidate) -> [Rows; 2] {
        let [mut yes, mut no] = [(); 2].map(|()| self.rows_pool.pop().unwrap_or_default());
        rows.split(split.column, self.tables, (split.count, split.floor), &mut yes, &mut no);
        [yes, no]
    }

    /// Returns buffers.
    pub fn drop_rows(&mut self, rows: [Rows; 2]) {
        self.rows_pool.extend(rows);
    }

    /// What a node can make use of: a split must pay its price out of the part of the loss
    /// that lies above the floor, and every leaf needs its rows.
    pub fn useful(&self, leaf: f64, floor: f64, count: f64, allowed: Allowed) -> Allowed {
        let by_rows = (count / self.settings.least_rows() as f64) as usize;
        let mut leaves = allowed.leaves.min(by_rows).max(1);
        if self.price > 0.0 && self.settings.look_ahead {
            // A NaN or infinite quotient saturates.
            let splits = ((leaf - floor + self.tables.slack) / self.price) as usize;
            leaves = leaves.min(splits.saturating_add(1));
        }
        let depth = allowed.depth.min(leaves - 1);
        let full = 1usize.checked_shl(depth as u32).unwrap_or(usize::MAX);
        Allowed { depth, leaves: leaves.min(full) }
    }

    /// Lower bound of a node: a leaf, or the floor and two leaves at least.
    pub fn bound(&self, leaf: f64, floor: f64, count: f64) -> f64 {
        let leaves = if self.settings.look_ahead { 2.0 } else { 1.0 };
        let split = if count >= 2.0 * self.settings.least_rows() as f64 {
            floor + leaves * self.price
        } else {
            f64::INFINITY
        };
        split.min(leaf + self.price)
    }

    /// Least cost of the trees on `rows` if that is below `limit`, otherwise a lower bound
    /// that reaches `limit`; `leaf` is the loss as one leaf.
    pub fn solve(
        &mut self,
        rows: &Rows,
        parent: Option<Parent>,
        leaf: f64,
        allowed: Allowed,
        limit: f64,
    ) -> Result<Known, Stop> {
        let as_leaf = Known { value: leaf + self.price, root: Known::LEAF };
        let allowed = self.useful(leaf, rows.floor, rows.count, allowed);
        if allowed.leaves == 1 {
            return Ok(as_leaf);
        }
        let bound = self.bound(leaf, rows.floor, rows.count);
        if bound >= limit - self.tables.slack {
            return Ok(Known { value: bound, root: Known::BOUND });
        }
        let key = key(rows.hash, allowed);
        if let Some(known) = self.settings.cache.then(|| self.memo.get(key)).flatten()
            && (known.exact() || known.value >= limit - self.tables.slack)
        {
            return Ok(known);
        }
        self.monitor.check()?;
        let splits = self.splits(rows, parent, allowed.leaves > 2);
        let known = self.over_splits(rows, as_leaf, &splits, allowed, limit);
        self.drop_splits(splits);
        let known = known?;
        if self.settings.cache {
            self.memo.put(key, known);
        }
        Ok(known)
    }

    fn over_splits(
        &mut self,
        rows: &Rows,
        as_leaf: Known,
        splits: &Splits,
        allowed: Allowed,
        limit: f64,
    ) -> Result<Known, Stop> {
        let mut best = as_leaf;
        let least = self.settings.least_rows() as f64;
        for (lane, &column) in splits.columns.iter().enumerate() {
            let value = splits.yes[lane] + splits.no[lane] + 2.0 * self.price;
            let fewer = splits.count[lane].min(rows.count - splits.count[lane]);
            let better = fewer >= least && value < best.value - self.tables.slack;
            if better && self.allows_events(rows, column) {
                best = Known { value, root: column as i32 };
            }
        }
        if allowed.leaves == 2 {
            return Ok(best);
        }
        let candidates = self.candidates(rows, splits);
        let mut least_bound = f64::INFINITY;
        for c in &candidates {
            let cut = best.value.min(limit);
            if c.bound >= cut - self.tables.slack {
                least_bound = least_bound.min(c.bound);
                continue;
            }
            let known = self.below(rows, splits, c, allowed, cut)?;
            if known.exact() && known.value < cut - self.tables.slack {
                best = known;
            } else {
                least_bound = least_bound.min(known.value);
            }
        }
        if best.value <= limit || least_bound >= best.value - self.tables.slack {
            return Ok(best);
        }
        Ok(Known { value: least_bound, root: Known::BOUND })
    }

    /// Whether both sides of a split have the events that a leaf needs.
    fn allows_events(&self, rows: &Rows, column: usize) -> bool {
        let least = self.settings.min_events as u64;
        least == 0 || self.tables.events(rows, column).into_iter().all(|events| events >= least)
    }

    /// Columns that split the node into two allowed leaves, the best single split first.
    pub fn candidates(&self, rows: &Rows, splits: &Splits) -> Vec<Candidate> {
        let least = self.settings.least_rows() as f64;
        let of_lane = |(lane, &column): (usize, &usize)| {
            let count = splits.count[lane];
            let too_few = count < least || rows.count - count < least;
            if too_few || !self.allows_events(rows, column) {
                return None;
            }
            let (leaf, floor) = ([splits.yes[lane], splits.no[lane]], splits.floor[lane]);
            let bound = self.bound(leaf[0], floor, count)
                + self.bound(leaf[1], rows.floor - floor, rows.count - count);
            let leaves = leaf[0] + leaf[1] + 2.0 * self.price;
            Some(Candidate { column, leaf, count, floor, leaves, bound })
        };
        let mut all: Vec<Candidate> =
            splits.columns.iter().enumerate().filter_map(of_lane).collect();
        all.sort_by(|a, b| a.leaves.total_cmp(&b.leaves));
        all
    }

    /// Least cost of the trees with this split at the root, if below `cut`; otherwise a bound.
    pub fn below(
        &mut self,
        rows: &Rows,
        splits: &Splits,
        split: &Candidate,
        allowed: Allowed,
        cut: f64,
    ) -> Result<Known, Stop> {
        let sides = self.sides(rows, split);
        let known = self.shares(&sides, Some(splits), split.leaf, allowed, cut);
        self.drop_rows(sides);
        let Known { value, root } = known?;
        Ok(Known { value, root: if root == Known::BOUND { root } else { split.column as i32 } })
    }

    /// Over all ways to share the leaves between two sides.
    fn shares(
        &mut self,
        sides: &[Rows; 2],
        parent: Option<&Splits>,
        leaf: [f64; 2],
        allowed: Allowed,
        cut: f64,
    ) -> Result<Known, Stop> {
        let mut least = Known { value: f64::INFINITY, root: Known::BOUND };
        let mut cut = cut;
        for share in self.ways(sides, leaf, allowed) {
            let known = self.pair(sides, parent, leaf, share, cut)?;
            if known.exact() && known.value < cut {
                cut = known.value;
                least = known;
            } else if !least.exact() {
                least.value = least.value.min(known.value);
            }
        }
        Ok(least)
    }

    /// Ways to share the leaves so that none is left over that a side could use; just one
    /// where there are enough for both.
    fn ways(
        &self,
        sides: &[Rows; 2],
        leaf: [f64; 2],
        allowed: Allowed,
    ) -> impl Iterator<Item = [Allowed; 2]> + use<> {
        let depth = allowed.depth - 1;
        let most = [0, 1].map(|s| {
            let all_but_one = Allowed { depth, leaves: allowed.leaves - 1 };
            self.useful(leaf[s], sides[s].floor, sides[s].count, all_but_one).leaves
        });
        let all = allowed.leaves.min(most[0] + most[1]);
        (all.saturating_sub(most[1]).max(1)..=most[0].min(all - 1))
            .map(move |yes| [yes, all - yes].map(|leaves| Allowed { depth, leaves }))
    }

    /// The two sides of a split with their shares; the side with fewer rows first.
    fn pair(
        &mut self,
        sides: &[Rows; 2],
        parent: Option<&Splits>,
        leaf: [f64; 2],
        share: [Allowed; 2],
        cut: f64,
    ) -> Result<Known, Stop> {
        let first = usize::from(sides[1].count < sides[0].count);
        let other = 1 - first;
        let bound = self.bound(leaf[other], sides[other].floor, sides[other].count);
        let [for_one, for_two] = [other, first]
            .map(|sibling| parent.map(|splits| Parent { splits, sibling: &sides[sibling] }));
        let one = self.solve(&sides[first], for_one, leaf[first], share[first], cut - bound)?;
        if !one.exact() || one.value + bound >= cut {
            return Ok(Known { value: one.value + bound, root: Known::BOUND });
        }
        let two = self.solve(&sides[other], for_two, leaf[other], share[other], cut - one.value)?;
        let root = if two.exact() { Known::LEAF } else { Known::BOUND };
        Ok(Known { value: one.value + two.value, root })
    }

    /// A best tree on `rows` over the columns of the tables.
    pub fn tree(&mut self, rows: &Rows, leaf: f64, allowed: Allowed) -> Result<Tree, Stop> {
        let known = self.solve(rows, None, leaf, allowed, f64::INFINITY)?;
        if known.root == Known::LEAF {
            return Ok(Tree::leaf());
        }
        let allowed = self.useful(leaf, rows.floor, rows.count, allowed);
        self.tree_with_root(rows, known.root as usize, allowed, known.value)
    }

    /// A best tree with this column at the root, whose cost is known.
    pub fn tree_with_root(
        &mut self,
        rows: &Rows,
        column: usize,
        allowed: Allowed,
        value: f64,
    ) -> Result<Tree, Stop> {
        let splits = self.splits(rows, None, true);
        let candidates = self.candidates(rows, &splits);
        self.drop_splits(splits);
        let split = candidates.iter().find(|c| c.column == column).expect("an allowed split");
        let (sides, leaf) = (self.sides(rows, split), split.leaf);
        let reached = value + 4.0 * self.tables.slack;
        let (mut best, mut least) = (None, f64::INFINITY);
        // The floor of a reference model may lie above a value that was found, and rounding above
        // what it is asked to reach: then the best share is taken.
        let cuts =
            if self.tables.reference { &[f64::INFINITY][..] } else { &[reached, f64::INFINITY] };
        for &cut in cuts {
            for share in self.ways(&sides, leaf, allowed) {
                let known = self.pair(&sides, None, leaf, share, cut)?;
                if known.exact() && known.value < least {
                    (best, least) = (Some(share), known.value);
                }
                if least <= reached {
                    break;
                }
            }
            if best.is_some() {
                break;
            }
        }
        let share = best.expect("every share has a tree");
        let yes = self.tree(&sides[0], leaf[0], share[0])?;
        let no = self.tree(&sides[1], leaf[1], share[1])?;
        self.drop_rows(sides);
        Ok(self.join(column, &yes, &no))
    }

    /// A tree of best single splits, pruned where a leaf is no worse, and its cost; the last
    /// `exact` levels are the best ones, as far as the limits allow.
    pub fn greedy(
        &mut self,
        rows: &Rows,
        leaf: f64,
        allowed: Allowed,
        exact: usize,
    ) -> (f64, Tree) {
        let as_leaf = (leaf + self.price, Tree::leaf());
        let allowed = self.useful(leaf, rows.floor, rows.count, allowed);
        if allowed.leaves == 1 {
            return as_leaf;
        }
        if allowed.depth <= exact
            && let Ok(known) = self.solve(rows, None, leaf, allowed, f64::INFINITY)
            && let Ok(tree) = self.tree(rows, leaf, allowed)
        {
            return (known.value, tree);
        }
        let splits = self.splits(rows, None, true);
        let best = self.candidates(rows, &splits).first().copied();
        let below = best.map(|best| {
            let depth = allowed.depth - 1;
            let sides = self.sides(rows, &best);
            let [yes_leaf, no_leaf] = best.leaf;
            let share = Allowed { depth, leaves: allowed.leaves - 1 };
            let (a, yes) = self.greedy(&sides[0], yes_leaf, share, exact);
            let share = Allowed { depth, leaves: allowed.leaves - yes.n_leaves() };
            let (b, no) = self.greedy(&sides[1], no_leaf, share, exact);
            self.drop_rows(sides);
            (a + b, self.join(best.column, &yes, &no))
        });
        self.drop_splits(splits);
        below.filter(|below| below.0 < as_leaf.0 - self.tables.slack).unwrap_or(as_leaf)
    }

    /// A split above two trees, over the caller's features.
    pub fn join(&self, column: usize, yes: &Tree, no: &Tree) -> Tree {
        let column = self.tables.columns[column];
        let (yes, no) = if column.flipped { (no, yes) } else { (yes, no) };
        Tree::split(column.feature, yes, no)
    }
}

/// A column to split on.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Which.
    pub column: usize,
    /// Losses of its sides, as leaves.
    pub leaf: [f64; 2],
    /// Number of the caller's rows where it is true.
    pub count: f64,
    /// Part of the floor where it is true.
    pub floor: f64,
    /// Cost with a leaf on either side.
    pub leaves: f64,
    /// Lower bound on the cost of all trees with it at the root.
    pub bound: f64,
}

/// Rows and what may be spent on them.
fn key(hash: u128, allowed: Allowed) -> u128 {
    let mix = (allowed.depth as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(allowed.leaves as u64)
        .wrapping_mul(0xd1b5_4a32_d192_ed03);
    hash ^ (u128::from(mix) << 64 | u128::from(mix.rotate_left(29)))
}
