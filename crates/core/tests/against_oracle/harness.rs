//! Random questions, put to the search and to the oracle.
//!
//! A failure is reduced to the rows and features it needs before it is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bristlecone_core::data::BinaryMatrix;
use bristlecone_core::error::Error;
use bristlecone_core::search::{
    Alternative, Monitor, Near, Settings, Solution, Status, alternatives, near_optimal, solve,
    solve_path,
};
use bristlecone_core::survival::Observations;
use bristlecone_core::task::likelihood::Likelihood;
use bristlecone_core::task::registry::{self, Named, Outcome, Problem, Visitor};
use bristlecone_oracle::accuracy::misclassified;
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::{Limits, Tree, best, sums};

/// Instances per test, in units that suit each; unoptimised builds do a tenth.
pub const SCALE: u64 = if cfg!(debug_assertions) { 1 } else { 10 };

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    Likelihood,
    /// A task of the registry.
    Sum(&'static str),
}

impl Objective {
    pub const ACCURACY: Objective = Objective::Sum("accuracy");
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

/// Evaluates an expression with the likelihood task of a question; with a prior it is of another
/// type.
macro_rules! with_likelihood {
    ($question:expr, $instance:expr, $task:ident => $result:expr) => {{
        let sample = &$instance.sample;
        let observations = Observations {
            time: &sample.time,
            event: &sample.event,
            weight: Some(&sample.weight),
            entry: sample.entry.as_deref(),
        };
        let (prior, penalty) = ($question.prior, $question.leaf_penalty);
        if prior == 0.0 {
            let $task = Likelihood::new(&observations, penalty)?;
            $result
        } else {
            let $task = Likelihood::with_prior(&observations, prior, penalty)?;
            $result
        }
    }};
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
        let (matrix, monitor) = (matrix(instance), Monitor::new(None, interrupted));
        let Objective::Sum(name) = self.objective else {
            return with_likelihood!(self, instance, task => {
                solve(&task, &matrix, settings, &monitor)
            });
        };
        let costs = instance.costs.concat();
        let problem = self.problem(instance, settings, name, &costs);
        registry::solve(&Named { name, problem }, &matrix, settings, &monitor)
    }

    /// The best trees of every number of leaves, by one search.
    pub fn solve_path_until(
        &self,
        instance: &Instance,
        settings: &Settings,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Solution>, Error> {
        let (matrix, monitor) = (matrix(instance), Monitor::new(None, interrupted));
        let Objective::Sum(name) = self.objective else {
            return with_likelihood!(self, instance, task => {
                solve_path(&task, &matrix, settings, &monitor)
            });
        };
        let costs = instance.costs.concat();
        let problem = self.problem(instance, settings, name, &costs);
        registry::solve_path(&Named { name, problem }, &matrix, settings, &monitor)
    }

    /// Hands on the task of this question.
    pub fn visit<V: Visitor>(
        &self,
        instance: &Instance,
        settings: &Settings,
        visitor: V,
    ) -> Result<V::Output, Error> {
        let Objective::Sum(name) = self.objective else {
            return with_likelihood!(self, instance, task => Ok(visitor.visit(&task)));
        };
        let costs = instance.costs.concat();
        registry::visit(name, &self.problem(instance, settings, name, &costs), visitor)
    }

    fn problem<'a>(
        &self,
        instance: &'a Instance,
        settings: &Settings,
        name: &str,
        costs: &'a [f64],
    ) -> Problem<'a> {
        let outcome = match name {
            "label-costs" => Outcome::Costs { costs, n_labels: instance.n_classes },
            "regression" => Outcome::Target(&instance.target),
            _ => Outcome::Labels { labels: &instance.labels, n_classes: instance.n_classes },
        };
        Problem {
            outcome,
            weights: Some(&instance.sample.weight),
            prices: None,
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
        let (matrix, monitor) = (matrix(instance), Monitor::new(None, &|| false));
        let Objective::Sum(name) = self.objective else {
            return with_likelihood!(self, instance, task => {
                near_optimal(&task, &matrix, settings, &monitor, most)
            });
        };
        let costs = instance.costs.concat();
        let problem = self.problem(instance, settings, name, &costs);
        registry::near_optimal(&Named { name, problem }, &matrix, settings, &monitor, most)
    }

    /// Other questions at the splits of a tree.
    pub fn alternatives(
        &self,
        instance: &Instance,
        settings: &Settings,
        tree: &bristlecone_core::tree::Tree,
    ) -> Result<Vec<Alternative>, Error> {
        let (matrix, monitor) = (matrix(instance), Monitor::new(None, &|| false));
        let Objective::Sum(name) = self.objective else {
            return with_likelihood!(self, instance, task => {
                alternatives(&task, &matrix, settings, &monitor, tree).map(|(found, _)| found)
            });
        };
        let costs = instance.costs.concat();
        let problem = self.problem(instance, settings, name, &costs);
        let named = Named { name, problem };
        registry::alternatives(&named, &matrix, settings, &monitor, tree).map(|(found, _)| found)
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
            Objective::Sum(registry::NAMES[seed as usize / 2 % registry::NAMES.len()])
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
    for_each(seeds, size, depths, |instance, question| {
        check(instance, &Question { min_events: 0, prior: 0.0, ..question.clone() })
    });
}
