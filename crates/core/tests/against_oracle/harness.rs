//! Random questions about named tasks, which both the search and the oracle answer.
//!
//! Before a failure is reported, its instance is reduced to the rows and features that it needs.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bristlecone_core::data::{BinaryMatrix, RankMatrix};
use bristlecone_core::error::Error;
use bristlecone_core::registry::{
    self, Column, Columns, Entry, Outside, Prepared, Problem, Visitor,
};
use bristlecone_core::search::batch::Statistics;
use bristlecone_core::search::fronts::{Front, FrontPoint};
use bristlecone_core::search::{
    Alternative, Monitor, Near, Settings, Solution, Status, TracePoint,
};
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::{
    Limits, Real, Tree, admit_tree, all_costs, all_trees, best_by_leaves, price_tree, score_tree,
};

use crate::losses::{self, Components, Loss};
use crate::own::{self, USERS};
use crate::tasks::{self, Arrays, OUTSIDE, Parameters};

/// Factor for the number of instances of each test. It is a tenth in unoptimised builds, and in
/// those of `just test`, which set the variable.
pub const SCALE: u64 = match option_env!("BRISTLECONE_QUICK") {
    None if !cfg!(debug_assertions) => 10,
    _ => 1,
};

/// Whether tests have few instances, so that shares of them vary more.
pub const IS_QUICK: bool = SCALE < 10;

/// An objective is certified as optimal if it exceeds the least one by at most this share of its
/// terms.
pub const CERTIFIED: f64 = 1e-9;

/// Largest error of an objective that is computed from the rows, as a share of its terms: 2^−46.
pub const EVALUATED: f64 = 1.0 / (1u64 << 46) as f64;

/// What is asked about an instance: the task and its settings.
#[derive(Clone, Debug)]
pub struct Question {
    pub task: &'static str,
    pub limits: Limits,
    pub leaf_penalty: f64,
    /// Fewest events per leaf; 0 for tasks without events.
    pub min_events: usize,
    pub parameters: Parameters,
}

impl Question {
    pub fn random(seed: u64, task: &'static str, n_features: usize, depths: &[usize]) -> Question {
        let random = &mut Random::new(!seed);
        let min_leaf = if random.chance(0.5) { 1 } else { 1 + random.below(6) };
        let max_leaves = random.chance(0.5).then(|| 1 + random.below(17));
        let leaf_penalty = match random.below(20) {
            0..10 => 0.0,
            10 => 10f64.powf(4.0 * random.unit()),
            11..13 => random.pick(&[0.005, 0.01, 0.02]),
            _ => 10f64.powf(-3.5 * random.unit()),
        };
        let limits = Limits { max_depth: random.pick(depths), max_leaves, min_leaf };
        let events = tasks::WITH_EVENTS.contains(&task) && random.chance(0.5);
        Question {
            task,
            leaf_penalty: if task == "confusion" { 0.0 } else { leaf_penalty },
            min_events: if events { random.below(5) } else { 0 },
            parameters: Parameters::random(random, n_features, limits.max_depth),
            limits,
        }
    }

    /// A question without a penalty, for tests in which other parameters do not matter.
    pub fn of(task: &'static str, max_depth: usize) -> Question {
        let limits = Limits { max_depth, max_leaves: None, min_leaf: 1 };
        let mut parameters = Parameters::random(&mut Random::new(0), 0, max_depth);
        (parameters.prior, parameters.smoothing) = (0.0, None);
        Question { task, limits, leaf_penalty: 0.0, min_events: 0, parameters }
    }
}

/// The answer of a search for one tree, of any family.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The tree, with the labels of its nodes if the search also chooses labels.
    pub tree: Option<(Tree, Vec<i64>)>,
    pub objective: f64,
    pub lower_bound: f64,
    pub status: Status,
    pub nodes: u64,
    pub n_columns: usize,
    pub trace: Vec<TracePoint>,
}

