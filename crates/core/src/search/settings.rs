//! Limits, switches and resources of a search.

use super::lattice;
use super::nodes::{Allowed, full_leaves};
use crate::data::Smallest;
use crate::error::Error;
use crate::simd::Backend;
use std::num::NonZero;
use std::ops::Deref;
use std::sync::LazyLock;

/// With lattices, the memo gets this fraction (one in `MEMO`) of the memory limit; lattices get the
/// rest.
const MEMO: usize = 4;

/// Bytes of tables and memos if no memory limit is given.
pub const DEFAULT_BYTES: usize = 600 << 20;

/// The trees that are allowed.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest path in splits; a single leaf has depth 0.
    pub max_depth: usize,
    /// Most leaves; `None` if only the depth limits them.
    pub max_leaves: Option<usize>,
    /// Minimum number of the caller's rows in each leaf; weights do not matter.
    pub min_leaf: usize,
    /// Minimum number of rows with an event in each leaf, for tasks that have events.
    pub min_events: usize,
}

/// Threads and memory of a search; its time limit belongs to the [`Monitor`](super::Monitor).
#[derive(Clone, Debug)]
pub struct Resources {
    /// Number of threads.
    pub n_threads: usize,
    /// Bytes of the search's tables.
    pub memory_limit: Option<usize>,
}

/// How to search. No switch changes the optimum.
#[derive(Clone, Debug)]
pub struct Switches {
    /// Instruction set; `None` for the fastest that this machine supports.
    pub backend: Option<Backend>,
    /// Width of lanes; `None` to choose by the task's error bound.
    pub precision: Option<Precision>,
    /// Try the trivial bound of the objective on shallow trees before building deep lattices.
    pub trivial_bound: bool,
    /// Bound nodes by the finest partition of their rows (equivalent points, look-ahead).
    pub equivalent_points: bool,
    /// Depth of the deepest lattice; nodes that need more are split.
    pub lattice_depth: usize,
    /// Leave out cells of the deepest lattice that repeat cells of fewer columns; `None` to do so
    /// when it saves work.
    pub implied: Option<bool>,
    /// Also bound sides by trees whose leaves may have any size. Such bounds hold for other sides,
    /// too, at twice the work.
    pub relax_leaves: bool,
    /// Charge a split the price of two leaves before looking below it (curve tasks).
    pub look_ahead: bool,
    /// Remember solved nodes above lattices.
    pub cache: bool,
    /// For tests of threads: number of lattice cells that justify a thread (2^20 if `None`). If
    /// set, all requested threads run, even if the machine has fewer cores.
    pub cells_per_thread: Option<usize>,
    /// For tests: objective of a known tree. The search panics if a bound excludes it.
    pub planted: Option<f64>,
}

/// Settings of a search, without its task and its data.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The trees that are allowed.
    pub limits: Limits,
    /// Threads and memory.
    pub resources: Resources,
    /// How to search.
    pub switches: Switches,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_depth: 3, max_leaves: None, min_leaf: 1, min_events: 0 }
    }
}

impl Default for Resources {
    fn default() -> Self {
        Resources { n_threads: 1, memory_limit: None }
    }
}

impl Default for Switches {
    fn default() -> Self {
        Switches {
            backend: None,
            precision: None,
            trivial_bound: true,
            equivalent_points: true,
            lattice_depth: lattice::MAX_DEPTH,
            implied: None,
            relax_leaves: false,
            look_ahead: true,
            cache: true,
            cells_per_thread: None,
            planted: None,
        }
    }
}

impl Limits {
    /// Minimum size of a leaf.
    pub fn smallest(&self) -> Smallest {
        let whole = |least: usize| i64::try_from(least).unwrap_or(i64::MAX);
        Smallest { rows: whole(self.min_leaf), events: whole(self.min_events) }
    }

    /// Minimum number of rows in a leaf: the requested one, but no fewer than events.
    pub fn least_rows(&self) -> usize {
        self.min_leaf.max(self.min_events)
    }

    /// Whether leaves may have any size.
    pub fn any_leaves(&self) -> bool {
        self.min_leaf <= 1 && self.min_events == 0
    }

    /// Depth and leaves of the allowed trees.
    pub(super) fn allowed(&self) -> Allowed {
        Allowed::of(self.max_depth, self.max_leaves.unwrap_or(usize::MAX))
    }

    /// Most leaves of any allowed tree.
    pub fn most_leaves(&self) -> usize {
        full_leaves(self.max_depth).min(self.max_leaves.unwrap_or(usize::MAX))
    }

    /// Rejects limits that are impossible for this number of rows and events.
    fn check(&self, n_rows: usize, n_events: usize) -> Result<(), Error> {
        let invalid = |name, reason: &str| Err(Error::invalid(name, reason));
        if n_rows == 0 {
            return invalid("X", "there are no rows");
        }
        if self.min_leaf == 0 {
            return invalid("min_samples_leaf", "must be at least 1");
        }
        if self.min_leaf > n_rows {
            return invalid("min_samples_leaf", "is larger than the number of rows");
        }
        if self.min_events > n_events {
            return invalid("min_events_leaf", "is larger than the number of events");
        }
        if self.max_leaves == Some(0) {
            return invalid("max_leaf_nodes", "must be at least 1");
        }
        Ok(())
    }
}

