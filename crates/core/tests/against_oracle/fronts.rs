//! Whole fronts, and what makes their searches hard: ties, and limits that exclude the best trees.

use std::cell::Cell;

use bristlecone_core::search::Status;
use bristlecone_core::search::fronts::Front;
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::{Limits, Real, admit_tree, all_costs, pareto_front};

use crate::harness::{
    CERTIFIED, Case, EVALUATED, IS_QUICK, Question, SCALE, Until, agree, ensure, for_each,
    oracle_tree,
};
use crate::promises::stopped;
use crate::switches::same_objective;
use crate::tasks::{LIMITED, PARITY, WHOLE_FRONTS};

type Pair = [f64; 2];

fn pairs(front: &Front) -> Vec<Pair> {
    front.points.iter().map(|point| [point.costs[0], point.costs[1]]).collect()
}

/// The front that the oracle finds.
fn expected(case: &Case) -> Vec<Pair> {
    let (features, rows) = (&case.instance.features, &case.instance.rows());
    let front = pareto_front(features, rows, &case.question.limits, case.candidates());
    front.into_iter().map(|[fp, fn_, ..]| [fp, fn_].map(Real::to_f64)).collect()
}

/// Checks that every point has the costs of its tree, and that the limits allow this tree.
fn points_are_of_their_trees(case: &Case, front: &Front) -> Result<(), String> {
    for (point, cost) in front.points.iter().zip(pairs(front)) {
        let tree = oracle_tree(&point.tree);
        let (features, rows) = (&case.instance.features, &case.instance.rows());
        admit_tree(&tree, features, rows, &case.question.limits)?;
        let [fp, fn_, ..] = case.components(&tree, &point.labels)?.map(Real::to_f64);
        ensure([fp, fn_] == cost, || format!("{:?} reported as {cost:?}", [fp, fn_]))?;
    }
    Ok(())
}

#[test]
fn the_whole_front_equals_the_oracles() {
    for_each(&WHOLE_FRONTS, 600 * SCALE, |case| {
        let (base, expected) = (case.settings(), expected(case));
        let front = case.front(&base, Until::End).map_err(|e| e.to_string())?;
        ensure(front.status == Status::Optimal, || format!("{:?}", front.status))?;
        let costs = pairs(&front);
        ensure(costs == expected, || format!("{costs:?} instead of {expected:?}"))?;
        points_are_of_their_trees(case, &front)?;
        for settings in same_objective(&case.entry(), &base) {
            let front = case.front(&settings, Until::End).map_err(|e| e.to_string())?;
            let same = pairs(&front) == expected && front.status == Status::Optimal;
            ensure(same, || format!("{:?} with {settings:?}", pairs(&front)))?;
        }
        Ok(())
    });
}

#[test]
fn a_stopped_front_is_of_trees_that_do_not_dominate_one_another() {
    let interrupted = Cell::new(0);
    for_each(&WHOLE_FRONTS, 400 * SCALE, |case| {
        let expected = expected(case);
        for until in [0, 1, 2, 5, 10, 30].map(Until::Asked).into_iter().chain([Until::Now]) {
            let front = case.front(&case.settings(), until).map_err(|e| e.to_string())?;
            points_are_of_their_trees(case, &front)?;
            let costs = pairs(&front);
            let stairs = costs.windows(2).all(|p| p[0][0] < p[1][0] && p[0][1] > p[1][1]);
            ensure(stairs, || format!("{costs:?}"))?;
            let whole = front.status == Status::Optimal;
            ensure(!whole || costs == expected, || format!("{costs:?} called a front"))?;
            interrupted.set(interrupted.get() + u64::from(!whole));
        }
        Ok(())
    });
    assert!(interrupted.get() > 10 * SCALE, "only {} were interrupted", interrupted.get());
}

/// Rows with random features and random labels of two classes, mostly half of each.
fn balanced(random: &mut Random, n: usize, n_features: usize) -> Instance {
    let features = (0..n).map(|_| (0..n_features).map(|_| random.chance(0.5)).collect());
    let features = features.collect();
    let balanced = random.chance(0.7);
    let order = random.permutation(n);
    let positive = |i: usize| if balanced { order[i] < n / 2 } else { random.chance(0.3) };
    let labels = (0..n).map(positive).map(|p| usize::from(!p)).collect();
    Instance::of_labels(features, labels, 2)
}

