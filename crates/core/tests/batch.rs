//! Trees for tasks with costs from outside, against exhaustive search.

use bristlecone_core::data::BinaryMatrix;
use bristlecone_core::search::batch::{BatchTask, Cells, Statistics, solve};
use bristlecone_core::search::{Monitor, Settings, Solution, Status, Stop};
use bristlecone_core::simd::Backend;
use bristlecone_core::tree::{LEAF, Tree};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[path = "against_oracle/watch.rs"]
mod watch;

use watch::Watch;

/// A small generator (splitmix64), so that the instances never change.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: u64) -> usize {
        (self.next() % n) as usize
    }
}

/// Statistics are weight, sum and sum of squares.
type Cost = fn(&[f64]) -> f64;

fn squared_error(s: &[f64]) -> f64 {
    s[2] - s[1] * s[1] / s[0]
}

/// Neither superadditive nor of one sign.
fn odd(s: &[f64]) -> f64 {
    (s[1] * 3.0 + s[0]).sin() * s[0].sqrt() - 0.3 * s[2]
}

/// Leaves of little weight are forbidden, and so is the root of most instances.
fn heavy(s: &[f64]) -> f64 {
    if s[0] < 4.0 || s[0] > 40.0 { f64::INFINITY } else { squared_error(s) }
}

fn size_price(s: &[f64]) -> f64 {
    0.05 * s[0]
}

struct User {
    leaf: Cost,
    split: Option<Cost>,
    bound: Option<Cost>,
}

fn each(cells: &Cells, out: &mut [f64], f: Cost) {
    assert_eq!(cells.len(), out.len());
    for (i, out) in out.iter_mut().enumerate() {
        let sums: Vec<f64> = (0..cells.channels()).map(|c| cells.channel(c)[i]).collect();
        assert!(sums[0] > 0.0, "an empty cell was handed out");
        *out = f(&sums);
    }
}

impl BatchTask for User {
    fn leaf_costs(&self, cells: &Cells, costs: &mut [f64]) -> Result<(), Stop> {
        each(cells, costs, self.leaf);
        Ok(())
    }

    fn has_split_costs(&self) -> bool {
        self.split.is_some()
    }

    fn split_costs(&self, cells: &Cells, costs: &mut [f64]) -> Result<(), Stop> {
        each(cells, costs, self.split.expect("only with split costs"));
        Ok(())
    }

    fn lower_bounds(&self, cells: &Cells, bounds: &mut [f64]) -> Result<(), Stop> {
        each(cells, bounds, self.bound.unwrap_or(|_| f64::NEG_INFINITY));
        Ok(())
    }
}

struct Instance {
    features: Vec<Vec<u8>>,
    statistics: Vec<f64>,
}

impl Instance {
    fn new(seed: u64, n: usize, columns: usize) -> Self {
        let random = &mut Random(seed);
        let features =
            (0..n).map(|_| (0..columns).map(|_| (random.next() >> 40 & 1) as u8).collect());
        let features = features.collect();
        let mut statistics = Vec::new();
        for _ in 0..n {
            let (w, y) = (1.0 + random.below(3) as f64, random.below(9) as f64 * 0.37);
            statistics.extend([w, w * y, w * y * y]);
        }
        Instance { features, statistics }
    }

    fn solve(&self, task: &User, penalty: f64, settings: &Settings) -> Solution {
        self.solve_until(task, penalty, settings, &|| false)
    }

