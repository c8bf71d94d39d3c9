//! Lists all points of a subproblem that may still matter: with a weighted cost within a bound,
//! totals within a window, and not dominated by each other.

use super::engine::{Engine, Point};
use super::node::{FrontNode, Pace};
use super::pairs::{Pairs, Scratch};
use super::shallow::SHALLOW;
use crate::search::Stop;
use crate::task::FrontTask;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Conditions that a point of a subproblem must satisfy to be part of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds<const K: usize> {
    /// Largest weighted cost.
    pub value: f64,
    /// Smallest and largest total of every component.
    pub window: [(i64, i64); K],
    /// Most leaves.
    pub leaves: u32,
}

impl<const K: usize> Bounds<K> {
    /// The bounds for one side of a split, if the other side costs at least `value` and its totals
    /// lie in `reach`.
    pub fn beside(&self, value: f64, price: i64, reach: &[(i64, i64); K]) -> Bounds<K> {
        let mut window = self.window;
        window[0] = (window[0].0 - price, window[0].1 - price);
        for ((low, high), (least, most)) in window.iter_mut().zip(reach) {
            *low -= most;
            *high -= least;
        }
        Bounds { value: self.value - value, window, leaves: self.leaves - 1 }
    }

    #[inline(always)]
    pub fn admit(&self, cost: &[i64; K], leaves: u32) -> bool {
        leaves <= self.leaves && cost.iter().zip(&self.window).all(|(c, (l, h))| l <= c && c <= h)
    }
}

/// A value that proves another one to be larger than `value`, however sums are rounded.
pub(super) fn above(value: f64, rounding: f64) -> f64 {
    (value + rounding).next_up()
}

/// A split whose plan is only made if its point is kept: the column and the plans of both sides.
type Draft = (usize, u32, u32);

/// Marks a plan that is a position in a list of drafts.
const DRAFT: u32 = 1 << 31;

/// Bytes of points.
fn bytes_of<const K: usize>(points: &[Point<K>]) -> usize {
    size_of_val(points)
}

/// Number of points that are gathered before dominated ones are removed.
const BATCH: usize = 1 << 14;

/// The points of a node found so far.
pub(super) struct Gathered<const K: usize> {
    pub points: Vec<Point<K>>,
    drafts: Vec<Draft>,
    batch: usize,
    /// Positions of the points by their last component, if one point of each is enough.
    place_of: Option<FxHashMap<i64, u32>>,
}

/// Bytes of an entry in a table of positions.
const PLACE: usize = size_of::<(i64, u32)>() + 1;

impl<const K: usize> Gathered<K> {
    /// Bytes of the points and drafts.
    fn bytes(&self) -> usize {
        let places = self.place_of.as_ref().map_or(0, FxHashMap::capacity);
        // A table of positions is at most seven eighths full.
        bytes_of(&self.points) + self.drafts.len() * size_of::<Draft>() + places * PLACE * 8 / 7
    }

    fn draft(&mut self, cost: [i64; K], leaves: u32, draft: Draft) {
        let place = self.points.len() as u32;
        if let Some(place_of) = &mut self.place_of {
            match place_of.entry(cost[K - 1]) {
                Entry::Vacant(entry) => {
                    entry.insert(place);
                }
                Entry::Occupied(entry) => {
                    let known = &mut self.points[*entry.get() as usize];
                    if (cost[0], leaves) < (known.cost[0], known.leaves) {
                        if known.plan & DRAFT == 0 {
                            known.plan = DRAFT | self.drafts.len() as u32;
                            self.drafts.push(draft);
                        } else {
                            self.drafts[(known.plan & !DRAFT) as usize] = draft;
                        }
                        (known.cost, known.leaves) = (cost, leaves);
                    }
                    return;
                }
            }
        }
        self.points.push(Point { cost, leaves, plan: DRAFT | self.drafts.len() as u32 });
        self.drafts.push(draft);
    }
}

