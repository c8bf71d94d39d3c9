//! Vectors in memory.

/// A vector of `T`s.
///
/// # Safety
///
/// It must consist of [`Vector::N`] adjacent `T`s, and all their values must be valid.
pub unsafe trait Vector<T: Copy>: Copy {
    /// Number of lanes.
    const N: usize = size_of::<Self>() / size_of::<T>();

    /// Writes the lanes to the start of `to`, which is at least as long.
    #[inline(always)]
    fn store(self, to: &mut [T]) {
        assert!(to.len() >= Self::N);
        // SAFETY: `to` has room for the lanes.
        unsafe { self.store_at(to, 0) }
    }

    /// Writes the lanes to `to`, starting at position `at`, unchecked.
    ///
    /// # Safety
    ///
    /// `at + N <= to.len()`
    #[inline(always)]
    unsafe fn store_at(self, to: &mut [T], at: usize) {
        debug_assert!(at + Self::N <= to.len());
        // SAFETY: the caller leaves room for all lanes.
        unsafe { to.as_mut_ptr().add(at).cast::<Self>().write_unaligned(self) }
    }
}

/// The lanes of `from` that start at position `at`, unchecked.
///
/// # Safety
///
/// `at + N <= from.len()`, and the machine has the instruction set that `V` belongs to.
#[inline(always)]
pub(super) unsafe fn load_at<T: Copy, V: Vector<T>>(from: &[T], at: usize) -> V {
    debug_assert!(at + V::N <= from.len());
    // SAFETY: there are N elements, which form a vector.
    unsafe { from.as_ptr().add(at).cast::<V>().read_unaligned() }
}
