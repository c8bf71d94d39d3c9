//! Branch and bound above the lattice, for trees deeper than one lattice reaches.
//!
//! A node is a set of rows with a depth and leaf budgets. A node that a lattice can solve
//! is solved by it; any other tries every column at its root, best first by the values of
//! a shallow lattice, and combines the two sides. What is proven and what is not travels
//! with every answer, so a search that is stopped anywhere still gives its best tree and a
//! valid bound.

use super::bounds::RowBounds;
use super::groups;
use super::lattice::{self, Found};
use super::subsets::Subsets;
use super::{Monitor, Settings, Stop};
use crate::data::Sample;
use crate::task::LaneTask;
use crate::tree::Tree;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// Look-ahead of the greedy dive and of the order of columns.
const LOOK_AHEAD: usize = 3;

/// Depth of the lattices that only bound.
const RELAXED_DEPTH: usize = 4;

/// Trees and bounds for each budget of a node; proven where the two meet.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Best tree found.
    pub found: Vec<Found>,
    /// No allowed tree costs less.
    pub lower: Vec<i64>,
    /// Why the search of this node ended early, if it did.
    pub stop: Option<Stop>,
}

/// Rows (as a hash), remaining depth, budgets (first and last), context of the prices.
type Key = (u128, usize, usize, usize, usize, u64);

/// The search of one problem.
pub struct Branch<'a, T> {
    task: &'a T,
    settings: &'a Settings,
    monitor: &'a Monitor<'a>,
    bounds: RowBounds<'a, T>,
    cache: FxHashMap<Key, Answer>,
    cache_bytes: usize,
}

impl<'a, T: LaneTask> Branch<'a, T> {
    /// Prepares for `sample`, whose rows all nodes' rows come from.
    pub fn new(
        task: &'a T,
        sample: &Sample,
        settings: &'a Settings,
        monitor: &'a Monitor<'a>,
    ) -> Self {
        Branch {
            task,
            settings,
            monitor,
            bounds: RowBounds::new(task, sample, settings),
            cache: FxHashMap::default(),
            cache_bytes: 0,
        }
    }

    /// Cost of the finest partition of a node's rows: below any tree's (equivalent points).
    pub fn floor(&self, sample: &Sample) -> i64 {
        self.bounds.finest(sample)
    }

    /// Cost of the best division of the rows into so many groups of any kind, if the task
    /// orders rows.
    pub fn groups(&self, sample: &Sample, most_leaves: usize) -> Option<i64> {
        let enabled = self.settings.equivalent_points;
        let row_cost = |id| self.bounds.row_cost(id);
        enabled.then(|| groups::bound(self.task, sample, most_leaves, row_cost)).flatten()
    }

    /// The single leaf, or nothing where there are too few rows for one.
    fn leaf(&self, sample: &Sample) -> Found {
        let allowed = self.settings.smallest().allows_leaf(sample.total_size());
        let cost = if allowed { self.task.leaf_cost(&sample.total) } else { i64::MAX };
        Found { cost, tree: Tree::leaf() }
    }

    /// Splits that could pay for themselves: the depth beyond which no tree improves.
    fn useful_depth(&self, sample: &Sample, leaf: &Found, depth: usize, most: usize) -> usize {
        let depth = depth.min(sample.n_columns()).min(most - 1);
        let price = self.task.split_price();
        if price <= 0 || leaf.cost == i64::MAX || !self.settings.equivalent_points {
            return depth;
        }
        depth.min(usize::try_from((leaf.cost - self.floor(sample)) / price).unwrap_or(0))
    }

    /// Deepest lattice on this sample that the memory limit allows.
    pub fn lattice_depth(&self, sample: &Sample) -> usize {
        let limit = self.settings.bytes();
        let left = limit.saturating_sub(self.cache_bytes);
        let (channels, n_threads) =
            (lattice::channels(self.task, self.settings), self.settings.threads());
        let deepest = self.settings.lattice_depth.clamp(1, lattice::MAX_DEPTH);
        let precision = lattice::choose_precision(self.task, sample, deepest, self.settings);
        let fits = |d: &usize| lattice::bytes(sample, *d, channels, n_threads, precision) <= left;
        (1..=deepest).rev().find(fits).unwrap_or(0)
    }

