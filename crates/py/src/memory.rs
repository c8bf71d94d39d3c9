//! Memory that runs out ends a call with MemoryError, and not the process.
//!
//! Rust ends the process where an allocation fails. So every call sets a reserve aside that it never
//! touches, which takes addresses and no memory. At the first allocation that fails, the allocator
//! gives all reserves back and tries again; calls look whether that has happened, and end.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Bytes of a reserve, besides those for copies of the data. Blocks of this size are mapped by
/// themselves, and unmapped when they are given back.
const RESERVE: usize = 40 << 20;

/// Bytes of these for every row: statistics, order, codes.
const PER_ROW: usize = 128;

/// Bytes that are left free for what is not allocated by Rust: stacks of threads and what the
/// system keeps of them.
const FREE: usize = 8 << 20;

/// Calls with a reserve at a time; further ones have none.
const MOST: usize = 64;

/// The reserve of a call.
struct Slot {
    taken: AtomicBool,
    /// A block that begins with its size; null once it was given back.
    block: AtomicPtr<usize>,
}

static SLOTS: [Slot; MOST] =
    [const { Slot { taken: AtomicBool::new(false), block: AtomicPtr::new(null_mut()) } }; MOST];

/// Allocations that failed at first.
static FAILURES: AtomicUsize = AtomicUsize::new(0);

/// Whether a thread is giving reserves back: the others wait until it has.
static GIVING: AtomicBool = AtomicBool::new(false);

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 16).expect("no more bytes than there are addresses")
}

impl Slot {
    fn give_back(&self) {
        let block = self.block.swap(null_mut(), Ordering::AcqRel);
        if !block.is_null() {
            // SAFETY: the block was allocated with the size that it begins with, and only this
            // swap has had it.
            unsafe { System.dealloc(block.cast(), layout(*block)) };
        }
    }
}

/// Columns with fewer cells than this give nothing back.
const MANY_CELLS: usize = 1 << 21;

/// Gives what was freed back to the system, before much is allocated. The allocator of glibc keeps
/// freed arrays of up to 32 MB once it has seen one of their size: the values of columns, between
/// their ranks, which live on. Of few `cells` it is not worth the time, which grows with all that
/// the process has freed.
pub(crate) fn return_freed(cells: usize) {
    if cells < MANY_CELLS {
        return;
    }
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> i32;
        }
        malloc_trim(0);
    }
}

/// Asks the system to keep what is inside a large block in huge pages, which it does where it can:
/// the tables of a search are written all over, and a page of 4 kB takes longer to be had than to be
/// filled.
#[cfg(target_os = "linux")]
fn in_huge_pages(block: *mut u8, bytes: usize) {
    const LARGE: usize = 8 << 20;
    const PAGE: usize = 2 << 20;
    const MADV_HUGEPAGE: i32 = 14;
    unsafe extern "C" {
        fn madvise(address: *mut u8, bytes: usize, advice: i32) -> i32;
    }
    if block.is_null() || bytes < LARGE {
        return;
    }
    let skipped = block.align_offset(PAGE);
    if skipped < bytes {
        // SAFETY: the range lies in the block, and the advice changes nothing that it holds.
        unsafe { madvise(block.add(skipped), bytes - skipped, MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn in_huge_pages(_: *mut u8, _: usize) {}

/// Gives all reserves back. Called by the allocator: nothing here may allocate or panic.
pub(crate) fn ran_out() {
    FAILURES.fetch_add(1, Ordering::AcqRel);
    while GIVING.swap(true, Ordering::AcqRel) {
        std::thread::yield_now();
    }
    SLOTS.iter().for_each(Slot::give_back);
    GIVING.store(false, Ordering::Release);
}

/// The allocator of the system, asked once more with the reserves given back.
struct Reserving;

#[global_allocator]
static ALLOCATOR: Reserving = Reserving;

fn twice(bytes: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let mut block = allocate();
    if block.is_null() {
        ran_out();
        block = allocate();
    }
    in_huge_pages(block, bytes);
    block
}

// SAFETY: all blocks are those of `System`, with the layouts that were asked for. Where it has
// none, it leaves an old block as it was.
unsafe impl GlobalAlloc for Reserving {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        twice(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        twice(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        twice(bytes, || unsafe { System.realloc(block, layout, bytes) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

/// How the panic of the standard library begins where the system has no room for a thread.
const NO_THREAD: &str = "failed to spawn thread";

/// Panics for want of memory are not reported where they occur: a backtrace takes more of it, and
/// ends the process if there is none. The calls that they end raise MemoryError.
pub(crate) fn keep_quiet_without_memory() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>();
        if text.is_some_and(|text| text.starts_with(NO_THREAD)) {
            ran_out();
        }
        if FAILURES.load(Ordering::Acquire) == 0 {
            report(panic);
        }
    }));
}

/// Memory that a call sets aside.
pub(crate) struct Reserve {
    slot: Option<&'static Slot>,
    /// How many had failed before.
    failures: usize,
}

impl Reserve {
    /// For a call over so many rows, with so many bytes of data to copy; MemoryError where the
    /// system does not have it.
    pub(crate) fn new(n_rows: usize, bytes: usize) -> PyResult<Self> {
        let bytes = n_rows.saturating_mul(PER_ROW).saturating_add(bytes).saturating_add(RESERVE);
        let needed = bytes.saturating_add(FREE);
        let refused = || {
            let message = format!("too little memory: {} MiB are needed", needed.div_ceil(1 << 20));
            PyMemoryError::new_err(message)
        };
        if isize::try_from(needed).is_err() {
            return Err(refused());
        }
        // SAFETY: the layouts have a size, and the first block is given back as it was taken.
        let block = unsafe {
            let whole = System.alloc(layout(needed));
            if whole.is_null() {
                return Err(refused());
            }
            System.dealloc(whole, layout(needed));
            System.alloc(layout(bytes)).cast::<usize>()
        };
        if block.is_null() {
            return Err(refused());
        }
        // SAFETY: the block has room for its size, and nobody else knows of it.
        unsafe { block.write(bytes) };
        let failures = FAILURES.load(Ordering::Acquire);
        let slot = SLOTS.iter().find(|slot| !slot.taken.swap(true, Ordering::AcqRel));
        match slot {
            Some(slot) => slot.block.store(block, Ordering::Release),
            // SAFETY: as above.
            None => unsafe { System.dealloc(block.cast(), layout(bytes)) },
        }
        Ok(Reserve { slot, failures })
    }

    /// Whether the reserve was needed: the call is to end.
    pub(crate) fn is_used(&self) -> bool {
        FAILURES.load(Ordering::Acquire) != self.failures
    }

    /// Result of the call; MemoryError if the reserve was needed.
    pub(crate) fn unless_used<R>(&self, found: PyResult<R>) -> PyResult<R> {
        if self.is_used() {
            return Err(PyMemoryError::new_err(
                "memory ran out; a smaller memory_limit, fewer features or a smaller depth need less",
            ));
        }
        found
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            slot.give_back();
            slot.taken.store(false, Ordering::Release);
        }
    }
}
