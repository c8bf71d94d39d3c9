//! The oracle's costs of trees, for every task.

use bristlecone_oracle::Real;
use bristlecone_oracle::accuracy::misclassified;
use bristlecone_oracle::brier::Brier;
use bristlecone_oracle::instances::Instance;
use bristlecone_oracle::measures::{f_measure, matthews};
use bristlecone_oracle::sums;
use bristlecone_oracle::survival::{Hazard, Sample};

use crate::harness::Question;
use crate::own::{self, USERS};
use crate::tasks::{
    OUTSIDE, Parameters, ROUNDED, causes, counts, exposure, group_weights, groups, losses, shares,
    smoothed_events,
};

/// Loss of rows as a leaf.
type Mean<'a> = Box<dyn Fn(&[usize]) -> Real + 'a>;

/// Losses of rows as a leaf, for every label.
type OfLabel<'a> = Box<dyn Fn(&[usize]) -> Vec<Components> + 'a>;

/// Price of a split, from its feature, the features above it and its rows.
pub type Price<'a> = Box<dyn Fn(usize, &[usize], &[usize]) -> Real + 'a>;

/// Components of the cost of a tree; unused ones are 0.
pub type Components = [Real; 4];

/// Cost of a tree, without penalties.
pub enum Loss<'a> {
    /// The sum over the leaves; infinite for rows that may not be a leaf.
    Number(Mean<'a>),
    /// A function of sums over the leaves, where each leaf has one of several labels.
    Vector {
        /// Components of a leaf for every label.
        of_label: OfLabel<'a>,
        /// Cost from the sums; infinite if they exceed a limit.
        of_tree: Box<dyn Fn(&Components) -> Real + 'a>,
    },
}

/// Loss of trees for a task, by its definition.
pub fn loss<'a>(instance: &'a Instance, question: &'a Question) -> Loss<'a> {
    let Instance { sample, labels, n_classes: k, costs, target, .. } = instance;
    let (weight, k, total) = (&sample.weight, *k, sample.total());
    let Parameters { curve, user, .. } = question.parameters;
    let loss: Mean = match question.task {
        "likelihood" => likelihood(instance, question),
        "accuracy" => Box::new(move |leaf| misclassified(leaf, labels, weight) / total),
        "balanced-accuracy" => Box::new(move |leaf| sums::balanced_errors(leaf, labels, k, weight)),
        "label-costs" | "priced-costs" => {
            Box::new(move |leaf| sums::cheapest_label(leaf, costs, weight) / total)
        }
        "policy" => {
            let losses = losses(instance);
            Box::new(move |leaf| sums::cheapest_label(leaf, &losses, weight) / total)
        }
        "gini" | "entropy" => {
            let loss = if question.task == "gini" { sums::gini } else { sums::entropy };
            let shares = shares(instance, question).unwrap_or_else(|| sums::one_hot(labels, k));
            Box::new(move |leaf| loss(leaf, &shares, weight) / total)
        }
        "regression" => Box::new(move |leaf| sums::squared_error(leaf, target, weight) / total),
        "poisson" => {
            let (counts, exposure) = (counts(instance), exposure(instance));
            Box::new(move |leaf| sums::half_deviance(leaf, &counts, &exposure, weight) / total)
        }
        "competing-risks" => {
            let of_cause = causes(instance, question).into_iter().map(|(sample, importance)| {
                (sample.baseline_hazard(), sample, Real::from(importance))
            });
            let (of_cause, prior) = (of_cause.collect::<Vec<_>>(), question.parameters.prior);
            Box::new(move |leaf| {
                let loss = |(hazard, sample, importance): &(Vec<Hazard>, Sample, Real)| {
                    *importance
                        * if prior > 0.0 {
                            sample.loss_under_prior(hazard, leaf, prior)
                        } else {
                            sample.likelihood_loss(hazard, leaf)
                        }
                };
                of_cause.iter().map(loss).sum::<Real>() / total
            })
        }
        "brier" => {
            let brier = Brier::new(sample);
            match curve {
                "kaplan-meier" => Box::new(move |leaf| brier.kaplan_meier(leaf)),
                _ => Box::new(move |leaf| brier.antitonic(leaf)),
            }
        }
        OUTSIDE => {
            let statistics = own::statistics(instance);
            Box::new(move |leaf| {
                Real::from((USERS[user].leaf)(&own::sums(&statistics, leaf))) / total
            })
        }
        _ => return vectors(instance, question),
    };
    Loss::Number(loss)
}