    fn lattice(
        &self,
        sample: &Sample,
        depth: usize,
        budgets: &[usize],
        cutoff: i64,
    ) -> Result<lattice::Solved, Stop> {
        let (settings, monitor) = (self.settings, self.monitor);
        lattice::solve(self.task, sample, depth, budgets, cutoff, settings, monitor)
    }

    /// Greedy tree that chooses each split by the best tree of so many levels below it.
    pub fn dive(&self, sample: &Sample, depth: usize, levels: usize) -> Result<Found, Stop> {
        let reach = depth.min(levels).min(self.lattice_depth(sample).max(1));
        let solved = self.lattice(sample, reach, &[usize::MAX], i64::MAX)?;
        let near = solved.found.into_iter().next().expect("one budget");
        if reach == depth || near.tree.n_nodes() == 1 {
            return Ok(near);
        }
        let root = near.tree.feature[0] as usize;
        let c = sample.columns.partition_point(|column| column.feature < root);
        let yes = self.dive(&sample.restrict(c, true), depth - 1, levels)?;
        let no = self.dive(&sample.restrict(c, false), depth - 1, levels)?;
        let far = Self::join(sample, c, self.prices(sample)[c], &yes, &no);
        Ok(if far.cost < near.cost { far } else { near })
    }

    /// A split on column `c` of `sample` above two trees.
    pub(super) fn joined(&self, sample: &Sample, c: usize, yes: &Found, no: &Found) -> Found {
        Self::join(sample, c, self.prices(sample)[c], yes, no)
    }

    /// A split on column `c` of `sample`, of this price, above two trees.
    fn join(sample: &Sample, c: usize, price: i64, yes: &Found, no: &Found) -> Found {
        if yes.cost == i64::MAX || no.cost == i64::MAX {
            return Found { cost: i64::MAX, tree: Tree::leaf() };
        }
        let column = sample.columns[c];
        let (l, r) = (&yes.tree, &no.tree);
        let (l, r) = if column.flipped { (r, l) } else { (l, r) };
        let cost = yes.cost + no.cost + price;
        Found { cost, tree: Tree::split(column.feature, l, r) }
    }

    /// Whether two nodes a level lower for each of `open` columns take less than a lattice, which
    /// is (n − depth + 1) / depth such pairs; next to small ones, preparing nodes counts.
    fn few(open: usize, depth: usize, n_columns: usize) -> bool {
        let effort = if depth > LOOK_AHEAD { 1 } else { 4 };
        effort * open * depth <= n_columns - depth
    }

    /// Prices of a split on each column at the root of `sample`.
    fn prices(&self, sample: &Sample) -> Vec<i64> {
        let price = self.task.split_price();
        if !T::PRICED {
            return vec![price; sample.n_columns()];
        }
        let test = |feature| self.task.feature_price(feature, &sample.tested, &sample.total);
        sample.columns.iter().map(|column| price.saturating_add(test(column.feature))).collect()
    }

