//! Threads that searches and their passes share.
//!
//! A search and its passes run on threads that are kept from one search to the next. On two
//! processors, a thread that is new or ran elsewhere may wait for milliseconds for the processor of
//! the thread that woke it, and a search has many short passes in a row.

use super::{Settings, Stop};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::sync::Mutex;

/// Number of threads worth starting for an effort, if `worth_one` is the effort that justifies a
/// thread.
pub fn useful_threads(effort: impl Fn() -> f64, worth_one: usize, settings: &Settings) -> usize {
    let n_threads = settings.threads();
    if n_threads < 2 {
        return 1;
    }
    let worth_one = settings.switches.cells_per_thread.unwrap_or(worth_one).max(1);
    n_threads.min((effort() / worth_one as f64) as usize).max(1)
}

/// Runs a pass on every worker, each on its own thread. If several are stopped, returns the first
/// stop.
pub fn run_all<W: Send>(
    workers: &mut [W],
    pass: &(dyn Fn(&mut W) -> Result<(), Stop> + Sync),
) -> Result<(), Stop> {
    if let [worker] = workers {
        return pass(worker);
    }
    let mut passes: Vec<_> = workers.iter_mut().map(|worker| (worker, Ok(()))).collect();
    on_each(&mut passes, &|(worker, result)| *result = pass(worker));
    passes.into_iter().try_for_each(|(_, result)| result)
}

/// Runs the work on every worker, each on its own thread: of the team that this thread belongs to,
/// or else of a team for all processors.
pub fn on_each<W: Send>(workers: &mut [W], work: &(dyn Fn(&mut W) + Sync)) {
    let Some((first, others)) = workers.split_first_mut() else { return };
    rayon_core::in_place_scope(|scope| {
        others.iter_mut().for_each(|worker| scope.spawn(move |_| work(worker)));
        work(first);
    });
}

/// The threads of one search.
pub struct Team {
    threads: ThreadPool,
    /// The process that started the threads; a forked process does not have them.
    process: u32,
}

/// Teams that wait for work.
static IDLE: Mutex<Vec<Team>> = Mutex::new(Vec::new());

impl Team {
    /// A team of at least this many threads; `None` if the system cannot start them.
    pub fn of(n_threads: usize) -> Option<Team> {
        let process = std::process::id();
        // If another search holds the list, or did when this process was forked, start a new team.
        let idle = IDLE.try_lock().ok().and_then(|mut teams| teams.pop());
        match idle {
            Some(team) if team.process != process => std::mem::forget(team),
            Some(team) if team.threads.current_num_threads() >= n_threads => return Some(team),
            _ => {}
        }
        let name = |place| format!("bristlecone-{place}");
        let threads = ThreadPoolBuilder::new().num_threads(n_threads).thread_name(name);
        Some(Team { threads: threads.build().ok()?, process })
    }

    /// Runs the work on one of the threads, and calls `watch` on this one meanwhile. Then the team
    /// waits for more work.
    pub fn work<R: Send>(self, work: impl FnOnce() -> R + Send, watch: impl FnOnce()) -> R {
        let mut result = None;
        self.threads.in_place_scope(|scope| {
            scope.spawn(|_| result = Some(work()));
            watch();
        });
        if let Ok(mut teams) = IDLE.try_lock() {
            teams.push(self);
        }
        result.expect("the scope ends after the work")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn every_worker_has_its_pass_and_the_first_stop_counts() {
        for n_workers in [1, 2, 7, 3] {
            let mut workers = vec![0; n_workers];
            let all = |worker: &mut i32| {
                *worker += 1;
                Ok(())
            };
            assert_eq!(run_all(&mut workers, &all), Ok(()));
            assert_eq!(workers, vec![1; n_workers]);
            let (next, last) = (AtomicUsize::new(1), n_workers);
            let stop = |_: &mut i32| match next.fetch_add(1, Relaxed) {
                place if place == last => Err(Stop::Memory),
                _ => Ok(()),
            };
            assert_eq!(run_all(&mut workers, &stop), Err(Stop::Memory));
        }
    }

    #[test]
    fn a_pass_may_share_work_again() {
        let sum = AtomicUsize::new(0);
        let inner = |worker: &mut usize| {
            sum.fetch_add(*worker, Relaxed);
            Ok(())
        };
        let outer = |worker: &mut usize| run_all(&mut [*worker; 3], &inner);
        assert_eq!(run_all(&mut [1, 10, 100], &outer), Ok(()));
        assert_eq!(sum.into_inner(), 333);
    }

    #[test]
    #[should_panic(expected = "a worker gave up")]
    fn a_panic_of_any_worker_is_passed_on() {
        let pass = |worker: &mut i32| match worker {
            2 => panic!("a worker gave up"),
            _ => Ok(()),
        };
        let _ = run_all(&mut [0, 1, 2], &pass);
    }
}
