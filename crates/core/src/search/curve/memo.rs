//! What is known of the nodes met so far, shared by all threads.

use std::sync::Mutex;

/// Knowledge of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// Least cost, or a lower bound on it.
    pub value: f64,
    /// Column at the root of a best tree, [`Known::LEAF`], or [`Known::BOUND`] where `value`
    /// is only a bound.
    pub root: i32,
}

impl Known {
    /// The best tree is a leaf.
    pub const LEAF: i32 = -1;
    /// Only a bound is known.
    pub const BOUND: i32 = -2;
    const EMPTY: i32 = -3;

    /// Whether `value` is the least cost.
    pub fn exact(&self) -> bool {
        self.root != Known::BOUND
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u128,
    known: Known,
}

const EMPTY: Entry = Entry { key: 0, known: Known { value: 0.0, root: Known::EMPTY } };

/// Entries looked at before one is displaced.
const PROBES: usize = 8;
const SHARDS: usize = 64;
const FIRST_SIZE: usize = 64;

/// Open addressing within shards, each under its own lock.
///
/// A shard doubles until the byte limit; from then on new entries displace old ones.
#[derive(Debug)]
pub struct Memo {
    shards: Vec<Mutex<Shard>>,
    most_per_shard: usize,
}

#[derive(Debug, Default)]
struct Shard {
    entries: Vec<Entry>,
    used: usize,
}

impl Memo {
    /// A table of at most `bytes`; of none at all with 0.
    pub fn new(bytes: usize) -> Self {
        // While a shard doubles, half of its new size is needed twice.
        let most = bytes / SHARDS / size_of::<Entry>() * 2 / 3;
        let most_per_shard = if most < FIRST_SIZE { 0 } else { 1 << most.ilog2() };
        Memo { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), most_per_shard }
    }

    fn shard(&self, key: u128) -> &Mutex<Shard> {
        &self.shards[(key >> 120) as usize % SHARDS]
    }

    /// What is known of a node.
    pub fn get(&self, key: u128) -> Option<Known> {
        let shard = self.shard(key).lock().expect("no panic while locked");
        let entries = &shard.entries;
        if entries.is_empty() {
            return None;
        }
        let mask = entries.len() - 1;
        for probe in 0..PROBES {
            let entry = &entries[(key as usize).wrapping_add(probe) & mask];
            if entry.known.root == Known::EMPTY {
                return None;
            }
            if entry.key == key {
                return Some(entry.known);
            }
        }
        None
    }

    /// Remembers; an exact value replaces a bound, a higher bound a lower one.
    pub fn put(&self, key: u128, known: Known) {
        if self.most_per_shard == 0 {
            return;
        }
        let mut shard = self.shard(key).lock().expect("no panic while locked");
        if 4 * shard.used >= 3 * shard.entries.len() && shard.entries.len() < self.most_per_shard {
            let larger = (2 * shard.entries.len()).max(FIRST_SIZE);
            let old = std::mem::replace(&mut shard.entries, vec![EMPTY; larger]);
            shard.used = 0;
            for entry in old.into_iter().filter(|e| e.known.root != Known::EMPTY) {
                shard.insert(entry);
            }
        }
        shard.insert(Entry { key, known });
    }
}

impl Shard {
    fn insert(&mut self, new: Entry) {
        let mask = self.entries.len() - 1;
        let slot = |probe: usize| (new.key as usize).wrapping_add(probe) & mask;
        for probe in 0..PROBES {
            let entry = &mut self.entries[slot(probe)];
            if entry.known.root == Known::EMPTY {
                *entry = new;
                self.used += 1;
                return;
            }
            if entry.key == new.key {
                let (old, new) = (&mut entry.known, new.known);
                if new.exact() || !old.exact() && new.value > old.value {
                    *old = new;
                }
                return;
            }
        }
        self.entries[slot((new.key >> 64) as usize % PROBES)] = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(i: u64) -> u128 {
        u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | u128::from(i << 3)
    }

    #[test]
    fn a_small_table_keeps_what_it_has_room_for() {
        let memo = Memo::new(1 << 20);
        let bound = |i: u64| Known { value: i as f64, root: Known::BOUND };
        (0..100_000).for_each(|i| memo.put(key(i), bound(i)));
        let held: Vec<u64> = (0..100_000).filter(|&i| memo.get(key(i)).is_some()).collect();
        assert!((4096..=16384).contains(&held.len()), "{}", held.len());
        assert!(held.iter().all(|&i| memo.get(key(i)) == Some(bound(i))));
        let bytes: usize =
            memo.shards.iter().map(|s| s.lock().unwrap().entries.len() * size_of::<Entry>()).sum();
        assert!(bytes <= 1 << 20);
    }

    #[test]
    fn exact_values_stay() {
        let memo = Memo::new(1 << 20);
        let put = |value, root| memo.put(7, Known { value, root });
        put(1.0, Known::BOUND);
        put(0.5, Known::BOUND);
        assert_eq!(memo.get(7), Some(Known { value: 1.0, root: Known::BOUND }));
        put(2.0, 3);
        put(2.5, Known::BOUND);
        assert_eq!(memo.get(7), Some(Known { value: 2.0, root: 3 }));
        assert_eq!(memo.get(8), None);
    }
}
