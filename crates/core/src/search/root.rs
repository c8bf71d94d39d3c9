//! The root of a search: the best tree so far, the lower bound, and the threads.

use super::branch::Branch;
use super::certificate::{Certificate, EVALUATED, Measured, Verdict};
use super::nodes::{Allowed, Bounded, Cost, Look, Pending, Place, Rooted};
use super::{Monitor, Settings, Solution, Stop};
use crate::tree::Tree;
use std::sync::Mutex;

/// Converts the costs of a search to objectives.
pub trait Scale<C>: Sync {
    /// A lower bound on all objectives.
    fn least(&self) -> f64 {
        f64::NEG_INFINITY
    }

    /// Objective of a tree with this cost.
    fn objective(&self, cost: C, tree: &Tree) -> Measured;

    /// Upper bound on the objective of a tree, if its cost implies one without a pass over the
    /// rows.
    fn at_most(&self, _cost: C, _tree: &Tree) -> Option<f64> {
        None
    }

    /// A lower bound on the objective of trees that cost at least `lower`, which allows for the
    /// resolution of costs.
    fn bound(&self, lower: C) -> f64;

    /// The same for trees with an objective below `known`.
    fn bound_below(&self, lower: C, _known: f64) -> f64 {
        self.bound(lower)
    }

    /// Whether a smaller cost always means a smaller objective, so that the cheapest tree is
    /// optimal.
    fn is_exact(&self) -> bool {
        false
    }
}

/// What a solution reports apart from the tree and its certificate.
#[derive(Clone, Debug)]
pub struct About {
    pub n_distinct_rows: usize,
    pub n_columns: usize,
    pub kernel: String,
}

/// The best tree of a search and a lower bound on all trees.
pub struct Search<'a, C> {
    scale: &'a dyn Scale<C>,
    certificate: Certificate<'a>,
    /// The best tree and its cost.
    pub best: (C, Tree),
    /// Its objective, once it was needed; computing it takes a pass over all rows.
    measured: Option<Measured>,
    /// A lower bound on the cost of every allowed tree.
    pub lower: C,
    /// Trees that cost at most this much less than the best tree are considered equally good.
    slack: C,
    /// Added to the best cost to give the cost below which a tree that an engine finds at once is
    /// taken. With a unit, an equally good tree replaces the best one.
    ties: C,
}

impl<'a, C: Cost> Search<'a, C> {
    /// Starts with a tree and a bound.
    pub fn new(
        scale: &'a dyn Scale<C>,
        settings: &Settings,
        monitor: &'a Monitor<'a>,
        best: (C, Tree),
        lower: C,
    ) -> Self {
        let certificate = Certificate::new(monitor, settings, scale.least());
        let measured = None;
        Search { scale, certificate, best, measured, lower, slack: C::NONE, ties: C::UNIT }
    }

    /// Sets the difference below which costs are taken as equal.
    pub fn with_slack(self, slack: C) -> Self {
        Search { slack, ..self }
    }

    /// Among equally good trees, keep the first.
    pub fn keeping_the_first(self) -> Self {
        Search { ties: C::NONE, ..self }
    }

    /// Continues where another search for the same trees ended.
    pub fn after(self, first: &Solution) -> Self {
        let Solution { objective, lower_bound, trace, .. } = first;
        let certificate = self.certificate.after(*objective, *lower_bound, trace);
        // The cost is the one that better trees must be below, not the cost of this tree.
        let measured = Some(self.scale.objective(self.best.0, &self.best.1));
        Search { certificate, measured, ..self }
    }

    /// Whether bounds may ignore trees that the reference model rules out.
    pub fn trusting_reference(self, trusts: bool) -> Self {
        Search { certificate: self.certificate.trusting_reference(trusts), ..self }
    }

    /// Whether the best tree is known to be optimal.
    pub fn is_closed(&self) -> bool {
        self.lower >= self.best.0
    }

    /// Records that no tree is better than the best one.
    pub fn close(&mut self) {
        self.lower = self.best.0;
    }

