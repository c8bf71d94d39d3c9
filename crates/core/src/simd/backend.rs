//! The instruction sets that this machine runs.

use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};
use std::fmt;
use std::sync::LazyLock;

/// An instruction set that this machine runs: only detection makes one, so that whoever holds
/// one may run its code.
///
/// ```
/// use bristlecone_core::simd::Backend;
///
/// let backend = Backend::best();
/// assert_eq!(Backend::named(backend.name()), Some(backend));
/// assert_eq!(Backend::named("abacus"), None);
/// ```
///
/// It cannot be made up:
///
/// ```compile_fail,E0423
/// let backend = bristlecone_core::simd::Backend(todo!());
/// ```
///
/// ```compile_fail,E0599
/// let backend = bristlecone_core::simd::Backend::Avx512;
/// ```
///
/// ```compile_fail,E0277
/// let backend: bristlecone_core::simd::Backend = Default::default();
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Backend(Kind);

/// The token behind a [`Backend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable(Portable),
}

/// Evaluates an expression with the token of a backend.
macro_rules! with_token {
    ($backend:expr, $token:ident => $result:expr) => {
        match $backend.kind() {
            #[cfg(target_arch = "x86_64")]
            $crate::simd::Kind::Avx512($token) => $result,
            #[cfg(target_arch = "x86_64")]
            $crate::simd::Kind::Avx2($token) => $result,
            $crate::simd::Kind::Portable($token) => $result,
        }
    };
}
pub(crate) use with_token;

/// Fastest first; detected once.
static DETECTED: LazyLock<Vec<Backend>> = LazyLock::new(|| {
    let all = [
        #[cfg(target_arch = "x86_64")]
        Avx512::detect().map(Kind::Avx512),
        #[cfg(target_arch = "x86_64")]
        Avx2::detect().map(Kind::Avx2),
        Some(Kind::Portable(Portable)),
    ];
    all.into_iter().flatten().map(Backend).collect()
});

impl Backend {
    /// The backends that this machine supports, fastest first.
    pub fn available() -> impl Iterator<Item = Backend> {
        DETECTED.iter().copied()
    }

    /// The fastest backend of this machine.
    pub fn best() -> Backend {
        DETECTED[0]
    }

    /// The backend of this name, if this machine supports it.
    pub fn named(name: &str) -> Option<Backend> {
        Backend::available().find(|backend| backend.name() == name)
    }

    /// Name in lower case, as in options and reports.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(_) => "avx2",
            Kind::Portable(_) => "portable",
        }
    }

    /// Its token.
    pub(crate) fn kind(self) -> Kind {
        self.0
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
