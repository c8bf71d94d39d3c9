//! Runs long calls of the core: releases the GIL, handles Ctrl-C, reports progress, and turns
//! panics into exceptions.

use crate::limits::Arguments;
use crate::memory::{self, Reserve};
use bristlecone_core::error::Error as CoreError;
use bristlecone_core::search::{Monitor, Settings, Team, TracePoint};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

pub(crate) fn to_py(error: CoreError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Interval between two checks for signals.
const SIGNALS: Duration = Duration::from_millis(50);

/// Interval between two calls of the callback if nothing improves.
const TICK: Duration = Duration::from_millis(250);

/// Calls the user's callback, on the thread of the user's call.
struct Reporter<'a> {
    callback: Option<Py<PyAny>>,
    monitor: &'a Monitor<'a>,
    reported: Instant,
    last: Option<TracePoint>,
}

impl Reporter<'_> {
    /// `callback(seconds, objective, lower_bound, nodes, share, seconds_left)`.
    fn report(&mut self, point: TracePoint) -> PyResult<()> {
        (self.reported, self.last) = (Instant::now(), Some(point));
        let Some(callback) = &self.callback else { return Ok(()) };
        let (share, left) = self.monitor.outlook().unzip();
        let TracePoint { seconds, objective, lower_bound, nodes } = point;
        Python::attach(|py| {
            callback.call1(py, (seconds, objective, lower_bound, nodes, share, left)).map(|_| ())
        })
    }

    /// Reports the last point again if it is old.
    fn tick(&mut self) -> PyResult<()> {
        match self.last {
            Some(last) if self.reported.elapsed() >= TICK => {
                let (seconds, nodes) = (self.monitor.seconds(), self.monitor.nodes());
                self.report(TracePoint { seconds, nodes, ..last })
            }
            _ => Ok(()),
        }
    }
}

/// Time of the last Ctrl-C during any search: the second one may come during the next fit of a
/// loop.
static LAST: Mutex<Option<Instant>> = Mutex::new(None);

/// Two Ctrl-C within this time are raised.
const TWICE: Duration = Duration::from_secs(1);

/// What signals have asked for.
#[derive(Default)]
struct Signals {
    /// Exception to raise once the search has ended.
    raised: Option<PyErr>,
}

impl Signals {
    /// Whether the search must stop. After the first Ctrl-C its result is kept. A second one within
    /// a second is raised, and so is any other exception of a handler.
    fn look(&mut self) -> bool {
        let Err(error) = Python::attach(|py| py.check_signals()) else { return false };
        self.take(error);
        true
    }

    /// Stores an exception that a handler raised, here or within the callback.
    fn take(&mut self, error: PyErr) {
        let interrupt = Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py));
        let last = match LAST.lock() {
            Ok(mut last) if interrupt => last.replace(Instant::now()),
            _ => None,
        };
        if !interrupt || last.is_some_and(|last| last.elapsed() < TWICE) {
            self.raised.get_or_insert(error);
        }
    }
}

/// Runs a search on another thread, while this one checks for signals and reports progress to the
/// callback: every improvement, and at intervals.
///
/// The search ends if the callback raises, or if memory runs out.
pub(crate) fn run<R: Send>(
    py: Python<'_>,
    reserve: &Reserve,
    limits: &Arguments,
    callback: Option<Py<PyAny>>,
    search: impl FnOnce(&Settings, &Monitor) -> Result<R, CoreError> + Send,
) -> PyResult<R> {
    let settings = limits.settings(py)?;
    let time_limit = match limits.time_limit {
        Some(seconds) if seconds.is_nan() || seconds < 0.0 => {
            let message = format!("time_limit: {seconds} is not a number of seconds");
            return Err(PyValueError::new_err(message));
        }
        // A number of seconds that no Duration can represent is no limit.
        limit => limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    };
    let mut signals = Signals::default();
    let mut callback_error: Option<PyErr> = None;
    let outcome = py.detach(|| {
        let interrupted = AtomicBool::new(false);
        let check = || interrupted.load(Ordering::Relaxed) || reserve.is_used();
        let (sender, points) = channel();
        let progress = |point: &TracePoint| {
            // The receiver outlives the search.
            let _ = sender.send(Some(*point));
        };
        let mut monitor = Monitor::since(limits.started.0, time_limit, &check);
        if callback.is_some() {
            monitor = monitor.with_progress(&progress);
        }
        let mut reporter =
            Reporter { callback, monitor: &monitor, reported: Instant::now(), last: None };
        let Some(team) = Team::of(settings.threads()) else {
            memory::ran_out();
            return Err(Box::new("no thread") as _);
        };
        let work = || {
            let result = std::panic::catch_unwind(AssertUnwindSafe(|| search(&settings, &monitor)));
            let _ = sender.send(None);
            result
        };
        team.work(work, || {
            let mut looked = Instant::now();
            loop {
                let result = match points.recv_timeout(SIGNALS) {
                    Ok(None) => break,
                    // Once the search must end, nothing more is reported.
                    _ if check() => Ok(()),
                    Ok(Some(point)) => reporter.report(point),
                    Err(_) => reporter.tick(),
                };
                if let Err(error) = result {
                    if Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
                        signals.take(error);
                    } else {
                        callback_error.get_or_insert(error);
                    }
                    interrupted.store(true, Ordering::Relaxed);
                }
                if looked.elapsed() >= SIGNALS {
                    looked = Instant::now();
                    if signals.look() {
                        interrupted.store(true, Ordering::Relaxed);
                    }
                }
            }
        })
    });
    if let Some(error) = signals.raised.or(callback_error) {
        return Err(error);
    }
    reserve.unless_used(match outcome {
        Ok(result) => result.map_err(to_py),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown");
            Err(PyRuntimeError::new_err(format!("internal error in the search: {text}")))
        }
    })
}