    /// Best trees on the rows of `sample` for each budget (ascending, or `[usize::MAX]`). With
    /// one budget, what costs `cutoff` or more need not be found, only be bounded by it.
    ///
    /// `improved` is told the best tree, the lower bound of the last budget and the share of
    /// columns done whenever a column of this node (not of the ones below) has been dealt with.
    pub fn solve(
        &mut self,
        sample: &Sample,
        depth: usize,
        budgets: &[usize],
        start: Option<Found>,
        cutoff: i64,
        improved: &mut dyn FnMut(&Found, i64, f64),
    ) -> Answer {
        let leaf = self.leaf(sample);
        let most = budgets.iter().copied().max().unwrap_or(1);
        let depth = self.useful_depth(sample, &leaf, depth, most);
        let floor = self.floor(sample).min(leaf.cost);
        let proven = |found: Vec<Found>| {
            let lower = found.iter().map(|f| f.cost).collect();
            Answer { found, lower, stop: None }
        };
        if depth == 0 {
            return proven(vec![leaf; budgets.len()]);
        }
        let unproven = |stop| Answer {
            found: vec![leaf.clone(); budgets.len()],
            lower: vec![floor; budgets.len()],
            stop: Some(stop),
        };
        if let Err(stop) = self.monitor.check() {
            return unproven(stop);
        }
        let reach = self.lattice_depth(sample);
        if reach == 0 {
            return unproven(Stop::Memory);
        }
        let unlimited = budgets == [usize::MAX];
        let shallow = depth <= reach && (depth < LOOK_AHEAD || !unlimited);
        let sides = if shallow { Ok(Vec::new()) } else { self.bounds.sides(sample, self.monitor) };
        let mut sides = match sides {
            Ok(sides) => sides,
            Err(stop) => return unproven(stop),
        };
        let prices = self.prices(sample);
        let add =
            |([no, yes], price): (&[i64; 2], &i64)| no.saturating_add(*yes).saturating_add(*price);
        let mut bounds: Vec<i64> = sides.iter().zip(&prices).map(add).collect();
        let limit = start.as_ref().map_or(leaf.cost, |s| s.cost.min(leaf.cost)).min(cutoff);
        let open = bounds.iter().filter(|&&bound| bound < limit).count();
        let few = unlimited && Self::few(open, depth, sample.n_columns());
        if shallow || (depth <= reach && !few) {
            return match self.lattice(sample, depth, budgets, cutoff) {
                Ok(lattice::Solved { found, lower, .. }) => Answer { found, lower, stop: None },
                Err(stop) => unproven(stop),
            };
        }
        let key = self.key(sample, depth, budgets);
        let known = self.settings.cache.then(|| self.cache.get(&key).cloned()).flatten();
        if let Some(known) = &known {
            let settled = |(lower, found): (&i64, &Found)| *lower >= found.cost.min(cutoff);
            if known.lower.iter().zip(&known.found).all(settled) {
                return known.clone();
            }
        }
        let mut answer = known.unwrap_or_else(|| Answer { stop: None, ..unproven(Stop::Time) });
        let offer = |answer: &mut Answer, slot: usize, tree: Found| {
            let best = &mut answer.found[slot];
            if (tree.cost, tree.tree.n_leaves()) < (best.cost, best.tree.n_leaves()) {
                *best = tree;
            }
        };
        if let (Some(start), [_]) = (start, budgets) {
            offer(&mut answer, 0, start);
        }
        let relaxed = if unlimited && !few { self.relaxed(sample, reach) } else { Ok(None) };
        let order = match relaxed {
            Ok(None) if !few => self.order(sample, reach),
            Ok(_) => Ok((0..sample.n_columns()).collect()),
            Err(stop) => Err(stop),
        };
        let (mut order, relaxed) = match (order, relaxed) {
            (Ok(order), Ok(relaxed)) => (order, relaxed),
            (Err(stop), _) | (_, Err(stop)) => return Answer { stop: Some(stop), ..answer },
        };
        if let Some((bound, _)) = &relaxed {
            answer.lower[0] = answer.lower[0].max(*bound).min(answer.found[0].cost);
            if *bound >= answer.found[0].cost.min(cutoff) {
                self.remember(key, &answer);
                return answer;
            }
        }
        let child_budgets: Vec<usize> =
            if unlimited { vec![usize::MAX] } else { (1..most).collect() };
        // What is proven of the columns dealt with, and a bound for those still open.
        let mut proven_so_far = vec![leaf.cost; budgets.len()];
        if let Some((_, columns)) = &relaxed {
            for (bound, &relaxed) in bounds.iter_mut().zip(columns) {
                *bound = (*bound).max(relaxed);
            }
        }
        if few || relaxed.is_some() {
            order.sort_by_key(|&c| bounds[c]);
        }
        let mut open: Vec<i64> = order.iter().map(|&c| bounds[c]).collect();
        let single = budgets.len() == 1;
        let subsets = (single && self.hands_on()).then(|| self.subsets(sample, depth, most));
        for at in 0..order.len() {
            if let Some(subsets) = subsets.as_ref().filter(|_| at % 2 == 1) {
                // The question that holds the bound down, an even one among several.
                let rank = |&k: &usize| (open[k], std::cmp::Reverse(subsets.ones(order[k])));
                let next = (at..order.len()).min_by_key(rank).expect("not empty");
                order[at..=next].rotate_right(1);
                open[at..=next].rotate_right(1);
            }
            let c = order[at];
            let column_bound = std::mem::replace(&mut open[at], i64::MAX);
            // Only what costs less than this matters.
            let limit = if single { answer.found[0].cost.min(cutoff) } else { i64::MAX };
            if single && column_bound >= limit {
                proven_so_far[0] = proven_so_far[0].min(column_bound);
                continue;
            }
            let price = prices[c];
            // The true side first: it has fewer rows, and may already rule the column out. With
            // prices the other may sooner, for its tests cost more.
            let (first, second) = (!T::PRICED, T::PRICED);
            let mut ignore = |_: &Found, _: i64, _: f64| {};
            // With a budget a child answers for every share of it.
            let rest = |taken: i64| {
                if unlimited { limit.saturating_sub(price).saturating_sub(taken) } else { i64::MAX }
            };
            let mut parts = [None, None];
            let mut ruled_out = None;
            if let Some(subsets) = subsets.as_ref().filter(|_| !self.settings.any_leaves()) {
                for side in [first, second] {
                    let part = sample.restrict(c, side);
                    match self.any_leaves(&part, depth - 1, &child_budgets) {
                        Ok(lower) => {
                            let known = &mut sides[c][usize::from(side)];
                            *known = (*known).max(lower);
                            subsets.hand_on(c, side, lower, &mut sides);
                        }
                        Err(stop) => answer.stop = Some(stop),
                    }
                    parts[usize::from(side)] = Some(part);
                    let bound = add((&sides[c], &price));
                    if bound >= limit {
                        ruled_out = Some(bound);
                        break;
                    }
                }
                self.raise(&sides, &prices, &order[at + 1..], &mut open[at + 1..]);
            }
            if let Some(bound) = ruled_out {
                proven_so_far[0] = proven_so_far[0].min(bound);
                continue;
            }
            let mut part = |side: bool| {
                parts[usize::from(side)].take().unwrap_or_else(|| sample.restrict(c, side))
            };
            let child = (depth - 1, &child_budgets[..]);
            let (part_one, part_two) = (part(first), part(second));
            let other_floor = sides[c][usize::from(second)];
            let one = self.solve(&part_one, child.0, child.1, None, rest(other_floor), &mut ignore);
            let least = one.lower[one.lower.len() - 1];
            let exact_leaves = subsets.as_ref().filter(|_| self.settings.any_leaves());
            if let Some(subsets) = exact_leaves {
                subsets.hand_on(c, first, least, &mut sides);
            }
            let bound = least.saturating_add(other_floor).saturating_add(price);
            if single && bound >= limit && one.stop.is_none() {
                proven_so_far[0] = proven_so_far[0].min(bound);
                self.raise(&sides, &prices, &order[at + 1..], &mut open[at + 1..]);
                self.raise_similar(sample, c, bound, &order[at + 1..], &mut open[at + 1..]);
                continue;
            }
            let two = self.solve(&part_two, child.0, child.1, None, rest(least), &mut ignore);
            if let Some(subsets) = exact_leaves {
                let least = two.lower[two.lower.len() - 1];
                subsets.hand_on(c, second, least, &mut sides);
                self.raise(&sides, &prices, &order[at + 1..], &mut open[at + 1..]);
            }
            let (yes, no) = if first { (&one, &two) } else { (&two, &one) };
            for (slot, &budget) in budgets.iter().enumerate() {
                let shares: Vec<(usize, usize)> = if unlimited {
                    vec![(0, 0)]
                } else {
                    (1..budget).map(|a| (a - 1, budget - a - 1)).collect()
                };
                for (a, b) in shares {
                    let lower = yes.lower[a].saturating_add(no.lower[b]).saturating_add(price);
                    let lower = if single { lower.max(add((&sides[c], &price))) } else { lower };
                    proven_so_far[slot] = proven_so_far[slot].min(lower);
                    let tree = Self::join(sample, c, price, &yes.found[a], &no.found[b]);
                    offer(&mut answer, slot, tree);
                }
            }
            answer.stop = answer.stop.or(one.stop).or(two.stop);
            if single && unlimited {
                let bound = one.lower[0].saturating_add(two.lower[0]).saturating_add(price);
                self.raise_similar(sample, c, bound, &order[at + 1..], &mut open[at + 1..]);
            }
            let still_open = open.iter().copied().min().unwrap_or(i64::MAX);
            for (lower, proven) in answer.lower.iter_mut().zip(&proven_so_far) {
                *lower = (*lower).max((*proven).min(still_open));
            }
            let last = answer.found.len() - 1;
            improved(&answer.found[last], answer.lower[last], (at + 1) as f64 / order.len() as f64);
            if answer.stop.is_some() {
                return answer;
            }
        }
        for (lower, (proven, best)) in
            answer.lower.iter_mut().zip(proven_so_far.iter().zip(&answer.found))
        {
            *lower = (*lower).max((*proven).min(best.cost));
        }
        self.remember(key, &answer);
        answer
    }

