//! Vectors in memory.

/// A vector of `T`s.
///
/// # Safety
/// It consists of [`Vector::N`] `T`s next to each other, and any values of them are valid.
pub unsafe trait Vector<T: Copy>: Copy {
    /// Number of lanes.
    const N: usize = size_of::<Self>() / size_of::<T>();

    /// Writes the lanes to the begin of `to`, which is as long.
    #[inline(always)]
    fn store(self, to: &mut [T]) {
        assert!(to.len() >= Self::N);
        // SAFETY: there is room.
        unsafe { self.store_at(to, 0) }
    }

    /// Writes the lanes to `to` from position `at` on, unchecked.
    ///
    /// # Safety
    /// `at + N <= to.len()`
    #[inline(always)]
    unsafe fn store_at(self, to: &mut [T], at: usize) {
        debug_assert!(at + Self::N <= to.len());
        // SAFETY: the caller leaves room for what the vector consists of.
        unsafe { to.as_mut_ptr().add(at).cast::<Self>().write_unaligned(self) }
    }
}

/// The lanes that begin at position `at` of `from`, unchecked.
///
/// # Safety
/// `at + N <= from.len()`, and the machine has the instruction set that `V` is made for.
#[inline(always)]
pub(super) unsafe fn load_at<T: Copy, V: Vector<T>>(from: &[T], at: usize) -> V {
    debug_assert!(at + V::N <= from.len());
    // SAFETY: there are N elements, which make a vector.
    unsafe { from.as_ptr().add(at).cast::<V>().read_unaligned() }
}
