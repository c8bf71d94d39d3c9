//! Branch and bound above the lattice.
//!
//! As `search::branch`, with real costs and the bounds a task offers: a node that one
//! lattice can solve is solved by it, any other tries every column at its root. Every
//! answer says what is proven, so a search stopped anywhere gives a tree and a bound.

use super::extract::{join, side_records, total_record};
use super::lattice;
use super::{Found, Problem};
use crate::data::Sample;
use crate::search::branch::random_number;
use crate::search::{Monitor, Settings, Stop};
use crate::tree::Tree;
use rustc_hash::FxHashMap;

/// Look-ahead of the order of columns.
const LOOK_AHEAD: usize = 3;

/// Depth left beyond which a greedy split must pay for itself at once.
const PATIENCE: usize = 8;

/// Trees and bounds for each budget of a node; proven where the two meet.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Best tree found.
    pub found: Vec<Found>,
    /// No allowed tree costs less.
    pub lower: Vec<f64>,
    /// Why the search of this node ended early, if it did.
    pub stop: Option<Stop>,
}

/// What is known of a node before any search.
#[derive(Clone, Copy, Debug)]
pub struct Prior {
    /// Cost as a leaf.
    pub leaf: f64,
    /// Least a split costs.
    price: f64,
    /// No tree costs less.
    pub lower: f64,
}

/// Rows (as a hash and their number), remaining depth, budgets (first and last).
type Key = (u128, usize, usize, usize, usize);

/// The search of one problem.
pub struct Branch<'a> {
    problem: &'a Problem<'a>,
    settings: &'a Settings,
    monitor: &'a Monitor<'a>,
    cache: FxHashMap<Key, Answer>,
    cache_bytes: usize,
}

impl<'a> Branch<'a> {
    /// Starts with an empty cache.
    pub fn new(problem: &'a Problem<'a>, settings: &'a Settings, monitor: &'a Monitor<'a>) -> Self {
        Branch { problem, settings, monitor, cache: FxHashMap::default(), cache_bytes: 0 }
    }

    /// Leaf cost, price and bound of many sets of rows.
    ///
    /// A tree is a leaf or pays for a split besides its leaves (look-ahead).
    fn priors(&self, records: &[i64]) -> Result<Vec<Prior>, Stop> {
        let leaf = self.problem.leaf_costs(records)?;
        let price = self.problem.prices(records)?;
        let bound = self.problem.lower_bounds(records)?;
        let prior = |((leaf, price), bound): ((f64, f64), f64)| Prior {
            leaf,
            price,
            lower: leaf.min(bound + price),
        };
        Ok(leaf.into_iter().zip(price).zip(bound).map(prior).collect())
    }

    /// What is known of all rows of `sample`.
    pub fn prior(&self, sample: &Sample) -> Result<Prior, Stop> {
        Ok(self.priors(&total_record(sample))?[0])
    }

    /// Splits that could pay for themselves: the depth beyond which no tree improves.
    fn useful_depth(&self, sample: &Sample, prior: &Prior, depth: usize, most: usize) -> usize {
        let depth = depth.min(sample.n_columns()).min(most - 1);
        let saving = prior.leaf - (prior.lower - prior.price);
        if prior.lower >= prior.leaf {
            return 0;
        }
        // At s splits the penalty is s times as much, the other prices at least nothing.
        let splits = saving / self.problem.penalty;
        if splits < depth as f64 { splits as usize } else { depth }
    }

    /// Deepest lattice on this sample that the memory limit allows.
    fn lattice_depth(&self, sample: &Sample, most_leaves: usize) -> usize {
        let limit = self.settings.bytes();
        let left = limit.saturating_sub(self.cache_bytes);
        let threads = self.settings.threads();
        let fits = |d: &usize| lattice::bytes(sample, *d, most_leaves, threads) <= left;
        let deepest = self.settings.lattice_depth.clamp(1, lattice::MAX_DEPTH);
        (1..=deepest).rev().find(fits).unwrap_or(0)
    }

    fn lattice(
        &self,
        sample: &Sample,
        depth: usize,
        budgets: &[usize],
    ) -> Result<lattice::Solved, Stop> {
        lattice::solve(self.problem, sample, depth, budgets, self.settings, self.monitor)
    }