impl From<Solution> for Answer {
    fn from(s: Solution) -> Answer {
        let Solution { objective, lower_bound, status, nodes, n_columns, .. } = s;
        let tree = objective.is_finite().then(|| (oracle_tree(&s.tree), vec![]));
        Answer { tree, objective, lower_bound, status, nodes, n_columns, trace: s.trace }
    }
}

impl From<Front> for Answer {
    fn from(front: Front) -> Answer {
        let Front { objective, lower_bound, status, nodes, n_columns, .. } = front;
        let tree = |point: &FrontPoint| (oracle_tree(&point.tree), point.labels.clone());
        let tree = front.best.map(|best| tree(&front.points[best]));
        Answer { tree, objective, lower_bound, status, nodes, n_columns, trace: front.trace }
    }
}

impl Answer {
    /// Number of leaves; 0 without a tree.
    pub fn n_leaves(&self) -> usize {
        self.tree.as_ref().map_or(0, |(tree, _)| tree.n_leaves())
    }
}

/// When a search is stopped.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// Never.
    End,
    /// When it has asked this many times whether to stop.
    Asked(u64),
    /// At once, by a time limit of 0.
    Now,
}

/// An instance with a question about it.
#[derive(Clone, Debug)]
pub struct Case {
    pub instance: Instance,
    pub question: Question,
    /// Columns whose thresholds are the features, if the search receives these columns.
    pub ranks: Option<RankMatrix>,
}

impl Case {
    pub fn new(instance: &Instance, question: &Question) -> Case {
        let instance = tasks::suited(instance.clone(), question.task);
        Case { instance, question: question.clone(), ranks: None }
    }

    /// The same rows with one number for every `together` features: how many of them are true. The
    /// features become thresholds of these numbers, and the search receives the numbers.
    pub fn of_ranks(&self, together: usize) -> Case {
        let n = self.instance.rows().len();
        let (mut ranks, mut features) = (Vec::new(), vec![Vec::new(); n]);
        for first in (0..self.instance.n_features()).step_by(together) {
            let of_row =
                |row: &Vec<bool>| row[first..].iter().take(together).filter(|v| **v).count();
            let column: Vec<usize> = self.instance.features.iter().map(of_row).collect();
            for r in 0..column.iter().copied().max().unwrap_or(0) {
                features.iter_mut().zip(&column).for_each(|(row, &rank)| row.push(rank <= r));
            }
            ranks.extend(column.iter().map(|&rank| rank as u32));
        }
        let n_columns = ranks.len() / n;
        let instance = Instance { features, ..self.instance.clone() };
        let ranks = RankMatrix::new(n, n_columns, ranks).expect("an entry per row and column");
        Case { instance, ranks: Some(ranks), ..self.clone() }
    }

    pub fn entry(&self) -> Entry {
        let all = tasks::entries().into_iter();
        all.into_iter().find(|entry| entry.name == self.question.task).expect("a task")
    }

    pub fn settings(&self) -> Settings {
        let Limits { max_depth, max_leaves, min_leaf } = self.question.limits;
        let min_events = self.question.min_events;
        Settings::default().with_limits(|s| {
            s.max_depth = max_depth;
            s.max_leaves = max_leaves;
            s.min_leaf = min_leaf;
            s.min_events = min_events;
        })
    }

    /// The case with only these rows and features, in this order.
    pub fn select(&self, rows: &[usize], features: &[usize]) -> Case {
        let mut question = self.question.clone();
        question.parameters.prices = question.parameters.prices.select(features);
        Case { instance: self.instance.select(rows, features), question, ranks: None }
    }

    /// Prepares the task by its name, and calls `ask` with it.
    fn ask<R>(
        &self,
        monitor: &Monitor,
        ask: impl FnOnce(&Prepared, &BinaryMatrix, &Monitor) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (instance, question) = (&self.instance, &self.question);
        let matrix = matrix(instance);
        if question.task == OUTSIDE {
            let statistics = Statistics::new(&own::statistics(instance), 3)?;
            let outside = Outside {
                task: &USERS[question.parameters.user],
                statistics: &statistics,
                total_weight: instance.sample.total_weight(),
                leaf_penalty: question.leaf_penalty,
            };
            return ask(&Prepared::Outside(outside), &matrix, monitor);
        }
        let arrays = Arrays::new(instance, question);
        ask(&registry::prepare(question.task, &self.problem(&arrays))?, &matrix, monitor)
    }

