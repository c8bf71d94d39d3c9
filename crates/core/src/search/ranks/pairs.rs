//! Best trees with two levels: chooses which thresholds of the root to evaluate, and what their
//! values imply for the others.

use super::cost::Pair;
use super::kernel::{Batch, LANES, Minima, Scan, Scratch};
use super::losses::{Losses, OfTask};
use super::nodes::{LEAF, RankNode};
use super::proofs::{Proof, Proofs, Side, greater};
use super::rows::Cuts;
use super::{Problem, Width};
use crate::data::add;
use crate::search::Stop;
use crate::search::nodes::{Allowed, Cost, Known, NOTHING};
use crate::simd::{Backend, LaneInt, LaneReal, with_token};
use crate::task::Swept;
use std::sync::Arc;

/// Smallest number of thresholds that an interval offers in a round.
const OFFERED: usize = 3;

/// Finds trees with two levels, on one thread.
pub struct Solver {
    cuts: Cuts,
    bench: Bench,
}

/// Buffers for each width of lanes.
#[expect(clippy::large_enum_variant, reason = "there is one per thread")]
enum Bench {
    Single(Buffers<i32, f32>),
    Double(Buffers<i64, f64>),
}

#[derive(Default)]
struct Buffers<I, R> {
    scan: Scan<I>,
    minima: Minima<R>,
    scratch: Scratch<I, R>,
    mask: Vec<u16>,
    /// Floors of the rows up to each threshold.
    floors: Vec<i64>,
    proofs: Vec<Proof>,
}

/// Least sum of both sides, if the tree may have this number of leaves.
fn least(left: Side, right: Side, leaves: usize) -> i64 {
    let any = |side: Side| side[0].min(side[1]);
    match leaves {
        ..=2 => left[0].plus(right[0]),
        3 => left[0].plus(any(right)).min(any(left).plus(right[0])),
        _ => any(left).plus(any(right)),
    }
}

/// A bound minus an amount; the cost of what is not allowed stays the same.
fn lowered(bound: i64, by: i64) -> i64 {
    if bound == i64::MAX { bound } else { bound - by }
}

/// Thresholds `first..end` of one column, with bounds on the left sides from `first` on and on the
/// right sides before `end`.
#[derive(Clone, Copy, Debug)]
struct Interval {
    column: usize,
    first: usize,
    end: usize,
    left: Side,
    right: Side,
    bound: i64,
}

/// A threshold of the root to be evaluated, and the result.
#[derive(Clone, Copy, Debug)]
struct Lane {
    interval: usize,
    cut: usize,
    sides: Option<[Side; 2]>,
}

/// Result of a search for a tree with two levels: the first of equally good trees.
struct Found {
    /// Cost of the best tree, or the cost that trees must be below.
    limit: i64,
    /// Question at the root of the best tree.
    best: Option<i32>,
    /// Lower bound on trees whose leaves may have any size.
    free: i64,
}

impl Found {
    /// Whether a tree with this or a later question, whose cost is at least `bound`, may come
    /// before the best one.
    fn wants(&self, bound: i64, question: usize) -> bool {
        bound < self.limit
            || bound == self.limit
                && self.best.is_some_and(|best| (question as i64) < i64::from(best))
    }
}

impl Solver {
    pub fn new<T: Swept>(problem: &Problem<T>) -> Self {
        let bench = match problem.width {
            Width::Single(_) => Bench::Single(Buffers::default()),
            Width::Double(_) => Bench::Double(Buffers::default()),
        };
        Solver { cuts: Cuts::default(), bench }
    }

    /// Least cost of trees with at most two levels if it is below `cut`, and the first question
    /// that attains it.
    pub fn solve<T: Swept>(
        &mut self,
        problem: &Problem<T>,
        node: &RankNode,
        allowed: Allowed,
        cut: i64,
    ) -> Result<Known<Pair, i32>, Stop> {
        let leaf = if problem.allows(&node.rows) { node.any_leaf } else { i64::MAX };
        let limit = cut.min(leaf);
        let best = (leaf < cut).then_some(LEAF);
        let mut found = Found { limit, best, free: node.any_leaf };
        self.search(problem, node, allowed, &mut found)?;
        let Found { limit, best, free, .. } = found;
        let free = if problem.is_limited() { free.min(limit) } else { limit };
        Ok(Known { value: Pair { value: limit, free }, tree: best })
    }

