//! Random questions, put to the search and to the oracle by the name of the task.
//!
//! A failure is reduced to the rows and features it needs before it is reported.

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

/// Instances per test, in units that suit each. Unoptimised builds and those of `just test`,
/// which set the variable, do a tenth of them.
pub const SCALE: u64 = match option_env!("BRISTLECONE_QUICK") {
    None if !cfg!(debug_assertions) => 10,
    _ => 1,
};

/// Whether shares of few instances may be a bit off their usual limits.
pub const IS_QUICK: bool = SCALE < 10;

/// An objective within this share of its terms of the least one is certified as optimal.
pub const CERTIFIED: f64 = 1e-9;

/// Share of its terms by which an objective from the rows may be off, 2^−46.
pub const EVALUATED: f64 = 1.0 / (1u64 << 46) as f64;

/// Question about an instance.
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

    /// One without penalty, in which all that is not said is of no matter.
    pub fn of(task: &'static str, max_depth: usize) -> Question {
        let limits = Limits { max_depth, max_leaves: None, min_leaf: 1 };
        let mut parameters = Parameters::random(&mut Random::new(0), 0, max_depth);
        (parameters.prior, parameters.smoothing) = (0.0, None);
        Question { task, limits, leaf_penalty: 0.0, min_events: 0, parameters }
    }
}

/// Answer of a search about the best tree, whatever its family.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The tree, and the labels of its nodes where it is a choice of labels, too.
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
    /// Number of leaves; none without a tree.
    pub fn n_leaves(&self) -> usize {
        self.tree.as_ref().map_or(0, |(tree, _)| tree.n_leaves())
    }
}

/// When a search ends before its end.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// Never.
    End,
    /// When it has asked so often whether to.
    Asked(u64),
    /// At once, by the clock.
    Now,
}

/// A question about an instance.
#[derive(Clone, Debug)]
pub struct Case {
    pub instance: Instance,
    pub question: Question,
    /// Columns whose thresholds are the features, if the search is given these columns.
    pub ranks: Option<RankMatrix>,
}

impl Case {
    pub fn new(instance: &Instance, question: &Question) -> Case {
        let instance = tasks::suited(instance.clone(), question.task);
        Case { instance, question: question.clone(), ranks: None }
    }

    /// The same rows with one number for every `together` features: how many of them are true. The
    /// features become thresholds of the numbers, and the search is given the numbers.
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

    /// The rows and features named, in that order.
    pub fn select(&self, rows: &[usize], features: &[usize]) -> Case {
        let mut question = self.question.clone();
        question.parameters.prices = question.parameters.prices.select(features);
        Case { instance: self.instance.select(rows, features), question, ranks: None }
    }

    /// Prepares the task by its name, and asks it.
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

    /// The best tree beside a reference model of these losses.
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

    /// Hands on the task, a sum task.
    pub fn visit<V: Visitor>(&self, visitor: V) -> V::Output {
        let arrays = Arrays::new(&self.instance, &self.question);
        let visited = registry::visit(self.question.task, &self.problem(&arrays), visitor);
        visited.expect("acceptable").expect("a sum task")
    }

    /// The best tree, and all that the search reports to a callback.
    pub fn search(
        &self,
        settings: &Settings,
        until: Until,
    ) -> Result<(Answer, Vec<TracePoint>), Error> {
        let told = Mutex::new(Vec::new());
        let progress = |point: &TracePoint| told.lock().expect("no panic").push(*point);
        let answer =
            self.within(until, |monitor| self.on(settings, &monitor.with_progress(&progress)))?;
        Ok((answer, told.into_inner().expect("no panic")))
    }

    /// The best tree, under a monitor of one's own.
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

    /// The best tree, by the search that is not one of fronts.
    pub fn ask_to_solve(&self) -> Result<Answer, Error> {
        let monitor = Monitor::new(None, &|| false);
        self.ask(&monitor, |task, x, m| task.solve(x, &self.settings(), m).map(Answer::from))
    }

    /// The best tree of a question that has an answer.
    pub fn solve(&self, settings: &Settings) -> Result<Answer, String> {
        self.on(settings, &Monitor::new(None, &|| false)).map_err(|e| e.to_string())
    }

    /// The best trees of every number of leaves, by one search.
    pub fn path(&self, settings: &Settings, until: Until) -> Result<Vec<Answer>, String> {
        let path = self.within(until, |monitor| self.path_on(settings, &monitor));
        path.map_err(|e| e.to_string())
    }

    /// The same, under a monitor of one's own.
    pub fn path_on(&self, settings: &Settings, monitor: &Monitor) -> Result<Vec<Answer>, Error> {
        let path = self.ask(monitor, |task, x, m| task.path(x, settings, m))?;
        Ok(path.into_iter().map(Answer::from).collect())
    }

    /// The whole front.
    pub fn front(&self, settings: &Settings, until: Until) -> Result<Front, Error> {
        self.within(until, |monitor| self.ask(&monitor, |task, x, m| task.front(x, settings, m)))
    }

