//! Random questions, put to the search and to the oracle.
//!
//! A failure is reduced to the rows and features it needs before it is reported.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bristlecone_core::data::BinaryMatrix;
use bristlecone_core::error::Error;
use bristlecone_core::registry::{self, Column, Columns, Prepared, Problem, Visitor};
use bristlecone_core::search::{Alternative, Monitor, Near, Settings, Solution, Status};
use bristlecone_oracle::accuracy::misclassified;
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::{Limits, Tree, best, sums};

/// Instances per test, in units that suit each; unoptimised builds do a tenth.
pub const SCALE: u64 = if cfg!(debug_assertions) { 1 } else { 10 };

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    Likelihood,
    /// Another sum task of the registry.
    Sum(&'static str),
}

impl Objective {
    pub const ACCURACY: Objective = Objective::Sum("accuracy");

    /// Its name in the registry.
    fn name(self) -> &'static str {
        match self {
            Objective::Likelihood => "likelihood",
            Objective::Sum(name) => name,
        }
    }
}

impl Arrays {
    fn new(instance: &Instance) -> Self {
        let labels = instance.labels.iter().map(|&label| label as i64).collect();
        Arrays { labels, costs: instance.costs.concat() }
    }
}

/// An objective within this of the least one (relative to the larger of 1 and itself) is
/// certified as optimal: the resolution of statistics in fixed point.
pub const CERTIFIED: f64 = 1e-9;

/// What to ask about an instance.
#[derive(Clone, Debug)]
pub struct Question {
    pub objective: Objective,
    pub limits: Limits,
    pub leaf_penalty: f64,
    /// Fewest events per leaf; only of the likelihood, as the prior is.
    pub min_events: usize,
    pub prior: f64,
}

/// Arrays of an instance as the registry takes them.
struct Arrays {
    labels: Vec<i64>,
    costs: Vec<f64>,
}

impl Question {
    pub fn random(seed: u64, objective: Objective, depths: &[usize]) -> Question {
        let random = &mut Random::new(!seed);
        let min_leaf = if random.chance(0.5) { 1 } else { 1 + random.below(6) };
        let max_leaves = random.chance(0.5).then(|| 1 + random.below(17));
        let leaf_penalty = if random.chance(0.5) { 0.0 } else { 10f64.powf(-3.5 * random.unit()) };
        let limits = Limits { max_depth: random.pick(depths), max_leaves, min_leaf };
        let survival = objective == Objective::Likelihood;
        let min_events = if survival && random.chance(0.5) { random.below(5) } else { 0 };
        let prior = if survival && random.chance(0.5) {
            10f64.powf(5.0 * random.unit() - 2.0)
        } else {
            0.0
        };
        Question { objective, limits, leaf_penalty, min_events, prior }
    }

    pub fn settings(&self) -> Settings {
        Settings {
            max_depth: self.limits.max_depth,
            max_leaves: self.limits.max_leaves,
            min_leaf: self.limits.min_leaf,
            min_events: self.least_events(),
            ..Settings::default()
        }
    }

    /// Fewest events of a leaf; other tasks have none.
    fn least_events(&self) -> usize {
        if self.objective == Objective::Likelihood { self.min_events } else { 0 }
    }

    /// The question without what only survival trees have.
    pub fn without_events(&self) -> Question {
        Question { min_events: 0, prior: 0.0, ..self.clone() }
    }

    /// Whether all rows may be a leaf, as they may where any tree is allowed.
    fn allows_a_tree(&self, instance: &Instance) -> bool {
        let (rows, sample) = (instance.rows(), &instance.sample);
        rows.len() >= self.limits.min_leaf && sample.n_events(&rows) >= self.least_events()
    }