    /// Greedy tree of best single splits, pruned where a leaf is no worse; what was grown when a
    /// limit passes is kept.
    pub fn greedy(
        &self,
        sample: &Sample,
        prior: Prior,
        depth: usize,
        most: usize,
    ) -> Result<Found, Stop> {
        let leaf = Found { cost: prior.leaf, tree: Tree::leaf() };
        let useless = self.useful_depth(sample, &prior, depth, most) == 0;
        if useless || self.monitor.check_with_grace().is_err() {
            return Ok(leaf);
        }
        let everything: Vec<u32> = (0..sample.n_rows() as u32).collect();
        let sides = self.priors(&side_records(sample, &everything))?;
        let cost = |c: &usize| sides[2 * c].leaf + sides[2 * c + 1].leaf;
        let columns = (0..sample.n_columns()).filter(|c| cost(c) < f64::INFINITY);
        let best = columns.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let Some(c) = best else { return Ok(leaf) };
        if depth > PATIENCE && cost(&c) + prior.price >= leaf.cost {
            return Ok(leaf);
        }
        let yes = self.greedy(&sample.restrict(c, true), sides[2 * c], depth - 1, most - 1)?;
        let rest = most - yes.tree.n_leaves();
        let no = self.greedy(&sample.restrict(c, false), sides[2 * c + 1], depth - 1, rest)?;
        let split = join(sample, c, &yes, &no, prior.price);
        Ok(if split.cost < leaf.cost { split } else { leaf })
    }

    /// Greedy tree that chooses each split by the best tree of so many levels below it.
    pub fn dive(&self, sample: &Sample, depth: usize, levels: usize) -> Result<Found, Stop> {
        let most = usize::MAX;
        let reach = depth.min(levels).min(self.lattice_depth(sample, most).max(1));
        let solved = self.lattice(sample, reach, &[most])?;
        let near = solved.found.into_iter().next().expect("one budget");
        if reach == depth || near.tree.n_nodes() == 1 {
            return Ok(near);
        }
        let root = near.tree.feature[0] as usize;
        let c = sample.columns.partition_point(|column| column.feature < root);
        let price = self.prior(sample)?.price;
        let yes = self.dive(&sample.restrict(c, true), depth - 1, levels)?;
        let no = self.dive(&sample.restrict(c, false), depth - 1, levels)?;
        let far = join(sample, c, &yes, &no, price);
        Ok(if far.cost < near.cost { far } else { near })
    }

    /// Best trees on the rows of `sample` for each budget (ascending, or `[usize::MAX]`).
    ///
    /// `prior` is what is known of the rows. `improved` is told the best tree and the lower
    /// bound of the last budget whenever a column of this node has been dealt with.
    pub fn solve(
        &mut self,
        sample: &Sample,
        prior: Prior,
        depth: usize,
        budgets: &[usize],
        start: Option<Found>,
        improved: &mut dyn FnMut(&Found, f64, f64),
    ) -> Answer {
        let leaf = Found { cost: prior.leaf, tree: Tree::leaf() };
        let most = budgets.iter().copied().max().unwrap_or(1);
        let depth = self.useful_depth(sample, &prior, depth, most);
        if depth == 0 {
            let lower = vec![leaf.cost; budgets.len()];
            return Answer { found: vec![leaf; budgets.len()], lower, stop: None };
        }
        let mut answer = Answer {
            found: vec![leaf; budgets.len()],
            lower: vec![prior.lower; budgets.len()],
            stop: None,
        };
        if let (Some(start), [_]) = (start, budgets) {
            offer(&mut answer, 0, start);
        }
        match self.search(sample, prior, depth, budgets, &mut answer, improved) {
            Ok(()) => answer,
            Err(stop) => Answer { stop: Some(stop), ..answer },
        }
    }

