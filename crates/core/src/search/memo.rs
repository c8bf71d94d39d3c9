//! Remembers the nodes that were already met, for all threads.

use super::nodes::{Cost, Known};
use crate::tree::Tree;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The part of a best tree that is kept.
pub trait Kept: Clone + Send {
    /// Bytes in addition to its own size.
    fn bytes(&self) -> usize;

    /// The tree, if all of it is kept.
    fn whole(&self) -> Option<Tree> {
        None
    }
}

/// The column at the root; −1 for a leaf.
impl Kept for i32 {
    fn bytes(&self) -> usize {
        0
    }
}

impl Kept for Arc<Tree> {
    fn bytes(&self) -> usize {
        // Three lists of numbers, including the overhead of the allocator.
        24 * self.n_nodes() + 160
    }

    fn whole(&self) -> Option<Tree> {
        Some(Tree::clone(self))
    }
}

#[derive(Clone, Debug)]
struct Entry<C, S> {
    key: u128,
    known: Known<C, S>,
}

/// Number of entries that are tried before one is displaced.
const PROBES: usize = 8;
const SHARDS: usize = 64;
const FIRST_SIZE: usize = 64;

/// A hash table with open addressing, divided into shards with a lock each.
///
/// A shard doubles until the byte limit. From then on new entries displace old ones, and trees that
/// do not fit are not kept.
#[derive(Debug)]
pub struct Memo<C, S> {
    shards: Vec<Mutex<Shard<C, S>>>,
    bytes_per_shard: usize,
    bytes: AtomicUsize,
}

#[derive(Debug)]
struct Shard<C, S> {
    entries: Vec<Option<Entry<C, S>>>,
    used: usize,
    /// Bytes of the trees.
    trees: usize,
}

impl<C: Cost, S: Kept> Memo<C, S> {
    /// A table of at most `bytes` bytes; 0 remembers nothing.
    pub fn new(bytes: usize) -> Self {
        let empty = || Mutex::new(Shard { entries: Vec::new(), used: 0, trees: 0 });
        Memo {
            shards: (0..SHARDS).map(|_| empty()).collect(),
            bytes_per_shard: bytes / SHARDS,
            bytes: AtomicUsize::new(0),
        }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn shard(&self, key: u128) -> &Mutex<Shard<C, S>> {
        &self.shards[(key >> 120) as usize % SHARDS]
    }

    /// What is known about a node, if it is exact or a bound that reaches `reached`.
    pub fn get(&self, key: u128, reached: C) -> Option<Known<C, S>> {
        let shard = self.shard(key).lock().expect("no panic while locked");
        let entries = &shard.entries;
        if entries.is_empty() {
            return None;
        }
        let mask = entries.len() - 1;
        for probe in 0..PROBES {
            let entry = entries[(key as usize).wrapping_add(probe) & mask].as_ref()?;
            if entry.key == key {
                let known = &entry.known;
                return (known.is_exact() || known.value >= reached).then(|| known.clone());
            }
        }
        None
    }

    /// Stores what is known. An exact value replaces a bound, and a higher bound a lower one.
    pub fn put(&self, key: u128, known: &Known<C, S>) {
        let mut shard = self.shard(key).lock().expect("no panic while locked");
        let before = shard.bytes();
        shard.grow(self.bytes_per_shard);
        shard.insert(Entry { key, known: known.clone() }, self.bytes_per_shard);
        // Additions and subtractions are summed modulo 2^64, so the sum may wrap in between.
        self.bytes.fetch_add(shard.bytes().wrapping_sub(before), Ordering::Relaxed);
    }
}

impl<C: Cost, S: Kept> Shard<C, S> {
    const ENTRY: usize = size_of::<Option<Entry<C, S>>>();

    fn bytes(&self) -> usize {
        self.entries.len() * Self::ENTRY + self.trees
    }

    /// Doubles the table if that fits. Meanwhile the old and the new table exist together, which
    /// takes one and a half times the new size.
    fn grow(&mut self, limit: usize) {
        let larger = (2 * self.entries.len()).max(FIRST_SIZE);
        let fits = larger * Self::ENTRY * 3 / 2 + self.trees <= limit;
        if 4 * self.used < 3 * self.entries.len() || !fits {
            return;
        }
        let empty = (0..larger).map(|_| None).collect();
        let old = std::mem::replace(&mut self.entries, empty);
        (self.used, self.trees) = (0, 0);
        for entry in old.into_iter().flatten() {
            self.insert(entry, limit);
        }
    }