    /// The best tree, given the losses of a reference model.
    pub fn beside(&self, losses: &[f64], monitor: &Monitor) -> Result<Answer, Error> {
        let arrays = Arrays::new(&self.instance, &self.question);
        let mut problem = self.problem(&arrays);
        problem.columns.insert("reference_loss", Column::Numbers(losses));
        let task = registry::prepare(self.question.task, &problem)?;
        task.solve(&matrix(&self.instance), &self.settings(), monitor).map(Answer::from)
    }

    fn problem<'a>(&self, arrays: &'a Arrays<'a>) -> Problem<'a> {
        let mut columns = Columns::default();
        arrays.columns().for_each(|(name, column)| columns.insert(name, column));
        Problem {
            columns,
            n_rows: self.instance.rows().len(),
            n_features: self.instance.n_features(),
            leaf_penalty: self.question.leaf_penalty,
            max_leaves: self.settings().limits.most_leaves(),
        }
    }

    /// Calls the visitor with the task, which must be a sum task.
    pub fn visit<V: Visitor>(&self, visitor: V) -> V::Output {
        let arrays = Arrays::new(&self.instance, &self.question);
        let visited = registry::visit(self.question.task, &self.problem(&arrays), visitor);
        let accepted = visited.unwrap_or_else(|error| {
            panic!("{} refuses this instance, change it in `suited`: {error:?}", self.question.task)
        });
        accepted.expect("a sum task")
    }

    /// The best tree, and everything that the search reports to its callback.
    pub fn search(
        &self,
        settings: &Settings,
        until: Until,
    ) -> Result<(Answer, Vec<TracePoint>), Error> {
        let reports = Mutex::new(Vec::new());
        let progress = |point: &TracePoint| reports.lock().expect("no panic").push(*point);
        let answer =
            self.within(until, |monitor| self.on(settings, &monitor.with_progress(&progress)))?;
        Ok((answer, reports.into_inner().expect("no panic")))
    }

    /// The best tree, with a given monitor.
    pub fn on(&self, settings: &Settings, monitor: &Monitor) -> Result<Answer, Error> {
        let by_fronts = self.entry().asks.contains(&"front");
        if let Some(ranks) = &self.ranks {
            let ask = |task: &Prepared, _: &BinaryMatrix, m: &Monitor| {
                task.over_thresholds(ranks, settings, m).map(Answer::from)
            };
            return self.ask(monitor, ask);
        }
        self.ask(monitor, |task, x, m| match by_fronts {
            true => task.front(x, settings, m).map(Answer::from),
            false => task.solve(x, settings, m).map(Answer::from),
        })
    }

    /// The best tree, by the search that is not for fronts.
    pub fn ask_to_solve(&self) -> Result<Answer, Error> {
        let monitor = Monitor::new(None, &|| false);
        self.ask(&monitor, |task, x, m| task.solve(x, &self.settings(), m).map(Answer::from))
    }

    /// The best tree; an error is a text.
    pub fn solve(&self, settings: &Settings) -> Result<Answer, String> {
        self.on(settings, &Monitor::new(None, &|| false)).map_err(|e| e.to_string())
    }

    /// The best tree for every number of leaves, in one search.
    pub fn path(&self, settings: &Settings, until: Until) -> Result<Vec<Answer>, String> {
        let path = self.within(until, |monitor| self.path_on(settings, &monitor));
        path.map_err(|e| e.to_string())
    }

    /// The same, with a given monitor.
    pub fn path_on(&self, settings: &Settings, monitor: &Monitor) -> Result<Vec<Answer>, Error> {
        let path = self.ask(monitor, |task, x, m| task.path(x, settings, m))?;
        Ok(path.into_iter().map(Answer::from).collect())
    }