    /// Whether the bounds of one question's sides hold for the sides of others.
    fn hands_on(&self) -> bool {
        let any_leaves = self.settings.any_leaves() || self.settings.relax_leaves;
        any_leaves && !T::PRICED && self.settings.equivalent_points
    }

    fn subsets(&self, sample: &Sample, depth: usize, most: usize) -> Subsets {
        // Rounding of every leaf, before and after rows are left out.
        let leaves = 1usize.checked_shl(depth as u32).unwrap_or(usize::MAX);
        let leaves = leaves.min(most).min(sample.n_rows()) as i64;
        let slack = 2 * leaves * self.task.cost_rounding();
        Subsets::new(sample, |id| self.bounds.row_cost(id), slack)
    }

    /// Bound on the trees whose leaves may be of any size.
    fn any_leaves(&self, sample: &Sample, depth: usize, budgets: &[usize]) -> Result<i64, Stop> {
        if depth > self.lattice_depth(sample) {
            return Ok(self.floor(sample));
        }
        let settings = &Settings { min_leaf: 1, min_events: 0, ..self.settings.clone() };
        let budget = budgets.iter().copied().max().unwrap_or(1);
        let (task, monitor) = (self.task, self.monitor);
        // Nothing needs to be found, only bounded.
        let cutoff = i64::MIN;
        let solved = lattice::solve(task, sample, depth, &[budget], cutoff, settings, monitor)?;
        Ok(solved.lower[0])
    }

