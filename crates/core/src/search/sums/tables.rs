//! Lattices from exact sums.
//!
//! The exact sums of all itemsets take one pass over the rows. Then the cells are evaluated one by
//! one, and no row is read again. Lanes are faster for finding the best tree, unless they cannot
//! separate its cost from many others, because every near tie takes further passes over rows. To
//! find the best tree with each column at the root, lanes would need several lattices per column.

use crate::data::{Sample, events_of, rows_of};
use crate::search::lattice::{self, Query, Solved, mostly_visits};
use crate::search::nodes::Found;
use crate::search::partial::costs::Costs;
use crate::search::partial::fill::{Adder, BLOCK, Block};
use crate::search::partial::{MOST_DEPTH, Shape, Table};
use crate::search::{Monitor, Precision, Settings, Stop, threads};
use crate::task::LaneTask;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of row visits per cell of a lattice from which exact sums are faster for finding the best
/// tree with each column at the root.
const VISITS_PER_CELL: f64 = 2.0;

/// The best trees of a lattice with at most `MOST_DEPTH` levels, if exact sums fit into `room`
/// bytes.
pub fn solve<T: LaneTask>(
    task: &T,
    sample: &Sample,
    query: Query,
    settings: &Settings,
    room: usize,
    monitor: &Monitor,
) -> Result<Option<Solved>, Stop> {
    with_costs(task, sample, query.levels(sample), settings, room, monitor, |costs| {
        let found: Vec<_> = query.budgets.iter().map(|&budget| costs.best(budget)).collect();
        let lower = found.iter().map(|found| found.cost).collect();
        Solved { found, lower, root_values: costs.root_values(query.leaves()), slack: 0.0 }
    })
}

/// The best tree with each column at the root (`None` if there is none), if exact sums save row
/// visits and fit into `room` bytes.
pub fn each_root<T: LaneTask>(
    task: &T,
    sample: &Sample,
    query: Query,
    settings: &Settings,
    room: usize,
    monitor: &Monitor,
) -> Result<Option<Vec<Option<Found>>>, Stop> {
    let depth = query.levels(sample);
    let by_switch = settings.switches.precision.map(|precision| precision == Precision::Exact);
    let pay = || mostly_visits(sample, depth, VISITS_PER_CELL);
    if !(2..=MOST_DEPTH).contains(&depth) || !by_switch.unwrap_or_else(pay) {
        return Ok(None);
    }
    let columns = 0..sample.n_columns();
    with_costs(task, sample, depth, settings, room, monitor, |costs| {
        columns.map(|column| costs.best_below(column, query.leaves())).collect()
    })
}

/// Calls `ask` with the costs of all cells, if exact sums fit into `room` bytes.
fn with_costs<T: LaneTask, V>(
    task: &T,
    sample: &Sample,
    depth: usize,
    settings: &Settings,
    room: usize,
    monitor: &Monitor,
    ask: impl FnOnce(&Costs<T>) -> V,
) -> Result<Option<V>, Stop> {
    let shape = Shape {
        n_features: sample.n_columns(),
        depth,
        channels: sample.channels,
        flipped: vec![false; sample.n_columns()],
        task: 0,
    };
    let n_blocks = sample.n_rows().div_ceil(BLOCK);
    let n_threads = settings.threads().min(n_blocks);
    // The costs of the cells need less memory than a thread does.
    let each = Adder::bytes(&shape);
    if shape.bytes().saturating_add(each.saturating_mul(n_threads)) > room {
        return Ok(None);
    }
    let Ok(mut table) = Table::new(shape.clone(), None) else { return Ok(None) };
    lattice::make_sure(each.saturating_mul(n_threads));
    let (next, shared) = (AtomicUsize::new(0), Mutex::new(&mut table));
    let mut adders: Vec<Adder> = (0..n_threads).map(|_| Adder::default()).collect();
    let channels = sample.channels;
    threads::run_all(&mut adders, &|adder: &mut Adder| {
        loop {
            let first = next.fetch_add(1, Ordering::Relaxed) * BLOCK;
            if first >= sample.n_rows() {
                return Ok(());
            }
            let block = Block {
                n_rows: BLOCK.min(sample.n_rows() - first),
                words: sample.words(),
                row: |r: usize| sample.row(first + r),
                write: |r: usize, lanes: &mut [i64]| {
                    let r = first + r;
                    lanes[..channels].copy_from_slice(sample.statistics(r));
                    let size = sample.size(r);
                    lanes[channels..].copy_from_slice(&[rows_of(size), events_of(size)]);
                },
                backend: settings.backend(),
                monitor,
            };
            adder.sum(&shape, block)?;
            adder.pour(&mut shared.lock().expect("no panic while locked"));
        }
    })?;
    let (of, smallest) = ((&sample.columns[..], &sample.tested[..]), settings.limits.smallest());
    Ok(Some(ask(&Costs::new(task, &table, of, depth, smallest, monitor)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::task::accuracy::Accuracy;
    use crate::task::{ScalarTask, Statistics};
    use crate::tree::Tree;

    #[test]
    fn exact_sums_find_what_the_lanes_of_a_lattice_do() {
        let (n, p) = (40, 4);
        let bit = |r: usize, c: usize| ((r * 37 + c * r * r + c) % 11).is_multiple_of(3);
        let bytes: Vec<u8> =
            (0..n).flat_map(|r| (0..p).map(move |c| u8::from(bit(r, c)))).collect();
        let labels: Vec<usize> = (0..n).map(|r| usize::from(bit(r, 0) ^ bit(r, 2))).collect();
        let task = Accuracy::new(&labels, 2, None, 0.03, 8).unwrap();
        let matrix = BinaryMatrix::from_bytes(n, p, &bytes).unwrap();
        let sample = Sample::new(&matrix, task.statistics(), 2);
        let never = || false;
        let monitor = Monitor::new(None, &never);
        let mut settings = Settings::default();
        let pool = lattice::Pool::new(settings.bytes());
        for budgets in [&[usize::MAX][..], &[4, 8]] {
            let query = Query { depth: 3, budgets, cutoff: i64::MAX };
            let room = settings.bytes();
            let share = pool.share(room);
            let precision = Precision::Double;
            let lanes =
                lattice::solve(&task, &sample, query, precision, &settings, share, &monitor)
                    .unwrap();
            settings.switches.precision = Some(Precision::Exact);
            let exact = solve(&task, &sample, query, &settings, room, &monitor).unwrap().unwrap();
            assert_eq!(lanes.slack, 0.0);
            assert_eq!(lanes.root_values, exact.root_values);
            let trees = |solved: &Solved| -> Vec<(i64, Tree)> {
                solved.found.iter().map(|f| (f.cost, f.tree.clone())).collect()
            };
            assert_eq!(trees(&lanes), trees(&exact));
            let eight = Query { budgets: &[8], ..query };
            let each = each_root(&task, &sample, eight, &settings, room, &monitor);
            let each: Vec<Found> = each.unwrap().unwrap().into_iter().flatten().collect();
            let price = task.split_price();
            let values: Vec<f64> = each.iter().map(|f| (f.cost - price) as f64).collect();
            assert_eq!(values, exact.root_values);
            let best = each.iter().min_by_key(|f| (f.cost, f.tree.n_leaves())).unwrap();
            assert_eq!(Some(&(best.cost, best.tree.clone())), trees(&exact).last());
        }
    }
}