#[test]
fn measures_of_balanced_classes_are_proven() {
    for seed in 0..600 * SCALE {
        let random = &mut Random::new(seed);
        let (n, n_features) = (2 + random.below(11), 1 + random.below(4));
        let instance = balanced(random, n, n_features);
        let limits = Limits {
            max_depth: random.below(4),
            max_leaves: random.chance(0.5).then(|| 1 + random.below(6)),
            min_leaf: 1 + random.below(2),
        };
        let leaf_penalty = match random.below(3) {
            0 => 0.0,
            1 => random.pick(&[0.01, 0.02, 0.05, 0.1]),
            _ => 10f64.powf(6.0 * random.unit() - 3.0),
        };
        let task = random.pick(&["matthews", "matthews", "f-measure"]);
        let question = Question { limits, leaf_penalty, ..Question::of(task, 0) };
        let case = Case::new(&instance, &question);
        let optimum = case.optimum();
        let patience = [u64::MAX, 0, 1, 2, 5, 10, 30, 100].map(Until::Asked);
        for until in patience {
            let stopped = stopped(&case, &case.settings(), optimum, until);
            assert!(stopped.is_ok(), "seed {seed}: {stopped:?} {case:?}");
        }
    }
}

/// Weights; some are far smaller or larger than the others.
fn wide(case: &Case, random: &mut Random) -> Case {
    let mut case = case.clone();
    let any = random.chance(0.5);
    for weight in &mut case.instance.sample.weight {
        if any || random.chance(0.2) {
            *weight *= 10f64.powi(random.below(25) as i32 - 12);
        }
    }
    case
}

#[test]
fn weights_of_a_wide_range_are_proven_or_refused() {
    let (proven, refused) = (Cell::new(0), Cell::new(0));
    let tasks = [&["f-measure", "matthews"], &PARITY[..]].concat();
    for_each(&tasks, 1600 * SCALE, |case| {
        let case = wide(case, &mut Random::new(case.instance.rows().len() as u64));
        let optimum = case.optimum();
        let (answer, reports) = match case.search(&case.settings(), Until::End) {
            Ok(found) => found,
            Err(error) => {
                refused.set(refused.get() + 1);
                let named = error.to_string().contains("sample_weight: the values span too wide");
                return ensure(named, || error.to_string());
            }
        };
        if !optimum.is_finite() {
            return ensure(answer.status == Status::Infeasible, || format!("{answer:?}"));
        }
        proven.set(proven.get() + 1);
        ensure(answer.status == Status::Optimal, || format!("{answer:?}"))?;
        let near = |a: f64, b: f64, share: f64| a - b <= share * b.abs();
        let found = answer.objective;
        let least = near(found, optimum, CERTIFIED) && near(optimum, found, EVALUATED);
        ensure(least, || format!("{found:e} instead of {optimum:e}"))?;
        let scored = case.score(&case.question.limits, &answer)?;
        let of_tree = near(found, scored, EVALUATED) && near(scored, found, EVALUATED);
        ensure(of_tree, || format!("{found:e} of a tree of {scored:e}"))?;
        for point in reports.iter().chain(&answer.trace) {
            let bound = point.lower_bound;
            ensure(near(bound, optimum, EVALUATED), || format!("{bound:e} above {optimum:e}"))?;
        }
        Ok(())
    });
    let (proven, refused) = (proven.get(), refused.get());
    let share = if IS_QUICK { 15 } else { 20 };
    assert!(proven > share * refused, "{refused} refused, {proven} proven");
}

/// How much the difference of two groups may exceed its limit because rows are rounded, and how
/// much further a search with rounded shares may go.
fn rounding(case: &Case) -> [f64; 2] {
    let Case { instance, question, .. } = case;
    let rows = instance.rows().len() as f64;
    if !question.task.starts_with("fair") {
        return [2.0 * f64::EPSILON, rows * 2f64.powi(-58)];
    }
    let mut times = instance.sample.time.clone();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let tau = question.parameters.tau(instance);
    [(4 * times.len() + 64) as f64 * f64::EPSILON * tau, rows * 2f64.powi(-50) * tau]
}

