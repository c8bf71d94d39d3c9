//! The names of all tasks, and their columns.

use bristlecone_core::registry::{self, Column, Entry, OF_OUTSIDE};
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::survival::Sample;

use crate::harness::Question;
use crate::own::USERS;
use crate::smoothed::Smoothing;

/// Most causes of events.
const MOST_CAUSES: usize = 3;

/// Name for costs computed outside, which are not in the registry.
pub const OUTSIDE: &str = "outside";

/// All tasks.
pub fn entries() -> Vec<Entry> {
    let outside = Entry { name: OUTSIDE, asks: &["solve"], switches: OF_OUTSIDE };
    registry::tasks().into_iter().chain([outside]).collect()
}

/// The tasks that answer this question. Tasks with limits return the best tree of a front.
pub fn tasks_with(ask: &str) -> Vec<&'static str> {
    let asked = |entry: &Entry| entry.asks.contains(&ask);
    entries().into_iter().filter(asked).map(|entry| entry.name).collect()
}

/// The tasks whose costs are sums of numbers per cell.
pub fn sums() -> Vec<&'static str> {
    let of_cells = |entry: &Entry| entry.name != "brier" && !entry.asks.contains(&"front");
    entries().into_iter().filter(of_cells).map(|entry| entry.name).collect()
}

/// The same without costs computed outside.
pub fn of_cells() -> Vec<&'static str> {
    sums().into_iter().filter(|&name| name != OUTSIDE).collect()
}

/// The tasks whose answer is one tree: all except those of whole fronts.
pub fn one_tree() -> Vec<&'static str> {
    let all = entries().into_iter().map(|entry| entry.name);
    all.filter(|name| !WHOLE_FRONTS.contains(name)).collect()
}

/// The tasks whose answer is one tree of a front.
pub fn best_of_fronts() -> Vec<&'static str> {
    let fronts = tasks_with("front").into_iter();
    fronts.filter(|name| !WHOLE_FRONTS.contains(name)).collect()
}

/// Tasks whose answer is a front, not a tree.
pub const WHOLE_FRONTS: [&str; 1] = ["confusion"];

/// Tasks with two classes.
const BINARY: [&str; 6] = [
    "confusion",
    "f-measure",
    "matthews",
    "demographic-parity",
    "equality-of-opportunity",
    "equalized-odds",
];

/// Tasks with a limit on the rates of groups.
pub const PARITY: [&str; 3] = ["demographic-parity", "equality-of-opportunity", "equalized-odds"];

/// Tasks with a limit that excludes some trees.
pub const LIMITED: [&str; 6] = [
    "demographic-parity",
    "equality-of-opportunity",
    "equalized-odds",
    "capacity",
    "fair-likelihood",
    "fair-brier",
];

/// Tasks whose leaves have a minimum number of events.
pub const WITH_EVENTS: [&str; 5] =
    ["likelihood", "competing-risks", "brier", "fair-likelihood", "fair-brier"];

/// Tasks with a Brier score. All rows enter at time 0, and heavy rows must not be censored long
/// before light ones.
const BRIER: [&str; 2] = ["brier", "fair-brier"];

/// Whether a task was rejected for this reason, because of its weights.
pub fn refuses_weights(task: &str, reason: &str) -> bool {
    BRIER.contains(&task) && reason.contains("heavy rows are censored long before light ones")
}

/// All of these lists, to check that their names exist.
pub const LISTS: [&[&str]; 6] = [&WHOLE_FRONTS, &BINARY, &PARITY, &LIMITED, &WITH_EVENTS, &BRIER];

/// Largest change of a rate by rounding its limit and the weights to doubles.
pub const ROUNDED: f64 = 2.0 * f64::EPSILON;