impl Switches {
    /// Names of the switches that differ from their default.
    pub fn changed(&self) -> impl Iterator<Item = &'static str> {
        let default = Switches::default();
        let all = [
            ("backend", self.backend.is_some()),
            ("precision", self.precision.is_some()),
            ("trivial_bound", self.trivial_bound != default.trivial_bound),
            ("equivalent_points", self.equivalent_points != default.equivalent_points),
            ("lattice_depth", self.lattice_depth != default.lattice_depth),
            ("implied", self.implied.is_some()),
            ("relax_leaves", self.relax_leaves != default.relax_leaves),
            ("look_ahead", self.look_ahead != default.look_ahead),
            ("cache", self.cache != default.cache),
            ("cells_per_thread", self.cells_per_thread.is_some()),
            ("planted", self.planted.is_some()),
        ];
        all.into_iter().filter(|&(_, switched)| switched).map(|(name, _)| name)
    }
}

/// Settings whose limits are possible for the rows of a search. Every search requires them.
#[derive(Clone, Debug)]
pub struct Checked(Settings);

impl Deref for Checked {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.0
    }
}

impl Checked {
    /// The same settings for trees with at most this many leaves.
    pub fn at_most(&self, leaves: usize) -> Checked {
        Checked(self.with_limits(|s| s.max_leaves = Some(leaves)))
    }

    /// The same settings for a search next to something that already uses this many bytes.
    pub fn within(&self, bytes: usize) -> Checked {
        Checked(self.with_resources(|s| s.memory_limit = Some(bytes)))
    }
}

impl Settings {
    /// Checks the settings for this number of rows and events.
    ///
    /// # Errors
    ///
    /// Names the limit that no tree over these rows can satisfy.
    pub fn checked(&self, n_rows: usize, n_events: usize) -> Result<Checked, Error> {
        self.limits.check(n_rows, n_events)?;
        Ok(Checked(self.clone()))
    }

    /// The same settings with other limits.
    pub fn with_limits(&self, change: impl FnOnce(&mut Limits)) -> Settings {
        let mut settings = self.clone();
        change(&mut settings.limits);
        settings
    }

    /// The same settings with other resources.
    pub fn with_resources(&self, change: impl FnOnce(&mut Resources)) -> Settings {
        let mut settings = self.clone();
        change(&mut settings.resources);
        settings
    }

    /// The same settings with other switches.
    pub fn with_switches(&self, change: impl FnOnce(&mut Switches)) -> Settings {
        let mut settings = self.clone();
        change(&mut settings.switches);
        settings
    }

    /// Bytes that the tables and memos of a search may use together, in any engine.
    pub fn bytes(&self) -> usize {
        self.resources.memory_limit.unwrap_or(DEFAULT_BYTES)
    }

    /// Bytes of these that the memo may use.
    pub fn memo_bytes(&self) -> usize {
        self.bytes() / MEMO
    }

    /// Instruction set of the search.
    pub fn backend(&self) -> Backend {
        self.switches.backend.unwrap_or_else(Backend::best)
    }

    /// Settings for each thread that takes questions at the root. There are as many threads as fit
    /// next to a full memo if each needs `each` bytes for a lattice of `reach` levels; the
    /// remaining threads help with these questions.
    pub fn shared(&self, reach: usize, each: usize) -> Vec<Settings> {
        let (n_threads, room) = (self.threads(), self.bytes() - self.memo_bytes());
        let workers = n_threads.min(room / each.max(1));
        if workers < 2 {
            return Vec::new();
        }
        let of_each = self
            .with_resources(|s| s.n_threads = n_threads / workers)
            .with_switches(|s| s.lattice_depth = s.lattice_depth.min(reach));
        vec![of_each; workers]
    }

    /// Number of threads to run: the requested number, but at most the number of cores.
    pub fn threads(&self) -> usize {
        // Asking the system takes as long as a small lattice.
        static CORES: LazyLock<usize> =
            LazyLock::new(|| std::thread::available_parallelism().map_or(1, NonZero::get));
        let most = if self.switches.cells_per_thread.is_some() { usize::MAX } else { *CORES };
        self.resources.n_threads.clamp(1, most)
    }
}

/// Element type of the lattice kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Sums and losses that are 16-bit whole numbers, and exact; tasks that do not permit it use
    /// `Single`.
    Short,
    /// i32 sums and f32 losses, refined in exact arithmetic.
    Single,
    /// i64 sums and f64 losses, refined in exact arithmetic.
    Double,
    /// Exact sums of all itemsets and exact costs, if depth and memory allow; otherwise `Double`.
    Exact,
}
