//! Tasks that choose their tree from a Pareto front, or search under limits, by name.

use super::Problem;
use crate::data::BinaryMatrix;
use crate::error::{Error, not_negative};
use crate::search::fronts::{Front, Metric, solve_front, solve_limited, solve_metric};
use crate::search::{Checked, Monitor, curve, solve};
use crate::task::Statistics;
use crate::task::accuracy::Accuracy;
use crate::task::brier::Brier;
use crate::task::capacity::Capacity;
use crate::task::confusion::Confusion;
use crate::task::curve::LeafCurve;
use crate::task::fair_brier::FairBrier;
use crate::task::fair_survival::FairSurvival;
use crate::task::label_costs::LabelCosts;
use crate::task::likelihood::Likelihood;
use crate::task::parity::{Criterion, GroupLimit, Parity};

/// A prepared search that still needs features and limits.
pub struct FrontSearch<'a> {
    /// Whether the event of every row was observed; empty if the task has no events.
    pub(super) events: Vec<bool>,
    /// The search.
    pub(super) search: Box<Search<'a>>,
}

/// Searches for a front over features, within limits.
type Search<'a> = dyn Fn(&BinaryMatrix, &Checked, &Monitor) -> Result<Front, Error> + 'a;

impl<'a> FrontSearch<'a> {
    /// A search with these events; none if the task has no events.
    fn new(
        events: Vec<bool>,
        search: impl Fn(&BinaryMatrix, &Checked, &Monitor) -> Result<Front, Error> + 'a,
    ) -> Result<Self, Error> {
        Ok(FrontSearch { events, search: Box::new(search) })
    }
}

/// Prepares the search of one task.
type Prepare = for<'a> fn(&Problem<'a>) -> Result<FrontSearch<'a>, Error>;

/// Name of every task, and the function that prepares it.
const TABLE: &[(&str, Prepare)] = &[
    ("confusion", confusion),
    ("f-measure", |p| metric(p, Metric::FBeta(p.amount("beta")?))),
    ("matthews", |p| metric(p, Metric::Matthews)),
    ("demographic-parity", |p| parity(p, Criterion::DemographicParity)),
    ("equality-of-opportunity", |p| parity(p, Criterion::EqualityOfOpportunity)),
    ("equalized-odds", |p| parity(p, Criterion::EqualizedOdds)),
    ("capacity", capacity),
    ("fair-likelihood", fair_likelihood),
    ("fair-brier", fair_brier),
];

/// Names of the tasks.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|&(name, _)| name)
}

/// The search of that name; `None` if it is not in this table.
pub(super) fn prepare<'a>(
    name: &str,
    problem: &Problem<'a>,
) -> Result<Option<FrontSearch<'a>>, Error> {
    let line = TABLE.iter().find(|(known, _)| *known == name);
    line.map(|(_, prepare)| prepare(problem)).transpose()
}

/// False positives and false negatives.
fn confusion<'a>(p: &Problem<'a>) -> Result<FrontSearch<'a>, Error> {
    if p.leaf_penalty > 0.0 {
        return Err(Error::invalid("leaf_penalty", "a front has no penalty"));
    }
    let task = Confusion::new(&p.binary("labels")?, p.weights()?)?;
    FrontSearch::new(Vec::new(), move |x, s, m| solve_front(&task, x, s, m))
}

/// A measure that is a function of both error rates.
fn metric<'a>(p: &Problem<'a>, metric: Metric) -> Result<FrontSearch<'a>, Error> {
    let (labels, weights, penalty) = (p.binary("labels")?, p.weights()?, p.leaf_penalty);
    FrontSearch::new(Vec::new(), move |x, s, m| {
        solve_metric(metric, &labels, weights, penalty, x, s, m)
    })
}

/// Number of errors, under a limit on the differences between groups.
fn parity<'a>(p: &Problem<'a>, criterion: Criterion) -> Result<FrontSearch<'a>, Error> {
    let (group, n_groups) = p.groups()?;
    // The cost has one component for the errors and one for each limited difference. Differences
    // that limit nothing are included, so that not every number of components needs code of its
    // own.
    match criterion.differences(n_groups) {
        0 | 1 => alike::<2>(p, criterion, group),
        2 => alike::<3>(p, criterion, group),
        3..=6 => alike::<7>(p, criterion, group),
        7..=15 => alike::<16>(p, criterion, group),
        n => {
            let reason = format!("{n_groups} groups have {n} differences to limit, 15 at most");
            Err(Error::invalid("group", reason))
        }
    }
}