    fn insert(&mut self, new: Entry<C, S>, limit: usize) {
        let Some(mask) = self.entries.len().checked_sub(1) else { return };
        let slot = |probe: usize| (new.key as usize).wrapping_add(probe) & mask;
        let place = (0..PROBES)
            .map(slot)
            .find(|&at| self.entries[at].as_ref().is_none_or(|entry| entry.key == new.key));
        let at = place.unwrap_or_else(|| slot((new.key >> 64) as usize % PROBES));
        let of = |entry: &Entry<C, S>| entry.known.tree.as_ref().map_or(0, Kept::bytes);
        let old = self.entries[at].as_ref();
        if let Some(old) = old.filter(|old| old.key == new.key) {
            let better =
                new.known.is_exact() || !old.known.is_exact() && new.known.value > old.known.value;
            if !better {
                return;
            }
        }
        let trees = self.trees - old.map_or(0, of) + of(&new);
        // Without a tree the entry needs no bytes beyond its place in the table.
        if of(&new) > 0 && self.entries.len() * Self::ENTRY + trees > limit {
            return;
        }
        self.used += usize::from(old.is_none());
        self.trees = trees;
        self.entries[at] = Some(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(i: u64) -> u128 {
        u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | u128::from(i << 3)
    }

    fn held<S: Kept>(memo: &Memo<f64, S>) -> Vec<u64> {
        (0..100_000).filter(|&i| memo.get(key(i), f64::MIN).is_some()).collect()
    }

    fn bytes<S: Kept>(memo: &Memo<f64, S>) -> usize {
        let of_entry = |entry: &Entry<f64, S>| entry.known.tree.as_ref().map_or(0, Kept::bytes);
        let of_shard = |shard: &Mutex<Shard<f64, S>>| {
            let shard = shard.lock().expect("no panic while locked");
            let trees: usize = shard.entries.iter().flatten().map(of_entry).sum();
            shard.entries.len() * size_of::<Option<Entry<f64, S>>>() + trees
        };
        memo.shards.iter().map(of_shard).sum()
    }

    #[test]
    fn a_small_table_keeps_what_it_has_room_for() {
        let memo = Memo::<f64, i32>::new(1 << 20);
        let bound = |i: u64| Known::bound(i as f64);
        (0..100_000).for_each(|i| memo.put(key(i), &bound(i)));
        let held = held(&memo);
        assert!((4096..=16384).contains(&held.len()), "{}", held.len());
        assert!(held.iter().all(|&i| memo.get(key(i), f64::MIN) == Some(bound(i))));
        assert!(bytes(&memo) <= 1 << 20);
        assert_eq!(memo.bytes(), bytes(&memo));
    }

    #[test]
    fn an_entry_of_a_column_takes_no_more_than_its_numbers() {
        assert_eq!(size_of::<Option<Entry<f64, i32>>>(), 32);
    }

    #[test]
    fn trees_count_and_those_without_room_are_not_kept() {
        let memo = Memo::<f64, Arc<Tree>>::new(1 << 20);
        let tree = Arc::new(Tree::split(3, &Tree::leaf(), &Tree::leaf()));
        (0..100_000).for_each(|i| memo.put(key(i), &Known::exact(i as f64, tree.clone())));
        assert!((1000..10_000).contains(&held(&memo).len()), "{}", held(&memo).len());
        assert!(bytes(&memo) <= 1 << 20);
        assert_eq!(memo.bytes(), bytes(&memo));
        let none = Memo::<f64, Arc<Tree>>::new(0);
        none.put(7, &Known::bound(1.0));
        assert_eq!((none.get(7, 0.0), none.bytes()), (None, 0));
    }

    #[test]
    fn exact_values_stay() {
        let memo = Memo::new(1 << 20);
        let put = |value, root: Option<i32>| memo.put(7, &Known { value, tree: root });
        put(1.0, None);
        put(0.5, None);
        assert_eq!(memo.get(7, 0.0), Some(Known::bound(1.0)));
        assert_eq!(memo.get(7, 1.5), None);
        put(2.0, Some(3));
        put(2.5, None);
        assert_eq!(memo.get(7, 9.0), Some(Known::exact(2.0, 3)));
        assert_eq!(memo.get(8, 0.0), None);
    }
}
