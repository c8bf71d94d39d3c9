//! Parts that all instruction sets share: a token, and code that is compiled for the instruction
//! set.

/// Work that is compiled for an instruction set; its method must be `#[inline(always)]`.
pub trait Job<L> {
    /// Result of the job.
    type Output;

    /// Does the work.
    fn run(self, lanes: L) -> Self::Output;
}

/// Declares the token of an instruction set with these features, and a macro `compiled!` for
/// functions on its tokens and vectors.
///
/// The features are listed once, so the code is compiled for exactly what was detected.
#[cfg(target_arch = "x86_64")]
macro_rules! isa {
    ($d:tt $(#[$doc:meta])* $name:ident: $($feature:tt)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(());

        impl $name {
            /// The token, if this machine supports the instruction set.
            pub fn detect() -> Option<Self> {
                let has = $(std::arch::is_x86_feature_detected!($feature))&&+;
                has.then_some($name(()))
            }

            /// Runs a job in a separate function that is compiled for the instruction set, so that
            /// registers are allocated for this job alone.
            #[inline(always)]
            fn run<L, J: Job<L>>(self, lanes: L, job: J) -> J::Output {
                #[repr(align(64))]
                struct CacheLine;

                #[inline(never)]
                $(#[target_feature(enable = $feature)])+
                fn apart<L, J: Job<L>>(lanes: L, job: J) -> J::Output {
                    // The compiler aligns spilled vectors only if the function contains an object
                    // of this alignment from the start. Otherwise each of them lies across two
                    // cache lines, which takes up to a seventh of a kernel's time.
                    std::hint::black_box(&mut CacheLine);
                    job.run(lanes)
                }
                // SAFETY: a token exists only if the machine has the features.
                unsafe { apart(lanes, job) }
            }
        }

        /// Functions that are compiled for the instruction set, whose intrinsics are safe to call
        /// in their bodies. They are called on a token or on vectors, which are made with a token.
        macro_rules! compiled {
            () => {};
            (
                $d(#[$d attr:meta])*
                fn $d name:ident(self $d(, $d arg:ident: $d type:ty)*) $d(-> $d out:ty)?
                    $d body:block
                $d($d rest:tt)*
            ) => {
                $d(#[$d attr])*
                #[inline(always)]
                fn $d name(self $d(, $d arg: $d type)*) $d(-> $d out)? {
                    #[inline]
                    $(#[target_feature(enable = $feature)])+
                    fn compiled($d($d arg: $d type),*) $d(-> $d out)? $d body
                    // SAFETY: a token exists only if the machine has the features.
                    unsafe { compiled($d($d arg),*) }
                }
                compiled! { $d($d rest)* }
            };
            (
                $d(#[$d attr:meta])*
                fn $d name:ident($d($d arg:ident: $d type:ty),+) $d(-> $d out:ty)?
                    $d body:block
                $d($d rest:tt)*
            ) => {
                $d(#[$d attr])*
                #[inline(always)]
                fn $d name($d($d arg: $d type),+) $d(-> $d out)? {
                    #[inline]
                    $(#[target_feature(enable = $feature)])+
                    fn compiled($d($d arg: $d type),+) $d(-> $d out)? $d body
                    // SAFETY: a vector exists only if the machine has the features.
                    unsafe { compiled($d($d arg),+) }
                }
                compiled! { $d($d rest)* }
            };
        }

        /// Declares a vector and its operators.
        macro_rules! vector {
            (
                $d name:ident($d inner:ty): $d element:ty
                $d(, $d op:ident $d method:ident $d by:ident)*
            ) => {
                #[derive(Clone, Copy, Debug)]
                #[repr(transparent)]
                pub struct $d name($d inner);

                // SAFETY: vectors of the processor consist of their elements, and any element is
                // valid.
                unsafe impl Vector<$d element> for $d name {}

                $d(impl std::ops::$d op for $d name {
                    type Output = Self;
                    #[inline(always)]
                    fn $d method(self, other: Self) -> Self {
                        compiled! {
                            fn both(a: $d name, b: $d name) -> $d name {
                                $d name($d by(a.0, b.0))
                            }
                        }
                        both(self, other)
                    }
                })*
            };
        }
    };
}

/// Declares lanes of 16-bit whole numbers: a token over the words of one vector, with the
/// operations that depend on the instruction set and the width.
#[cfg(target_arch = "x86_64")]
macro_rules! short_lanes {
    (
        $name:ident: $int:ident $real:ident,
        $set1:ident $max:ident $min:ident $add_where:ident $if_less:ident $least:path
    ) => {
        impl Sealed for $name {}

        impl Lanes for $name {
            type I = u16;
            type R = Whole;
            type Int = $int;
            type Real = $real;
            type Half = ShortHalf;

            #[inline(always)]
            fn half(self) -> ShortHalf {
                ShortHalf(self.0)
            }
            #[inline(always)]
            fn run<J: Job<Self>>(self, job: J) -> J::Output {
                self.0.run(self, job)
            }
            compiled! {
                fn splat(self, v: u16) -> $int { $int($set1(v.cast_signed())) }
                fn splat_real(self, v: Whole) -> $real { $real($set1(v.0.cast_signed())) }
                fn max(a: $int, b: $int) -> $int { $int($max(a.0, b.0)) }
                fn min(a: $int, b: $int) -> $int { $int($min(a.0, b.0)) }
                fn add_where(acc: $int, bits: u64, v: u16) -> $int {
                    $int($add_where(acc.0, bits, $set1(v.cast_signed())))
                }
                fn if_less(a: $int, b: $int, yes: $real, no: $real) -> $real {
                    $real($if_less(a.0, b.0, yes.0, no.0))
                }
                fn to_real(v: $int) -> $real { $real(v.0) }
                fn min_real(a: $real, b: $real) -> $real { $real($min(a.0, b.0)) }
                fn min_across(v: &[$real; 8], _n: usize, out: &mut [Whole; 8]) {
                    Wholex8($least(v.map(|v| v.0))).store(out);
                }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use {isa, short_lanes};