    /// The whole front.
    pub fn front(&self, settings: &Settings, until: Until) -> Result<Front, Error> {
        self.within(until, |monitor| self.ask(&monitor, |task, x, m| task.front(x, settings, m)))
    }

    /// The trees near the optimum.
    pub fn near_optimal(&self, most: (f64, usize)) -> Result<Near, String> {
        let settings = self.settings();
        let monitor = Monitor::new(None, &|| false);
        self.ask(&monitor, |task, x, m| task.near_optimal(x, &settings, m, most))
            .map_err(|e| e.to_string())
    }

    /// Alternatives for the splits of a tree.
    pub fn alternatives(&self, tree: &Tree) -> Result<Vec<Alternative>, String> {
        let settings = self.settings();
        let Tree { feature, left, right } = tree.clone();
        let tree = bristlecone_core::tree::Tree { feature, left, right };
        let monitor = Monitor::new(None, &|| false);
        let found = self.ask(&monitor, |task, x, m| task.alternatives(x, &settings, m, &tree));
        found.map(|(found, _)| found).map_err(|e| e.to_string())
    }

    fn within<R>(&self, until: Until, search: impl FnOnce(Monitor) -> R) -> R {
        let asked = AtomicU64::new(0);
        let stop = || match until {
            Until::Asked(patience) => asked.fetch_add(1, Ordering::Relaxed) >= patience,
            Until::End | Until::Now => false,
        };
        let limit = matches!(until, Until::Now).then_some(Duration::ZERO);
        search(Monitor::new(limit, &stop))
    }

    /// Why a question has no answer: because of the rows, or because the task rejects the weights.
    fn refused(&self) -> Option<String> {
        let (instance, question) = (&self.instance, &self.question);
        let (rows, sample) = (instance.rows(), &instance.sample);
        if rows.len() < question.limits.min_leaf || sample.n_events(&rows) < question.min_events {
            return Some("no tree is allowed".into());
        }
        if tasks::lacks_a_group(instance, question.task) {
            return Some("a group without rows".into());
        }
        let prepared = self.ask(&Monitor::new(None, &|| false), |_, _, _| Ok(()));
        let reason = prepared.err()?.to_string();
        tasks::refuses_weights(question.task, &reason).then_some(reason)
    }

    /// The oracle's cost of rows as a leaf, including the penalty; infinite if they may not be a
    /// leaf. For tasks whose costs are numbers. The costs of known rows are remembered.
    pub fn leaf_cost(&self) -> impl Fn(&[usize]) -> Real {
        let Loss::Number(loss) = losses::loss(&self.instance, &self.question) else {
            panic!("{} is no sum of numbers", self.question.task)
        };
        let few = self.too_few();
        let penalty = Real::from(self.question.leaf_penalty);
        remembering(move |leaf| if few(leaf) { Real::INFINITY } else { loss(leaf) + penalty })
    }

