//! Memory and threads stay flat over many steps: the short form of `examples/loader_soak.rs`, alone in its process.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

use loaderx_tests::loading::soak;

#[test]
fn memory_and_threads_are_flat_over_many_steps() {
    let samples = soak(60_000, 4, 12);
    // By the first quarter every buffer, thread and arena of the allocator exists.
    let settled = &samples[samples.len() / 4..];
    let first = settled[0];
    for sample in settled {
        assert_eq!(sample.threads, first.threads, "{samples:?}");
        assert!(sample.anonymous_kib < first.anonymous_kib + 2048, "{samples:?}");
    }
}