    /// Trees near the optimum.
    pub fn near_optimal(&self, most: (f64, usize)) -> Result<Near, String> {
        let settings = self.settings();
        let monitor = Monitor::new(None, &|| false);
        self.ask(&monitor, |task, x, m| task.near_optimal(x, &settings, m, most))
            .map_err(|e| e.to_string())
    }

    /// Other questions at the splits of a tree.
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

    /// Why there is no answer, if so: by the rows alone, or by what the task says of its weights.
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

    /// Cost of rows as a leaf, by the oracle, penalty included; infinite where they may not be
    /// one. For tasks whose costs are numbers. Rows that were asked about before are remembered.
    pub fn leaf_cost(&self) -> impl Fn(&[usize]) -> Real {
        let Loss::Number(loss) = losses::loss(&self.instance, &self.question) else {
            panic!("{} is no sum of numbers", self.question.task)
        };
        let few = self.too_few();
        let penalty = Real::from(self.question.leaf_penalty);
        remembering(move |leaf| if few(leaf) { Real::INFINITY } else { loss(leaf) + penalty })
    }

    /// Whether a leaf has too few events, or rows of a class.
    fn too_few(&self) -> impl Fn(&[usize]) -> bool + use<'_> {
        let least = self.question.min_events;
        let of_class = tasks::fewest(&self.instance, &self.question).unwrap_or(0);
        move |leaf| {
            least > 0 && self.instance.sample.n_events(leaf) < least
                || of_class > 0 && tasks::rarest(&self.instance, leaf) < of_class
        }
    }

    /// Candidates of a leaf, by the oracle, penalties apart; none where rows may not be one. For
    /// tasks whose costs are vectors.
    pub fn candidates(&self) -> impl Fn(&[usize]) -> Vec<Components> {
        let Loss::Vector { of_label, .. } = losses::loss(&self.instance, &self.question) else {
            panic!("{} is a sum of numbers", self.question.task)
        };
        let few = self.too_few();
        remembering(move |leaf| if few(leaf) { vec![] } else { of_label(leaf) })
    }

    /// Entry `k`: the least objective of trees with at most `k + 1` leaves, by the oracle;
    /// infinite where none is allowed.
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

    /// The optimum, by the oracle; infinite when no tree is allowed.
    pub fn optimum(&self) -> f64 {
        *self.by_leaves(&self.question.limits).last().expect("a leaf")
    }

    /// Objective of a tree, by the oracle; an error where it is not allowed.
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

    /// Mean absolute term of a tree, by the oracle, where terms cancel.
    pub fn terms(&self, answer: &Answer) -> Result<f64, String> {
        let Some((tree, labels)) = &answer.tree else { return Ok(0.0) };
        Ok(self.terms_of(&tree.leaves(&self.instance.features, &self.instance.rows())?, labels))
    }

    /// The same, of these leaves.
    pub fn terms_of(&self, leaves: &[Vec<usize>], labels: &[i64]) -> f64 {
        let penalties = leaves.len() as f64 * self.question.leaf_penalty;
        losses::terms(&self.instance, &self.question, leaves, labels) + penalties
    }

    /// Size of a tree's objective: its terms, if they cancel, or itself. Costs from
    /// outside are functions of sums in floating point, which are as far off as those are large.
    pub fn size(&self, answer: &Answer) -> Result<f64, String> {
        let terms = self.terms(answer)?.max(answer.objective.abs());
        let (Some((tree, _)), OUTSIDE) = (&answer.tree, self.question.task) else {
            return Ok(terms);
        };
        let leaves = tree.leaves(&self.instance.features, &self.instance.rows())?;
        let size: f64 = leaves.iter().map(|leaf| own::size(&self.instance, leaf)).sum();
        Ok(terms.max(size / self.instance.sample.total_weight()))
    }

    /// Components of the cost of a tree with these labels, by the oracle.
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

    /// All trees with their objectives, by the oracle.
    pub fn trees(&self, rows: &[usize], limits: &Limits) -> Vec<(f64, Tree)> {
        let all = all_trees(&self.instance.features, rows, limits, self.leaf_cost());
        let finite = all.into_iter().filter(|(cost, _)| cost.is_finite());
        finite.map(|(cost, tree)| (cost.to_f64(), tree)).collect()
    }
}

/// The function of rows, asked once for each set of them.
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

/// Whether two numbers are at most `apart`; where there is no tree, both are infinite.
pub fn agree(what: &str, actual: f64, expected: f64, apart: f64) -> Result<(), String> {
    let close = actual == expected || expected.is_finite() && (actual - expected).abs() <= apart;
    if close { Ok(()) } else { Err(format!("{what} {actual:?} instead of {expected:?}")) }
}

pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Size of random problems: most rows and features, and depths.
pub type Size = (usize, usize, &'static [usize]);

/// That which suits how much work the oracle has with a task, and how many problems out of 8.
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

/// Runs `check` on random problems of each of the tasks: `runs` of those that are asked most.
///
/// A question without an answer must give an error, and must be rare.
pub fn for_each(tasks: &[&'static str], runs: u64, check: impl Fn(&Case) -> Result<(), String>) {
    for task in tasks {
        let (size, share) = usual(task);
        for_each_of(&[task], (runs * share).div_ceil(8), size, &check);
    }
}

/// The same, `runs` of each task, of one size.
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