    /// Whether a leaf has too few events, or too few rows of a class.
    fn too_few(&self) -> impl Fn(&[usize]) -> bool + use<'_> {
        let least = self.question.min_events;
        let of_class = tasks::fewest(&self.instance, &self.question).unwrap_or(0);
        move |leaf| {
            least > 0 && self.instance.sample.n_events(leaf) < least
                || of_class > 0 && tasks::rarest(&self.instance, leaf) < of_class
        }
    }

    /// The oracle's candidates for rows as a leaf, without penalties; none if they may not be a
    /// leaf. For tasks whose costs are vectors.
    pub fn candidates(&self) -> impl Fn(&[usize]) -> Vec<Components> {
        let Loss::Vector { of_label, .. } = losses::loss(&self.instance, &self.question) else {
            panic!("{} is a sum of numbers", self.question.task)
        };
        let few = self.too_few();
        remembering(move |leaf| if few(leaf) { vec![] } else { of_label(leaf) })
    }

    /// Entry `k` is the oracle's least objective of trees with at most `k + 1` leaves; infinite if
    /// no such tree is allowed.
    pub fn by_leaves(&self, limits: &Limits) -> Vec<f64> {
        let (features, rows) = (&self.instance.features, &self.instance.rows());
        match losses::loss(&self.instance, &self.question) {
            Loss::Number(_) => {
                let price = losses::price(&self.instance, &self.question);
                let least = best_by_leaves(features, rows, limits, self.leaf_cost(), price);
                least.into_iter().map(Real::to_f64).collect()
            }
            Loss::Vector { of_tree, .. } => {
                let mut least = Real::INFINITY;
                let penalty = Real::from(self.question.leaf_penalty);
                let lists = all_costs(features, rows, limits, self.candidates());
                let at_most = |(k, costs): (usize, Vec<Components>)| {
                    let penalties = Real::whole(k as u64 + 1) * penalty;
                    let objectives = costs.iter().map(|c| of_tree(c) + penalties);
                    least = objectives.fold(least, Real::min);
                    least.to_f64()
                };
                lists.into_iter().enumerate().map(at_most).collect()
            }
        }
    }

    /// The oracle's optimum; infinite if no tree is allowed.
    pub fn optimum(&self) -> f64 {
        *self.by_leaves(&self.question.limits).last().expect("a leaf")
    }

    /// The oracle's objective of a tree; an error if the limits do not allow it.
    pub fn score(&self, limits: &Limits, answer: &Answer) -> Result<f64, String> {
        let (tree, labels) = answer.tree.as_ref().ok_or("no tree")?;
        let (features, rows) = (&self.instance.features, &self.instance.rows());
        admit_tree(tree, features, rows, limits)?;
        match losses::loss(&self.instance, &self.question) {
            Loss::Number(_) => {
                let price = losses::price(&self.instance, &self.question);
                let leaves = score_tree(tree, features, rows, self.leaf_cost())?;
                Ok((leaves + price_tree(tree, features, rows, &price)).to_f64())
            }
            Loss::Vector { of_tree, .. } => {
                let penalty = Real::from(self.question.leaf_penalty);
                let penalties = Real::whole(tree.n_leaves() as u64) * penalty;
                Ok((of_tree(&self.components(tree, labels)?) + penalties).to_f64())
            }
        }
    }

    /// The oracle's mean absolute term of a tree, for tasks whose terms cancel.
    pub fn terms(&self, answer: &Answer) -> Result<f64, String> {
        let Some((tree, labels)) = &answer.tree else { return Ok(0.0) };
        Ok(self.terms_of(&tree.leaves(&self.instance.features, &self.instance.rows())?, labels))
    }

    /// The same for these leaves.
    pub fn terms_of(&self, leaves: &[Vec<usize>], labels: &[i64]) -> f64 {
        let penalties = leaves.len() as f64 * self.question.leaf_penalty;
        losses::terms(&self.instance, &self.question, leaves, labels) + penalties
    }

    /// Size to which errors of the objective are relative: the terms of the tree if these cancel,
    /// else the objective. For costs computed outside, errors are relative to floating-point sums.
    pub fn size(&self, answer: &Answer) -> Result<f64, String> {
        let terms = self.terms(answer)?.max(answer.objective.abs());
        let (Some((tree, _)), OUTSIDE) = (&answer.tree, self.question.task) else {
            return Ok(terms);
        };
        let leaves = tree.leaves(&self.instance.features, &self.instance.rows())?;
        let size: f64 = leaves.iter().map(|leaf| own::size(&self.instance, leaf)).sum();
        Ok(terms.max(size / self.instance.sample.total_weight()))
    }

    /// The oracle's components of the cost of a tree with these labels.
    pub fn components(&self, tree: &Tree, labels: &[i64]) -> Result<Components, String> {
        let leaves = tree.leaves(&self.instance.features, &self.instance.rows())?;
        let candidates = self.candidates();
        let labels = labels.iter().filter(|&&label| label >= 0);
        let mut sum = [Real::ZERO; 4];
        for (leaf, &label) in leaves.iter().zip(labels) {
            let cost = *candidates(leaf).get(label as usize).ok_or("no such label")?;
            sum = std::array::from_fn(|k| sum[k] + cost[k]);
        }
        Ok(sum)
    }

    /// All trees that the oracle finds, with their objectives.
    pub fn trees(&self, rows: &[usize], limits: &Limits) -> Vec<(f64, Tree)> {
        let all = all_trees(&self.instance.features, rows, limits, self.leaf_cost());
        let finite = all.into_iter().filter(|(cost, _)| cost.is_finite());
        finite.map(|(cost, tree)| (cost.to_f64(), tree)).collect()
    }
}

