//! A child of `fork` has none of the loader's threads: it gets an error that says so, or a loader that needs none,
//! and never hangs.
#![cfg(unix)]
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use fork::{Fork, fork, waitpid_nohang};
use loaderx_core::sampler::Sequential;
use loaderx_core::{ErrorKind, Loader};
use loaderx_tests::loading::Numbers;

fn build(workers: usize) -> Loader {
    Loader::builder()
        .stream("x", Numbers::new(40))
        .sampler(Sequential::new(40, 4).unwrap())
        .workers(workers)
        .build()
        .unwrap()
}

/// Runs `child` in a forked child; fails when it panics or does not end.
fn in_a_child(child: impl FnOnce()) {
    match fork().unwrap() {
        Fork::Child => {
            let outcome = catch_unwind(AssertUnwindSafe(child));
            // Without unwinding into the test harness, whose threads are not here either.
            std::process::exit(if outcome.is_ok() { 0 } else { 1 });
        }
        Fork::Parent(pid) => {
            let since = Instant::now();
            let status = loop {
                if let Some(status) = waitpid_nohang(pid).unwrap() {
                    break status;
                }
                if since.elapsed() > Duration::from_secs(30) {
                    std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
                    panic!("the child hangs");
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            assert_eq!(status, 0, "the child failed, its message is above");
        }
    }
}

#[test]
fn a_child_of_fork_gets_a_clear_error_or_a_loader_without_threads_and_can_drop_both() {
    for workers in [1, 3] {
        let mut threaded = build(workers);
        let mut inline = build(0);
        threaded.next().unwrap().unwrap();
        inline.next().unwrap().unwrap();
        in_a_child(|| {
            let error = threaded.next().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed);
            assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
            assert!(error.hint().unwrap().contains("after"), "{error}");
            // Nothing that touches the threads waits for them.
            threaded.seek(7);
            assert_eq!(threaded.stats().errors, 1);
            assert!(threaded.pass(9).unwrap().next().unwrap().is_err());
            let state = threaded.state();
            drop(threaded);
            assert_eq!(inline.next().unwrap().unwrap().step(), 1);
            // The remedy that the error names.
            let mut anew = build(2);
            anew.resume(&state).unwrap();
            assert_eq!(anew.next().unwrap().unwrap().step(), 7);
        });
    }
}

#[test]
fn the_parent_goes_on_after_a_fork() {
    let mut loader = build(2);
    loader.next().unwrap().unwrap();
    in_a_child(|| assert!(loader.next().unwrap().is_err()));
    for step in 1..20 {
        assert_eq!(loader.next().unwrap().unwrap().step(), step);
    }
}