/// Mean absolute term of a tree with these leaves and labels, without penalties, for tasks whose
/// terms cancel; else 0.
pub fn terms(
    instance: &Instance,
    question: &Question,
    leaves: &[Vec<usize>],
    labels: &[i64],
) -> f64 {
    let (sample, losses) = (&instance.sample, losses(instance));
    let of_label = |leaf: &[usize], label: usize| -> Real {
        leaf.iter()
            .map(|&i| Real::from(sample.weight[i]) * Real::from(losses[i][label]).abs())
            .sum()
    };
    let best = |leaf: &[usize]| {
        let loss = |&k: &usize| sums::cost_of_label(leaf, &losses, &sample.weight, k).to_f64();
        (0..instance.n_classes).min_by(|a, b| loss(a).total_cmp(&loss(b))).unwrap_or(0)
    };
    let prior = question.parameters.prior;
    let terms: Real = match question.task {
        "likelihood" | "fair-likelihood" => {
            let hazard = hazard(instance, question);
            leaves.iter().map(|leaf| sample.likelihood_terms(&hazard, leaf, prior)).sum()
        }
        "competing-risks" => {
            let of_cause = |(sample, importance): (Sample, f64)| -> Real {
                let hazard = sample.baseline_hazard();
                let terms = leaves.iter().map(|leaf| sample.likelihood_terms(&hazard, leaf, prior));
                Real::from(importance) * terms.sum::<Real>()
            };
            causes(instance, question).into_iter().map(of_cause).sum()
        }
        "poisson" => {
            let (counts, exposure) = (counts(instance), exposure(instance));
            let of_leaf =
                |leaf: &Vec<usize>| sums::deviance_terms(leaf, &counts, &exposure, &sample.weight);
            leaves.iter().map(of_leaf).sum()
        }
        "policy" => leaves.iter().map(|leaf| of_label(leaf, best(leaf))).sum(),
        "capacity" => {
            let of_leaf = |(leaf, &label): (&Vec<usize>, &i64)| of_label(leaf, label as usize);
            leaves.iter().zip(labels.iter().filter(|&&label| label >= 0)).map(of_leaf).sum()
        }
        _ => return 0.0,
    };
    (terms / sample.total()).to_f64()
}

/// Prices of splits.
pub fn price<'a>(instance: &'a Instance, question: &'a Question) -> Price<'a> {
    let Sample { weight, .. } = &instance.sample;
    let total = instance.sample.total();
    let prices = &question.parameters.prices;
    match (question.task, USERS[question.parameters.user].split) {
        ("priced-costs", _) => Box::new(move |feature, above, rows| {
            let asked: Real = rows.iter().map(|&i| Real::from(weight[i])).sum();
            Real::from(prices.of(feature, above)) * asked / total
        }),
        (OUTSIDE, Some(split)) => {
            let statistics = own::statistics(instance);
            Box::new(move |_, _, rows| Real::from(split(&own::sums(&statistics, rows))) / total)
        }
        _ => Box::new(|_, _, _| Real::ZERO),
    }
}

fn hazard(instance: &Instance, question: &Question) -> Vec<Hazard> {
    match smoothed_events(instance, question) {
        Some(events) => instance.sample.smoothed(&events),
        None => instance.sample.baseline_hazard(),
    }
}