impl<T: FrontTask<K>, const K: usize> Engine<'_, T, K> {
    /// The points of trees of at most `depth` over the rows of `node` within the bounds, by
    /// ascending weighted cost.
    pub fn points(
        &mut self,
        node: &Arc<FrontNode<K>>,
        depth: usize,
        bounds: &Bounds<K>,
    ) -> Result<Vec<Point<K>>, Stop> {
        let depth = depth.min(node.sample.n_columns());
        let found = self.leaf_points(&node.total, bounds)?;
        if depth == 0 || bounds.leaves < 2 {
            return Ok(found);
        }
        if self.least(node, depth, above(bounds.value, self.rounding()))?.value > bounds.value {
            return Ok(found);
        }
        self.check(bytes_of(&found))?;
        let mut gathered = self.gather(found);
        let by_column = if depth > SHALLOW { self.by_column(node, depth)? } else { None };
        let may_matter = |c: &usize| by_column.as_ref().is_none_or(|of| of[*c] <= bounds.value);
        for c in (0..node.sample.n_columns()).filter(may_matter) {
            let below = |engine: &mut Self| engine.child_points(node, c, depth, bounds);
            if let Some(sides) = self.meanwhile(gathered.bytes(), below)? {
                let joined =
                    |engine: &mut Self| engine.combine(node, c, &sides, bounds, &mut gathered);
                self.meanwhile(sides.iter().map(|side| bytes_of(side)).sum(), joined)?;
            }
        }
        self.settle(node, &mut gathered)?;
        Ok(gathered.points)
    }

    /// Starts with these points.
    pub fn gather(&self, points: Vec<Point<K>>) -> Gathered<K> {
        let places = || points.iter().map(|p| p.cost[K - 1]).zip(0..).collect();
        let place_of = self.keeps_best().then(places);
        Gathered { points, drafts: Vec::new(), batch: BATCH, place_of }
    }

    /// Whether, of points with the same last component, only the one with the smallest first
    /// component matters.
    fn keeps_best(&self) -> bool {
        K == 2 && self.max_leaves == u32::MAX && !self.keep_all && self.task.exact(1)
    }

    /// Removes dominated points and makes the plans of the others, sorted by ascending weighted
    /// cost.
    pub fn settle(&mut self, node: &FrontNode<K>, gathered: &mut Gathered<K>) -> Result<(), Stop> {
        self.sift(node, gathered)?;
        self.by_value(&mut gathered.points);
        Ok(())
    }

    /// Removes dominated points and makes the plans of the others.
    fn sift(&mut self, node: &FrontNode<K>, gathered: &mut Gathered<K>) -> Result<(), Stop> {
        self.nondominated(&mut gathered.points)?;
        for point in &mut gathered.points {
            if point.plan & DRAFT != 0 {
                let (c, yes, no) = gathered.drafts[(point.plan & !DRAFT) as usize];
                point.plan = self.plans.split(&node.sample, c, yes, no);
            }
        }
        gathered.drafts.clear();
        Ok(())
    }

    /// Sifts once many points have been gathered, unless this happens as they are added.
    fn thin(&mut self, node: &FrontNode<K>, gathered: &mut Gathered<K>) -> Result<(), Stop> {
        if gathered.points.len() > gathered.batch {
            if gathered.place_of.is_none() {
                self.sift(node, gathered)?;
            }
            gathered.batch = BATCH.max(2 * gathered.points.len());
            self.check(gathered.bytes())?;
        }
        Ok(())
    }

    /// Points of both sides of a split on column `c`; `None` if they cannot matter.
    pub fn child_points(
        &mut self,
        node: &Arc<FrontNode<K>>,
        c: usize,
        depth: usize,
        bounds: &Bounds<K>,
    ) -> Result<Option<[Vec<Point<K>>; 2]>, Stop> {
        if depth <= SHALLOW {
            let sides = self.shallow(node, depth)?.0.sides[c];
            if sides[0] + sides[1] + self.price() > bounds.value {
                return Ok(None);
            }
            let pairs = self.pairs(node, depth)?;
            return self.side_points(node, &pairs, c, depth, &sides, bounds).map(Some);
        }
        let sides = [self.child(node, c, false), self.child(node, c, true)];
        let price = self.price();
        let [no, yes] = &sides;
        let [no, yes] =
            self.least_of_sides([no, yes], depth - 1, above(bounds.value, self.rounding()))?;
        if no + yes + price > bounds.value {
            return Ok(None);
        }
        let reach = |side: &FrontNode<K>| self.task.reach(&side.total[..side.total.len() - 1]);
        let task_price = self.task.price();
        let of_yes = bounds.beside(no + price, task_price, &reach(&sides[0]));
        let of_no = bounds.beside(yes + price, task_price, &reach(&sides[1]));
        let yes = self.points(&sides[1], depth - 1, &of_yes)?;
        if yes.is_empty() {
            return Ok(None);
        }
        let below = |engine: &mut Self| engine.points(&sides[0], depth - 1, &of_no);
        let no = self.meanwhile(bytes_of(&yes), below)?;
        Ok(Some([yes, no]))
    }

    /// The candidates of a leaf with these sums.
    pub fn leaf_points(
        &mut self,
        record: &[i64],
        bounds: &Bounds<K>,
    ) -> Result<Vec<Point<K>>, Stop> {
        let mut found = Vec::new();
        let mut costs = std::mem::take(&mut self.scratch);
        self.leaves.costs(record, &mut costs);
        self.offer_leaf(&costs, bounds, &mut found);
        self.scratch = costs;
        self.nondominated(&mut found)?;
        self.by_value(&mut found);
        Ok(found)
    }

    fn offer_leaf(&mut self, costs: &[[i64; K]], bounds: &Bounds<K>, found: &mut Vec<Point<K>>) {
        for (label, cost) in costs.iter().enumerate() {
            if self.weighing.weights.of(cost) <= bounds.value && bounds.admit(cost, 1) {
                let plan = self.plans.leaf(label);
                found.push(Point { cost: *cost, leaves: 1, plan });
            }
        }
    }

    /// Points of both sides of column `f` at depth at most two; `least` is the least value of
    /// either side (false, true).
    fn side_points(
        &mut self,
        node: &FrontNode<K>,
        pairs: &Pairs<K>,
        f: usize,
        depth: usize,
        least: &[f64; 2],
        bounds: &Bounds<K>,
    ) -> Result<[Vec<Point<K>>; 2], Stop> {
        let mut other = node.total.clone();
        let mut scratch = Scratch::new(node);
        let mut pace = Pace::new(self.monitor);
        let mut sides = [Vec::new(), Vec::new()];
        for (side, value) in sides.iter_mut().zip([true, false]) {
            pairs.side(f, !value, &mut other);
            let reach = self.task.reach(&other[..other.len() - 1]);
            let beside = least[usize::from(!value)] + self.price();
            let of_side = bounds.beside(beside, self.task.price(), &reach);
            let mut found = Vec::new();
            pairs.costs_of_side(&self.leaves, f, value, &mut scratch);
            self.offer_leaf(&scratch.costs, &of_side, &mut found);
            let mut gathered = self.gather(found);
            if depth > 1 && of_side.leaves > 1 {
                for g in (0..node.sample.n_columns()).filter(|&g| g != f) {
                    self.cell_points(pairs, (f, value), g, &of_side, &mut scratch, &mut gathered);
                    pace.spend(32)?;
                    self.thin(node, &mut gathered)?;
                }
            }
            self.settle(node, &mut gathered)?;
            *side = gathered.points;
        }
        Ok(sides)
    }

    /// Points of one side of a column that is split on `g`.
    fn cell_points(
        &mut self,
        pairs: &Pairs<K>,
        side: (usize, bool),
        g: usize,
        bounds: &Bounds<K>,
        scratch: &mut Scratch<K>,
        gathered: &mut Gathered<K>,
    ) {
        let mut cells: [Vec<[i64; K]>; 2] = Default::default();
        let mut least = self.price();
        for (cell, value) in cells.iter_mut().zip([true, false]) {
            pairs.costs_of_cell(&self.leaves, side, (g, value), scratch);
            let Some((value, _)) = self.weighing.weights.least(&scratch.costs) else { return };
            least += value;
            cell.clone_from(&scratch.costs);
        }
        if least > bounds.value {
            return;
        }
        for (a, yes) in cells[0].iter().enumerate() {
            for (b, no) in cells[1].iter().enumerate() {
                let cost = self.task.combine(yes, no);
                if self.weighing.weights.of(&cost) + self.weighing.weights.leaf <= bounds.value
                    && bounds.admit(&cost, 2)
                {
                    let (yes, no) = (self.plans.leaf(a), self.plans.leaf(b));
                    gathered.draft(cost, 2, (g, yes, no));
                }
            }
        }
    }

    /// Appends the points of a split on column `c` that the bounds allow; both lists are sorted by
    /// ascending weighted cost.
    pub fn combine(
        &mut self,
        node: &FrontNode<K>,
        c: usize,
        [yes, no]: &[Vec<Point<K>>; 2],
        bounds: &Bounds<K>,
        gathered: &mut Gathered<K>,
    ) -> Result<(), Stop> {
        let of_no: Vec<f64> = no.iter().map(|p| self.value(p)).collect();
        let mut pace = Pace::new(self.monitor);
        for a in yes {
            let left = bounds.value - self.value(a) - self.price();
            let within = of_no.partition_point(|&value| value <= left);
            pace.spend(within)?;
            for b in &no[..within] {
                let (cost, leaves) = (self.task.combine(&a.cost, &b.cost), a.leaves + b.leaves);
                if bounds.admit(&cost, leaves) {
                    gathered.draft(cost, leaves, (c, a.plan, b.plan));
                }
            }
            self.thin(node, gathered)?;
        }
        Ok(())
    }

    /// Weighted cost of a point.
    pub fn value(&self, point: &Point<K>) -> f64 {
        self.weighing.weights.of(&point.cost)
            + self.weighing.weights.leaf * f64::from(point.leaves - 1)
    }

    /// Keeps the points that no other point dominates (or all); of equal points, the one with the
    /// fewest leaves.
    fn nondominated(&self, points: &mut Vec<Point<K>>) -> Result<(), Stop> {
        let budget = self.max_leaves != u32::MAX;
        if self.keep_all {
            return Ok(());
        }
        if K == 2 && !budget {
            points.sort_unstable_by_key(|p| (p.cost[1], p.cost[0], p.leaves));
            if self.keeps_best() {
                points.dedup_by_key(|p| p.cost[1]);
            } else {
                let mut least = i64::MAX;
                points.retain(|p| {
                    let better = p.cost[0] < least;
                    least = least.min(p.cost[0]);
                    better
                });
            }
        } else if (1..K).all(|k| self.task.exact(k)) {
            points.sort_unstable_by(|p, q| {
                let by_rest = p.cost[1..].cmp(&q.cost[1..]);
                by_rest.then(p.cost[0].cmp(&q.cost[0])).then(p.leaves.cmp(&q.leaves))
            });
            // Of the points with equal other components, each one that is kept has fewer leaves
            // than the last.
            let mut last: Option<Point<K>> = None;
            points.retain(|p| {
                let same = last.filter(|last| last.cost[1..] == p.cost[1..]);
                let keep = same.is_none_or(|last| budget && p.leaves < last.leaves);
                last = if keep { Some(*p) } else { last };
                keep
            });
        } else {
            points.sort_unstable_by_key(|p| (p.cost, p.leaves));
            let (mut kept, mut stopped) = (Vec::<Point<K>>::new(), Ok(()));
            let mut pace = Pace::new(self.monitor);
            points.retain(|p| {
                let better = |q: &Point<K>| {
                    self.task.dominates(&q.cost, &p.cost) && (!budget || q.leaves <= p.leaves)
                };
                stopped = stopped.and_then(|()| pace.spend(kept.len()));
                let keep = stopped.is_ok() && !kept.iter().any(better);
                if keep {
                    kept.push(*p);
                }
                keep
            });
            stopped?;
        }
        Ok(())
    }

    /// Sorts points by ascending weighted cost.
    fn by_value(&self, points: &mut Vec<Point<K>>) {
        let mut keyed: Vec<(f64, Point<K>)> =
            points.drain(..).map(|p| (self.value(&p), p)).collect();
        keyed.sort_unstable_by(|(x, p), (y, q)| {
            x.total_cmp(y).then(p.cost.cmp(&q.cost)).then(p.leaves.cmp(&q.leaves))
        });
        points.extend(keyed.into_iter().map(|(_, point)| point));
    }
}
