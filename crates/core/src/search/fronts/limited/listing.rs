//! List of what lies between the bound and the best known tree, point by point.

use super::super::cheapest::Cheapest;
use super::super::engine::Point;
use super::super::node::{FrontNode, Pace};
use super::super::points::{Bounds, above};
use super::super::whole::columns;
use super::{Search, whole};
use crate::search::Stop;
use crate::task::FrontTask;

/// Part of the gap that is listed first, and how much more of it each next time: after few points,
/// and after many. What would be nearly all of it is all of it.
const FIRST_PART: f64 = 1.0 / 256.0;
const NEXT_PART: [f64; 2] = [4.0, 1.5];
const FEW_POINTS: usize = 1 << 9;
const NEARLY_ALL: f64 = 2.0 / 3.0;

impl<T: FrontTask<K>, const K: usize> Search<'_, '_, T, K> {
    /// Lists what lies between the bound and the best tree known, from the bound upwards: the
    /// number of points grows fast with the part of the gap, and a better tree leaves less of it.
    pub(super) fn list(&mut self, most: i64) -> Result<(), Stop> {
        let weights = self.weights;
        self.engine.set_weights(weights);
        let root = self.engine.root.clone();
        let extra = self.allowance(&weights) + self.engine.rounding();
        let within = self.within(most, extra);
        let order = columns(self.engine, &root, self.depth, above(within, self.engine.rounding()))?;
        let lowest = order.first().map_or(f64::INFINITY, |&(value, _)| value);
        let mut part = FIRST_PART * (within - lowest);
        while lowest <= self.within(most, extra) {
            let listed = lowest + part;
            let n_points = self.list_up_to(&order, listed, most, extra)?;
            let left = self.within(most, extra) - lowest;
            if part >= left {
                break;
            }
            // Points that are not met yet have a larger weighted cost.
            self.raise(whole(listed - extra));
            part *= NEXT_PART[usize::from(n_points > FEW_POINTS)];
            if part > NEARLY_ALL * left {
                part = left;
            }
        }
        Ok(())
    }

    /// Lists again what the rows may have hidden: trees of the same differences as one that they
    /// refuse, which was thought to be as good or better.
    pub(super) fn list_all(&mut self) -> Result<(), Stop> {
        let exact = (1..K).all(|k| self.engine.task.exact(k));
        let better = self.best.is_some_and(|best| self.refused < best.cost[0]);
        if exact && better && self.resolves() {
            self.engine.keep_all = true;
            self.list(self.worst_of(self.depth))?;
            self.refused = i64::MAX;
        }
        Ok(())
    }

    /// Lists what has a weighted cost of `reach` at most, column by column in this order, and counts
    /// the points below the root.
    fn list_up_to(
        &mut self,
        order: &[(f64, usize)],
        reach: f64,
        most: i64,
        extra: f64,
    ) -> Result<usize, Stop> {
        let root = self.engine.root.clone();
        let mut n_points = 0;
        for &(value, c) in order {
            let within = reach.min(self.within(most, extra));
            if value > within {
                break;
            }
            self.raise(whole(value - extra));
            let mut window = self.window;
            window[0].1 = self.most(most);
            let bounds = Bounds { value: within, window, leaves: self.engine.max_leaves };
            if bounds.leaves < 2 {
                break;
            }
            if let Some([yes, no]) = self.engine.child_points(&root, c, self.depth, &bounds)? {
                n_points += yes.len() + no.len();
                self.best_pair(&root, c, &yes, &no, |search| {
                    reach.min(search.within(most, extra))
                })?;
            }
        }
        Ok(n_points)
    }

