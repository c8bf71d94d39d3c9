//! The whole front of two components, both better when smaller, in two phases.
//!
//! The first phase finds the supported points, which are corners of the convex hull, by minimising
//! weighted sums. The second phase looks between two neighbours p and q, in the triangle below the
//! corner (max, max), the only place for a point that neither dominates (Ulungu & Teghem 1995).
//! Only the points of subproblems within that triangle are listed.

use super::engine::{Engine, Point};
use super::node::{FrontNode, Pace};
use super::points::{Bounds, above};
use super::shallow::SHALLOW;
use super::weighing::Weights;
use crate::search::Stop;
use crate::task::{ANY, FrontTask};
use std::sync::Arc;

/// The front found so far, by ascending first component.
pub(super) type Stairs = Vec<Point<2>>;

/// All non-dominated points of trees of at most `depth`; if the search must stop, `stairs` contains
/// what was found.
pub(super) fn front<T: FrontTask<2>>(
    engine: &mut Engine<T, 2>,
    root: &Arc<FrontNode<2>>,
    depth: usize,
    stairs: &mut Stairs,
) -> Result<(), Stop> {
    let everything = Bounds { value: f64::INFINITY, window: [ANY; 2], leaves: engine.max_leaves };
    for point in engine.points(root, 0, &everything)? {
        stairs.push(point);
    }
    staircase(stairs);
    let depth = depth.min(root.sample.n_columns());
    if depth == 0 || stairs.len() < 2 {
        return Ok(());
    }
    if engine.max_leaves != u32::MAX {
        // Supported points of the relaxed problem may have too many leaves, so list everything.
        engine.set_weights(Weights { components: [1.0; 2], leaf: 0.0 });
        let columns = columns(engine, root, depth, f64::INFINITY)?;
        for (_, c) in columns {
            if let Some([yes, no]) = engine.child_points(root, c, depth, &everything)? {
                insert_pairs(engine, root, c, [&yes, &no], &everything, stairs)?;
            }
        }
        return Ok(());
    }
    let (first, last) = (stairs[0], stairs[stairs.len() - 1]);
    let mut left = first;
    let mut open = vec![last];
    while let Some(&q) = open.last() {
        let p = left;
        let found =
            if chord(&p, &q).is_some() { below(engine, root, depth, &p, &q)? } else { None };
        match found {
            Some(point) => {
                insert(stairs, point);
                open.push(point);
            }
            None => {
                // Both use the same weights, so the second phase finds its bounds in the memo.
                between(engine, root, depth, p.cost, q.cost, stairs)?;
                left = q;
                open.pop();
            }
        }
    }
    Ok(())
}

/// Weights under which two points have the same cost, if neither dominates the other.
fn chord(p: &Point<2>, q: &Point<2>) -> Option<Weights<2>> {
    let (a, b) = (q.cost[0] - p.cost[0], p.cost[1] - q.cost[1]);
    (a > 0 && b > 0).then_some(Weights { components: [b as f64, a as f64], leaf: 0.0 })
}

/// The tree furthest below the line through two points, if there is one.
fn below<T: FrontTask<2>>(
    engine: &mut Engine<T, 2>,
    root: &Arc<FrontNode<2>>,
    depth: usize,
    p: &Point<2>,
    q: &Point<2>,
) -> Result<Option<Point<2>>, Stop> {
    let Some(weights) = chord(p, q) else { return Ok(None) };
    engine.set_weights(weights);
    let least = engine.least(root, depth, f64::INFINITY)?;
    let exact = |c: &[i64; 2]| {
        let (a, b) = (q.cost[0] - p.cost[0], p.cost[1] - q.cost[1]);
        i128::from(c[0]) * i128::from(b) + i128::from(c[1]) * i128::from(a)
    };
    Ok(least.tree.filter(|z| exact(&z.cost) < exact(&p.cost)))
}