/// Names of a task's columns, except the weights.
fn columns_of(task: &str) -> &'static [&'static str] {
    match task {
        "likelihood" => &["time", "event", "entry", "prior", "smoothed"],
        "gini" | "entropy" => &["labels", "n_classes", "shares"],
        "label-costs" => &["costs"],
        "policy" => &["rewards", "group", "fewest"],
        "regression" => &["target"],
        "poisson" => &["counts", "exposure"],
        "competing-risks" => &["time", "event", "entry", "cause", "cause_weights", "prior"],
        "priced-costs" => {
            &["costs", "feature_cost", "feature_discount", "feature_origin", "feature_group"]
        }
        "brier" => &["time", "event", "leaf_curve"],
        "confusion" | "matthews" => &["labels"],
        "f-measure" => &["labels", "beta"],
        "demographic-parity" | "equality-of-opportunity" | "equalized-odds" => {
            &["labels", "group", "group_weight", "delta"]
        }
        "capacity" => &["rewards", "capacity"],
        "fair-likelihood" => &["time", "event", "entry", "prior", "group", "delta", "tau"],
        "fair-brier" => &["time", "event", "group", "delta", "tau"],
        _ => &["labels", "n_classes"],
    }
}

/// Parameters of tasks; each task reads some of them.
#[derive(Clone, Debug)]
pub struct Parameters {
    pub prior: f64,
    pub curve: &'static str,
    pub beta: f64,
    /// Largest difference of two groups, as a share of the largest possible one.
    delta: f64,
    /// End of the restricted mean as a share of the longest time.
    tau: f64,
    /// Capacity of every label, as a share of the weight.
    capacity: Vec<f64>,
    pub prices: Prices,
    /// Position of the costs in `USERS`, for costs computed outside.
    pub user: usize,
    /// How outcomes are smoothed; None if they are not.
    pub smoothing: Option<Smoothing>,
    /// Weight of the events of every cause.
    importance: Vec<f64>,
    /// Factor on the weights of the negative class in the rates of groups. Errors are counted
    /// without it.
    class_factor: f64,
    /// Minimum rows of every class in a leaf, or as many as the rarest class has.
    pub fewest: usize,
}

impl Parameters {
    pub fn random(random: &mut Random, n_features: usize, max_depth: usize) -> Parameters {
        // With more than two components, lists of deep trees are long.
        let n_limited = random.below(if max_depth < 3 { 4 } else { 2 });
        let share = |random: &mut Random, k| if k < n_limited { random.unit() } else { 1.0 / 0.0 };
        Parameters {
            prior: if random.chance(0.5) { 10f64.powf(5.0 * random.unit() - 2.0) } else { 0.0 },
            curve: random.pick(&["kaplan-meier", "brier-optimal"]),
            beta: random.pick(&[1.0, 2.0, 0.5]),
            delta: if random.chance(0.2) { 0.0 } else { random.unit() },
            tau: 0.3 + random.unit(),
            capacity: (0..4).map(|k| share(random, k)).collect(),
            prices: Prices::random(random, n_features),
            user: random.below(USERS.len()),
            smoothing: Smoothing::random(random),
            importance: (0..MOST_CAUSES).map(|_| random.pick(&[1.0, 1.0, 0.3, 4.0, 0.0])).collect(),
            class_factor: random.pick(&[1.0, 1.0, 0.25, 3.0]),
            fewest: random.pick(&[0, 0, 0, 1, 2, 4]),
        }
    }

    /// Largest difference of two groups.
    pub fn delta(&self, task: &str, instance: &Instance) -> f64 {
        let most = if task.starts_with("fair") { 0.2 * self.tau(instance) } else { 0.5 };
        most * self.delta
    }

    /// The same parameters with this limit on the difference of two groups.
    pub fn with_limit(self, limit: f64, task: &str, instance: &Instance) -> Parameters {
        let delta = limit / Parameters { delta: 1.0, ..self.clone() }.delta(task, instance);
        Parameters { delta, ..self }
    }

    /// End of restricted means.
    pub fn tau(&self, instance: &Instance) -> f64 {
        self.tau * instance.sample.time.iter().copied().fold(0.0, f64::max)
    }

    /// Weights of the causes of these rows; at least one is not 0.
    fn importance(&self, instance: &Instance) -> Vec<f64> {
        let n_causes = cause(instance).into_iter().max().unwrap_or(0).max(1) as usize;
        let mut importance = self.importance[..n_causes].to_vec();
        if importance.iter().all(|&v| v == 0.0) {
            importance[0] = 1.0;
        }
        importance
    }

    pub fn capacity(&self, instance: &Instance) -> Vec<f64> {
        let total = instance.sample.total_weight();
        self.capacity[..instance.n_classes].iter().map(|share| share * total).collect()
    }
}

