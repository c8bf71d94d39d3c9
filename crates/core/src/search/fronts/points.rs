//! All points of a subproblem that may still matter: weighted cost within a bound, totals
//! within a window, and not dominated by one another.

use super::engine::{Engine, Point};
use super::node::{Node, Pairs};
use crate::search::Stop;
use crate::task::FrontTask;

/// What a point of a subproblem must satisfy to be part of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds<const K: usize> {
    /// Largest weighted cost.
    pub value: f64,
    /// Least and largest total of every component.
    pub window: [(i64, i64); K],
    /// Most leaves.
    pub leaves: u32,
}

impl<const K: usize> Bounds<K> {
    /// For one side of a split, when the other side costs at least `value` and its totals
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

/// A split whose plan is made only if its point is kept: column, plans of both sides.
type Draft = (usize, u32, u32);

/// Marks plans of points that are places in a list of drafts.
const DRAFT: u32 = 1 << 31;

/// Points gathered before the dominated ones are dropped.
const BATCH: usize = 1 << 14;

impl<T: FrontTask<K>, const K: usize> Engine<'_, T, K> {
    /// The points of trees of at most `depth` over the rows of `node` within the bounds,
    /// by ascending weighted cost.
    pub fn points(
        &mut self,
        node: &Node,
        depth: usize,
        bounds: &Bounds<K>,
    ) -> Result<Vec<Point<K>>, Stop> {
        let depth = depth.min(node.sample.n_columns());
        let mut found = self.leaf_points(&node.total, bounds);
        if depth == 0 || bounds.leaves < 2 {
            return Ok(found);
        }
        let least = self.least(node, depth)?;
        if least.value > bounds.value {
            return Ok(found);
        }
        self.check(found.len())?;
        let mut batch = BATCH;
        let mut drafts = Vec::new();
        let pairs = (depth <= 2).then(|| self.pairs(node));
        for c in 0..node.sample.n_columns() {
            let [yes, no] = match &pairs {
                Some(pairs) => {
                    if least.sides[c][0] + least.sides[c][1] + self.price() > bounds.value {
                        continue;
                    }
                    self.side_points(node, pairs, c, depth, &least.sides[c], bounds)
                }
                None => match self.child_points(node, c, depth, bounds)? {
                    Some(sides) => sides,
                    None => continue,
                },
            };
            self.combine(c, &yes, &no, bounds, &mut found, &mut drafts);
            if found.len() > batch {
                self.settle(node, &mut found, &mut drafts);
                batch = BATCH.max(2 * found.len());
                self.check(found.len())?;
            }
        }
        self.settle(node, &mut found, &mut drafts);
        Ok(found)
    }

    /// Drops the dominated points and makes the plans of the others.
    fn settle(&mut self, node: &Node, found: &mut Vec<Point<K>>, drafts: &mut Vec<Draft>) {
        self.nondominated(found);
        for point in found {
            if point.plan & DRAFT != 0 {
                let (c, yes, no) = drafts[(point.plan & !DRAFT) as usize];
                point.plan = self.plan_split(&node.sample, c, yes, no);
            }
        }
        drafts.clear();
    }

    /// Points of both children of a split on column `c`; `None` when they cannot matter.
    pub fn child_points(
        &mut self,
        node: &Node,
        c: usize,
        depth: usize,
        bounds: &Bounds<K>,
    ) -> Result<Option<[Vec<Point<K>>; 2]>, Stop> {
        if depth <= 2 {
            let sides = self.least(node, depth)?.sides[c];
            if sides[0] + sides[1] + self.price() > bounds.value {
                return Ok(None);
            }
            let pairs = self.pairs(node);
            return Ok(Some(self.side_points(node, &pairs, c, depth, &sides, bounds)));
        }
        let sides = [self.child(node, c, false), self.child(node, c, true)];
        let (no, yes) = (self.least(&sides[0], depth - 1)?, self.least(&sides[1], depth - 1)?);
        let price = self.price();
        if no.value + yes.value + price > bounds.value {
            return Ok(None);
        }
        let reach = |side: &Node| self.task.reach(&side.total[..side.total.len() - 1]);
        let task_price = self.task.price();
        let of_yes = bounds.beside(no.value + price, task_price, &reach(&sides[0]));
        let of_no = bounds.beside(yes.value + price, task_price, &reach(&sides[1]));
        let yes = self.points(&sides[1], depth - 1, &of_yes)?;
        if yes.is_empty() {
            return Ok(None);
        }
        let no = self.points(&sides[0], depth - 1, &of_no)?;
        Ok(Some([yes, no]))
    }

    /// Candidates of a leaf with these sums.
    fn leaf_points(&mut self, record: &[i64], bounds: &Bounds<K>) -> Vec<Point<K>> {
        let mut found = Vec::new();
        self.offer_leaf(record, bounds, &mut found);
        self.nondominated(&mut found);
        found
    }

    fn offer_leaf(&mut self, record: &[i64], bounds: &Bounds<K>, found: &mut Vec<Point<K>>) {
        let (count, sums) = record.split_last().expect("a count");
        if *count < self.min_leaf || bounds.leaves == 0 {
            return;
        }
        let mut candidates = std::mem::take(&mut self.scratch);
        candidates.clear();
        self.task.leaf_candidates(sums, &mut candidates);
        for (label, cost) in candidates.iter().enumerate() {
            if self.weights.of(cost) <= bounds.value && bounds.admit(cost, 1) {
                let plan = self.plan_leaf(label);
                found.push(Point { cost: *cost, leaves: 1, plan });
            }
        }
        self.scratch = candidates;
    }