/// Points strictly between two neighbouring supported points.
fn between<T: FrontTask<2>>(
    engine: &mut Engine<T, 2>,
    root: &Arc<FrontNode<2>>,
    depth: usize,
    p: [i64; 2],
    q: [i64; 2],
    stairs: &mut Stairs,
) -> Result<(), Stop> {
    let (a, b) = (q[0] - p[0], p[1] - q[1]);
    if a < 2 || b < 2 {
        return Ok(());
    }
    let weights = Weights { components: [b as f64, a as f64], leaf: 0.0 };
    engine.set_weights(weights);
    let rounding = engine.rounding();
    // Every point that no known point dominates lies below an inner corner of the stairs.
    let highest = |stairs: &Stairs| {
        let steps = stairs.iter().filter(|s| p[0] <= s.cost[0] && s.cost[0] <= q[0]);
        let steps: Vec<[i64; 2]> = steps.map(|s| s.cost).collect();
        let corner = |w: &[[i64; 2]]| weights.of(&[w[1][0] - 1, w[0][1] - 1]);
        steps.windows(2).map(corner).fold(f64::NEG_INFINITY, f64::max) + rounding
    };
    let window = [(ANY.0, q[0] - 1), (ANY.0, p[1] - 1)];
    let columns = columns(engine, root, depth, above(highest(stairs), rounding))?;
    for (value, c) in columns {
        let bounds = Bounds { value: highest(stairs), window, leaves: engine.max_leaves };
        if value > bounds.value {
            break;
        }
        if let Some([yes, no]) = engine.child_points(root, c, depth, &bounds)? {
            insert_pairs(engine, root, c, [&yes, &no], &bounds, stairs)?;
        }
    }
    Ok(())
}

/// Columns of the root, by the least weighted cost of a tree that starts with them; costs above
/// `within` are only bounds.
pub(super) fn columns<T: FrontTask<K>, const K: usize>(
    engine: &mut Engine<T, K>,
    root: &Arc<FrontNode<K>>,
    depth: usize,
    within: f64,
) -> Result<Vec<(f64, usize)>, Stop> {
    let (n, price) = (root.sample.n_columns(), engine.price());
    let mut order = Vec::with_capacity(n);
    if depth <= SHALLOW {
        let (least, _) = engine.shallow(root, depth)?;
        order.extend(least.sides.iter().enumerate().map(|(c, [no, yes])| (no + yes + price, c)));
    } else if let Some(values) = engine.by_column(root, depth)? {
        order.extend(values.into_iter().zip(0..));
    } else {
        // The best trees of two levels are found without a cut, so every side is needed.
        if depth == SHALLOW + 1 {
            engine.look_ahead(root, depth, 0..n)?;
        }
        for c in 0..n {
            engine.monitor.check()?;
            let [no, yes] = [false, true].map(|side| engine.child(root, c, side));
            let [no, yes] = engine.least_of_sides([&no, &yes], depth - 1, within)?;
            order.push((yes + no + price, c));
        }
    }
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(order)
}

/// Inserts the admissible pairs of points of the two sides.
fn insert_pairs<T: FrontTask<2>>(
    engine: &mut Engine<T, 2>,
    root: &FrontNode<2>,
    c: usize,
    [yes, no]: [&[Point<2>]; 2],
    bounds: &Bounds<2>,
    stairs: &mut Stairs,
) -> Result<(), Stop> {
    let mut pace = Pace::new(engine.monitor);
    let of_no: Vec<f64> = no.iter().map(|p| engine.value(p)).collect();
    let held = size_of_val(yes) + size_of_val(no);
    for a in yes {
        let left = bounds.value - engine.value(a) - engine.price();
        let within = of_no.partition_point(|&value| value <= left);
        pace.spend(within)?;
        for b in &no[..within] {
            let cost = engine.task.combine(&a.cost, &b.cost);
            if bounds.admit(&cost, a.leaves + b.leaves) && is_new(stairs, &cost) {
                engine.check(held + size_of_val(&stairs[..]))?;
                let point = engine.join(&root.sample, c, a, b);
                insert(stairs, point);
            }
        }
    }
    Ok(())
}

/// Keeps the points that no other point dominates, regardless of leaves, by ascending first
/// component.
pub(super) fn staircase(points: &mut Stairs) {
    points.sort_by_key(|p| (p.cost, p.leaves));
    let mut least = i64::MAX;
    points.retain(|p| {
        let better = p.cost[1] < least;
        least = least.min(p.cost[1]);
        better
    });
}

/// Whether no point of the stairs is at least as good.
fn is_new(stairs: &Stairs, cost: &[i64; 2]) -> bool {
    // The last point whose first component is no larger has the smallest second component.
    let at = stairs.partition_point(|p| p.cost[0] <= cost[0]);
    at == 0 || stairs[at - 1].cost[1] > cost[1]
}

fn insert(stairs: &mut Stairs, point: Point<2>) {
    if is_new(stairs, &point.cost) {
        let at = stairs.partition_point(|p| p.cost[0] < point.cost[0]);
        let until = at + stairs[at..].iter().take_while(|p| p.cost[1] >= point.cost[1]).count();
        stairs.splice(at..until, [point]);
    }
}