    fn search<T: Swept>(
        &mut self,
        problem: &Problem<T>,
        node: &RankNode,
        allowed: Allowed,
        found: &mut Found,
    ) -> Result<(), Stop> {
        if node.rows.count < 2 {
            return Ok(());
        }
        let Solver { cuts, bench } = self;
        cuts.fill(&problem.table, &node.rows);
        if allowed.leaves <= 2 {
            one_level(problem, node, cuts, found);
            return Ok(());
        }
        problem.monitor.check()?;
        let backend = problem.settings.backend();
        let losses = OfTask { task: problem.task, shift: &problem.shift, backend };
        match (bench, &problem.width) {
            (Bench::Single(buffers), Width::Single(lanes)) => {
                let run: Run<i32, f32> = |backend, batch| {
                    with_token!(backend, token => crate::simd::Lanes::run(token.single(), batch));
                };
                let n = with_token!(backend, token => lanes_of(token.single()));
                let losses = &losses;
                let leaves = allowed.leaves;
                let pass = Pass { problem, node, cuts, lanes, run, losses, n, leaves };
                pass.search(buffers, found)
            }
            (Bench::Double(buffers), Width::Double(lanes)) => {
                let run: Run<i64, f64> = |backend, batch| {
                    with_token!(backend, token => crate::simd::Lanes::run(token.double(), batch));
                };
                let n = with_token!(backend, token => lanes_of(token.double()));
                let losses = &losses;
                let leaves = allowed.leaves;
                let pass = Pass { problem, node, cuts, lanes, run, losses, n, leaves };
                pass.search(buffers, found)
            }
            _ => unreachable!("buffers have the width of the problem"),
        }
    }
}

fn lanes_of<L: crate::simd::Lanes>(_: L) -> usize {
    L::N
}