    /// Searches a node that needs it, improving `answer`; an error leaves what was proven.
    fn search(
        &mut self,
        sample: &Sample,
        prior: Prior,
        depth: usize,
        budgets: &[usize],
        answer: &mut Answer,
        improved: &mut dyn FnMut(&Found, f64, f64),
    ) -> Result<(), Stop> {
        self.monitor.check()?;
        let most = budgets.iter().copied().max().unwrap_or(1);
        let reach = self.lattice_depth(sample, most);
        if reach == 0 {
            return Err(Stop::Memory);
        }
        if depth <= reach {
            let solved = self.lattice(sample, depth, budgets)?;
            answer.lower = solved.lower;
            answer.found = solved.found;
            return Ok(());
        }
        let key = self.key(sample, depth, budgets);
        if let Some(known) = self.settings.cache.then(|| self.cache.get(&key)).flatten() {
            answer.clone_from(known);
            return Ok(());
        }
        let n = sample.n_columns();
        let everything: Vec<u32> = (0..sample.n_rows() as u32).collect();
        let sides = self.priors(&side_records(sample, &everything))?;
        let mut order: Vec<usize> = (0..n).collect();
        let values = self.lattice(sample, reach.min(LOOK_AHEAD), &[usize::MAX])?.root_values;
        if !values.is_empty() {
            order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        }
        let unlimited = budgets == [usize::MAX];
        let single = budgets.len() == 1;
        let shares: Vec<usize> = if unlimited { vec![usize::MAX] } else { (1..most).collect() };
        // What is proven of the columns dealt with, and a bound for those still open.
        let mut proven = vec![prior.leaf; budgets.len()];
        let bound_of = |&c: &usize| sides[2 * c].lower + sides[2 * c + 1].lower + prior.price;
        let mut open: Vec<f64> = order.iter().map(bound_of).collect();
        for (at, &c) in order.iter().enumerate() {
            let bound = std::mem::replace(&mut open[at], f64::INFINITY);
            if single && bound >= answer.found[0].cost || bound == f64::INFINITY {
                proven[0] = proven[0].min(bound);
                continue;
            }
            let children = [sample.restrict(c, true), sample.restrict(c, false)];
            // The smaller side first: it is cheaper, and may already rule the column out.
            let first = usize::from(children[1].n_rows() < children[0].n_rows());
            let mut ignore = |_: &Found, _: f64, _: f64| {};
            let mut side = |this: &mut Self, i: usize| {
                let prior = sides[2 * c + i];
                this.solve(&children[i], prior, depth - 1, &shares, None, &mut ignore)
            };
            let one = side(self, first);
            let other = sides[2 * c + 1 - first].lower;
            let bound = one.lower[one.lower.len() - 1] + other + prior.price;
            if single && bound >= answer.found[0].cost && one.stop.is_none() {
                proven[0] = proven[0].min(bound);
                continue;
            }
            let two = side(self, 1 - first);
            let (yes, no) = if first == 0 { (&one, &two) } else { (&two, &one) };
            for (slot, &budget) in budgets.iter().enumerate() {
                let pairs = if unlimited { 0..1 } else { 0..budget - 1 };
                for a in pairs {
                    let b = if unlimited { 0 } else { budget - 2 - a };
                    proven[slot] = proven[slot].min(yes.lower[a] + no.lower[b] + prior.price);
                    let tree = join(sample, c, &yes.found[a], &no.found[b], prior.price);
                    offer(answer, slot, tree);
                }
            }
            let still_open = open.iter().copied().fold(f64::INFINITY, f64::min);
            for (lower, proven) in answer.lower.iter_mut().zip(&proven) {
                *lower = lower.max(proven.min(still_open));
            }
            let last = answer.found.len() - 1;
            improved(&answer.found[last], answer.lower[last], (at + 1) as f64 / n as f64);
            if let Some(stop) = one.stop.or(two.stop) {
                return Err(stop);
            }
        }
        for (lower, (proven, best)) in answer.lower.iter_mut().zip(proven.iter().zip(&answer.found))
        {
            *lower = proven.min(best.cost);
        }
        self.remember(key, answer);
        Ok(())
    }

    fn key(&self, sample: &Sample, depth: usize, budgets: &[usize]) -> Key {
        let hash = sample.ids.iter().fold(0u128, |sum, &r| sum.wrapping_add(random_number(r)));
        (hash, sample.n_rows(), depth, budgets[0], budgets[budgets.len() - 1])
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

/// Keeps the better tree; of equally good ones the smaller.
fn offer(answer: &mut Answer, slot: usize, tree: Found) {
    let best = &mut answer.found[slot];
    if tree.cost < best.cost
        || tree.cost == best.cost && tree.tree.n_leaves() < best.tree.n_leaves()
    {
        *best = tree;
    }
}
