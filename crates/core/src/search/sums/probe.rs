//! Searches trees with a promising question at the root before all questions are tried.

use super::nodes::{SumNode, SumNodes};
use crate::search::Stop;
use crate::search::branch::Branch;
use crate::search::lattice;
use crate::search::nodes::{Allowed, Cost, Found, Nodes, Rooted, full_leaves};
use crate::task::LaneTask;
use crate::tree::Tree;
use std::sync::Mutex;

/// Lattices with more effort than this are shared by all threads. With one column per thread, a
/// thread would continue long after another has ended the probe.
const SHARED: f64 = (1u64 << 25) as f64;

/// State that the threads of a probe share.
struct Shared {
    best: Found,
    /// Position in the order of the column at the root of the best tree, counted from 1; 0 if the
    /// tree was known before.
    place: usize,
    /// Number of columns that threads have taken.
    taken: usize,
    end: Result<(), Stop>,
}

/// The best tree among `best` and those with one of the first few columns of `order` at the root.
/// The first tree that attains the cost of the finest partition ends the probe. The result does not
/// depend on the number of threads.
pub fn probe<T: LaneTask>(
    branch: &mut Branch<SumNodes<T>>,
    root: &SumNode,
    depth: usize,
    order: &[usize],
    best: Found,
) -> Result<Found, Stop> {
    let (sample, problem) = (&root.sample, branch.nodes.problem);
    // Two lattices with half the rows each take about a fifth of the time of a lattice one level
    // deeper.
    let few = &order[..(order.len() / 20).max(1).min(order.len())];
    let is_finest = |found: &Found| problem.is_finest(root, found.cost, &found.tree);
    let key = |found: &Found, place| match is_finest(found) {
        true => (i64::MIN, place),
        false => (found.cost, place),
    };
    let prices = branch.nodes.prices(sample);
    // Without prices of columns, a better tree does not shorten the search, unless it is perfect.
    let ties = problem.task.ties(full_leaves(depth));
    let useful = if T::PRICED { i64::MAX } else { root.floor().plus(ties).plus(1) };
    let shared = Mutex::new(Shared { best, place: 0, taken: 0, end: Ok(()) });
    let work = |branch: &mut Branch<SumNodes<T>>| {
        loop {
            let (column, place, cut) = {
                let mut shared = shared.lock().expect("no panic while locked");
                let Some(&column) = few.get(shared.taken) else { return };
                if shared.end.is_err() || is_finest(&shared.best) {
                    return;
                }
                shared.taken += 1;
                (column, shared.taken, shared.best.cost.min(useful))
            };
            let found = with_root(branch, root, (column, prices[column]), depth, cut);
            let mut shared = shared.lock().expect("no panic while locked");
            match found {
                Ok(Some(found)) if key(&found, place) < key(&shared.best, shared.place) => {
                    (shared.best, shared.place) = (found, place);
                }
                Ok(_) => {}
                Err(stop) => shared.end = Err(stop),
            }
        }
    };
    // Two lattices with half of the rows take about as long as one with all rows.
    let effort = lattice::effort(sample, depth - 1);
    let of_all = || few.len() as f64 * effort;
    let n_threads = lattice::useful_threads(of_all, &branch.nodes.settings);
    let workers = match n_threads > 1 && effort < SHARED {
        true => branch.nodes.workers(root, Allowed::of(depth, usize::MAX)),
        false => Vec::new(),
    };
    branch.spread(workers, work);
    let Shared { best, end, .. } = shared.into_inner().expect("no panic while locked");
    end.map(|()| best)
}

/// The best tree with this column at its root, whose price is given, unless it costs `cut` or more.
fn with_root<T: LaneTask>(
    branch: &mut Branch<SumNodes<T>>,
    root: &SumNode,
    (column, price): (usize, i64),
    depth: usize,
    cut: i64,
) -> Result<Option<Found>, Stop> {
    let sample = &root.sample;
    let sides = [false, true].map(|value| branch.nodes.node(sample.restrict(column, value)));
    let to_gain = |value: usize| branch.nodes.leaf(&sides[value]).value - sides[value].floor();
    // Search the side that is harder to solve first, because it may show that the other does not
    // matter.
    let first = usize::from(to_gain(1) > to_gain(0));
    let one = stepwise(branch, &sides[first], depth - 1)?;
    if one.cost.plus(sides[1 - first].floor()) >= cut {
        return Ok(None);
    }
    let other = stepwise(branch, &sides[1 - first], depth - 1)?;
    let cost = one.cost.plus(other.cost).plus(price);
    let trees = if first == 0 { [&one.tree, &other.tree] } else { [&other.tree, &one.tree] };
    let tree = || Tree::on(sample.columns[column], trees);
    Ok((cost < cut).then(|| Found { cost, tree: tree() }))
}

/// The best tree, found by increasingly deep lattices until one attains the cost of the finest
/// partition.
fn stepwise<T: LaneTask>(
    branch: &mut Branch<SumNodes<T>>,
    node: &SumNode,
    depth: usize,
) -> Result<Found, Stop> {
    let mut best = Found { cost: branch.nodes.leaf(node).value, tree: Tree::leaf() };
    for depth in 2.min(depth)..=depth {
        let allowed = Allowed { depth, leaves: full_leaves(depth) };
        let known = branch.solve(node, None, allowed, i64::MAX)?;
        if let Some(tree) = known.tree {
            best = Found { cost: known.value, tree: Tree::clone(&tree) };
        }
        if branch.nodes.problem.is_finest(node, best.cost, &best.tree) {
            break;
        }
    }
    Ok(best)
}
