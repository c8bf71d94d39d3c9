//! Tests of costs computed outside: they may have no bounds, forbid all leaves, or stop the search.

use std::time::Duration;

use bristlecone_core::registry::{Outside, Prepared};
use bristlecone_core::search::batch::{BatchTask, Cells, Statistics};
use bristlecone_core::search::{Monitor, Settings, Solution, Status, Stop};
use bristlecone_core::simd::Backend;
use bristlecone_oracle::instances::{Instance, Random};

use crate::harness::{Case, Question, matrix};
use crate::own::{Cost, USERS, User, statistics};
use crate::tasks::OUTSIDE;

/// Rows with random features and costs.
fn random(seed: u64, n: usize, n_features: usize) -> Instance {
    let random = &mut Random::new(seed);
    let features = (0..n).map(|_| (0..n_features).map(|_| random.chance(0.5)).collect());
    let mut instance = Instance::of_labels(features.collect(), vec![0; n], 2);
    instance.costs.iter_mut().flatten().for_each(|cost| *cost = random.below(9) as f64);
    instance.sample.weight.iter_mut().for_each(|w| *w = 1.0 + random.below(3) as f64);
    instance
}

fn case(instance: &Instance, user: usize, leaf_penalty: f64) -> Case {
    let mut question = Question { leaf_penalty, ..Question::of(OUTSIDE, 3) };
    question.parameters.user = user;
    Case { instance: instance.clone(), question, ranks: None }
}

fn solve(task: &dyn BatchTask, instance: &Instance, settings: &Settings) -> Solution {
    let statistics = Statistics::new(&statistics(instance), 3).unwrap();
    let total_weight = instance.sample.total_weight();
    let outside = Outside { task, statistics: &statistics, total_weight, leaf_penalty: 0.0 };
    let monitor = Monitor::new(None, &|| false);
    Prepared::Outside(outside).solve(&matrix(instance), settings, &monitor).unwrap()
}

#[test]
fn backends_agree_bit_for_bit_on_lattices_of_any_size() {
    let mut sizes = vec![(300, 12)];
    for columns in [1, 2, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 66, 129] {
        sizes.extend([1, 64, 65].map(|n| (n, columns)));
    }
    for (n, columns) in sizes {
        let instance = random(columns as u64, n, columns);
        for max_depth in if columns < 34 { [1, 3] } else { [1, 2] } {
            let case = case(&instance, max_depth % 2, 0.001);
            let solve = |backend| {
                let backend = Some(backend);
                let settings = Settings::default()
                    .with_limits(|s| s.max_depth = max_depth)
                    .with_switches(|s| s.backend = backend);
                let found = case.solve(&settings).expect("a tree");
                (found.tree, found.objective.to_bits(), found.lower_bound.to_bits(), found.nodes)
            };
            let found: Vec<_> = Backend::available().map(solve).collect();
            assert!(found.iter().all(|f| *f == found[0]), "{n}, {columns}: {found:?}");
        }
    }
}

#[test]
fn a_search_without_time_has_no_bound_but_the_users() {
    let instance = random(8, 200, 40);
    for (user, User { bound, .. }) in USERS.iter().enumerate().take(3) {
        let case = case(&instance, user, 0.001);
        let optimum = |max_depth| {
            let settings = Settings::default().with_limits(|s| s.max_depth = max_depth);
            case.solve(&settings).expect("a tree").objective
        };
        let settings = Settings::default()
            .with_limits(|s| s.max_depth = 7)
            .with_switches(|s| s.lattice_depth = 2);
        let monitor = Monitor::new(Some(Duration::ZERO), &|| false);
        let found = case.on(&settings, &monitor).unwrap();
        assert_eq!(found.status, Status::TimeLimit);
        assert!(found.lower_bound < found.objective);
        assert_eq!(found.lower_bound == f64::NEG_INFINITY, bound.is_none());
        assert!(found.lower_bound < optimum(3));
        assert!(found.objective <= optimum(0));
    }
}

#[test]
fn ties_are_small_beside_the_best_tree_not_only_beside_a_leaf() {
    // A single leaf costs 1e13 times the difference between trees.
    let leaf: Cost = |s| if s[0] > 30.0 { 1e13 } else { 2.0 + (s[1] * 3.0 + s[0]).sin() };
    let task = User { leaf, split: None, bound: Some(|_| 0.0) };
    for seed in 0..20 {
        let instance = random(seed, 60, 6);
        let [by_lattice, branching] = [4, 1].map(|lattice_depth| {
            let settings = Settings::default()
                .with_limits(|s| s.max_depth = 4)
                .with_switches(|s| s.lattice_depth = lattice_depth);
            solve(&task, &instance, &settings)
        });
        assert_eq!((by_lattice.status, branching.status), (Status::Optimal, Status::Optimal));
        let off = (by_lattice.objective - branching.objective).abs();
        assert!(off <= 1e-9 * branching.objective, "{seed}: {off}");
    }
}

#[test]
fn no_tree_at_all_is_allowed() {
    let task = User { leaf: |_| f64::INFINITY, split: None, bound: None };
    let found = solve(&task, &random(9, 10, 3), &Settings::default());
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
    let instance = random(10, 20, 4);
    let found = solve(&Stops, &instance, &Settings::default());
    let objective = 1.0 / instance.sample.total_weight();
    assert_eq!((found.status, found.objective), (Status::Interrupted, objective));
}