fn alike<'a, const K: usize>(
    p: &Problem<'a>,
    criterion: Criterion,
    group: Vec<usize>,
) -> Result<FrontSearch<'a>, Error> {
    let (labels, weights, penalty) = (p.binary("labels")?, p.weights()?, p.leaf_penalty);
    let of_groups = p.columns.numbers_if_any("group_weight")?;
    not_negative("group_weight", of_groups.unwrap_or(&[]))?;
    let (of_groups, most) = (of_groups.or(weights), p.amount("delta")?);
    let limit = GroupLimit { criterion, group: &group, weights: of_groups, most };
    let task = Parity::<K>::new(&limit, &labels, weights, penalty, p.max_leaves)?;
    FrontSearch::new(Vec::new(), move |x, s, m| {
        let relaxed = |s: &Checked, m: &Monitor| {
            let labels: Vec<usize> = labels.iter().map(|&label| usize::from(label)).collect();
            solve(&Accuracy::new(&labels, 2, weights, penalty, s.limits.most_leaves())?, x, s, m)
        };
        solve_limited(&task, |known| Ok(task.finer(known)), &relaxed, x, s, m)
    })
}

/// Rewards of labels, with limits on the number of rows that may get some labels.
fn capacity<'a>(p: &Problem<'a>) -> Result<FrontSearch<'a>, Error> {
    let (rewards, n_labels) = p.columns.table("rewards")?;
    let capacity = p.columns.numbers("capacity")?;
    if capacity.len() != n_labels {
        let reason = "is not of shape (rows, labels) with a capacity per label";
        return Err(Error::invalid("rewards", reason));
    }
    // The cost has one component for all labels and one for each limited label.
    match 1 + capacity.iter().filter(|c| c.is_finite()).count() {
        1 => limited::<1>(p, rewards, capacity),
        2 => limited::<2>(p, rewards, capacity),
        3 => limited::<3>(p, rewards, capacity),
        4 => limited::<4>(p, rewards, capacity),
        5 => limited::<5>(p, rewards, capacity),
        6 => limited::<6>(p, rewards, capacity),
        7 => limited::<7>(p, rewards, capacity),
        8 => limited::<8>(p, rewards, capacity),
        _ => Err(Error::invalid("capacity", "more than 7 labels are limited")),
    }
}

fn limited<'a, const K: usize>(
    p: &Problem<'a>,
    rewards: &'a [f64],
    capacity: &'a [f64],
) -> Result<FrontSearch<'a>, Error> {
    let (weights, penalty) = (p.weights()?, p.leaf_penalty);
    let task = Capacity::<K>::new(rewards, capacity, weights, penalty, None)?;
    FrontSearch::new(Vec::new(), move |x, s, m| {
        let relaxed = |s: &Checked, m: &Monitor| {
            let (n_labels, most) = (capacity.len(), s.limits.most_leaves());
            solve(&LabelCosts::of_rewards(rewards, n_labels, weights, penalty, most)?, x, s, m)
        };
        // A better tree loses no more on any single row than this tree loses in total.
        let finer =
            |known| Capacity::<K>::new(rewards, capacity, weights, penalty, Some(known)).map(Some);
        solve_limited(&task, finer, &relaxed, x, s, m)
    })
}

/// Group of every row, largest allowed difference, and end of the restricted mean of fair survival
/// trees.
fn fairness(p: &Problem) -> Result<(Vec<bool>, f64, f64), Error> {
    let tau = p.amount("tau")?;
    if tau == 0.0 {
        return Err(Error::invalid("tau", "0 is not a number > 0"));
    }
    Ok((p.binary("group")?, p.amount("delta")?, tau))
}

/// Likelihood, under a limit on the difference between the predicted restricted means of two
/// groups.
fn fair_likelihood<'a>(p: &Problem<'a>) -> Result<FrontSearch<'a>, Error> {
    let (obs, prior, penalty) = (p.observations()?, p.prior()?, p.leaf_penalty);
    let (group, delta, tau) = fairness(p)?;
    let task = FairSurvival::new(&obs, &group, delta, tau, prior, penalty)?;
    let events = task.events().to_vec();
    FrontSearch::new(events, move |x, s, m| {
        let relaxed = |s: &Checked, m: &Monitor| {
            solve(&Likelihood::with_prior(&obs, prior, penalty)?, x, s, m)
        };
        solve_limited(&task, |_| Ok(None), &relaxed, x, s, m)
    })
}

/// Brier score, under a limit on the difference between the predicted restricted means of two
/// groups.
fn fair_brier<'a>(p: &Problem<'a>) -> Result<FrontSearch<'a>, Error> {
    let (obs, penalty) = (p.observations()?, p.leaf_penalty);
    let (group, delta, tau) = fairness(p)?;
    let task = FairBrier::new(&obs, &group, delta, tau, penalty)?;
    let events = task.events().to_vec();
    FrontSearch::new(events, move |x, s, m| {
        let relaxed = |s: &Checked, m: &Monitor| {
            let task = Brier::new(&obs, penalty, LeafCurve::KaplanMeier, None)?;
            curve::solve(&task, x, s, m)
        };
        solve_limited(&task, |known| Ok(Some(task.finer(known))), &relaxed, x, s, m)
    })
}