    /// Normalised cost of a leaf, by the oracle; infinite with too few events.
    pub fn cost<'a>(&self, instance: &'a Instance) -> impl Fn(&[usize]) -> f64 + 'a {
        let sample = &instance.sample;
        let (labels, k, weight) = (&instance.labels, instance.n_classes, &sample.weight);
        let (objective, penalty) = (self.objective, self.leaf_penalty);
        let (hazard, total) = (sample.baseline_hazard(), sample.total_weight());
        let (min_events, prior) = (self.least_events(), self.prior);
        let balanced = sums::balanced_weights(labels, k, weight);
        move |leaf| {
            let mean = match objective {
                Objective::Likelihood if sample.n_events(leaf) < min_events => f64::INFINITY,
                Objective::Likelihood if prior > 0.0 => {
                    sample.loss_under_prior(&hazard, leaf, prior) / total
                }
                Objective::Likelihood => sample.likelihood_loss(&hazard, leaf) / total,
                Objective::Sum(task) => match task {
                    "accuracy" => misclassified(leaf, labels, weight) / total,
                    "balanced-accuracy" => misclassified(leaf, labels, &balanced),
                    "label-costs" => sums::cheapest_label(leaf, &instance.costs, weight) / total,
                    "gini" => sums::gini(leaf, labels, k, weight) / total,
                    "entropy" => sums::entropy(leaf, labels, k, weight) / total,
                    "regression" => sums::squared_error(leaf, &instance.target, weight) / total,
                    _ => panic!("{task} has no oracle"),
                },
            };
            mean + penalty
        }
    }

    /// The optimum, by the oracle; infinite when no tree is allowed.
    pub fn optimum(&self, instance: &Instance) -> f64 {
        best(&instance.features, &instance.rows(), &self.limits, self.cost(instance))
    }

    pub fn solve(&self, instance: &Instance, settings: &Settings) -> Result<Solution, Error> {
        self.solve_until(instance, settings, &|| false)
    }

    pub fn solve_until(
        &self,
        instance: &Instance,
        settings: &Settings,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Solution, Error> {
        self.ask(instance, settings, interrupted, |task, x, monitor| {
            task.solve(x, settings, monitor)
        })
    }

    /// The best trees of every number of leaves, by one search.
    pub fn solve_path_until(
        &self,
        instance: &Instance,
        settings: &Settings,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Solution>, Error> {
        self.ask(instance, settings, interrupted, |task, x, monitor| {
            task.path(x, settings, monitor)
        })
    }

    /// Prepares the task of this question by its name, and asks it.
    fn ask<R>(
        &self,
        instance: &Instance,
        settings: &Settings,
        interrupted: &(dyn Fn() -> bool + Sync),
        ask: impl FnOnce(&Prepared, &BinaryMatrix, &Monitor) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (matrix, monitor) = (matrix(instance), Monitor::new(None, interrupted));
        let arrays = Arrays::new(instance);
        let problem = self.problem(instance, &arrays, settings);
        ask(&registry::prepare(self.objective.name(), &problem)?, &matrix, &monitor)
    }

    /// Hands on the task of this question.
    pub fn visit<V: Visitor>(
        &self,
        instance: &Instance,
        settings: &Settings,
        visitor: V,
    ) -> Result<V::Output, Error> {
        let arrays = Arrays::new(instance);
        let problem = self.problem(instance, &arrays, settings);
        let visited = registry::visit(self.objective.name(), &problem, visitor)?;
        Ok(visited.expect("a sum task"))
    }

    fn problem<'a>(
        &self,
        instance: &'a Instance,
        arrays: &'a Arrays,
        settings: &Settings,
    ) -> Problem<'a> {
        let sample = &instance.sample;
        let mut columns = Columns::default();
        columns.insert("weight", Column::Numbers(&sample.weight));
        match self.objective.name() {
            "likelihood" => {
                columns.insert("time", Column::Numbers(&sample.time));
                columns.insert("event", Column::Flags(&sample.event));
                columns.insert("prior", Column::Number(self.prior));
                if let Some(entry) = &sample.entry {
                    columns.insert("entry", Column::Numbers(entry));
                }
            }
            "label-costs" => {
                let width = instance.n_classes;
                columns.insert("costs", Column::Table { values: &arrays.costs, width });
            }
            "regression" => columns.insert("target", Column::Numbers(&instance.target)),
            _ => {
                columns.insert("labels", Column::Codes(&arrays.labels));
                columns.insert("n_classes", Column::Number(instance.n_classes as f64));
            }
        }
        Problem {
            columns,
            n_rows: instance.rows().len(),
            n_features: instance.n_features(),
            leaf_penalty: self.leaf_penalty,
            max_leaves: settings.most_leaves(),
        }
    }

    /// Trees within `slack` of the optimum.
    pub fn near_optimal(
        &self,
        instance: &Instance,
        settings: &Settings,
        most: (f64, usize),
    ) -> Result<Near, Error> {
        self.ask(instance, settings, &|| false, |task, x, monitor| {
            task.near_optimal(x, settings, monitor, most)
        })
    }

    /// Other questions at the splits of a tree.
    pub fn alternatives(
        &self,
        instance: &Instance,
        settings: &Settings,
        tree: &bristlecone_core::tree::Tree,
    ) -> Result<Vec<Alternative>, Error> {
        self.ask(instance, settings, &|| false, |task, x, monitor| {
            task.alternatives(x, settings, monitor, tree).map(|(found, _)| found)
        })
    }

    /// The solution of an instance on which some tree is allowed.
    pub fn solution(&self, instance: &Instance, settings: &Settings) -> Result<Solution, String> {
        self.solve(instance, settings).map_err(|e| e.to_string())
    }
}