    fn solve_until(
        &self,
        task: &User,
        penalty: f64,
        settings: &Settings,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Solution {
        let (n, columns) = (self.features.len(), self.features[0].len());
        let matrix = BinaryMatrix::from_bytes(n, columns, &self.features.concat()).unwrap();
        let statistics = Statistics::new(&self.statistics, 3).unwrap();
        let monitor = Monitor::new(None, interrupted);
        solve(task, &matrix, &statistics, self.weight(), penalty, settings, &monitor).unwrap()
    }

    fn weight(&self) -> f64 {
        self.statistics.iter().step_by(3).sum()
    }

    fn sums(&self, rows: &[usize]) -> Vec<f64> {
        (0..3).map(|c| rows.iter().map(|r| self.statistics[3 * r + c]).sum()).collect()
    }

    /// Least cost of a tree on `rows`, by trying everything; `price` is the penalty of a leaf.
    fn least(
        &self,
        task: &User,
        price: f64,
        rows: &[usize],
        (depth, leaves, min_leaf): (usize, usize, usize),
        memo: &mut HashMap<(Vec<usize>, usize, usize), f64>,
    ) -> f64 {
        if rows.len() < min_leaf {
            return f64::INFINITY;
        }
        let key = (rows.to_vec(), depth, leaves);
        if let Some(&known) = memo.get(&key) {
            return known;
        }
        let sums = self.sums(rows);
        let mut best = (task.leaf)(&sums);
        if depth > 0 && leaves > 1 {
            let own_price = price + task.split.map_or(0.0, |split| split(&sums));
            for c in 0..self.features[0].len() {
                let (yes, no): (Vec<usize>, Vec<usize>) =
                    rows.iter().partition(|&&r| self.features[r][c] == 1);
                for a in 1..leaves {
                    let mut side = |rows: &[usize], leaves| {
                        let limits = (depth - 1, leaves, min_leaf);
                        self.least(task, price, rows, limits, memo)
                    };
                    best = best.min(side(&yes, a) + side(&no, leaves - a) + own_price);
                }
            }
        }
        memo.insert(key, best);
        best
    }

    /// Cost of a given tree, or nothing where a leaf has too few rows.
    fn cost_of(&self, task: &User, price: f64, tree: &Tree, node: usize, rows: &[usize]) -> f64 {
        let sums = self.sums(rows);
        if tree.feature[node] == LEAF {
            return (task.leaf)(&sums);
        }
        let c = tree.feature[node] as usize;
        let (yes, no): (Vec<usize>, Vec<usize>) =
            rows.iter().partition(|&&r| self.features[r][c] == 1);
        self.cost_of(task, price, tree, tree.left[node] as usize, &yes)
            + self.cost_of(task, price, tree, tree.right[node] as usize, &no)
            + price
            + task.split.map_or(0.0, |split| split(&sums))
    }
}

fn tasks() -> Vec<User> {
    vec![
        User { leaf: squared_error, split: None, bound: Some(|_| 0.0) },
        User { leaf: squared_error, split: Some(size_price), bound: Some(|_| 0.0) },
        User { leaf: odd, split: None, bound: None },
        User { leaf: heavy, split: Some(size_price), bound: None },
    ]
}

fn agrees(instance: &Instance, task: &User, penalty: f64, settings: &Settings) {
    let rows: Vec<usize> = (0..instance.features.len()).collect();
    let price = penalty * instance.weight();
    let leaves = settings.max_leaves.unwrap_or(1 << settings.max_depth);
    let limits = (settings.max_depth, leaves, settings.min_leaf);
    let expected = instance.least(task, price, &rows, limits, &mut HashMap::new());
    let found = instance.solve(task, penalty, settings);
    let objective = |cost: f64| cost / instance.weight() + penalty;
    let infeasible = expected == f64::INFINITY;
    let status = if infeasible { Status::Infeasible } else { Status::Optimal };
    assert_eq!((found.status, found.objective), (status, found.lower_bound));
    assert!(
        found.objective == objective(expected)
            || (found.objective - objective(expected)).abs() < 1e-12,
        "{} instead of {} for {settings:?}",
        found.objective,
        objective(expected)
    );
    if infeasible {
        return;
    }
    let own = objective(instance.cost_of(task, price, &found.tree, 0, &rows));
    assert!((own - found.objective).abs() < 1e-12);
    assert!(found.tree.depth() <= settings.max_depth && found.tree.n_leaves() <= leaves);
}

#[test]
fn trees_equal_exhaustive_search() {
    for seed in 0..12 {
        let instance = Instance::new(seed, 18 + seed as usize % 7, 4 + seed as usize % 2);
        for (t, task) in tasks().iter().enumerate() {
            for max_depth in 0..=5 {
                let settings = Settings {
                    max_depth,
                    min_leaf: 1 + (seed as usize + t) % 3,
                    trivial_bound: seed % 2 == 0,
                    ..Settings::default()
                };
                agrees(&instance, task, [0.0, 0.02][seed as usize / 2 % 2], &settings);
            }
        }
    }
}

#[test]
fn leaf_budgets_equal_exhaustive_search() {
    for seed in 100..110 {
        let instance = Instance::new(seed, 20, 4);
        for task in &tasks() {
            for (max_depth, leaves) in [(2, 3), (3, 5), (4, 6), (4, 1), (3, 20)] {
                let settings =
                    Settings { max_depth, max_leaves: Some(leaves), ..Settings::default() };
                agrees(&instance, task, 0.01, &settings);
            }
        }
    }
}

#[test]
fn branching_above_any_lattice_equals_exhaustive_search() {
    for seed in 200..206 {
        let instance = Instance::new(seed, 20, 5);
        for task in &tasks() {
            for lattice_depth in 1..=3 {
                for max_leaves in [None, Some(6)] {
                    for cache in [false, true] {
                        let settings = Settings {
                            max_depth: 4,
                            max_leaves,
                            lattice_depth,
                            cache,
                            min_leaf: 1 + lattice_depth % 2,
                            ..Settings::default()
                        };
                        agrees(&instance, task, 0.01, &settings);
                    }
                }
            }
        }
    }
}

#[test]
fn backends_and_threads_agree_bit_for_bit() {
    let mut ran = [0; 4];
    for (seed, n, columns) in [(7, 300, 12), (11, 40, 6), (12, 40, 6), (13, 60, 6)] {
        let instance = Instance::new(seed, n, columns);
        let depths: &[usize] = if columns < 10 { &[3, 4, 5] } else { &[3] };
        for (task, &max_depth) in
            tasks().iter().flat_map(|task| depths.iter().map(move |d| (task, d)))
        {
            // The last with branching above lattices.
            for (lattice_depth, max_leaves) in [(5, None), (5, Some(6)), (max_depth - 1, None)] {
                let solve = |backend, n_threads| {
                    let settings = Settings {
                        max_depth,
                        lattice_depth,
                        max_leaves,
                        backend: Some(backend),
                        n_threads,
                        cells_per_thread: Some(1),
                        min_leaf: 3,
                        ..Settings::default()
                    };
                    let watch = Watch::default();
                    let found = instance.solve_until(task, 0.001, &settings, &|| watch.look());
                    (found, watch.threads())
                };
                let told = |found: &Solution| {
                    let numbers = [found.objective, found.lower_bound].map(f64::to_bits);
                    (found.tree.clone(), numbers, found.status, found.nodes)
                };
                let first = solve(Backend::best(), 1).0;
                for backend in Backend::available() {
                    for n_threads in 1..=3 {
                        let (other, threads) = solve(backend, n_threads);
                        assert_eq!(told(&other), told(&first), "{backend:?} {n_threads}");
                        ran[n_threads] += usize::from(threads >= n_threads);
                    }
                }
            }
        }
    }
    assert!(ran[1..].iter().all(|&ran| ran > 50), "one, two and three threads ran {ran:?} times");
}

#[test]
fn lattices_of_any_size_agree_bit_for_bit() {
    let tasks = tasks();
    for columns in [1, 2, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 66, 129] {
        for n in [1, 64, 65] {
            let instance = Instance::new(columns as u64, n, columns);
            for max_depth in if columns < 34 { [1, 3] } else { [1, 2] } {
                let task = &tasks[max_depth % 2];
                let solve = |backend| {
                    let backend = Some(backend);
                    let settings = Settings { max_depth, backend, ..Settings::default() };
                    let found = instance.solve(task, 0.001, &settings);
                    (found.tree, found.objective.to_bits(), found.nodes)
                };
                let found: Vec<_> = Backend::available().map(solve).collect();
                assert!(found.iter().all(|f| *f == found[0]), "{n}, {columns}: {found:?}");
            }
        }
    }
}

#[test]
fn a_planted_optimum_survives_and_a_planted_impossibility_panics() {
    for seed in 300..310 {
        let instance = Instance::new(seed, 20, 5);
        for task in &tasks() {
            for (max_depth, lattice_depth) in [(3, 5), (4, 2)] {
                let settings = Settings { max_depth, lattice_depth, ..Settings::default() };
                let solve = |planted| {
                    let settings = Settings { planted: Some(planted), ..settings.clone() };
                    catch_unwind(AssertUnwindSafe(|| instance.solve(task, 0.01, &settings)))
                };
                let objective = instance.solve(task, 0.01, &settings).objective;
                solve(objective).expect("the best tree was not missed");
                solve(objective.min(1e6) - 1e-6).expect_err("a better tree was not missed");
            }
        }
    }
}

#[test]
fn a_stopped_search_gives_a_tree_and_a_bound() {
    let instance = Instance::new(8, 200, 40);
    let optimum = |task, max_depth| {
        let settings = Settings { max_depth, ..Settings::default() };
        instance.solve(task, 0.001, &settings).objective
    };
    let columns = instance.features[0].len();
    let matrix = BinaryMatrix::from_bytes(200, columns, &instance.features.concat()).unwrap();
    let statistics = Statistics::new(&instance.statistics, 3).unwrap();
    for task in &tasks()[..3] {
        let settings = Settings { max_depth: 7, lattice_depth: 2, ..Settings::default() };
        let monitor = Monitor::new(Some(Duration::ZERO), &|| false);
        let weight = instance.weight();
        let found = solve(task, &matrix, &statistics, weight, 0.001, &settings, &monitor).unwrap();
        assert_eq!(found.status, Status::TimeLimit);
        assert!(found.lower_bound < found.objective);
        assert_eq!(found.lower_bound == f64::NEG_INFINITY, task.bound.is_none());
        assert!(found.lower_bound < optimum(task, 3));
        assert!(found.objective <= optimum(task, 0));
    }
}

#[test]
fn no_tree_at_all_is_allowed() {
    let instance = Instance::new(9, 10, 3);
    let task = User { leaf: |_| f64::INFINITY, split: None, bound: None };
    let found = instance.solve(&task, 0.0, &Settings::default());
    assert_eq!((found.status, found.objective), (Status::Infeasible, f64::INFINITY));
}

#[test]
fn a_task_that_stops_ends_the_search() {
    struct Stops;
    impl BatchTask for Stops {
        fn leaf_costs(&self, cells: &Cells, costs: &mut [f64]) -> Result<(), Stop> {
            costs.fill(1.0);
            if cells.len() > 1 { Err(Stop::Interrupt) } else { Ok(()) }
        }
    }
    let instance = Instance::new(10, 20, 4);
    let matrix = BinaryMatrix::from_bytes(20, 4, &instance.features.concat()).unwrap();
    let statistics = Statistics::new(&instance.statistics, 3).unwrap();
    let monitor = Monitor::new(None, &|| false);
    let settings = Settings::default();
    let found = solve(&Stops, &matrix, &statistics, 20.0, 0.0, &settings, &monitor).unwrap();
    assert_eq!((found.status, found.objective), (Status::Interrupted, 0.05));
}
