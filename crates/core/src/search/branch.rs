//! Depth-first branch and bound over [`Nodes`].
//!
//! A node that may still be split is looked up in the memo, solved at once by the task's engine, or
//! split on every question in turn. Questions whose bound reaches the best known cost are skipped;
//! the cost of the others is the sum over both sides. Only trees that cost less than a cut are
//! searched for.

use super::memo::Memo;
use super::nodes::{
    Allowed, Below, Bounded, Cost, Known, KnownOf, Look, Nodes, Parent, Pending, Place,
};
use super::threads::on_each;
use super::{Monitor, Stop};

/// Nodes already met, by their rows and remaining allowance.
pub type MemoOf<N> = Memo<<N as Nodes>::Cost, <N as Nodes>::Subtree>;

/// The search of one thread.
pub struct Branch<'a, N: Nodes> {
    /// The nodes of the task.
    pub nodes: N,
    /// Shared by all threads; `None` if nothing is remembered.
    pub memo: Option<&'a MemoOf<N>>,
    /// Clock and interrupt.
    pub monitor: &'a Monitor<'a>,
}

/// Results for the sides of a question, over all ways to share the leaves.
struct Sides<'a, N: Nodes> {
    open: Option<&'a N::Open>,
    split: &'a N::Split,
    nodes: &'a [N::Node; 2],
    /// Lower bounds that were known before.
    bounds: [N::Cost; 2],
    /// Smallest of the bounds proven for each share.
    proven: [N::Cost; 2],
}