pub fn matrix(instance: &Instance) -> BinaryMatrix {
    let bytes: Vec<u8> = instance.features.iter().flatten().map(|&v| u8::from(v)).collect();
    let matrix = BinaryMatrix::from_bytes(instance.rows().len(), instance.n_features(), &bytes);
    matrix.expect("a byte per entry")
}

pub fn oracle_tree(tree: &bristlecone_core::tree::Tree) -> Tree {
    Tree { feature: tree.feature.clone(), left: tree.left.clone(), right: tree.right.clone() }
}

/// Whether two objectives agree up to `relative` of the larger of 1 and the expected one.
pub fn agree(what: &str, actual: f64, expected: f64, relative: f64) -> Result<(), String> {
    let close = (actual - expected).abs() <= relative * expected.abs().max(1.0);
    let close = close && expected.is_finite();
    if close { Ok(()) } else { Err(format!("{what} {actual:?} instead of {expected:?}")) }
}

pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

pub fn agree_on_status(solution: &Solution, expected: Status) -> Result<(), String> {
    ensure(solution.status == expected, || format!("{:?} not {expected:?}", solution.status))
}

/// Runs `check` on a random instance and question per seed; reduces and reports a failure.
pub fn for_each(
    seeds: u64,
    (max_rows, max_features): (usize, usize),
    depths: &[usize],
    check: impl Fn(&Instance, &Question) -> Result<(), String>,
) {
    let guarded = |instance: &Instance, question: &Question| {
        catch_unwind(AssertUnwindSafe(|| check(instance, question)))
            .unwrap_or_else(|_| Err("panic".into()))
    };
    for seed in 0..seeds {
        let instance = Instance::random(seed, max_rows, max_features);
        let objective = if seed % 2 == 0 {
            Objective::Likelihood
        } else {
            let others: Vec<_> =
                registry::SUMS.iter().filter(|&&name| name != "likelihood").collect();
            Objective::Sum(others[seed as usize / 2 % others.len()])
        };
        let question = Question::random(seed, objective, depths);
        if guarded(&instance, &question).is_err() {
            let smallest = instance.minimise(|smaller| guarded(smaller, &question).is_err());
            let message = guarded(&smallest, &question).unwrap_err();
            panic!("seed {seed}: {message}\n{question:?}\n{smallest:?}");
        }
    }
}

/// As [`for_each`], for tasks without events.
#[allow(dead_code, reason = "shared with tests that have none")]
pub fn for_each_without_events(
    seeds: u64,
    size: (usize, usize),
    depths: &[usize],
    check: impl Fn(&Instance, &Question) -> Result<(), String>,
) {
    for_each(seeds, size, depths, |instance, question| check(instance, &question.without_events()));
}

/// As [`for_each`], where a tree is allowed: elsewhere there has to be an error, and that has to
/// be rare.
#[allow(dead_code, reason = "shared with tests that do without")]
pub fn for_each_allowed(
    seeds: u64,
    size: (usize, usize),
    depths: &[usize],
    check: impl Fn(&Instance, &Question) -> Result<(), String>,
) {
    let refused = Cell::new(0);
    for_each(seeds, size, depths, |instance, question| {
        if question.allows_a_tree(instance) {
            return check(instance, question);
        }
        refused.set(refused.get() + 1);
        let solved = question.solve(instance, &question.settings());
        ensure(solved.is_err(), || "a tree where none is allowed".into())
    });
    assert!(6 * refused.get() < seeds, "{} of {seeds} allow no tree", refused.get());
}
