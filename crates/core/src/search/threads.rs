//! Work that threads share.

use super::{Settings, Stop};

/// Threads worth starting for so much effort, of which `worth_one` makes up for a thread.
pub fn useful_threads(effort: impl Fn() -> f64, worth_one: usize, settings: &Settings) -> usize {
    let n_threads = settings.threads();
    if n_threads < 2 {
        return 1;
    }
    let worth_one = settings.switches.cells_per_thread.unwrap_or(worth_one).max(1);
    n_threads.min((effort() / worth_one as f64) as usize).max(1)
}

/// Runs a pass on every worker, on as many threads; there is one at least.
pub fn run_all<W: Send>(
    workers: &mut [W],
    pass: &(dyn Fn(&mut W) -> Result<(), Stop> + Sync),
) -> Result<(), Stop> {
    let (first, others) = workers.split_first_mut().expect("at least one thread");
    std::thread::scope(|scope| {
        let handles: Vec<_> =
            others.iter_mut().map(|worker| scope.spawn(move || pass(worker))).collect();
        let own = pass(first);
        handles
            .into_iter()
            .map(|h| h.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .fold(own, Result::and)
    })
}
