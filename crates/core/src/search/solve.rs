//! The entry point: from rows and a task to a certified tree.

use super::lattice::{self, Found};
use super::{Monitor, Settings, Solution, Status, Stop, TracePoint};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::task::{LaneTask, Superadditive};
use crate::tree::{LEAF, Tree};

/// Bytes of lattice tables allowed without a memory limit.
const DEFAULT_TABLE_BYTES: usize = 600 << 20;

impl Settings {
    /// Rejects impossible settings for `n_rows` rows.
    pub fn check(&self, n_rows: usize) -> Result<(), Error> {
        let invalid = |name, reason: &str| Err(Error::invalid(name, reason));
        if n_rows == 0 {
            return invalid("X", "there are no rows");
        }
        if self.min_leaf == 0 {
            return invalid("min_samples_leaf", "must be at least 1");
        }
        if self.min_leaf > n_rows {
            return invalid("min_samples_leaf", "is larger than the number of rows");
        }
        if self.max_leaves == Some(0) {
            return invalid("max_leaf_nodes", "must be at least 1");
        }
        Ok(())
    }
}

/// The best tree for `task` over `features`, or on a limit the best found and a bound.
pub fn solve<T: LaneTask + Superadditive>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Solution, Error> {
    settings.check(features.n_rows())?;
    if !lattice::fits_channels(task.channels()) {
        return Err(Error::invalid("y", "too many classes for this search (32 at most)"));
    }
    let sample = Sample::new(features, task.statistics(), task.channels());
    let mut search = Search { task, features, sample: &sample, settings, monitor, trace: vec![] };
    Ok(search.run())
}

struct Search<'a, T> {
    task: &'a T,
    features: &'a BinaryMatrix,
    sample: &'a Sample,
    settings: &'a Settings,
    monitor: &'a Monitor<'a>,
    trace: Vec<TracePoint>,
}