    /// Takes a tree if it is better than the best one.
    pub fn offer(&mut self, cost: C, tree: Tree) {
        if cost < self.best.0.minus(self.slack) {
            self.take(cost, tree);
        }
    }

    /// Replaces the best tree. Because of rounding, costs may order trees differently from the
    /// rows. The objective from the rows does not rise, except in the last digits of a tie, where
    /// the first tree must be kept whichever thread was first.
    fn take(&mut self, cost: C, tree: Tree) {
        if let Some(before) = self.measured {
            let found = self.scale.objective(cost, &tree);
            if found.objective > before.objective + EVALUATED * before.magnitude {
                self.best.0 = cost;
                return;
            }
            self.measured = Some(found);
        }
        self.best = (cost, tree);
        self.record();
    }

    /// Takes a lower bound on all trees.
    pub fn raise(&mut self, lower: C) {
        let lower = lower.lesser(self.best.0);
        if lower > self.lower {
            self.lower = lower;
            self.record();
        }
    }

    /// Reports the progress of the search. The objective of a tree that may still be replaced comes
    /// from its cost; only that of the last tree is computed from the rows.
    pub fn record(&mut self) {
        let (cost, tree) = &self.best;
        let at_most = || self.scale.at_most(*cost, tree);
        let shown = if self.is_closed() { None } else { at_most() };
        match (self.measured, shown) {
            (None, Some(objective)) => self.settle(Measured::plain(objective)),
            _ => self.measure(),
        }
        self.certificate.record();
    }

    /// Updates objective and bound; the objective is computed from the rows.
    fn measure(&mut self) {
        let (cost, tree) = &self.best;
        let measure = || self.scale.objective(*cost, tree);
        let found = *self.measured.get_or_insert_with(measure);
        self.settle(found);
    }

    fn settle(&mut self, found: Measured) {
        self.certificate.settle(found);
        if self.is_closed() && self.scale.is_exact() {
            self.certificate.close();
        } else {
            let bound = self.scale.bound_below(self.lower, found.objective);
            self.certificate.raise(bound.min(found.objective));
        }
    }

    /// Ends the search: after a stop, when nothing is left, or as far as a reference model allows.
    pub fn finish(mut self, stop: Option<Stop>, about: About) -> Solution {
        self.measure();
        let About { n_distinct_rows, n_columns, kernel } = about;
        let Verdict { objective, lower_bound, status, nodes, trace } =
            self.certificate.finish(stop);
        Solution {
            tree: self.best.1,
            objective,
            lower_bound,
            status,
            nodes,
            n_distinct_rows,
            n_columns,
            trace,
            kernel,
        }
    }