/// The same function of rows, which is called once for each set of rows.
fn remembering<R: Clone>(function: impl Fn(&[usize]) -> R) -> impl Fn(&[usize]) -> R {
    let known = RefCell::new(HashMap::<Vec<usize>, R>::new());
    move |rows| {
        if let Some(value) = known.borrow().get(rows) {
            return value.clone();
        }
        let value = function(rows);
        known.borrow_mut().insert(rows.to_vec(), value.clone());
        value
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

/// Checks that two numbers differ by at most `apart`. Both are infinite if there is no tree.
pub fn agree(what: &str, actual: f64, expected: f64, apart: f64) -> Result<(), String> {
    let close = actual == expected || expected.is_finite() && (actual - expected).abs() <= apart;
    if close { Ok(()) } else { Err(format!("{what} {actual:?} instead of {expected:?}")) }
}

pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Size of random problems: most rows, most features, and the depths.
pub type Size = (usize, usize, &'static [usize]);

/// The size of problems and the number of them (out of 8) that the oracle can solve for a task.
fn usual(task: &str) -> (Size, u64) {
    match task {
        "likelihood" => ((40, 6, &[0, 1, 2, 3, 4]), 8),
        "brier" => ((24, 6, &[0, 1, 2, 3]), 8),
        "priced-costs" => ((30, 6, &[1, 2, 3, 4]), 4),
        "capacity" => ((16, 4, &[0, 1, 2, 3]), 1),
        _ if tasks::sums().contains(&task) => ((40, 6, &[0, 1, 2, 3, 4]), 2),
        _ => ((20, 4, &[0, 1, 2, 3]), 1),
    }
}

/// Runs `check` on random problems of each task: up to `runs` problems, fewer for slow tasks.
///
/// A question without an answer must give an error. Such questions must be rare.
pub fn for_each(tasks: &[&'static str], runs: u64, check: impl Fn(&Case) -> Result<(), String>) {
    for task in tasks {
        let (size, share) = usual(task);
        for_each_of(&[task], (runs * share).div_ceil(8), size, &check);
    }
}

/// The same with `runs` problems of one size for each task.
pub fn for_each_of(
    tasks: &[&'static str],
    runs: u64,
    (max_rows, max_features, depths): Size,
    check: impl Fn(&Case) -> Result<(), String>,
) {
    for &task in tasks {
        let refused = Cell::new(0);
        let guarded = |instance: &Instance, question: &Question| {
            let case = Case::new(instance, question);
            let checked = || match case.refused() {
                None => check(&case),
                Some(why) => {
                    refused.set(refused.get() + 1);
                    let solved = case.solve(&case.settings());
                    ensure(solved.is_err(), || format!("an answer in spite of: {why}"))
                }
            };
            catch_unwind(AssertUnwindSafe(checked)).unwrap_or_else(|_| Err("panic".into()))
        };
        for seed in 0..runs {
            let instance = Instance::random(seed, max_rows, max_features);
            let question = Question::random(seed, task, instance.n_features(), depths);
            if let Err(message) = guarded(&instance, &question) {
                let smallest = instance.minimise(|smaller| guarded(smaller, &question).is_err());
                let message = guarded(&smallest, &question).err().unwrap_or(message);
                panic!("{task}, seed {seed}: {message}\n{question:?}\n{smallest:?}");
            }
        }
        let refused = refused.get();
        assert!(5 * refused <= runs + 10, "{refused} of {runs} of {task} have no answer");
    }
}