    /// Takes bounds on both sides over to the questions still open.
    fn raise(&self, sides: &[[i64; 2]], prices: &[i64], columns: &[usize], open: &mut [i64]) {
        for (open, &c) in open.iter_mut().zip(columns) {
            let [no, yes] = sides[c];
            *open = (*open).max(no.saturating_add(yes).saturating_add(prices[c]));
        }
    }

    /// Raises the bounds of columns still open: a tree with one of them at its root has a
    /// similar one with `c` there, which costs `bound` at least.
    fn raise_similar(
        &self,
        sample: &Sample,
        c: usize,
        bound: i64,
        columns: &[usize],
        bounds: &mut [i64],
    ) {
        if bounds.iter().all(|&open| open >= bound) {
            return;
        }
        let Some(rise) = self.bounds.exchange(sample, c) else { return };
        for (open, &other) in bounds.iter_mut().zip(columns) {
            *open = (*open).max(bound.saturating_sub(rise[other]));
        }
    }

    /// Best tree with one of the first few columns of `order` at its root, or `best`; ends at a
    /// tree that attains the cost of the finest partition.
    pub fn probe(
        &mut self,
        sample: &Sample,
        depth: usize,
        order: &[usize],
        mut best: Found,
    ) -> Result<Found, Stop> {
        // Two lattices of half the rows each: about a fifth of a lattice one level deeper.
        let few = (sample.n_columns() / 20).max(1);
        for &c in order.iter().take(few) {
            let yes = self.stepwise(&sample.restrict(c, true), depth - 1)?;
            let part = sample.restrict(c, false);
            if yes.cost.saturating_add(self.floor(&part)) >= best.cost {
                continue;
            }
            let no = self.stepwise(&part, depth - 1)?;
            let tree = Self::join(sample, c, self.prices(sample)[c], &yes, &no);
            if tree.cost < best.cost {
                best = tree;
            }
            if self.is_finest(sample, &best) {
                break;
            }
        }
        Ok(best)
    }