fn likelihood<'a>(instance: &'a Instance, question: &'a Question) -> Mean<'a> {
    let (sample, prior) = (&instance.sample, question.parameters.prior);
    let (hazard, total) = (hazard(instance, question), sample.total());
    if prior > 0.0 {
        Box::new(move |leaf| sample.loss_under_prior(&hazard, leaf, prior) / total)
    } else {
        Box::new(move |leaf| sample.likelihood_loss(&hazard, leaf) / total)
    }
}

fn vectors<'a>(instance: &'a Instance, question: &'a Question) -> Loss<'a> {
    let Instance { sample, labels, .. } = instance;
    let group = groups(instance, question.task);
    let (weight, total) = (&sample.weight, sample.total());
    let parameters = &question.parameters;
    let weight_of = move |leaf: &[usize], counts: &dyn Fn(usize) -> bool| -> Real {
        leaf.iter().filter(|&&i| counts(i)).map(|&i| Real::from(weight[i])).sum()
    };
    let (zero, one) = (Real::ZERO, Real::from(1.0));
    let positive = |i: usize| labels[i] == 0;
    // True and false positives, false and true negatives, for each label.
    let counts = move |leaf: &[usize]| {
        let (of, others) = (weight_of(leaf, &positive), weight_of(leaf, &|i| !positive(i)));
        vec![[zero, zero, of, others], [of, others, zero, zero]]
    };
    // Share of the weight of one group that is in a leaf, minus that of another group.
    let between =
        move |[a, b]: [i64; 2], weight: &[f64], counts: &dyn Fn(usize) -> bool, leaf: &[usize]| {
            let share = |g: i64| {
                let of = |rows: &[usize]| -> Real {
                    let rows = rows.iter().filter(|&&i| counts(i) && group[i] == g);
                    rows.map(|&i| Real::from(weight[i])).sum()
                };
                of(leaf) / of(&instance.rows())
            };
            share(b) - share(a)
        };
    let delta = parameters.delta(question.task, instance);
    match question.task {
        "confusion" => Loss::Vector {
            of_label: Box::new(move |leaf| {
                counts(leaf).into_iter().map(|[_, fp, fn_, _]| [fp, fn_, zero, zero]).collect()
            }),
            of_tree: Box::new(|_| panic!("a front has no objective")),
        },
        "f-measure" => Loss::Vector {
            of_label: Box::new(counts),
            of_tree: Box::new(move |counts| one - f_measure(parameters.beta, *counts)),
        },
        "matthews" => Loss::Vector {
            of_label: Box::new(counts),
            of_tree: Box::new(move |counts| one - matthews(*counts)),
        },
        "demographic-parity" | "equality-of-opportunity" | "equalized-odds" => {
            let task = question.task;
            let weights = group_weights(instance, question);
            let three = groups(instance, task).contains(&2);
            let of_label = move |leaf: &[usize]| {
                let [[_, _, fn_, _], [_, fp, _, _]] = counts(leaf)[..] else { unreachable!() };
                let rate =
                    |pair, counts: &dyn Fn(usize) -> bool| between(pair, &weights, counts, leaf);
                let chosen = match task {
                    "equalized-odds" => {
                        [rate([0, 1], &positive), rate([0, 1], &|i| !positive(i)), zero]
                    }
                    _ => [[0, 1], [0, 2], [1, 2]].map(|pair| match pair {
                        [_, 2] if !three => zero,
                        pair => rate(pair, &|i| task == "demographic-parity" || positive(i)),
                    }),
                };
                let [a, b, c] = chosen;
                vec![[fn_ / total, zero, zero, zero], [fp / total, a, b, c]]
            };
            let of_tree = move |c: &Components| {
                within(c[0], c[1..].iter().all(|d| d.abs() <= Real::from(delta + ROUNDED)))
            };
            Loss::Vector { of_label: Box::new(of_label), of_tree: Box::new(of_tree) }
        }
        "capacity" => {
            let capacity = parameters.capacity(instance);
            let n_limited = capacity.iter().filter(|c| c.is_finite()).count();
            let losses = losses(instance);
            let of_label = move |leaf: &[usize]| {
                let cost = |label| sums::cost_of_label(leaf, &losses, weight, label) / total;
                let given = |label: usize, k: usize| match k {
                    0 => cost(label),
                    k if k == label + 1 && label < n_limited => weight_of(leaf, &|_| true),
                    _ => zero,
                };
                (0..instance.n_classes)
                    .map(|label| std::array::from_fn(|k| given(label, k)))
                    .collect()
            };
            let of_tree = move |c: &Components| {
                let most = |k: usize| Real::from(capacity[k] + ROUNDED * total.to_f64());
                let fits = (0..n_limited).all(|k| c[k + 1] <= most(k));
                within(c[0], fits)
            };
            Loss::Vector { of_label: Box::new(of_label), of_tree: Box::new(of_tree) }
        }
        "fair-likelihood" | "fair-brier" => {
            let tau = parameters.tau(instance);
            let brier = question.task == "fair-brier";
            let score = Brier::new(sample);
            let loss: Mean = match brier {
                true => Box::new(move |leaf| score.kaplan_meier(leaf)),
                false => likelihood(instance, question),
            };
            let hazard = sample.baseline_hazard();
            let of_label = move |leaf: &[usize]| {
                let mean = match brier {
                    true => restricted_mean(sample, leaf, tau),
                    false => {
                        let theta = hazard_ratio(sample, &hazard, parameters.prior, leaf);
                        let all = instance.rows();
                        let survival =
                            |t: f64| (-theta * sample.nelson_aalen(&all, t).to_f64()).exp();
                        area(&sample.event_times(&all), tau, survival)
                    }
                };
                let difference = between([0, 1], weight, &|_| true, leaf);
                vec![[loss(leaf), Real::from(mean) * difference, zero, zero]]
            };
            // Rounding error of the restricted means of rows (docs/maths/fair-survival.md).
            let steps = sample.event_times(&instance.rows()).len() as f64;
            let off = (8.0 * steps + 128.0) * 0.5 * f64::EPSILON * tau;
            let of_tree = move |c: &Components| within(c[0], c[1].abs() <= Real::from(delta + off));
            Loss::Vector { of_label: Box::new(of_label), of_tree: Box::new(of_tree) }
        }
        task => panic!("{task} has no oracle"),
    }
}