/// Prices of features.
#[derive(Clone, Debug)]
pub struct Prices {
    pub cost: Vec<f64>,
    pub discount: Vec<f64>,
    pub origin: Vec<i64>,
    pub group: Vec<i64>,
}

impl Prices {
    /// Prices about as large as what a split can save if costs are about 1. Some are 0; sometimes
    /// all are equal.
    fn random(random: &mut Random, n_features: usize) -> Prices {
        let style = random.below(3);
        let size = random.pick(&[0.02, 0.1, 0.5]);
        let cost: Vec<f64> = (0..n_features)
            .map(|_| match style {
                0 => random.below(3) as f64,
                1 => size,
                _ => size * random.unit(),
            })
            .collect();
        let share = |random: &mut Random, c: &f64| c * random.pick(&[0.0, 0.25, 0.5, 1.0]);
        Prices {
            discount: cost.iter().map(|c| share(random, c)).collect(),
            origin: (0..n_features).map(|_| random.below(5) as i64 - 1).collect(),
            group: (0..n_features).map(|_| random.below(4) as i64 - 1).collect(),
            cost,
        }
    }

    /// The prices of these features, in this order.
    pub fn select(&self, features: &[usize]) -> Prices {
        let of = |values: &[f64]| features.iter().map(|&f| values[f]).collect();
        let names = |values: &[i64]| features.iter().map(|&f| values[f]).collect();
        Prices {
            cost: of(&self.cost),
            discount: of(&self.discount),
            origin: names(&self.origin),
            group: names(&self.group),
        }
    }

    /// Price of a feature per unit of weight, by its definition.
    pub fn of(&self, feature: usize, above: &[usize]) -> f64 {
        let shared =
            |of: &[i64]| of[feature] >= 0 && above.iter().any(|&other| of[other] == of[feature]);
        if above.contains(&feature) || shared(&self.origin) {
            0.0
        } else if shared(&self.group) {
            self.discount[feature].min(self.cost[feature])
        } else {
            self.cost[feature]
        }
    }
}

/// The instance with the changes that a task requires.
pub fn suited(mut instance: Instance, task: &str) -> Instance {
    let Instance { sample, group, labels, .. } = &mut instance;
    if BRIER.contains(&task) {
        sample.entry = None;
    }
    if task == "confusion" {
        // The front is compared to the last bit.
        sample.weight.iter_mut().for_each(|w| *w = w.ceil());
    }
    if task == OUTSIDE {
        sample.weight.iter_mut().for_each(|w| *w = 1.0 + (*w * 8.0).floor() % 3.0);
    }
    if task.starts_with("fair") {
        // Every leaf needs weight for its curve, and some time for its restricted mean.
        sample.weight.iter_mut().filter(|w| **w == 0.0).for_each(|w| *w = 1.0);
        if sample.time.iter().all(|&t| t == 0.0) {
            sample.time.fill(1.0);
        }
    }
    let n = rows_of_groups(task);
    if labels.len() >= n {
        // Both groups have a row of every class that enters their rates.
        group[..n].copy_from_slice(&[false, true, false, true][..n]);
        labels[..n].copy_from_slice(&[0, 0, 1, 1][..n]);
        sample.weight[..n].iter_mut().for_each(|w| *w = w.max(0.5));
    }
    instance
}

/// Number of rows that the two groups need in total.
fn rows_of_groups(task: &str) -> usize {
    match task {
        "capacity" => 0,
        "equalized-odds" => 4,
        task => 2 * usize::from(LIMITED.contains(&task)),
    }
}

/// Group of every row. There are three groups if the task compares one rate and each group has a
/// row in it, else two.
pub fn groups(instance: &Instance, task: &str) -> Vec<i64> {
    let Instance { sample, labels, group, .. } = instance;
    let third = |i: usize| !group[i] && (sample.time[i].to_bits() >> 30) % 3 == 2;
    let of = |i: usize| if third(i) { 2 } else { i64::from(group[i]) };
    let three: Vec<i64> = (0..group.len()).map(of).collect();
    let counts =
        |i: usize| (task == "demographic-parity" || labels[i] == 0) && sample.weight[i] > 0.0;
    let has_rows = |g: i64| (0..group.len()).any(|i| three[i] == g && counts(i));
    let one_rate = PARITY.contains(&task) && task != "equalized-odds";
    if one_rate && has_rows(0) && has_rows(2) {
        return three;
    }
    group.iter().map(|&g| i64::from(g)).collect()
}