    /// The best admissible pair of points of two children, both by ascending weighted cost.
    fn best_pair(
        &mut self,
        root: &FrontNode<K>,
        c: usize,
        yes: &[Point<K>],
        no: &[Point<K>],
        within: impl Fn(&Self) -> f64,
    ) -> Result<(), Stop> {
        let mut pace = Pace::new(self.engine.monitor);
        let (price, held) = (self.engine.price(), size_of_val(yes) + size_of_val(no));
        let Some(least) = no.first().map(|p| self.engine.value(p)) else { return Ok(()) };
        // With one window the best partner is the cheapest of an interval.
        let one = K == 2 && self.engine.max_leaves == u32::MAX;
        let cheapest = one.then(|| Cheapest::new(no));
        for a in yes {
            let value = self.engine.value(a) + price;
            if value + least > within(self) {
                break;
            }
            if let Some(cheapest) = &cheapest {
                let (low, high) = self.window[1];
                let mut open = vec![cheapest.within(low - a.cost[1], high - a.cost[1])];
                while let Some(among) = open.pop() {
                    pace.spend(32)?;
                    let Some([b, at]) = cheapest.least(&among) else { continue };
                    // Beside one that the rows refuse another may be the best; where units do not
                    // resolve the objective, many are refused and nothing is proven.
                    let more = self.engine.keep_all || self.resolves();
                    if !self.offer_pair(root, c, [a, &no[b]], held)? && more {
                        open.extend([among.start..at, at + 1..among.end]);
                    }
                }
                continue;
            }
            for b in no {
                if value + self.engine.value(b) > within(self) {
                    break;
                }
                pace.spend(1)?;
                self.offer_pair(root, c, [a, b], held)?;
            }
        }
        Ok(())
    }

    /// Component 0 of a tree better than the best one; `most` where there is none.
    fn most(&self, most: i64) -> i64 {
        let grain = self.engine.task.grain();
        self.best.map_or(most, |best| best.cost[0].saturating_sub(grain))
    }

    /// Weighted cost that such a tree can have.
    fn within(&self, most: i64, extra: f64) -> f64 {
        self.most(most) as f64 + extra
    }

    /// Takes a split on column `c` above two points if it is admissible and better; false where the
    /// rows refuse it. Stops if its plan has no place beside the points, which `held` bytes hold.
    fn offer_pair(
        &mut self,
        root: &FrontNode<K>,
        c: usize,
        [yes, no]: [&Point<K>; 2],
        held: usize,
    ) -> Result<bool, Stop> {
        let cost = self.engine.task.combine(&yes.cost, &no.cost);
        let mut window = self.window;
        window[0].1 = self.most(window[0].1);
        let bounds = Bounds { value: f64::INFINITY, window, leaves: self.engine.max_leaves };
        if !bounds.admit(&cost, yes.leaves + no.leaves) {
            return Ok(true);
        }
        self.engine.check(held)?;
        let point = self.engine.join(&root.sample, c, yes, no);
        Ok(self.take(point))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::search::fronts::engine::Engine;
    use crate::search::{Monitor, Settings};
    use crate::task::parity::{Criterion, GroupLimit, Parity};

    #[test]
    fn plans_of_listed_trees_need_memory() {
        let bits: Vec<u8> = (0..16u8).flat_map(|r| [r & 1, r >> 1 & 1, r >> 2 & 1]).collect();
        let features = BinaryMatrix::from_bytes(16, 3, &bits).unwrap();
        let labels: Vec<bool> = (0..16).map(|r| [1, 2, 4, 7].contains(&(r % 8))).collect();
        let group: Vec<usize> = (0..16).map(|r| r / 8).collect();
        let criterion = Criterion::DemographicParity;
        let limit = GroupLimit { criterion, group: &group, weights: None, most: 0.5 };
        let task = Parity::<2>::new(&limit, &labels, None, 0.0, 4).unwrap();
        let settings = Settings::default().with_limits(|s| s.max_depth = 2);
        let monitor = Monitor::new(None, &|| false);
        let mut engine = Engine::new(&task, &features, &settings, &monitor).unwrap();
        let mut search = Search::new(&mut engine, &features, &settings);
        (search.depth, search.last) = (2, true);
        let most = search.worst_of(2);
        assert_eq!(search.list(most), Ok(()));
        assert!(search.best.is_some());
        // The second time all that is listed is known, so only the plans are new.
        search.best = None;
        search.engine.settings = settings.with_resources(|s| s.memory_limit = Some(1));
        assert_eq!(search.list(most), Err(Stop::Memory));
    }
}
