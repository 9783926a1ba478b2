//! What the hand-over is built on: the standard library's locks, flags and clock, or loom's doubles of them.
//!
//! With `--cfg loom` the tests are compiled with the doubles, and loom runs them once for each order in which the
//! threads can reach their locks and flags (`worker_loom.rs`, `ci/loom.sh`). Every other build, one of a program that
//! uses loom for itself among them, has the standard library's own types under these names.

#[cfg(not(all(loom, test)))]
pub(super) use self::real::*;
#[cfg(all(loom, test))]
pub(super) use doubles::*;

#[cfg(not(all(loom, test)))]
mod real {
    pub(in super::super) use std::hint::spin_loop;
    pub(in super::super) use std::sync::atomic::AtomicBool;
    pub(in super::super) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(in super::super) use std::thread::available_parallelism;
    pub(in super::super) use std::time::Instant;

    /// How often a flag is read between two looks at the clock, which are dearer.
    pub(in super::super) const READS_A_ROUND: usize = 16;
}

#[cfg(all(loom, test))]
mod doubles {
    use std::io;
    use std::num::NonZero;
    use std::ops::Deref;
    use std::sync::LockResult;
    use std::time::Duration;

    pub(in super::super) use loom::hint::spin_loop;
    pub(in super::super) use loom::sync::atomic::AtomicBool;
    pub(in super::super) use loom::sync::{Mutex, MutexGuard};

    /// Each read doubles what loom has to walk through, and shows it nothing that the first did not.
    pub(in super::super) const READS_A_ROUND: usize = 1;

    /// Cores for every thread of a test, so that the consumer looks for its step before it sleeps.
    pub(in super::super) fn available_parallelism() -> io::Result<NonZero<usize>> {
        Ok(NonZero::new(8).unwrap())
    }

    /// A clock on which everything takes long: loom repeats a run move by move, which real times would upset.
    #[derive(Clone, Copy, Debug)]
    pub(in super::super) struct Instant;

    impl Instant {
        pub(in super::super) fn now() -> Self {
            Self
        }

        #[expect(clippy::unused_self, reason = "called as the method of the standard library")]
        pub(in super::super) fn elapsed(self) -> Duration {
            Duration::from_secs(1)
        }
    }

    /// loom's condition variable, and the wait with a condition that it lacks.
    #[derive(Debug)]
    pub(in super::super) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(in super::super) fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        /// A patience of zero has always run out, any other never does.
        pub(in super::super) fn wait_timeout_while<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            patience: Duration,
            mut condition: impl FnMut(&mut T) -> bool,
        ) -> LockResult<(MutexGuard<'a, T>, ())> {
            while !patience.is_zero() && condition(&mut guard) {
                guard = self.wait(guard).unwrap();
            }
            Ok((guard, ()))
        }
    }

    impl Deref for Condvar {
        type Target = loom::sync::Condvar;

        fn deref(&self) -> &Self::Target {
            &self.0
        }
    }
}