impl<T: LaneTask + Superadditive> Search<'_, T> {
    fn run(&mut self) -> Solution {
        let (task, sample) = (self.task, self.sample);
        // Every tree is a coarsening of the partition into distinct rows.
        let floor: i64 = (0..sample.n_rows()).map(|r| task.leaf_cost(sample.statistics(r))).sum();
        let mut best = Found { cost: task.leaf_cost(&sample.total()), tree: Tree::leaf() };
        self.record(&best, floor);
        let outcome = self.improve(&mut best, floor);
        let (cost_bound, status) = match outcome {
            Ok(()) => (i64::MAX, Status::Optimal),
            Err(Stop::Time) => (floor, Status::TimeLimit),
            Err(Stop::Memory) => (floor, Status::MemoryLimit),
            Err(Stop::Interrupt) => (floor, Status::Interrupted),
        };
        self.record(&best, cost_bound);
        let objective = self.objective(&best.tree);
        if let (Some(planted), Status::Optimal) = (self.settings.planted, status) {
            assert!(
                objective <= planted + 1e-9 * planted.abs().max(1.0),
                "a tree of objective {planted} was pruned: {objective} was returned as optimal"
            );
        }
        let precision = lattice::choose_precision(task, sample, 1, self.settings);
        let backend = self.settings.backend.unwrap_or_else(|| crate::simd::Backend::available()[0]);
        Solution {
            tree: best.tree,
            objective,
            lower_bound: if status == Status::Optimal {
                objective
            } else {
                self.bound(cost_bound).min(objective)
            },
            status,
            nodes: self.monitor.nodes(),
            n_distinct_rows: sample.n_rows(),
            n_columns: sample.n_columns(),
            trace: std::mem::take(&mut self.trace),
            kernel: format!("{}-{:?}", backend.name(), precision).to_lowercase(),
        }
    }

    /// Shallow trees first where they are nearly free, then the depth asked for.
    fn improve(&mut self, best: &mut Found, floor: i64) -> Result<(), Stop> {
        let settings = self.settings;
        let budget = settings.max_leaves.filter(|&l| l < full_leaves(settings.max_depth));
        let max_depth = settings.max_depth.min(budget.map_or(usize::MAX, |l| l - 1));
        let single_leaf = best.cost;
        if single_leaf <= floor.saturating_add(self.task.split_price()) {
            return Ok(());
        }
        let mut warm_ups = Vec::new();
        if max_depth > 3 && settings.trivial_bound {
            warm_ups.extend([2, 3]);
        }
        for depth in warm_ups {
            // Depth three pays for itself only when the trivial bound is within reach.
            if depth == 3 && (best.cost - floor) as f64 > 0.25 * (single_leaf - floor) as f64 {
                break;
            }
            let allowed = budget.unwrap_or(usize::MAX).min(full_leaves(depth));
            let budgets = [if allowed == full_leaves(depth) { usize::MAX } else { allowed }];
            let shallow = self.subproblem(self.sample, depth, &budgets)?.remove(0);
            if shallow.cost < best.cost {
                *best = shallow;
                self.record(best, floor);
            }
            let ties = self.task.tie_price() * (best.tree.n_leaves() as i64 - 1);
            if best.cost - ties <= floor {
                return Ok(());
            }
        }
        let budgets = [budget.unwrap_or(usize::MAX)];
        let found = self.subproblem(self.sample, max_depth, &budgets)?.remove(0);
        if found.cost < best.cost {
            *best = found;
        }
        Ok(())
    }

    /// Exact optima of a sample for each budget: one lattice, or all root splits above it.
    fn subproblem(
        &self,
        sample: &Sample,
        depth: usize,
        budgets: &[usize],
    ) -> Result<Vec<Found>, Stop> {
        self.monitor.check()?;
        let depth = depth.min(sample.n_columns());
        let (settings, channels) = (self.settings, self.task.channels() + 1);
        let bytes = lattice::table_bytes(sample.n_columns(), depth, channels, settings.n_threads);
        let fits = bytes <= settings.memory_limit.unwrap_or(DEFAULT_TABLE_BYTES);
        if depth <= lattice::MAX_DEPTH && (fits || depth <= 1) {
            return lattice::solve(self.task, sample, depth, budgets, settings, self.monitor);
        }
        let unlimited = budgets == [usize::MAX];
        let most = budgets.iter().copied().max().unwrap_or(1);
        let child_budgets: Vec<usize> =
            if unlimited { vec![usize::MAX] } else { (1..most).collect() };
        let leaf = lattice::solve(self.task, sample, 0, &[1], settings, self.monitor)?.remove(0);
        let mut best = vec![leaf; budgets.len()];
        for c in 0..sample.n_columns() {
            let yes = self.subproblem(&sample.restrict(c, true), depth - 1, &child_budgets)?;
            let no = self.subproblem(&sample.restrict(c, false), depth - 1, &child_budgets)?;
            let column = sample.columns[c];
            for (best, &budget) in best.iter_mut().zip(budgets) {
                let shares: Vec<(usize, usize)> = if unlimited {
                    vec![(0, 0)]
                } else {
                    (1..budget).map(|a| (a - 1, budget - a - 1)).collect()
                };
                for (a, b) in shares {
                    let (yes, no) = (&yes[a], &no[b]);
                    if yes.cost == i64::MAX || no.cost == i64::MAX {
                        continue;
                    }
                    let cost = self.task.combine(&yes.cost, &no.cost);
                    let leaves = yes.tree.n_leaves() + no.tree.n_leaves();
                    if (cost, leaves) < (best.cost, best.tree.n_leaves()) {
                        let (l, r) = (&yes.tree, &no.tree);
                        let (l, r) = if column.flipped { (r, l) } else { (l, r) };
                        *best = Found { cost, tree: Tree::split(column.feature, l, r) };
                    }
                }
            }
        }
        Ok(best)
    }

    fn record(&mut self, best: &Found, cost_bound: i64) {
        let objective = self.objective(&best.tree);
        self.trace.push(TracePoint {
            seconds: self.monitor.seconds(),
            objective,
            lower_bound: self.bound(cost_bound).min(objective),
        });
    }

    /// The objective that corresponds to a bound on the cost, rounded down by more than
    /// the fixed point can be off.
    fn bound(&self, cost: i64) -> f64 {
        let value = self.task.objective_of_cost(cost);
        value - 1e-9 * value.abs().max(1.0)
    }

    /// The objective of a tree, from the rows.
    fn objective(&self, tree: &Tree) -> f64 {
        let mut leaf_number = vec![usize::MAX; tree.n_nodes()];
        let mut n_leaves = 0;
        for (node, number) in leaf_number.iter_mut().enumerate() {
            if tree.feature[node] == LEAF {
                *number = n_leaves;
                n_leaves += 1;
            }
        }
        let leaf_of: Vec<usize> = (0..self.features.n_rows())
            .map(|r| leaf_number[tree.leaf_of(self.features, r)])
            .collect();
        self.task.objective(&leaf_of, n_leaves)
    }
}

/// Leaves of a complete tree.
fn full_leaves(depth: usize) -> usize {
    1usize.checked_shl(depth as u32).unwrap_or(usize::MAX)
}
