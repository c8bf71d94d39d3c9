//! The best tree of a table and its certificate.

use super::costs::Costs;
use super::fill::Records;
use super::{MOST_DEPTH, Table};
use crate::data::Column;
use crate::error::Error;
use crate::search::certificate::{MEET, Measured};
use crate::search::nodes::{Allowed, Found as Best, NOTHING};
use crate::search::resolve::certified;
use crate::search::root::{About, Scale, Search};
use crate::search::sums::SumScale;
use crate::search::{Checked, Monitor, Settings, Solution, Status, Stop, too_wide};
use crate::task::{LaneTask, Placed, ScalarTask};
use crate::tree::Tree;

/// The best tree is assumed to lose at least this share of the loss of all rows in one leaf.
const ROOM: f64 = 1.0 / 64.0;

/// Number of rows of each record in each leaf of a tree; leaves are counted in preorder.
#[derive(Clone, Debug, Default)]
pub struct Leaves {
    /// The record of each entry.
    pub record: Vec<usize>,
    /// The leaf of each entry.
    pub leaf: Vec<usize>,
    /// Number of rows of the record in the leaf.
    pub count: Vec<i64>,
}

/// Result of a search over a table.
#[derive(Clone, Debug)]
pub struct Found {
    /// The best tree.
    pub tree: Tree,
    cost: i64,
    lower: i64,
    /// Least cost of trees with fewer leaves; `i64::MAX` if there are none.
    fewer: i64,
    stop: Option<Stop>,
    nodes: u64,
}