/// Minimum rows of every class in a leaf; None without a minimum.
pub fn fewest(instance: &Instance, question: &Question) -> Option<usize> {
    let most = (question.task == "policy").then_some(question.parameters.fewest)?;
    let rows: Vec<usize> = (0..instance.labels.len()).collect();
    (most > 0).then(|| most.min(rarest(instance, &rows)))
}

/// Number of these rows in the rarest class, which may be 0.
pub fn rarest(instance: &Instance, rows: &[usize]) -> usize {
    let last = instance.labels.iter().copied().max().unwrap_or(0);
    let of = |class: usize| rows.iter().filter(|&&row| instance.labels[row] == class).count();
    (0..=last).map(of).min().unwrap_or(0)
}

/// Weights of the rows in the rates of their groups.
pub fn group_weights(instance: &Instance, question: &Question) -> Vec<f64> {
    let rows = instance.sample.weight.iter().zip(&instance.labels);
    let factor = question.parameters.class_factor;
    rows.map(|(weight, &label)| if label == 0 { *weight } else { weight * factor }).collect()
}

/// Whether there are too few rows for the groups.
pub fn lacks_a_group(instance: &Instance, task: &str) -> bool {
    instance.rows().len() < rows_of_groups(task)
}

/// The values of an instance in the types of the registry.
pub struct Arrays<'a> {
    instance: &'a Instance,
    question: &'a Question,
    labels: Vec<i64>,
    group: Vec<i64>,
    group_weight: Vec<f64>,
    costs: Vec<f64>,
    rewards: Vec<f64>,
    capacity: Vec<f64>,
    cause: Vec<i64>,
    cause_weights: Vec<f64>,
    counts: Vec<f64>,
    exposure: Vec<f64>,
    smoothed: Option<Vec<f64>>,
    shares: Option<Vec<f64>>,
}

impl<'a> Arrays<'a> {
    pub fn new(instance: &'a Instance, question: &'a Question) -> Self {
        let binary = BINARY.contains(&question.task);
        let code = |&label: &usize| if binary { i64::from(label == 0) } else { label as i64 };
        Arrays {
            labels: instance.labels.iter().map(code).collect(),
            group: match question.task {
                "policy" => instance.labels.iter().map(|&k| k as i64).collect(),
                task => groups(instance, task),
            },
            group_weight: group_weights(instance, question),
            costs: instance.costs.concat(),
            rewards: losses(instance).concat().iter().map(|loss| -loss).collect(),
            capacity: question.parameters.capacity(instance),
            cause: cause(instance),
            cause_weights: question.parameters.importance(instance),
            counts: counts(instance),
            exposure: exposure(instance),
            smoothed: smoothed_events(instance, question),
            shares: shares(instance, question).map(|rows| rows.concat()),
            instance,
            question,
        }
    }

    pub fn columns(&self) -> impl Iterator<Item = (&'static str, Column<'_>)> {
        let names = columns_of(self.question.task).iter().chain(&["weight"]);
        // In the registry, counts are named `target`.
        let known = |name| if name == "counts" { "target" } else { name };
        names.filter_map(move |&name| Some((known(name), self.column(name)?)))
    }