    /// Tries every question at the root in turn, for trees better than the best one, on as many
    /// threads as [`Rooted::workers`] returns. Bounds only count if this is the `last` search.
    pub fn at_root<N: Rooted<Cost = C>>(
        &mut self,
        branch: &mut Branch<N>,
        node: &N::Node,
        allowed: Allowed,
        last: bool,
    ) -> Result<(), Stop> {
        let allowed = branch.nodes.useful(node, allowed);
        let ties = self.best.0.plus(self.ties);
        let look = match branch.known(node, allowed, ties) {
            Some(known) => Look::solved(known),
            None => branch.look(node, None, allowed, ties)?,
        };
        let (open, queue) = match look {
            Look::Open(open, queue) => (open, queue),
            Look::Solved { known, .. } => {
                if known.is_exact() && known.value < ties.minus(self.slack) {
                    let tree = N::whole(branch, node, allowed, &known)?;
                    self.take(known.value, tree);
                }
                if last {
                    self.close();
                }
                return Ok(());
            }
        };
        let slack = self.slack;
        let first = branch.nodes.first(node, &open);
        if first.is_exact() && first.value < self.best.0.minus(slack) {
            let tree = N::whole(branch, node, allowed, &first)?;
            self.offer(first.value, tree);
        }
        let monitor = branch.monitor;
        let shared = Mutex::new(Shared {
            queue,
            place: None,
            running: Vec::new(),
            least: C::MOST,
            stop: None,
            search: self,
        });
        let work = |branch: &mut Branch<N>| {
            loop {
                let job = {
                    let mut shared = shared.lock().expect("no panic while locked");
                    shared.job(&branch.nodes, &open)
                };
                let Some(Job { split, question, cut }) = job else { return };
                let found = branch.below(node, &open, &split, allowed, cut).and_then(|below| {
                    let known = &below.known;
                    let better = known.value < cut.minus(slack);
                    let place = branch.place(known, question).filter(|_| better);
                    let found = place.map(|place| {
                        N::whole(branch, node, allowed, known).map(|tree| (place, tree))
                    });
                    Ok((found.transpose()?, below))
                });
                let mut shared = shared.lock().expect("no panic while locked");
                match found {
                    Err(stop) => shared.stop = shared.stop.or(Some(stop)),
                    Ok((tree, below)) => {
                        let queue = &mut shared.queue;
                        branch.nodes.learn(node, &open, queue, &split, &below, allowed);
                        if last {
                            monitor.advance(queue.done());
                        }
                        shared.running.retain(|&(at, _)| at != question);
                        shared.least = shared.least.lesser(below.known.value);
                        if let Some((place, tree)) = tree {
                            shared.offer(below.known.value, tree, place);
                        }
                        if last {
                            shared.raise();
                        }
                    }
                }
            }
        };
        let workers = branch.nodes.workers(node, allowed);
        branch.spread(workers, work);
        let stop = shared.into_inner().expect("no panic while locked").stop;
        branch.nodes.close(open);
        match stop {
            Some(stop) => Err(stop),
            None => {
                if last {
                    self.close();
                }
                Ok(())
            }
        }
    }
}

/// State that the threads at the root share.
struct Shared<'a, 'b, N: Rooted> {
    queue: N::Queue,
    /// Place of the best tree, if it was found at this root.
    place: Option<Place>,
    /// Numbers and bounds of the questions that threads are working on.
    running: Vec<(usize, N::Cost)>,
    /// A lower bound on trees with any of the finished questions.
    least: N::Cost,
    stop: Option<Stop>,
    search: &'a mut Search<'b, N::Cost>,
}

/// A question that a thread works on.
struct Job<N: Rooted> {
    split: N::Split,
    question: usize,
    cut: N::Cost,
}

impl<N: Rooted> Shared<'_, '_, N> {
    /// The next question that may have a better tree.
    fn job(&mut self, nodes: &N, open: &N::Open) -> Option<Job<N>> {
        let slack = nodes.slack();
        while self.stop.is_none() {
            let (question, split) = self.queue.next(open)?;
            // Trees that tie but would come later are still looked at, so that the result does not
            // depend on which thread was first.
            let best = self.search.best.0;
            let ties = self.place.is_some_and(|place| place.may_follow(split.first(question)));
            let cut = if ties { best.plus(slack).plus(slack).plus(N::Cost::UNIT) } else { best };
            let bound = split.bound();
            if bound < cut.minus(slack) {
                self.running.push((question, bound));
                return Some(Job { split, question, cut });
            }
            self.least = self.least.lesser(bound);
        }
        None
    }

    /// Takes a tree that is better, or equally good with an earlier place.
    fn offer(&mut self, cost: N::Cost, tree: Tree, found: Place) {
        let (best, slack) = (self.search.best.0, self.search.slack);
        let as_good = cost <= best.plus(slack).plus(slack);
        let better = match self.place {
            Some(place) if found < place => as_good,
            Some(_) => cost.plus(slack).plus(slack) < best,
            None => cost < best.minus(slack),
        };
        if better {
            self.place = Some(found);
            self.search.take(cost, tree);
        }
    }

    /// Raises the bound to what is proven for all questions.
    fn raise(&mut self) {
        let still_open = self.queue.still_open().lesser(self.least);
        let lower = self.running.iter().fold(still_open, |least, &(_, bound)| least.lesser(bound));
        self.search.raise(lower);
    }
}