    /// Points of both sides of column `f` at depth at most two, `least` being the least
    /// value of either (false, true).
    fn side_points(
        &mut self,
        node: &Node,
        pairs: &Pairs,
        f: usize,
        depth: usize,
        least: &[f64; 2],
        bounds: &Bounds<K>,
    ) -> [Vec<Point<K>>; 2] {
        let mut records = [vec![0i64; node.total.len()], vec![0i64; node.total.len()]];
        let channels = node.total.len() - 1;
        [true, false].map(|value| {
            let [other, record] = &mut records;
            pairs.side(f, !value, other);
            let reach = self.task.reach(&other[..channels]);
            let beside = least[usize::from(!value)] + self.price();
            let of_side = bounds.beside(beside, self.task.price(), &reach);
            let (mut found, mut drafts) = (Vec::new(), Vec::new());
            pairs.side(f, value, record);
            self.offer_leaf(record, &of_side, &mut found);
            if depth > 1 && of_side.leaves > 1 {
                for g in (0..node.sample.n_columns()).filter(|&g| g != f) {
                    let cell = (pairs, f, value, g);
                    self.cell_points(cell, &of_side, record, &mut found, &mut drafts);
                }
            }
            self.settle(node, &mut found, &mut drafts);
            found
        })
    }

    /// Points of one side of column `f` split on `g`.
    fn cell_points(
        &mut self,
        (pairs, f, value, g): (&Pairs, usize, bool, usize),
        bounds: &Bounds<K>,
        record: &mut [i64],
        found: &mut Vec<Point<K>>,
        drafts: &mut Vec<Draft>,
    ) {
        let mut cells: [Vec<[i64; K]>; 2] = Default::default();
        let mut least = self.price();
        for (cell, g_value) in cells.iter_mut().zip([true, false]) {
            pairs.cell(f, value, g, g_value, record);
            let (count, sums) = record.split_last().expect("a count");
            if *count < self.min_leaf {
                return;
            }
            self.task.leaf_candidates(sums, cell);
            least += cell.iter().map(|c| self.weights.of(c)).fold(f64::INFINITY, f64::min);
        }
        if least > bounds.value {
            return;
        }
        for (a, yes) in cells[0].iter().enumerate() {
            for (b, no) in cells[1].iter().enumerate() {
                let cost = self.task.combine(yes, no);
                if self.weights.of(&cost) + self.weights.leaf <= bounds.value
                    && bounds.admit(&cost, 2)
                {
                    let (yes, no) = (self.plan_leaf(a), self.plan_leaf(b));
                    found.push(Point { cost, leaves: 2, plan: DRAFT | drafts.len() as u32 });
                    drafts.push((g, yes, no));
                }
            }
        }
    }

    /// Appends the points of a split on column `c` that the bounds admit; both lists by
    /// ascending weighted cost.
    fn combine(
        &self,
        c: usize,
        yes: &[Point<K>],
        no: &[Point<K>],
        bounds: &Bounds<K>,
        found: &mut Vec<Point<K>>,
        drafts: &mut Vec<Draft>,
    ) {
        let of_no: Vec<f64> = no.iter().map(|p| self.value(p)).collect();
        for a in yes {
            let left = bounds.value - self.value(a) - self.price();
            for (b, _) in no.iter().zip(&of_no).take_while(|(_, value)| **value <= left) {
                let (cost, leaves) = (self.task.combine(&a.cost, &b.cost), a.leaves + b.leaves);
                if bounds.admit(&cost, leaves) {
                    found.push(Point { cost, leaves, plan: DRAFT | drafts.len() as u32 });
                    drafts.push((c, a.plan, b.plan));
                }
            }
        }
    }

    /// Weighted cost of a point.
    pub fn value(&self, point: &Point<K>) -> f64 {
        self.weights.of(&point.cost) + self.weights.leaf * f64::from(point.leaves - 1)
    }

    /// Keeps the points that no other dominates, by ascending weighted cost; of equal ones
    /// the one with fewest leaves.
    pub fn nondominated(&self, points: &mut Vec<Point<K>>) {
        let budget = self.max_leaves != u32::MAX;
        if K == 2 && !budget {
            points.sort_unstable_by_key(|p| (p.cost[1], p.cost[0], p.leaves));
            if self.task.exact(1) {
                points.dedup_by_key(|p| p.cost[1]);
            } else {
                let mut least = i64::MAX;
                points.retain(|p| {
                    let better = p.cost[0] < least;
                    least = least.min(p.cost[0]);
                    better
                });
            }
        } else {
            points.sort_unstable_by_key(|p| (p.cost, p.leaves));
            let mut kept: Vec<Point<K>> = Vec::new();
            points.retain(|p| {
                let better = |q: &Point<K>| {
                    self.task.dominates(&q.cost, &p.cost) && (!budget || q.leaves <= p.leaves)
                };
                let keep = !kept.iter().any(better);
                if keep {
                    kept.push(*p);
                }
                keep
            });
        }
        points.sort_by(|a, b| {
            let by_value = self.value(a).total_cmp(&self.value(b));
            by_value.then(a.cost.cmp(&b.cost)).then(a.leaves.cmp(&b.leaves))
        });
    }
}