fn within(cost: Real, allowed: bool) -> Real {
    if allowed { cost } else { Real::INFINITY }
}

/// Restricted mean of the Kaplan–Meier curve of rows.
pub fn restricted_mean(sample: &Sample, rows: &[usize], tau: f64) -> f64 {
    area(&sample.event_times(rows), tau, |t| sample.kaplan_meier(rows, t).to_f64())
}

/// The area ∫₀^τ under a curve that falls at these times.
fn area(times: &[f64], tau: f64, survival: impl Fn(f64) -> f64) -> f64 {
    let steps = times.iter().copied().filter(|&t| t < tau);
    let edges: Vec<f64> = [0.0].into_iter().chain(steps).chain([tau]).collect();
    edges.windows(2).map(|e| (e[1] - e[0]) * survival(e[0])).sum()
}

/// θ̂ of a leaf; if it has no event, half an event.
fn hazard_ratio(sample: &Sample, hazard: &[Hazard], prior: f64, leaf: &[usize]) -> f64 {
    let weight = |i: usize| Real::from(sample.weight[i]);
    let events: Real = leaf.iter().filter(|&&i| sample.event[i]).map(|&i| weight(i)).sum();
    let total: Real = leaf.iter().map(|&i| weight(i) * hazard[i].value).sum();
    let (events, total) = (events.to_f64(), total.to_f64());
    match (events > 0.0, prior > 0.0) {
        (_, true) => (events + prior) / (total + prior),
        (true, false) => events / total,
        (false, false) => 0.5 / total,
    }
}
