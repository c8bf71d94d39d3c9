//! Repeats searches whose numbers do not resolve the best tree: with finer numbers, with costs of
//! 128 bits, and by the number of leaves.

use super::certificate::{Certificate, MEET, Verdict};
use super::{Checked, Measured, Monitor, Solution, Status, too_wide, wide};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::task::ScalarTask;
use crate::tree::Tree;
use std::borrow::Cow;

/// Trees are only worth finding with finer numbers if they are cheaper than a known tree by this
/// share: a quarter of the tolerated difference between objective and bound.
pub const WORTH: f64 = 0.25 * MEET;

/// A search for the best tree that can be repeated.
pub trait SolvedAgain<T>: Sync {
    /// Searches once, with a task that has the same objective in other numbers. If a tree is known,
    /// finds only trees that are better by enough to matter.
    ///
    /// # Errors
    ///
    /// If the data do not suit the search.
    fn solve(
        &self,
        task: &T,
        settings: &Checked,
        monitor: &Monitor,
        known: Option<Solution>,
    ) -> Result<Solution, Error>;

    /// Objective of a tree, computed from the rows.
    fn measured(&self, tree: &Tree) -> Measured;

    /// The questions of a search with 128-bit costs; `None` if the search would take too long.
    ///
    /// # Errors
    ///
    /// If there are too many questions.
    fn in_128_bits(&self, settings: &Checked) -> Result<Option<Cow<'_, BinaryMatrix>>, Error>;
}

/// By how many units a tree must be cheaper than this cost to matter, if its objective is `units`
/// units.
pub fn worth(units: f64, cost: i64) -> i64 {
    (WORTH * units.min(cost.abs() as f64)) as i64
}

/// A solution whose objective and bound meet, unless a limit stopped the search.
///
/// # Errors
///
/// If no numbers resolve the best tree because the values span too wide a range.
pub fn resolved<T: ScalarTask>(
    search: &impl SolvedAgain<T>,
    task: &T,
    settings: &Checked,
    monitor: &Monitor,
    mut found: Solution,
) -> Result<Solution, Error> {
    let mut finest: Option<T> = None;
    while found.status == Status::Unresolved {
        let Some(finer) = finest.as_ref().unwrap_or(task).finer(found.objective) else { break };
        found = search.solve(&finer, settings, monitor, Some(found))?;
        finest = Some(finer);
    }
    if found.status == Status::Unresolved
        && let Some(features) = search.in_128_bits(settings)?
    {
        let objective = |tree: &Tree| search.measured(tree);
        found = wide::resolved(task, &objective, &features, settings, monitor, found)?;
    }
    if found.status == Status::Unresolved {
        found = by_size(search, task, settings, monitor, found)?;
    }
    if found.status == Status::Unresolved {
        return Err(too_wide(task.widest(), found.objective, found.lower_bound));
    }
    Ok(found)
}

/// Searches again for trees with fewer leaves. If a tree fits perfectly, its objective is the
/// penalty of its leaves, which is much smaller than the resolution of the loss. All trees with as
/// many leaves pay the same penalty.
fn by_size<T: ScalarTask>(
    search: &impl SolvedAgain<T>,
    task: &T,
    settings: &Checked,
    monitor: &Monitor,
    found: Solution,
) -> Result<Solution, Error> {
    let (best, leaves) = (search.measured(&found.tree), found.tree.n_leaves());
    let mut lower = task.least_objective(leaves);
    if leaves > 1 && best.meets(lower) {
        let smaller = settings.at_most(leaves - 1);
        let stopped = || monitor.check().is_err();
        // Bounds on smaller trees only are not part of the trace.
        let inner = monitor.within(&stopped);
        let fewer = search.solve(task, &smaller, &inner, None)?;
        monitor.count(inner.nodes());
        let status = monitor.check().map_or_else(Status::from, |()| fewer.status);
        if !matches!(status, Status::Optimal | Status::Unresolved) {
            return Ok(Solution { status, ..found });
        }
        lower = lower.min(fewer.lower_bound);
    }
    Ok(certified(found, best, lower, settings, monitor))
}

/// A solution with this measure and lower bound.
pub fn certified(
    found: Solution,
    measured: Measured,
    lower: f64,
    settings: &Checked,
    monitor: &Monitor,
) -> Solution {
    let certificate = Certificate::new(monitor, settings, lower);
    let mut certificate = certificate.after(found.objective, found.lower_bound, &found.trace);
    certificate.settle(measured);
    let Verdict { objective, lower_bound, status, nodes, trace } = certificate.finish(None);
    Solution { objective, lower_bound, status, nodes, trace, ..found }
}