impl<'a, N: Nodes> Branch<'a, N> {
    /// Runs the work on one thread per worker; with fewer than two workers, on this thread.
    pub fn spread(&mut self, workers: Vec<N>, work: impl Fn(&mut Branch<'a, N>) + Sync)
    where
        N: Send,
    {
        let (memo, monitor) = (self.memo, self.monitor);
        if workers.len() < 2 {
            return work(self);
        }
        let branch = |nodes| Branch { nodes, memo, monitor };
        let mut branches: Vec<_> = workers.into_iter().map(branch).collect();
        on_each(&mut branches, &work);
    }

    /// The least cost of a tree on a node if it is below `cut`, otherwise a lower bound that
    /// reaches `cut` up to the slack.
    pub fn solve(
        &mut self,
        node: &N::Node,
        parent: Option<Parent<N>>,
        allowed: Allowed,
        cut: N::Cost,
    ) -> Result<KnownOf<N>, Stop> {
        let allowed = self.nodes.useful(node, allowed);
        if let Some(known) = self.known(node, allowed, cut) {
            return Ok(known);
        }
        match self.look(node, parent, allowed, cut)? {
            Look::Solved { known, .. } => Ok(known),
            Look::Open(open, mut queue) => {
                let known = self.over_questions(node, &open, &mut queue, allowed, cut)?;
                self.nodes.close(open);
                if let Some(memo) = self.memo {
                    memo.put(self.nodes.key(node) ^ allowed.mark(), &known);
                }
                Ok(known)
            }
        }
    }

    /// What is known about a node without looking at its rows, if that suffices; `allowed` is the
    /// part of the allowance that the node can use.
    pub fn known(&self, node: &N::Node, allowed: Allowed, cut: N::Cost) -> Option<KnownOf<N>> {
        if allowed.leaves == 1 {
            return Some(self.nodes.leaf(node));
        }
        let reached = cut.minus(self.nodes.slack());
        let bound = self.nodes.bound(node);
        if bound >= reached {
            return Some(Known::bound(bound));
        }
        self.memo?.get(self.nodes.key(node) ^ allowed.mark(), reached)
    }

    /// Solves a node by the task's engine, or returns the questions to try.
    pub fn look(
        &mut self,
        node: &N::Node,
        parent: Option<Parent<N>>,
        allowed: Allowed,
        cut: N::Cost,
    ) -> Result<Look<N>, Stop> {
        self.monitor.check()?;
        let look = self.nodes.look(node, parent, allowed, cut)?;
        if let (Look::Solved { known, fewer }, Some(memo)) = (&look, self.memo) {
            let rows = self.nodes.key(node);
            memo.put(rows ^ allowed.mark(), known);
            for (k, known) in fewer.iter().enumerate() {
                memo.put(rows ^ allowed.at_most(usize::MAX, k + 1).mark(), known);
            }
        }
        Ok(look)
    }

    fn over_questions(
        &mut self,
        node: &N::Node,
        open: &N::Open,
        queue: &mut N::Queue,
        allowed: Allowed,
        cut: N::Cost,
    ) -> Result<KnownOf<N>, Stop> {
        let slack = self.nodes.slack();
        let mut best = self.nodes.first(node, open);
        let mut place = Place::FIRST;
        // Least cost of all trees other than the best.
        let mut least = N::Cost::MOST;
        while let Some((question, split)) = queue.next(open) {
            let limit = best.value.plus(place.tie(split.first(question))).lesser(cut);
            let bound = split.bound();
            if bound >= limit.minus(slack) {
                least = least.lesser(bound);
                continue;
            }
            let below = self.below(node, open, &split, allowed, limit)?;
            self.nodes.learn(node, open, queue, &split, &below, allowed);
            let known = below.known;
            let found = self.place(&known, question).filter(|_| known.value < limit.minus(slack));
            if let Some(found) = found.filter(|&found| known.value < best.value || found < place) {
                let before = best.value;
                (best, place) = (known, found);
                best.value = best.value.beside(before);
            } else {
                least = least.lesser(known.value);
            }
        }
        if best.value <= cut || least >= best.value.minus(slack) {
            best.value = best.value.beside(least);
            return Ok(best);
        }
        Ok(Known::bound(least))
    }

    /// The least cost of a tree with this question at the root if it is below `cut`, otherwise a
    /// bound.
    pub fn below(
        &mut self,
        node: &N::Node,
        open: &N::Open,
        split: &N::Split,
        allowed: Allowed,
        cut: N::Cost,
    ) -> Result<Below<N::Cost, N::Subtree>, Stop> {
        let nodes = self.nodes.sides(node, open, split)?;
        let bounds = [0, 1].map(|side| self.nodes.bound_of_side(split, &nodes[side], side));
        let below = self.nodes.look_closer(open, split, &nodes, allowed.below(), cut)?;
        let closer = below.is_some();
        let bounds = below.map_or(bounds, |b| [b[0].greater(bounds[0]), b[1].greater(bounds[1])]);
        let bound = bounds[0].plus(bounds[1]).plus(self.nodes.price(split));
        let known = if bound >= cut.minus(self.nodes.slack()) && closer {
            Below { known: Known::bound(bound), sides: bounds }
        } else {
            let proven = [N::Cost::MOST; 2];
            let mut sides = Sides { open: Some(open), split, nodes: &nodes, bounds, proven };
            let known = self.over_shares(node, &mut sides, allowed, cut)?;
            Below { known, sides: if closer { bounds } else { sides.proven } }
        };
        self.nodes.give_back(nodes);
        Ok(known)
    }

    /// Searches all ways to share the leaves between the two sides.
    fn over_shares(
        &mut self,
        node: &N::Node,
        sides: &mut Sides<N>,
        allowed: Allowed,
        cut: N::Cost,
    ) -> Result<KnownOf<N>, Stop> {
        let mut least = Known::bound(N::Cost::MOST);
        let mut place = Place::FIRST;
        let side = self.nodes.column(node, sides.split).true_side();
        let ways = self.ways(sides.nodes, allowed, side);
        if N::ALL_SIZES && ways.clone().nth(1).is_some() {
            // A result for as many leaves as either side can use holds for all shares, and one
            // lattice finds all of them.
            let below = [allowed.below(); 2];
            let known = self.pair(node, sides, below, cut)?;
            if known.value >= cut {
                return Ok(Known::bound(known.value));
            }
        }
        for (turn, share) in ways.enumerate() {
            let limit = match least.is_exact() {
                true => least.value.plus(place.tie(turn)).lesser(cut),
                false => cut,
            };
            let known = self.pair(node, sides, share, limit)?;
            match self.place(&known, turn) {
                Some(found) if !least.is_exact() || known.value < least.value || found < place => {
                    let before = least.value;
                    (least, place) = (known, found);
                    least.value = least.value.beside(before);
                }
                None if !least.is_exact() => least.value = least.value.lesser(known.value),
                _ => least.value = least.value.beside(known.value),
            }
        }
        Ok(least)
    }

    /// Place of a tree that was found with this question at its root.
    pub fn place(&self, known: &KnownOf<N>, question: usize) -> Option<Place> {
        known.tree.as_ref().map(|tree| Place::new(self.nodes.leaves(tree), question))
    }

    /// Ways to share the leaves that leave over none that a side could use, with the fewest on the
    /// given side first. There is only one if there are enough leaves for both sides.
    pub fn ways(
        &self,
        sides: &[N::Node; 2],
        allowed: Allowed,
        side: usize,
    ) -> impl Iterator<Item = [Allowed; 2]> + Clone + use<N> {
        let depth = allowed.depth - 1;
        let [other, own] =
            [1 - side, side].map(|side| self.nodes.useful(&sides[side], allowed.below()).leaves);
        let all = allowed.leaves.min(other.saturating_add(own));
        (all.saturating_sub(other).max(1)..=own.min(all - 1)).map(move |own| {
            let mut leaves = [all - own; 2];
            leaves[side] = own;
            leaves.map(|leaves| Allowed { depth, leaves })
        })
    }

    /// Searches both sides of a split with the given shares.
    fn pair(
        &mut self,
        node: &N::Node,
        sides: &mut Sides<N>,
        share: [Allowed; 2],
        cut: N::Cost,
    ) -> Result<KnownOf<N>, Stop> {
        let Sides { open, split, nodes, bounds, .. } = *sides;
        let first = self.nodes.first_side(nodes);
        let other = 1 - first;
        let price = self.nodes.price(split);
        let parent = |side: usize| open.map(|open| Parent { open, sibling: &nodes[1 - side] });
        let left = cut.minus(price);
        let reach = [0, 1].map(|side| self.nodes.reach(split, side, cut));
        let of_side = |side: usize, beside: N::Cost| {
            let needed = left.minus(beside);
            reach[side].map_or(needed, |reach| reach.greater(needed))
        };
        let most = of_side(first, bounds[other]);
        let one = self.solve(&nodes[first], parent(first), share[first], most)?;
        sides.prove(first, one.value.greater(bounds[first]));
        let bound = one.value.plus(bounds[other]);
        if (!one.is_exact() || bound >= left) && reach[other].is_none() {
            sides.prove(other, bounds[other]);
            return Ok(Known::bound(bound.plus(price)));
        }
        let most = of_side(other, one.value);
        let two = self.solve(&nodes[other], parent(other), share[other], most)?;
        sides.prove(other, two.value.greater(bounds[other]));
        let value = one.value.plus(two.value).plus(price);
        let (Some(one), Some(two)) = (one.tree, two.tree) else { return Ok(Known::bound(value)) };
        if value >= cut {
            return Ok(Known::bound(value));
        }
        let trees = if first == 0 { [&one, &two] } else { [&two, &one] };
        Ok(Known::exact(value, self.nodes.join(node, split, trees)))
    }

    /// The sides' best share of the leaves for a question whose least cost is known.
    pub fn best_share(
        &mut self,
        node: &N::Node,
        nodes: &[N::Node; 2],
        split: &N::Split,
        allowed: Allowed,
        cut: N::Cost,
        enough: N::Cost,
    ) -> Result<Option<[Allowed; 2]>, Stop> {
        let bounds = [0, 1].map(|side| self.nodes.bound_of_side(split, &nodes[side], side));
        let (mut best, mut least) = (None, N::Cost::MOST);
        let side = self.nodes.column(node, split).true_side();
        for share in self.ways(nodes, allowed, side) {
            let proven = [N::Cost::MOST; 2];
            let mut sides = Sides { open: None, split, nodes, bounds, proven };
            let known = self.pair(node, &mut sides, share, cut)?;
            if known.is_exact() && known.value < least {
                (best, least) = (Some(share), known.value);
            }
            if least <= enough {
                break;
            }
        }
        Ok(best)
    }
}

impl<N: Nodes> Sides<'_, N> {
    /// Records a proven lower bound for one side and one share.
    fn prove(&mut self, side: usize, lower: N::Cost) {
        self.proven[side] = self.proven[side].lesser(lower);
    }
}