    /// Best tree, by ever deeper lattices until one attains the cost of the finest partition.
    fn stepwise(&mut self, sample: &Sample, depth: usize) -> Result<Found, Stop> {
        let mut best = self.leaf(sample);
        for depth in 2.min(depth)..=depth {
            let mut ignore = |_: &Found, _: i64, _: f64| {};
            let mut answer = self.solve(sample, depth, &[usize::MAX], None, i64::MAX, &mut ignore);
            if let Some(stop) = answer.stop {
                return Err(stop);
            }
            best = answer.found.remove(0);
            if self.is_finest(sample, &best) {
                break;
            }
        }
        Ok(best)
    }

    /// Whether a tree costs no more than the finest partition of the rows, but for ties.
    pub fn is_finest(&self, sample: &Sample, tree: &Found) -> bool {
        let ties = self.task.tie_price() * (tree.tree.n_leaves() as i64 - 1);
        tree.cost < i64::MAX && tree.cost - ties <= self.floor(sample)
    }

    /// Bounds on trees of any depth from one lattice: of all, and with each column at the root.
    fn relaxed(&self, sample: &Sample, reach: usize) -> Result<Option<(i64, Vec<i64>)>, Stop> {
        let bounded = self.settings.equivalent_points && self.task.split_price() > 0;
        let Some(task) = self.task.relaxed().filter(|_| bounded && reach > 1) else {
            return Ok(None);
        };
        if !lattice::fits_channels(task.channels()) {
            return Ok(None);
        }
        let sample = sample.with_channel(|record| record.iter().copied().min().unwrap_or(0));
        let depth = RELAXED_DEPTH.min(reach - 1);
        let (budgets, cutoff) = ([usize::MAX], i64::MAX);
        let (settings, monitor) = (self.settings, self.monitor);
        let solved = lattice::solve(&task, &sample, depth, &budgets, cutoff, settings, monitor)?;
        let columns = match &solved.root_values[..] {
            values @ [_, ..] if solved.exact => {
                let price = self.task.split_price();
                values.iter().map(|&v| (v as i64).saturating_add(price)).collect()
            }
            _ => vec![i64::MIN; sample.n_columns()],
        };
        Ok(Some((solved.lower[0], columns)))
    }

    /// Columns by the value of the best shallow tree with each at the root.
    fn order(&self, sample: &Sample, reach: usize) -> Result<Vec<usize>, Stop> {
        let depth = reach.min(LOOK_AHEAD);
        let mut order: Vec<usize> = (0..sample.n_columns()).collect();
        // Only the values are wanted.
        let values = self.lattice(sample, depth, &[usize::MAX], i64::MIN)?.root_values;
        if !values.is_empty() {
            order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        }
        Ok(order)
    }

    fn key(&self, sample: &Sample, depth: usize, budgets: &[usize]) -> Key {
        let hash = sample.ids.iter().fold(0u128, |sum, &r| sum.wrapping_add(random_number(r)));
        // What was tested above matters as far as it changes prices below.
        let context = if T::PRICED {
            let state = sample
                .columns
                .iter()
                .map(|column| (column.feature, self.task.context(column.feature, &sample.tested)));
            FxBuildHasher.hash_one(state.collect::<Vec<_>>())
        } else {
            0
        };
        (hash, sample.n_rows(), depth, budgets[0], budgets[budgets.len() - 1], context)
    }

    fn remember(&mut self, key: Key, answer: &Answer) {
        let trees: usize = answer.found.iter().map(|f| 24 * f.tree.n_nodes() + 96).sum();
        let bytes = trees + 8 * answer.lower.len() + size_of::<Key>() + size_of::<Answer>() + 64;
        let limit = self.settings.bytes() / 4;
        if self.settings.cache && self.cache_bytes + bytes <= limit {
            self.cache_bytes += bytes;
            self.cache.insert(key, answer.clone());
        }
    }
}

/// A fixed 128-bit number per row; sums of them identify sets of rows.
pub(super) fn random_number(row: u32) -> u128 {
    let mix = |mut x: u64| {
        // splitmix64
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let low = mix(u64::from(row));
    u128::from(low) | u128::from(mix(low ^ 0x5851_f42d_4c95_7f2d)) << 64
}