#[test]
fn a_tree_a_little_beyond_its_limit_hides_no_other() {
    let counts = |task| if task == "fair-brier" { 3200 } else { 1600 };
    for task in [&["fair-brier", "fair-likelihood"], &PARITY[..]].concat() {
        let (proven, refused) = (Cell::new(0), Cell::new(0));
        // The share of rejected instances is only meaningful with many instances.
        for_each(&[task], counts(task) * SCALE.max(2), |case| {
            let random = &mut Random::new(case.instance.rows().len() as u64);
            let mut case = wide(case, random);
            let Case { instance, question, .. } = &case;
            let lists = all_costs(
                &instance.features,
                &instance.rows(),
                &question.limits,
                case.candidates(),
            );
            let largest = |c: &[Real; 4]| {
                c[1..].iter().map(|d| d.abs()).fold(Real::ZERO, |a, b| if a < b { b } else { a })
            };
            let differences = lists.iter().flatten().map(|c| largest(c).to_f64());
            let [room, beyond] = rounding(&case);
            let differences: Vec<f64> = differences.filter(|&d| d > room + beyond).collect();
            if differences.is_empty() {
                return Ok(());
            }
            let limit = random.pick(&differences) - room - random.unit() * beyond;
            let parameters = question.parameters.clone();
            case.question.parameters = parameters.with_limit(limit, task, &case.instance);
            let limit = case.question.parameters.delta(task, &case.instance);
            let penalty = case.question.leaf_penalty;
            // The optimum of trees that keep the limit exactly, and of all trees that the search
            // may report.
            let least = |most: f64| {
                let within = |c: &&[Real; 4]| largest(c) <= Real::from(most);
                let objective = |(k, list): (usize, &Vec<[Real; 4]>)| {
                    let least = list.iter().filter(within).map(|c| c[0].to_f64());
                    least.fold(f64::INFINITY, f64::min) + penalty * (k + 1) as f64
                };
                lists.iter().enumerate().map(objective).fold(f64::INFINITY, f64::min)
            };
            let (kept, allowed) = (least(limit), least(limit + 2.0 * room));
            let (answer, reports) = match case.search(&case.settings(), Until::End) {
                Ok(found) => found,
                Err(error) => {
                    refused.set(refused.get() + 1);
                    let named = error.to_string().contains("the values span too wide");
                    return ensure(named, || error.to_string());
                }
            };
            proven.set(proven.get() + 1);
            let found = answer.objective;
            let size = case.terms(&answer)?.max(found.abs());
            ensure(answer.status == Status::Optimal, || format!("{answer:?}"))?;
            let best = found - kept <= CERTIFIED * size && allowed - found <= EVALUATED * size;
            ensure(best, || format!("{found:e} instead of {kept:e} or {allowed:e}"))?;
            for point in reports.iter().chain(&answer.trace) {
                let bound = point.lower_bound;
                let below = bound - kept <= EVALUATED * size;
                ensure(below, || format!("{bound:e} above {kept:e}"))?;
            }
            Ok(())
        });
        let (proven, refused) = (proven.get(), refused.get());
        // The units of likelihoods cannot be made finer.
        let share = if IS_QUICK { 0.6 } else { 0.5 };
        let most = if task == "fair-likelihood" { share * proven as f64 } else { 0.0 };
        assert!(
            refused as f64 <= most && proven > 20 * SCALE,
            "{task}: {refused} refused, {proven} proven"
        );
    }
}

#[test]
fn symmetric_vertices_do_not_end_the_search() {
    let rows = [[1, 1], [0, 1], [1, 1], [1, 0], [0, 1], [0, 1]];
    let features = rows.iter().map(|r| r.map(|v| v == 1).to_vec()).collect();
    let instance = Instance::of_labels(features, vec![1, 1, 0, 0, 1, 0], 2);
    let case = Case::new(&instance, &Question::of("matthews", 1));
    let answer = case.solve(&case.settings()).expect("a tree");
    let optimum = case.optimum();
    agree("objective", answer.objective, optimum, EVALUATED * optimum).expect("the optimum");
}

#[test]
fn fronts_under_a_leaf_budget_hold_no_dominated_tree() {
    for seed in 0..60 * SCALE {
        let random = &mut Random::new(seed);
        let (n, n_features) = (6 + random.below(14), 2 + random.below(4));
        let instance = balanced(random, n, n_features);
        let limits = Limits {
            max_depth: 2 + random.below(2),
            max_leaves: Some(2 + random.below(6)),
            min_leaf: 1 + random.below(3),
        };
        let question = Question { limits, ..Question::of("confusion", 0) };
        let case = Case::new(&instance, &question);
        let front = case.front(&case.settings(), Until::End).expect("rows");
        assert_eq!(pairs(&front), expected(&case), "seed {seed}: {question:?}");
        assert_eq!(front.status, Status::Optimal);
    }
}

#[test]
fn limits_rule_out_the_best_tree_often_enough() {
    for task in LIMITED {
        let mattered = Cell::new(0);
        for_each(&[task], 320 * SCALE, |case| {
            let (features, rows) = (&case.instance.features, &case.instance.rows());
            let lists = all_costs(features, rows, &case.question.limits, case.candidates());
            let penalty = |k: usize| (k + 1) as f64 * case.question.leaf_penalty;
            let objective = |(k, list): (usize, &Vec<[Real; 4]>)| {
                list.iter().map(|c| c[0].to_f64() + penalty(k)).fold(f64::INFINITY, f64::min)
            };
            let without = lists.iter().enumerate().map(objective).fold(f64::INFINITY, f64::min);
            let optimum = case.optimum();
            let matters = optimum.is_finite() && optimum - without > CERTIFIED * without.abs();
            mattered.set(mattered.get() + u64::from(matters));
            Ok(())
        });
        assert!(mattered.get() > SCALE, "{task}: the limit mattered {} times", mattered.get());
    }
}
