//! Ends a call with MemoryError when memory runs out, instead of aborting the process.
//!
//! Rust aborts the process if an allocation fails. So every call sets aside a reserve that it never
//! touches, which takes addresses but no memory. When an allocation fails for the first time, the
//! allocator frees all reserves and tries again. Calls check whether that has happened, and end.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Bytes of a reserve, in addition to those for copies of the data. The system maps blocks of this
/// size separately, and unmaps them when they are freed.
const RESERVE: usize = 40 << 20;

/// Bytes that a call needs per row: statistics, order, codes.
pub(crate) const PER_ROW: usize = 128;

/// Bytes that are left free for what Rust does not allocate: stacks of threads and the system's own
/// data about them.
const FREE: usize = 8 << 20;

/// Most calls with a reserve at a time; further calls have none.
const MOST: usize = 64;

/// The reserve of a call.
struct Slot {
    taken: AtomicBool,
    /// A block that starts with its size; null once it was freed.
    block: AtomicPtr<usize>,
}

static SLOTS: [Slot; MOST] =
    [const { Slot { taken: AtomicBool::new(false), block: AtomicPtr::new(null_mut()) } }; MOST];

/// Number of allocations that failed at first.
static FAILURES: AtomicUsize = AtomicUsize::new(0);

/// Whether a thread is freeing reserves; others wait until it is done.
static GIVING: AtomicBool = AtomicBool::new(false);

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 16).expect("no more bytes than there are addresses")
}

impl Slot {
    fn give_back(&self) {
        let block = self.block.swap(null_mut(), Ordering::AcqRel);
        if !block.is_null() {
            // SAFETY: the block was allocated with the size stored at its start, and only this swap
            // returned it.
            unsafe { System.dealloc(block.cast(), layout(*block)) };
        }
    }
}

/// Columns with fewer cells than this are not worth returning memory for.
const MANY_CELLS: usize = 1 << 21;

/// Returns freed memory to the system before large allocations. Once glibc's allocator has seen an
/// array of up to 32 MB, it keeps freed arrays of that size: the values of columns, which lie
/// between their ranks, which live on. For few `cells` it does not pay, because the time grows with
/// all memory that the process has freed.
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

/// Asks the system to keep the inside of a large block in huge pages if it can. The tables of a
/// search are written completely, and getting a page of 4 kB takes longer than filling it.
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
        // SAFETY: the range lies within the block, and the advice does not change its contents.
        unsafe { madvise(block.add(skipped), bytes - skipped, MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn in_huge_pages(_: *mut u8, _: usize) {}

/// Frees all reserves. Called by the allocator, so nothing here may allocate or panic.
pub(crate) fn ran_out() {
    FAILURES.fetch_add(1, Ordering::AcqRel);
    while GIVING.swap(true, Ordering::AcqRel) {
        std::thread::yield_now();
    }
    SLOTS.iter().for_each(Slot::give_back);
    GIVING.store(false, Ordering::Release);
}

/// The allocator of the system; after a failure it is asked again with the reserves freed.
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

// SAFETY: all blocks come from `System` with the requested layouts. If it has none, it leaves an
// old block unchanged.
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

/// Start of the standard library's panic message if the system cannot start a thread.
const NO_THREAD: &str = "failed to spawn thread";

/// Panics caused by lack of memory are not reported: a backtrace needs more memory, and aborts the
/// process if there is none. The calls that they end raise MemoryError.
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

/// MemoryError if the system does not have this many bytes.
pub(crate) fn ensure(bytes: usize) -> PyResult<()> {
    if bytes < FREE {
        return Ok(());
    }
    let needed = bytes.saturating_add(FREE);
    if isize::try_from(needed).is_ok() {
        // SAFETY: the layout has a size, and the block is freed with the same layout.
        unsafe {
            // The compiler may leave out an allocation that nothing uses.
            let block = std::hint::black_box(System.alloc(layout(needed)));
            if !block.is_null() {
                System.dealloc(block, layout(needed));
                return Ok(());
            }
        }
    }
    let message = format!("too little memory: {} MiB are needed", needed.div_ceil(1 << 20));
    Err(PyMemoryError::new_err(message))
}

/// Memory that a call sets aside.
pub(crate) struct Reserve {
    slot: Option<&'static Slot>,
    /// Number of failed allocations before this call.
    failures: usize,
}

impl Reserve {
    /// A reserve for a call over `n_rows` rows that copies `bytes` bytes of data; MemoryError if
    /// the system does not have it.
    pub(crate) fn new(n_rows: usize, bytes: usize) -> PyResult<Self> {
        let bytes = n_rows.saturating_mul(PER_ROW).saturating_add(bytes).saturating_add(RESERVE);
        ensure(bytes)?;
        // SAFETY: the layout has a size.
        let block = unsafe { System.alloc(layout(bytes)).cast::<usize>() };
        if block.is_null() {
            return Err(PyMemoryError::new_err("too little memory"));
        }
        // SAFETY: the block has room for its size, and nothing else refers to it.
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

    /// Whether the reserve was used, in which case the call must end.
    pub(crate) fn is_used(&self) -> bool {
        FAILURES.load(Ordering::Acquire) != self.failures
    }

    /// Result of the call; MemoryError if the reserve was used.
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