    fn column(&self, name: &str) -> Option<Column<'_>> {
        let (Instance { sample, n_classes, target, .. }, question) = (self.instance, self.question);
        let parameters = &question.parameters;
        let prices = &parameters.prices;
        Some(match name {
            "weight" => Column::Numbers(&sample.weight),
            "time" => Column::Numbers(&sample.time),
            "event" => Column::Flags(&sample.event),
            "entry" => Column::Numbers(sample.entry.as_deref()?),
            "smoothed" => Column::Numbers(self.smoothed.as_deref()?),
            "prior" => Column::Number(parameters.prior),
            "leaf_curve" => Column::Word(parameters.curve),
            // Shares replace labels.
            "labels" | "n_classes" if self.shares.is_some() => return None,
            "shares" => Column::Table { values: self.shares.as_deref()?, width: *n_classes },
            "labels" => Column::Codes(&self.labels),
            "n_classes" => Column::Number(*n_classes as f64),
            "costs" => Column::Table { values: &self.costs, width: *n_classes },
            "rewards" => Column::Table { values: &self.rewards, width: *n_classes },
            "target" => Column::Numbers(target),
            "cause" => Column::Codes(&self.cause),
            "cause_weights" => Column::Numbers(&self.cause_weights),
            "counts" => Column::Numbers(&self.counts),
            "exposure" => Column::Numbers(&self.exposure),
            "feature_cost" => Column::Numbers(&prices.cost),
            "feature_discount" => Column::Numbers(&prices.discount),
            "feature_origin" => Column::Codes(&prices.origin),
            "feature_group" => Column::Codes(&prices.group),
            "group" | "fewest" if question.task == "policy" => {
                let fewest = fewest(self.instance, question)?;
                let group = name == "group";
                if group { Column::Codes(&self.group) } else { Column::Number(fewest as f64) }
            }
            "group" => Column::Codes(&self.group),
            "group_weight" => Column::Numbers(&self.group_weight),
            "beta" => Column::Number(parameters.beta),
            "delta" => Column::Number(parameters.delta(question.task, self.instance)),
            "tau" => Column::Number(parameters.tau(self.instance)),
            "capacity" => Column::Numbers(&self.capacity),
            _ => panic!("no column {name}"),
        })
    }
}

/// Cause of every event: 1, 2, … without gaps, each with some weight; 0 without an event.
pub fn cause(instance: &Instance) -> Vec<i64> {
    let Instance { sample, labels, n_classes, .. } = instance;
    let counted = |k: usize| {
        (0..labels.len()).any(|i| sample.event[i] && labels[i] == k && sample.weight[i] > 0.0)
    };
    let known: Vec<usize> = (0..(*n_classes).min(MOST_CAUSES)).filter(|&k| counted(k)).collect();
    // Events of other classes have the first cause.
    let of = |k: usize| known.iter().position(|&of| of == k).unwrap_or(0) as i64 + 1;
    let pairs = sample.event.iter().zip(labels);
    pairs.map(|(&event, &k)| if event { of(k) } else { 0 }).collect()
}

/// For every cause with a positive weight: the rows with its events, and that weight.
pub fn causes(instance: &Instance, question: &Question) -> Vec<(Sample, f64)> {
    let cause = cause(instance);
    let of_cause = |(k, importance): (i64, f64)| {
        let event = cause.iter().map(|&c| c == k).collect();
        (Sample { event, ..instance.sample.clone() }, importance)
    };
    let importance = question.parameters.importance(instance);
    (1..).zip(importance).filter(|pair| pair.1 > 0.0).map(of_cause).collect()
}

/// Counts; some are fractions.
pub fn counts(instance: &Instance) -> Vec<f64> {
    let share = |t: &f64| if (t.to_bits() >> 40) % 5 == 4 { 0.25 } else { 1.0 };
    instance.labels.iter().zip(&instance.sample.time).map(|(&k, t)| k as f64 * share(t)).collect()
}

/// Exposures of the rows: multiples of a sixteenth that depend on the times.
pub fn exposure(instance: &Instance) -> Vec<f64> {
    let digits = |t: &f64| (t.to_bits() >> 30) % 97;
    instance.sample.time.iter().map(|t| (digits(t) + 1) as f64 / 16.0).collect()
}

/// The negative rewards of policies, some above 0 and some below.
pub fn losses(instance: &Instance) -> Vec<Vec<f64>> {
    instance.costs.iter().map(|row| row.iter().map(|cost| cost - 0.5).collect()).collect()
}

/// Smoothed events, which replace the observed ones.
pub fn smoothed_events(instance: &Instance, question: &Question) -> Option<Vec<f64>> {
    let smoothing = question.parameters.smoothing.filter(|_| question.task == "likelihood")?;
    Some(smoothing.events(instance))
}

/// Shares of the classes in every row, which replace labels.
pub fn shares(instance: &Instance, question: &Question) -> Option<Vec<Vec<f64>>> {
    let smoothing = question.parameters.smoothing;
    let smoothing = smoothing.filter(|_| ["gini", "entropy"].contains(&question.task))?;
    Some(smoothing.shares(instance))
}
