//! Trees of at most two levels under the present weights: a memo of them, threads that find them
//! ahead of the search, and deeper trees of low weighted cost that are built from them.

use super::engine::{Engine, Point};
use super::node::{FrontNode, Place};
use super::pairs::LEAF_STEPS;
use super::shallow::{Least, SHALLOW, Shallow, Small};
use super::triangle;
use crate::data::Sample;
use crate::search::threads::run_all;
use crate::search::{Settings, Stop};
use crate::task::FrontTask;
use rustc_hash::FxHashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Bytes of an entry without its columns, including its place in a half-full table and the boxes of
/// a tree.
const NEAR_BYTES: usize = 544;

/// Message for a poisoned lock.
const CALM: &str = "no panic while locked";

/// Nodes that a thread has finished.
type Found<const K: usize> = Vec<(Place, Arc<Least<K>>)>;

/// What is known about a node down to two levels, and the plan of the tree.
pub(super) type Near<const K: usize> = (Arc<Least<K>>, Option<Point<K>>);

impl<'a, T: FrontTask<K>, const K: usize> Engine<'a, T, K> {
    /// Before the search needs them, looks at the sides of the questions at a node with `depth`
    /// left, on threads if that is worthwhile. The search will need nearly all of them.
    pub fn look_ahead(
        &mut self,
        node: &FrontNode<K>,
        depth: usize,
        columns: impl Iterator<Item = usize>,
    ) -> Result<(), Stop> {
        if self.settings.threads() < 2 {
            return Ok(());
        }
        let n = node.sample.n_columns();
        let pairs = triangle::pairs(n);
        // Number of nodes below one side; every second one has the rows of a node below another
        // side.
        let nodes = match depth - SHALLOW {
            1 => 1,
            2 => 1 + n,
            _ => return Ok(()),
        };
        let is_near = |&(c, value): &(usize, bool)| {
            let child = node.kept_child(c, value);
            child.is_some_and(|child| self.weighing.near.contains_key(&child.place(SHALLOW)))
        };
        let sides = columns.flat_map(|c| [(c, false), (c, true)]);
        let sides: Vec<_> = sides.filter(|side| nodes > 1 || !is_near(side)).collect();
        let accumulated = node.sample.n_rows() * pairs / 8;
        let steps = |&(c, value): &(usize, bool)| match node.kept_child(c, value) {
            // Only the weights are new.
            Some(child) if child.has_pairs() => 16 * pairs,
            _ => accumulated + 4 * LEAF_STEPS * pairs,
        };
        let steps = nodes * sides.iter().map(steps).sum::<usize>();
        let n_threads = triangle::useful_threads(steps, &self.settings);
        let room = 2 * nodes * sides.len() * Self::near_bytes(n);
        if n_threads < 2 || !self.budget.take(room) {
            return Ok(());
        }
        let found = self.look_at(node, depth - 1, &sides, n_threads);
        self.budget.give_back(room);
        for (place, least) in found?.into_iter().flatten() {
            self.remember(place, (least, None));
        }
        Ok(())
    }

    /// Results of threads for the sides of a node; also for the sides of these, if `depth` levels
    /// are more than pairs cover.
    fn look_at(
        &self,
        node: &FrontNode<K>,
        depth: usize,
        sides: &[(usize, bool)],
        n_threads: usize,
    ) -> Result<Vec<Found<K>>, Stop> {
        let alone = self.settings.with_resources(|s| s.n_threads = 1);
        let looks = self.looks(&alone);
        let (next, met) = (AtomicUsize::new(0), Mutex::new(FxHashSet::default()));
        let look = |node: &FrontNode<K>, found: &mut Found<K>| {
            let place = node.place(SHALLOW);
            let new =
                !self.weighing.near.contains_key(&place) && met.lock().expect(CALM).insert(place);
            if new {
                found.push((place, Arc::new(looks.least(node, SHALLOW)?)));
            }
            Ok(())
        };
        let mut found = vec![Vec::new(); n_threads];
        run_all(&mut found, &|found| {
            while let Some(&(c, value)) = sides.get(next.fetch_add(1, Relaxed)) {
                let child = self.child(node, c, value);
                look(&child, found)?;
                let below = if depth > SHALLOW { child.sample.n_columns() } else { 0 };
                for d in 0..below {
                    look(&self.child(&child, d, false), found)?;
                    look(&self.child(&child, d, true), found)?;
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// A search for trees of at most two levels with these settings.
    fn looks<'e>(&'e self, settings: &'e Settings) -> Shallow<'e, 'a, T, K> {
        Shallow {
            leaves: &self.leaves,
            weights: self.weighing.weights,
            forms: self.weighing.forms.as_deref(),
            price: self.price(),
            settings,
            budget: &self.budget,
            monitor: self.monitor,
        }
    }

    /// Least weighted cost of trees of at most `depth` ≤ 2 over the rows of `node`.
    pub fn shallow(&mut self, node: &FrontNode<K>, depth: usize) -> Result<Near<K>, Stop> {
        let place = node.place(depth);
        let least = match self.weighing.near.get(&place) {
            Some((least, Some(point))) => return Ok((least.clone(), Some(*point))),
            Some((least, None)) => least.clone(),
            None => Arc::new(self.looks(&self.settings).least(node, depth)?),
        };
        let point = least.tree.as_ref().map(|tree| self.plant(&node.sample, tree));
        let near = (least, point);
        self.remember(place, near.clone());
        Ok(near)
    }

    fn remember(&mut self, place: Place, near: Near<K>) {
        let bytes = Self::near_bytes(near.0.sides.len());
        if let Some(known) = self.weighing.near.get_mut(&place) {
            *known = near;
        } else if self.budget.take(bytes) {
            self.weighing.near_bytes += bytes;
            self.weighing.near.insert(place, near);
        }
    }

    /// Bytes of an entry for a node with this many columns.
    fn near_bytes(n_columns: usize) -> usize {
        NEAR_BYTES + size_of::<[f64; 2]>() * n_columns
    }

    /// The plan of a tree over the columns of `sample`.
    fn plant(&mut self, sample: &Sample, tree: &Small<K>) -> Point<K> {
        match tree {
            Small::Leaf { cost, label } => {
                Point { cost: *cost, leaves: 1, plan: self.plans.leaf(*label) }
            }
            Small::Split { column, sides } => {
                let [no, yes] = [0, 1].map(|side| self.plant(sample, &sides[side]));
                self.join(sample, *column, &yes, &no)
            }
        }
    }

    /// A tree of low weighted cost: every split is the first split of the best tree of two levels,
    /// and the last two levels are exact.
    pub fn dive(&mut self, node: &FrontNode<K>, depth: usize) -> Result<Option<Point<K>>, Stop> {
        let (_, near) = self.shallow(node, depth.min(SHALLOW))?;
        let Some(point) = near.filter(|_| depth > SHALLOW) else { return Ok(near) };
        let feature = self.plans.root(point.plan);
        let Some(c) = feature.and_then(|f| node.sample.column_of(f)) else { return Ok(near) };
        let yes = self.child(node, c, true);
        let yes = self.dive(&yes, depth - 1)?;
        let no = self.child(node, c, false);
        let no = self.dive(&no, depth - 1)?;
        let (Some(yes), Some(no)) = (yes, no) else { return Ok(near) };
        let far = self.join(&node.sample, c, &yes, &no);
        Ok(Some(if self.value(&far) < self.value(&point) { far } else { point }))
    }
}