/// The best tree for a task over the rows of a table.
///
/// # Errors
///
/// If the table does not contain the rows of the records, and for limits that no tree satisfies.
pub fn search<T: LaneTask>(
    task: &T,
    table: &Table,
    records: Records,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Found, Error> {
    check_rows(table, records)?;
    let (total, settings) = (table.of(&[]), checked(table, settings)?);
    let (limits, channels) = (&settings.limits, task.channels());
    let flipped = table.shape.flipped.iter().enumerate();
    let columns: Vec<Column> =
        flipped.map(|(feature, &flipped)| Column { feature, flipped }).collect();
    let leaf = task.leaf_cost(&total[..channels]);
    let mut best = Best { cost: leaf, tree: Tree::leaf() };
    let (mut stop, mut lower, mut fewer) = (None, leaf, i64::MAX);
    let deepest = limits.max_depth.min(table.shape.n_features);
    // Smaller depths take little time, and their trees remain if a limit ends the deepest.
    for depth in 1..=deepest {
        let of = (&columns[..], &[][..]);
        match Costs::new(task, table, of, depth, limits.smallest(), monitor) {
            Ok(costs) => {
                best = costs.best(limits.most_leaves());
                lower = best.cost;
                let leaves = best.tree.n_leaves();
                fewer = if leaves > 1 { costs.least(leaves - 1).0 } else { i64::MAX };
            }
            Err(reason) => {
                (stop, lower) = (Some(reason), NOTHING);
                break;
            }
        }
    }
    let Best { cost, tree } = best;
    Ok(Found { tree, cost, lower, fewer, stop, nodes: monitor.nodes() })
}

/// The result with its certificate. The objective is computed from the rows in the leaves of the
/// tree. If these were not counted, it comes from the sums, and is right to within the resolution
/// of the task.
///
/// # Errors
///
/// If the values span too wide a range for a certificate, or if the sums alone do not resolve the
/// objective.
pub fn certify<T: LaneTask>(
    task: &T,
    table: &Table,
    records: Records,
    settings: &Settings,
    monitor: &Monitor,
    found: &Found,
    leaves: Option<&Leaves>,
) -> Result<Solution, Error> {
    check_rows(table, records)?;
    let (total, settings) = (table.of(&[]), checked(table, settings)?);
    let Found { tree, cost, lower, fewer, stop, nodes } = found.clone();
    monitor.count(nodes);
    let by_cost = || {
        // The search charges rounded penalties, whereas the objective contains the exact penalties.
        let (splits, least) = (tree.n_leaves() as i64 - 1, task.least_objective(tree.n_leaves()));
        let loss = task.objective_of_cost(cost - task.split_price() * splits);
        Measured::plain((loss + (least - task.least_objective(1))).max(least))
    };
    let measured = leaves.map_or_else(by_cost, |Leaves { record, leaf, count }| {
        let rows = Placed::counted(record, leaf, count, tree.n_leaves());
        let Measured { objective, magnitude } = task.objective(rows);
        let tests = task.tree_price(&tree, rows);
        Measured { objective: objective + tests, magnitude: magnitude + tests }
    });
    let measure = |_: &Tree| measured;
    let channels = task.channels();
    let scale = SumScale::new(task, &measure, &total[..channels], settings.limits.allowed());
    let about = About {
        n_distinct_rows: records.n_records(),
        n_columns: table.shape.n_features,
        kernel: "partial-sums".into(),
    };
    let n_leaves = tree.n_leaves();
    let search = Search::new(&scale, &settings, monitor, (cost, tree), lower);
    let mut solution = search.finish(stop, about);
    let perfect = task.least_objective(n_leaves);
    // The objective from sums alone may hide a loss that the sums do not resolve.
    let fits = leaves.is_some() && n_leaves > 1 && measured.meets(perfect);
    if solution.status == Status::Unresolved && fits {
        // Trees with the same number of leaves pay the same penalty, and trees with fewer leaves
        // are bounded by the table.
        let lower = perfect.min(scale.bound(fewer));
        solution = certified(solution, measured, lower, &settings, monitor);
    }
    let unresolved = solution.status == Status::Unresolved;
    if leaves.is_none() {
        let resolution = task.resolution(settings.limits.allowed());
        let objective = solution.objective;
        if unresolved || !resolves(task, records, objective, resolution) {
            let gap = f64::max(resolution, objective - solution.lower_bound);
            return Err(too_coarse(task.widest(), objective, gap));
        }
    } else if unresolved {
        return Err(too_wide(task.widest(), solution.objective, solution.lower_bound));
    }
    Ok(solution)
}

/// The error for sums that give an objective only to within `gap`.
fn too_coarse((name, range): (&'static str, String), objective: f64, gap: f64) -> Error {
    let reason = format!(
        "give the objective {objective:e} to within {gap:.1e} only, too little for a certificate; \
         {name} has values {range}"
    );
    Error::invalid("sums", reason)
}

/// Whether sums with this resolution are fine enough to give this objective without the rows of the
/// leaves. If splits cost something, the resolution must be small compared with the objective. If
/// they are free, it must be small compared with the loss of all rows in one leaf, and a smaller
/// loss may be taken for none. A single leaf that is perfect needs no resolution.
fn resolves<T: LaneTask>(task: &T, records: Records, objective: f64, resolution: f64) -> bool {
    if resolution == 0.0 {
        return true;
    }
    let root = of_one_leaf(task, records.n_records(), records.counts);
    let prices = T::PRICED || task.least_objective(2) > task.least_objective(1);
    let magnitude = if prices { objective.abs() } else { root.magnitude };
    let error = Measured { objective: resolution, magnitude };
    root.meets(task.least_objective(1)) || error.meets(0.0)
}

/// The task in the finest units, if sums over so many rows may not resolve the best tree in its own
/// units. Otherwise the units of a lattice are kept, so that the same trees are equally good as
/// there.
pub fn finest<T: LaneTask>(task: &T, counts: Option<&[i64]>, max_leaves: usize) -> Option<T> {
    let n_records = task.statistics().len() / task.channels().max(1);
    let Measured { objective, magnitude } = of_one_leaf(task, n_records, counts);
    let resolution = task.resolution(Allowed::of(MOST_DEPTH, max_leaves));
    if resolution <= ROOM * MEET * magnitude {
        return None;
    }
    let mut finest = task.finer(objective)?;
    while let Some(finer) = finest.finer(objective) {
        finest = finer;
    }
    Some(finest)
}

/// Objective of all rows of the records in one leaf.
fn of_one_leaf<T: ScalarTask>(task: &T, n_records: usize, counts: Option<&[i64]>) -> Measured {
    let record: Vec<usize> = (0..n_records).collect();
    let count = counts.map_or_else(|| vec![1; n_records], <[i64]>::to_vec);
    task.objective(Placed::counted(&record, &vec![0; n_records], &count, 1))
}

/// The settings, after checking their limits against the rows of a table.
fn checked(table: &Table, settings: &Settings) -> Result<Checked, Error> {
    let (counts, depth) = (&table.of(&[])[table.shape.channels..], settings.limits.max_depth);
    if depth > table.shape.depth {
        let reason = format!("{depth} is more than the depth of the sums, {}", table.shape.depth);
        return Err(Error::invalid("max_depth", reason));
    }
    settings.checked(counts[0] as usize, counts[1] as usize)
}

/// Rejects a table that does not contain every row of the records exactly once.
fn check_rows(table: &Table, records: Records) -> Result<(), Error> {
    let count = |record: usize| records.counts.map_or(1, |counts| counts[record]);
    let n_rows: i64 = (0..records.n_records()).map(count).sum();
    let held = table.n_rows();
    if held != n_rows {
        let reason = format!("hold {held} rows, the outcomes are those of {n_rows}");
        return Err(Error::invalid("sums", reason));
    }
    let channels = records.channels;
    let mut total = vec![0i64; channels];
    for (record, statistics) in records.statistics.chunks_exact(channels.max(1)).enumerate() {
        let add = |(sum, v): (&mut i64, &i64)| *sum = sum.wrapping_add(v * count(record));
        total.iter_mut().zip(statistics).for_each(add);
    }
    if total != table.of(&[])[..channels] {
        let reason = "are not those of the outcomes: rows have changed, or were counted twice";
        return Err(Error::invalid("sums", reason));
    }
    Ok(())
}