type Run<I, R> = fn(Backend, Batch<'_, I, R>);

/// The best single split, with exact costs.
fn one_level<T: Swept>(problem: &Problem<T>, node: &RankNode, cuts: &Cuts, found: &mut Found) {
    let Problem { task, table, price, .. } = problem;
    let rows = &node.rows;
    let mut sums = vec![0i64; table.channels];
    let mut rest = vec![0i64; table.channels];
    for k in 0..table.n_columns() {
        sums.fill(0);
        let (mut at, mut size) = (0, 0);
        for cut in cuts.of(k) {
            for &r in &rows.in_order(k)[at..cuts.below[cut] as usize] {
                add(&mut sums, table.record(r));
                size += table.sizes[r as usize];
            }
            at = cuts.below[cut] as usize;
            rest.iter_mut().zip(&rows.total).zip(&sums).for_each(|((r, all), v)| *r = all - v);
            let cost = task.leaf_cost(&sums) + task.leaf_cost(&rest) - rows.floor + price;
            found.free = found.free.min(cost);
            let allowed = [(&sums, size), (&rest, rows.size - size)];
            let allowed = allowed.into_iter().all(|(sums, size)| problem.allows_sums(sums, size));
            let question = problem.question(k, cuts.rank[cut]);
            if allowed && found.wants(cost, question) {
                (found.limit, found.best) = (cost, Some(question as i32));
            }
        }
    }
}

/// The search for one node.
struct Pass<'a, 'p, T, I, R> {
    problem: &'a Problem<'p, T>,
    node: &'a RankNode,
    cuts: &'a Cuts,
    /// Numbers of all rows.
    lanes: &'a [I],
    run: Run<I, R>,
    losses: &'a dyn Losses<I, R>,
    /// Number of lanes of the backend.
    n: usize,
    leaves: usize,
}

impl<T: Swept, I: LaneInt, R: LaneReal> Pass<'_, '_, T, I, R> {
    fn width(&self) -> usize {
        self.problem.table.channels + if self.problem.is_limited() { 2 } else { 0 }
    }

    fn search(&self, buffers: &mut Buffers<I, R>, found: &mut Found) -> Result<(), Stop> {
        let Pass { problem, node, cuts, .. } = self;
        let table = &problem.table;
        buffers.scan.fill(self.lanes, self.width(), table, &node.rows, cuts);
        buffers.mask.resize(table.n_rows, 0);
        self.fill_floors(&mut buffers.floors);
        buffers.proofs.clear();
        let before = node.before.as_deref();
        let mut open: Vec<Interval> = Vec::new();
        for column in 0..table.n_columns() {
            self.begin(column, before, &mut open, found);
        }
        let mut is_first = before.is_some();
        let mut lanes: Vec<Lane> = Vec::new();
        while !open.is_empty() {
            open.sort_by_key(|interval| (interval.bound, interval.first));
            self.offer(&open, is_first, &mut lanes);
            is_first = false;
            let mut next = 0;
            while next < lanes.len() {
                problem.monitor.check()?;
                let mut batch = Vec::with_capacity(self.n);
                while next < lanes.len() && batch.len() < self.n {
                    let interval = &open[lanes[next].interval];
                    if found.wants(interval.bound, self.question(interval.column, interval.first)) {
                        batch.push(next);
                    }
                    next += 1;
                }
                if !batch.is_empty() {
                    self.evaluate(&batch, &open, &mut lanes, buffers, found);
                }
            }
            open = self.rest(&open, &lanes, found);
        }
        let proofs = Proofs::new(std::mem::take(&mut buffers.proofs), before);
        // The proofs of one search suffice, whichever number of leaves it was for.
        let _ = node.found.set(Arc::new(proofs));
        Ok(())
    }

    /// The thresholds of a column that may be better than the best tree, judged by what is known
    /// about fewer rows.
    fn begin(
        &self,
        column: usize,
        before: Option<&Proofs>,
        open: &mut Vec<Interval>,
        found: &Found,
    ) {
        let Pass { problem, cuts, .. } = self;
        let range = cuts.of(column);
        let nothing = [-problem.slack, problem.price - problem.slack];
        let proofs = before.map_or(&[][..], |before| before.of_column(column));
        if proofs.is_empty() {
            self.push(open, (column, range.start, range.end), (nothing, nothing), found);
            return;
        }
        let mut next = 0;
        let mut run: Option<(usize, Side, Side)> = None;
        for cut in range.clone() {
            let rank = cuts.rank[cut];
            next += proofs[next..].iter().take_while(|proof| proof.rank < rank).count();
            let above = proofs.get(next);
            let here = above.filter(|proof| proof.rank == rank);
            let below = here.or(next.checked_sub(1).map(|at| &proofs[at]));
            let left = below.map_or(nothing, |proof| greater(proof.left, nothing));
            let right = above.map_or(nothing, |proof| greater(proof.right, nothing));
            let bound = least(left, right, self.leaves).plus(problem.price);
            if found.wants(bound, self.question(column, cut)) {
                let (first, of_first, _) = run.unwrap_or((cut, left, right));
                run = Some((first, of_first, right));
            } else if let Some((first, left, right)) = run.take() {
                self.push(open, (column, first, cut), (left, right), found);
            }
        }
        if let Some((first, left, right)) = run {
            self.push(open, (column, first, range.end), (left, right), found);
        }
    }

    fn question(&self, column: usize, cut: usize) -> usize {
        self.problem.question(column, self.cuts.rank[cut])
    }

    fn fill_floors(&self, floors: &mut Vec<i64>) {
        floors.clear();
        let table = &self.problem.table;
        for k in 0..table.n_columns() {
            let (mut at, mut floor) = (0, 0);
            for cut in self.cuts.of(k) {
                let below = self.cuts.below[cut] as usize;
                let rows = &self.node.rows.in_order(k)[at..below];
                floor += rows.iter().map(|&r| table.floors[r as usize]).sum::<i64>();
                at = below;
                floors.push(floor);
            }
        }
    }

    fn push(
        &self,
        open: &mut Vec<Interval>,
        (column, first, end): (usize, usize, usize),
        (left, right): (Side, Side),
        found: &Found,
    ) {
        if first >= end {
            return;
        }
        let bound = least(left, right, self.leaves).plus(self.problem.price);
        if found.wants(bound, self.question(column, first)) {
            open.push(Interval { column, first, end, left, right, bound });
        }
    }

    /// Offers a few thresholds of every interval, evenly spaced, those of the best intervals first.
    /// Intervals that follow from other rows may be many; they share those of a column by their
    /// width.
    fn offer(&self, open: &[Interval], by_width: bool, lanes: &mut Vec<Lane>) {
        lanes.clear();
        let mut of_column = vec![(0usize, 0usize); self.problem.table.n_columns()];
        for interval in open {
            let (n, width) = &mut of_column[interval.column];
            (*n, *width) = (*n + 1, *width + interval.end - interval.first);
        }
        for (at, interval) in open.iter().enumerate() {
            let n = interval.end - interval.first;
            let (intervals, width) = of_column[interval.column];
            let share = match by_width {
                true => (LANES * n / width).max(1),
                false => (LANES / intervals).max(OFFERED),
            };
            let share = share.min(n);
            for x in 0..share {
                // All of them.
                let place = if share == n { x } else { (x + 1) * (n + 1) / (share + 1) - 1 };
                lanes.push(Lane { interval: at, cut: interval.first + place, sides: None });
            }
        }
    }

    /// Evaluates the thresholds of a batch.
    fn evaluate(
        &self,
        batch: &[usize],
        open: &[Interval],
        lanes: &mut [Lane],
        buffers: &mut Buffers<I, R>,
        found: &mut Found,
    ) {
        let Pass { problem, node, cuts, .. } = self;
        let (rows, price) = (&node.rows, problem.price);
        // Lanes of one column are adjacent, with ascending thresholds.
        let mut batch: Vec<usize> = batch.to_vec();
        batch.sort_by_key(|&lane| lanes[lane].cut);
        let column = |lane: &Lane| open[lane.interval].column;
        self.fill_mask(
            batch.iter().map(|&at| (column(&lanes[at]), lanes[at].cut)),
            &mut buffers.mask,
        );
        let of_lane = |l: usize| lanes[batch[l.min(batch.len() - 1)]].cut;
        let thresholds: Vec<usize> = (0..self.n).map(of_lane).collect();
        let run = self.run;
        run(
            problem.settings.backend(),
            Batch {
                task: self.losses,
                scan: &buffers.scan,
                rows,
                cuts,
                n_columns: problem.table.n_columns(),
                mask: &buffers.mask,
                lanes: &thresholds,
                minima: &problem.minima,
                margin: 2.0 * problem.error + problem.least_error,
                scratch: &mut buffers.scratch,
                out: &mut buffers.minima,
            },
        );
        problem.monitor.count(4 * (cuts.len() * batch.len()) as u64);
        let minima = &buffers.minima;
        for (l, &at) in batch.iter().enumerate() {
            let Lane { interval, cut, .. } = lanes[at];
            let interval = &open[interval];
            let floors = [buffers.floors[cut], rows.floor - buffers.floors[cut]];
            let lower = |side: usize, loss: R| lowered(self.lower(loss), floors[side]);
            let (mut free, mut allowed) = ([[0; 2]; 2], [[i64::MAX; 2]; 2]);
            for side in 0..2 {
                let before = if side == 0 { interval.left } else { interval.right };
                let leaf = lower(side, minima.leaf[side][l]);
                let split = lower(side, minima.free[side][l]).plus(price);
                free[side] = [leaf.max(before[0]), split.max(before[1])];
                if self.allows_leaf(buffers, cut, side) {
                    allowed[side][0] = leaf;
                }
                allowed[side][1] = lower(side, minima.best[side][l]).plus(price);
            }
            let proven = free.map(|side| side.map(|v| lowered(v, problem.slack)));
            lanes[at].sides = Some(proven);
            let (column, rank) = (interval.column as u32, cuts.rank[cut]);
            buffers.proofs.push(Proof { column, rank, left: proven[0], right: proven[1] });
            found.free = found.free.min(least(free[0], free[1], self.leaves).plus(price));
            let question = self.question(interval.column, cut);
            let bound = least(allowed[0], allowed[1], self.leaves).plus(price);
            if !found.wants(bound, question) {
                continue;
            }
            let cost = if problem.error == 0.0 {
                bound
            } else {
                let sides = [0, 1].map(|side| self.exactly(l, interval.column, cut, side, buffers));
                least(sides[0], sides[1], self.leaves).plus(price)
            };
            if cost < i64::MAX && found.wants(cost, question) {
                (found.limit, found.best) = (cost, Some(question as i32));
            }
        }
    }

    /// Lower bound on costs with this lane loss.
    fn lower(&self, loss: R) -> i64 {
        let loss = loss.to_f64();
        if loss == f64::INFINITY {
            return i64::MAX;
        }
        let Problem { unit, error, .. } = *self.problem;
        if error == 0.0 {
            // The losses are whole numbers.
            return (loss * unit) as i64;
        }
        // Costs are rounded, too, by less than eight units for each of two leaves.
        let cost = ((loss - error) * unit).floor() as i64;
        cost.max(NOTHING) - 16 * self.problem.task.cost_rounding()
    }

    /// Whether a side of a threshold may be a leaf.
    fn allows_leaf(&self, buffers: &Buffers<I, R>, cut: usize, side: usize) -> bool {
        let (width, scan) = (self.width(), &buffers.scan);
        let minima = &self.problem.minima;
        let enough = |(v, &least): (usize, &i64)| {
            let left = scan.below[cut * width + v].to_i64();
            let part = if side == 0 { left } else { scan.total[v].to_i64() - left };
            part >= least
        };
        (width - minima.len()..).zip(minima).all(enough)
    }

    /// For each row, the lanes whose left side contains it; lanes of one column are adjacent and
    /// ascending.
    fn fill_mask(&self, lanes: impl Iterator<Item = (usize, usize)>, mask: &mut [u16]) {
        let lanes: Vec<(usize, usize)> = lanes.collect();
        let mut first = 0;
        while first < lanes.len() {
            let column = lanes[first].0;
            let n = lanes[first..].iter().take_while(|lane| lane.0 == column).count();
            let order = self.node.rows.in_order(column);
            let mut at = 0;
            for l in first..=first + n {
                // The lanes with this or a higher threshold.
                let bits = ((1u32 << (first + n)) - (1u32 << l)) as u16;
                let end =
                    if l < first + n { self.cuts.below[lanes[l].1] as usize } else { order.len() };
                for &r in &order[at..end] {
                    let entry = &mut mask[r as usize];
                    *entry = if first == 0 { bits } else { *entry | bits };
                }
                at = end;
            }
            first += n;
        }
    }

    /// Least exact cost of a side of a lane as a leaf and with one split, over the columns that may
    /// have the best split.
    fn exactly(
        &self,
        lane: usize,
        column: usize,
        cut: usize,
        side: usize,
        buffers: &Buffers<I, R>,
    ) -> Side {
        let Pass { problem, node, cuts, .. } = self;
        let Problem { task, table, price, error, .. } = problem;
        let (order, below) = (node.rows.in_order(column), cuts.below[cut] as usize);
        let rows = if side == 0 { &order[..below] } else { &order[below..] };
        let (mut total, mut all, mut floor) = (vec![0i64; table.channels], 0, 0);
        for &r in rows {
            add(&mut total, table.record(r));
            all += table.sizes[r as usize];
            floor += table.floors[r as usize];
        }
        let allowed = problem.allows_sums(&total, all);
        let leaf = if allowed { task.leaf_cost(&total) - floor } else { i64::MAX };
        let best = buffers.minima.best[side][lane].to_f64();
        let mut split = i64::MAX;
        let (mut sums, mut rest) = (total.clone(), total.clone());
        for (k, of_column) in buffers.minima.columns.iter().enumerate() {
            let loss = of_column[side][lane].to_f64();
            if loss == f64::INFINITY || loss > best + 2.0 * error {
                continue;
            }
            sums.fill(0);
            let (mut at, mut part) = (0, 0);
            for cut in cuts.of(k) {
                let before = part;
                for &r in &node.rows.in_order(k)[at..cuts.below[cut] as usize] {
                    let left = buffers.mask[r as usize] >> lane & 1 == 1;
                    if left == (side == 0) {
                        add(&mut sums, table.record(r));
                        part += table.sizes[r as usize];
                    }
                }
                at = cuts.below[cut] as usize;
                if part == before {
                    continue;
                }
                rest.iter_mut().zip(&total).zip(&sums).for_each(|((r, all), v)| *r = all - v);
                if !problem.allows_sums(&sums, part) || !problem.allows_sums(&rest, all - part) {
                    continue;
                }
                split = split.min(task.leaf_cost(&sums) + task.leaf_cost(&rest) - floor);
            }
        }
        [leaf, split.plus(*price)]
    }

    /// The thresholds that remain between the evaluated ones.
    fn rest(&self, open: &[Interval], lanes: &[Lane], found: &Found) -> Vec<Interval> {
        let mut rest = Vec::new();
        let mut lanes = lanes.iter().peekable();
        for (at, interval) in open.iter().enumerate() {
            let Interval { column, mut first, end, mut left, .. } = *interval;
            let mut is_left_out = false;
            while let Some(lane) = lanes.next_if(|lane| lane.interval == at) {
                let Some([one, two]) = lane.sides else {
                    is_left_out = true;
                    continue;
                };
                let right = greater(two, interval.right);
                self.push(&mut rest, (column, first, lane.cut), (left, right), found);
                (first, left) = (lane.cut + 1, greater(one, left));
            }
            if !is_left_out {
                self.push(&mut rest, (column, first, end), (left, interval.right), found);
            }
        }
        rest
    }
}
