//! Fronts, measures of both error rates, and limits, against the exhaustive oracle.

use bristlecone_core::data::Sample;
use bristlecone_core::search::fronts::{
    FrontPoint, Metric, plain, solve_front, solve_limited, solve_metric, without_capacity,
    without_fairness, without_parity,
};
use bristlecone_core::search::{Monitor, Status};
use bristlecone_core::survival::Observations;
use bristlecone_core::task::Statistics;
use bristlecone_core::task::capacity::Capacity;
use bristlecone_core::task::confusion::Confusion;
use bristlecone_core::task::fair_brier::FairBrier;
use bristlecone_core::task::fair_survival::FairSurvival;
use bristlecone_core::task::parity::{Criterion, Parity};
use bristlecone_oracle::brier::Brier;
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::{admit_tree, all_costs, pareto_front};

mod certificates;
mod laws;
mod ties;

#[allow(dead_code, reason = "shared with other tests")]
#[path = "../against_oracle/harness.rs"]
mod harness;

use certificates::searched;
use harness::{
    Objective, Question, SCALE, agree, ensure, for_each_without_events as for_each, matrix,
    oracle_tree,
};

/// Random numbers that every instance has of its own.
fn stream(instance: &Instance, salt: u64) -> Random {
    let numbers = instance.target.iter().chain(&instance.sample.time).map(|v| v.to_bits());
    let seed = numbers.fold(salt, |seed, bits| seed.rotate_left(5) ^ bits);
    Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The question with penalties of every size.
fn penalised(question: &Question, random: &mut Random) -> Question {
    let leaf_penalty = match random.below(5) {
        0 => 0.0,
        1 => 10f64.powf(4.0 * random.unit()),
        2 => random.pick(&[0.005, 0.01, 0.02]),
        _ => question.leaf_penalty,
    };
    Question { leaf_penalty, ..question.clone() }
}

fn positive(instance: &Instance) -> Vec<bool> {
    instance.labels.iter().map(|&label| label == 0).collect()
}

/// False positives and false negatives of a leaf under either label.
fn errors(instance: &Instance, weight: &[f64], leaf: &[usize]) -> [[f64; 2]; 2] {
    let of = |class: bool| -> f64 {
        leaf.iter().filter(|&&i| (instance.labels[i] == 0) == class).map(|&i| weight[i]).sum()
    };
    [[0.0, of(true)], [of(false), 0.0]]
}

/// Costs of a point from its tree and labels alone.
fn recomputed<const K: usize>(
    instance: &Instance,
    question: &Question,
    point: &FrontPoint,
    candidates: impl Fn(&[usize]) -> Vec<[f64; K]>,
) -> Result<[f64; K], String> {
    let tree = oracle_tree(&point.tree);
    admit_tree(&tree, &instance.features, &instance.rows(), &question.limits)?;
    let leaves = tree.leaves(&instance.features, &instance.rows())?;
    let labels = point.labels.iter().filter(|&&label| label >= 0);
    let mut sum = [0.0; K];
    for (leaf, &label) in leaves.iter().zip(labels) {
        let cost = candidates(leaf)[label as usize];
        sum = std::array::from_fn(|k| sum[k] + cost[k]);
    }
    Ok(sum)
}

#[test]
fn the_whole_front_equals_the_oracles() {
    for_each(60 * SCALE, (24, 5), &[0, 1, 2, 3], |instance, question| {
        let weight: Vec<f64> = instance.sample.weight.iter().map(|w| w.ceil()).collect();
        let task = Confusion::new(&positive(instance), Some(&weight)).map_err(|e| e.to_string())?;
        let (monitor, settings) = (Monitor::new(None, &|| false), question.settings());
        let candidates = |leaf: &[usize]| errors(instance, &weight, leaf).to_vec();
        let (features, rows) = (&instance.features, &instance.rows());
        let expected = pareto_front(features, rows, &question.limits, candidates);
        let front = solve_front(&task, &matrix(instance), &settings, &monitor);
        let Ok(front) = front else { return ensure(expected.is_empty(), || "no front".into()) };
        ensure(front.status == Status::Optimal, || format!("{:?}", front.status))?;
        let costs: Vec<[f64; 2]> = front.points.iter().map(|p| [p.costs[0], p.costs[1]]).collect();
        ensure(costs == expected, || format!("{costs:?} instead of {expected:?}"))?;
        for (point, cost) in front.points.iter().zip(&costs) {
            let actual = recomputed(instance, question, point, candidates)?;
            ensure(actual == *cost, || format!("{actual:?} reported as {cost:?}"))?;
        }
        Ok(())
    });
}

#[test]
fn the_best_measure_equals_the_oracles() {
    for_each(60 * SCALE, (24, 5), &[0, 1, 2, 3], |instance, question| {
        let positive = positive(instance);
        let random = &mut stream(instance, 0);
        let question = &penalised(question, random);
        let whole = random.chance(0.5);
        let round = |w: &f64| if whole { w.ceil() } else { *w };
        let weight: Vec<f64> = instance.sample.weight.iter().map(round).collect();
        let metric = random.pick(&[Metric::FBeta(1.0), Metric::FBeta(2.0), Metric::Matthews]);
        let candidates = |leaf: &[usize]| {
            let of_label = |[fp, fn_]: [f64; 2]| [fp, fn_, question.leaf_penalty];
            errors(instance, &weight, leaf).map(of_label).to_vec()
        };
        let (features, rows) = (&instance.features, &instance.rows());
        let [[_, positives], [negatives, _]] = errors(instance, &weight, rows);
        let total = [negatives, positives];
        let objective = |c: &[f64; 3]| 1.0 - metric.value([c[0], c[1]], total) + c[2];
        let expected = all_costs(features, rows, &question.limits, candidates);
        let expected = expected.iter().map(objective).fold(f64::INFINITY, f64::min);
        let (penalty, matrix) = (question.leaf_penalty, matrix(instance));
        let (weights, settings) = (Some(weight.as_slice()), question.settings());
        let of_point = |point: &FrontPoint| {
            recomputed(instance, question, point, candidates).map(|costs| objective(&costs))
        };
        let front = searched(expected, of_point, |monitor| {
            solve_metric(metric, &positive, weights, penalty, &matrix, &settings, monitor)
        })?;
        let empty = expected.is_infinite() || weight.iter().sum::<f64>() == 0.0;
        ensure(front.is_some() || empty, || "no tree".into())
    });
}

#[test]
fn parity_limits_equal_the_oracles() {
    for_each(60 * SCALE, (24, 4), &[0, 1, 2, 3], |instance, question| {
        let (positive, rows) = (positive(instance), instance.rows());
        let random = &mut stream(instance, 7);
        let question = &penalised(question, random);
        let criterion =
            random.pick(&[Criterion::DemographicParity, Criterion::EqualityOfOpportunity]);
        let delta = if random.chance(0.2) { 0.0 } else { 0.5 * random.unit() };
        let whole = random.chance(0.7);
        let round = |w: &f64| if whole { w.ceil() } else { *w };
        let weight: Vec<f64> = instance.sample.weight.iter().map(round).collect();
        let group = &instance.sample.event;
        let total: f64 = weight.iter().sum();
        let counted = |i: usize| criterion == Criterion::DemographicParity || positive[i];
        let size = |g: bool| -> f64 {
            rows.iter().filter(|&&i| counted(i) && group[i] == g).map(|&i| weight[i]).sum()
        };
        let sizes = [size(false), size(true)];
        let candidates = |leaf: &[usize]| {
            let [[_, fn_], [fp, _]] = errors(instance, &weight, leaf);
            let share = |g: bool| -> f64 {
                let of = leaf.iter().filter(|&&i| counted(i) && group[i] == g);
                of.map(|&i| weight[i]).sum::<f64>() / sizes[usize::from(g)]
            };
            let penalty = question.leaf_penalty;
            vec![[fn_ / total + penalty, 0.0], [fp / total + penalty, share(true) - share(false)]]
        };
        let weights = Some(weight.as_slice());
        let penalty = question.leaf_penalty;
        let task = Parity::new(criterion, &positive, group, weights, delta, penalty);
        let Ok(task) = task else {
            return ensure(sizes.contains(&0.0) || total == 0.0, || "an error".into());
        };
        let costs = all_costs(&instance.features, &rows, &question.limits, candidates);
        let fair = costs.iter().filter(|c| c[1].abs() <= delta + 1e-12);
        let expected = fair.map(|c| c[0]).fold(f64::INFINITY, f64::min);
        let (settings, matrix) = (question.settings(), matrix(instance));
        let relaxed = without_parity(&positive, weights, penalty, &matrix);
        let relaxed = random.chance(0.7).then_some(&*relaxed);
        let of_point = |point: &FrontPoint| {
            let actual = recomputed(instance, question, point, candidates)?;
            ensure(actual[1].abs() <= delta + 1e-9, || format!("{actual:?} beyond {delta}"))?;
            Ok(actual[0])
        };
        let front = searched(expected, of_point, |monitor| {
            solve_limited(&task, relaxed, &matrix, &settings, monitor)
        })?;
        ensure(front.is_some() || expected.is_infinite(), || "no tree".into())
    });
}

#[test]
fn the_plain_recursion_finds_the_same_front() {
    for_each(30 * SCALE, (20, 5), &[1, 2, 3], |instance, question| {
        let task = Confusion::new(&positive(instance), None).map_err(|e| e.to_string())?;
        let sample = Sample::new(&matrix(instance), task.statistics(), 2);
        let limits = &question.limits;
        let leaves = limits.max_leaves.unwrap_or(usize::MAX);
        let smallest = question.settings().smallest();
        let slow = plain::solve(&task, &sample, limits.max_depth, leaves, smallest);
        let mut slow: Vec<[f64; 2]> = slow.iter().map(|p| p.cost.map(|c| c as f64)).collect();
        slow.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let monitor = Monitor::new(None, &|| false);
        let fast = solve_front(&task, &matrix(instance), &question.settings(), &monitor);
        let Ok(fast) = fast else { return ensure(slow.is_empty(), || "no front".into()) };
        let fast: Vec<[f64; 2]> = fast.points.iter().map(|p| [p.costs[0], p.costs[1]]).collect();
        ensure(slow == fast, || format!("{fast:?} instead of {slow:?}"))
    });
}

/// Every label costs something else for every row; some labels have a capacity.
fn check_capacity<const K: usize>(instance: &Instance, question: &Question) -> Result<(), String> {
    let (n, rows) = (instance.rows().len(), instance.rows());
    let random = &mut stream(instance, K as u64);
    let question = &penalised(question, random);
    let n_labels = K.max(2);
    let unit = random.pick(&[1.0, 2.0, 8.0, 7.3]);
    let costs: Vec<f64> =
        (0..n * n_labels).map(|_| random.below(1 + unit as usize) as f64 / unit).collect();
    let costs = if random.chance(0.3) { costs.iter().map(|c| c.round()).collect() } else { costs };
    let whole = random.chance(0.7);
    let round = |w: &f64| if whole { w.ceil() } else { *w };
    let weight: Vec<f64> = instance.sample.weight.iter().map(round).collect();
    let total: f64 = weight.iter().sum();
    let capacity: Vec<f64> = (0..n_labels)
        .map(|label| if label + 1 < K { random.unit() * total } else { f64::INFINITY })
        .collect();
    let candidates = |leaf: &[usize]| -> Vec<[f64; K]> {
        let of_label = |label: usize| {
            let mut cost = [0.0; K];
            if label + 1 < K {
                cost[label + 1] = leaf.iter().map(|&i| weight[i]).sum();
            }
            let sum: f64 = leaf.iter().map(|&i| weight[i] * costs[i * n_labels + label]).sum();
            cost[0] = sum / total + question.leaf_penalty;
            cost
        };
        (0..n_labels).map(of_label).collect()
    };
    let weights = Some(weight.as_slice());
    let task = Capacity::<K>::new(&costs, &capacity, weights, question.leaf_penalty);
    let Ok(task) = task else { return ensure(total == 0.0, || "an error".into()) };
    let all = all_costs(&instance.features, &rows, &question.limits, candidates);
    let within = |c: &[f64; K]| (1..K).all(|k| c[k] <= capacity[k - 1] + 1e-9);
    let allowed = all.iter().filter(|c| within(c)).map(|c| c[0]);
    let expected = allowed.fold(f64::INFINITY, f64::min);
    let (settings, matrix) = (question.settings(), matrix(instance));
    let relaxed = without_capacity(&costs, n_labels, weights, question.leaf_penalty, &matrix);
    let relaxed = random.chance(0.7).then_some(&*relaxed);
    let of_point = |point: &FrontPoint| {
        let actual = recomputed(instance, question, point, candidates)?;
        ensure(within(&actual), || format!("{actual:?} beyond {capacity:?}"))?;
        Ok(actual[0])
    };
    let front = searched(expected, of_point, |monitor| {
        solve_limited(&task, relaxed, &matrix, &settings, monitor)
    })?;
    ensure(front.is_some() || expected.is_infinite(), || "no tree".into())
}

#[test]
fn capacities_equal_the_oracles() {
    for_each(40 * SCALE, (16, 4), &[0, 1, 2, 3], |instance, question| {
        check_capacity::<1>(instance, question)?;
        check_capacity::<2>(instance, question)?;
        if question.limits.max_depth < 3 {
            check_capacity::<3>(instance, question)?;
        }
        Ok(())
    });
}

/// ∫₀^τ of the Kaplan–Meier curve of a leaf.
fn restricted_mean_of_rows(instance: &Instance, tau: f64, leaf: &[usize]) -> f64 {
    let mut edges: Vec<f64> = instance.sample.event_times(leaf);
    edges.retain(|&t| t < tau);
    edges.insert(0, 0.0);
    edges.push(tau);
    let survival = |t: f64| instance.sample.kaplan_meier(leaf, t);
    edges.windows(2).map(|e| (e[1] - e[0]) * survival(e[0])).sum()
}

/// ∫₀^τ of the curve exp(−θΛ) of a leaf.
fn restricted_mean(
    instance: &Instance,
    hazard: &[f64],
    tau: f64,
    prior: f64,
    leaf: &[usize],
) -> f64 {
    let sample = &instance.sample;
    let all = instance.rows();
    let sum = |term: &dyn Fn(usize) -> f64| leaf.iter().map(|&i| term(i)).sum::<f64>();
    let events = sum(&|i| if sample.event[i] { sample.weight[i] } else { 0.0 });
    let total = sum(&|i| sample.weight[i] * hazard[i]);
    let theta = match (events > 0.0, prior > 0.0) {
        (_, true) => (events + prior) / (total + prior),
        (true, false) => events / total,
        (false, false) => 0.5 / total,
    };
    let mut edges: Vec<f64> = sample.event_times(&all);
    edges.retain(|&t| t < tau);
    edges.insert(0, 0.0);
    edges.push(tau);
    let survival = |t: f64| (-theta * sample.nelson_aalen(&all, t)).exp();
    edges.windows(2).map(|e| (e[1] - e[0]) * survival(e[0])).sum()
}

#[test]
fn fair_survival_trees_equal_the_oracles() {
    let mut limited = [0; 2];
    for seed in 0..80 * SCALE {
        let instance = &Instance::random(seed, 18, 4);
        let question = &Question::random(seed, Objective::Likelihood, &[0, 1, 2, 3]);
        for (brier, count) in limited.iter_mut().enumerate() {
            match check_fair_survival(instance, question, brier == 1) {
                Ok(mattered) => *count += u64::from(mattered),
                Err(e) => panic!("seed {seed}, {brier}: {e}\n{question:?}\n{instance:?}"),
            }
        }
    }
    assert!(limited.iter().all(|&count| count > 2 * SCALE), "the limit mattered {limited:?} times");
}

/// Whether the limit ruled out the best tree.
fn check_fair_survival(
    instance: &Instance,
    question: &Question,
    brier: bool,
) -> Result<bool, String> {
    let (sample, rows) = (&instance.sample, instance.rows());
    let random = &mut stream(instance, 3);
    let question = &penalised(question, random);
    let group: Vec<bool> = rows.iter().map(|_| random.chance(0.4)).collect();
    let tau = sample.time.iter().copied().fold(0.0, f64::max) * (0.3 + random.unit());
    if tau == 0.0 || sample.weight.contains(&0.0) || (brier && sample.entry.is_some()) {
        return Ok(false);
    }
    let delta = 0.2 * tau * random.unit();
    let size = |g: bool| -> f64 {
        rows.iter().filter(|&&i| group[i] == g).map(|&i| sample.weight[i]).sum()
    };
    let sizes = [size(false), size(true)];
    let (hazard, total) = (sample.baseline_hazard(), sample.total_weight());
    let score = Brier::new(sample);
    let candidates = |leaf: &[usize]| {
        if sample.n_events(leaf) < question.min_events {
            return vec![];
        }
        let mean = if brier {
            restricted_mean_of_rows(instance, tau, leaf)
        } else {
            restricted_mean(instance, &hazard, tau, question.prior, leaf)
        };
        let share = |g: bool| -> f64 {
            let of = leaf.iter().filter(|&&i| group[i] == g).map(|&i| sample.weight[i]);
            of.sum::<f64>() / sizes[usize::from(g)]
        };
        let loss = if brier {
            score.kaplan_meier(leaf)
        } else if question.prior > 0.0 {
            sample.loss_under_prior(&hazard, leaf, question.prior) / total
        } else {
            sample.likelihood_loss(&hazard, leaf) / total
        };
        let loss = loss + question.leaf_penalty;
        vec![[loss, mean * (share(true) - share(false))]]
    };
    let observations = Observations {
        time: &sample.time,
        event: &sample.event,
        weight: Some(&sample.weight),
        entry: sample.entry.as_deref(),
    };
    if sizes.contains(&0.0) {
        return Ok(false);
    }
    let all = all_costs(&instance.features, &rows, &question.limits, candidates);
    let least = |most: f64| {
        let fair = all.iter().filter(|c| c[1].abs() <= most).map(|c| c[0]);
        fair.fold(f64::INFINITY, f64::min)
    };
    let expected = least(delta + 1e-9 * tau);
    let (settings, matrix, penalty) =
        (question.settings(), matrix(instance), question.leaf_penalty);
    let relaxed = without_fairness(observations, brier, question.prior, penalty, &matrix);
    let relaxed = random.chance(0.7).then_some(&*relaxed);
    let of_point = |point: &FrontPoint| {
        let actual = recomputed(instance, question, point, candidates)?;
        agree("difference", point.costs[1], actual[1], 1e-9 * tau.max(1.0))?;
        ensure(actual[1].abs() <= delta + 1e-9 * tau, || format!("{actual:?} beyond {delta}"))?;
        Ok(actual[0])
    };
    let front = if brier {
        let task = FairBrier::new(&observations, &group, delta, tau, penalty);
        let Ok(task) = task else { return Ok(false) };
        searched(expected, of_point, |monitor| {
            solve_limited(&task, relaxed, &matrix, &settings, monitor)
        })?
    } else {
        let task = FairSurvival::new(&observations, &group, delta, tau, question.prior, penalty);
        let Ok(task) = task else { return Ok(false) };
        searched(expected, of_point, |monitor| {
            solve_limited(&task, relaxed, &matrix, &settings, monitor)
        })?
    };
    ensure(front.is_some() || expected.is_infinite(), || "no tree".into())?;
    Ok(front.is_some() && expected > least(f64::INFINITY) + 1e-9)
}
