//! A saved state counts what was delivered, costs nothing, and fits its own configuration only.
#![forbid(unsafe_code)]

use loaderx_core::sampler::{Cyclic, Sampler, Tail};
use loaderx_core::{ErrorKind, Loader, LoaderState};
use loaderx_tests::loading::Numbers;

fn cyclic(seed: u64) -> Cyclic {
    Cyclic::new(20, 4, seed).unwrap()
}

fn build(sampler: impl Sampler + 'static, seed: u64, names: [&str; 2], scale: u64) -> Loader {
    Loader::builder()
        .stream(names[0], Numbers::new(20))
        .stream(names[1], Numbers { len: 20, scale })
        .sampler(sampler)
        .seed(seed)
        .workers(2)
        .build()
        .unwrap()
}

#[test]
fn a_state_counts_delivered_batches_not_prepared_ones() {
    let mut loader = build(cyclic(1), 0, ["x", "y"], 3);
    assert_eq!(loader.state().step(), 0);
    for step in 1..6 {
        loader.next().unwrap().unwrap();
        // Let the workers prepare some steps (a queue that is more than half full may rest): it must not show.
        while loader.stats().queued < 2 {
            std::thread::yield_now();
        }
        assert_eq!(loader.state().step(), step);
        assert_eq!(loader.step(), step);
    }
}

#[test]
fn a_state_survives_its_bytes_and_damaged_ones_are_refused() {
    let mut loader = build(cyclic(1), 0, ["x", "y"], 3);
    loader.seek(u64::MAX - 7);
    let state = loader.state();
    let bytes = state.to_bytes().unwrap();
    assert_eq!(LoaderState::from_bytes(&bytes).unwrap(), state);
    assert_eq!(LoaderState::from_bytes(&bytes).unwrap().step(), u64::MAX - 7);
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<LoaderState>(&text).unwrap(), state);
    let newer = text.replace("\"version\":1", "\"version\":2");
    assert!(serde_json::from_str::<LoaderState>(&newer).unwrap_err().to_string().contains("version 2"));
    for length in 0..bytes.len() {
        let error = LoaderState::from_bytes(&bytes[..length]).unwrap_err();
        assert!(error.is_corrupt(), "{error}");
    }
    assert!(LoaderState::from_bytes(b"something else").unwrap_err().is_corrupt());
}

#[test]
fn a_state_of_another_configuration_is_refused_by_the_part_that_differs() {
    let state = build(cyclic(1), 5, ["x", "y"], 3).state();
    let refused = |mut loader: Loader, words: &[&str]| {
        loader.seek(2);
        let error = loader.resume(&state).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StateMismatch);
        for word in words {
            assert!(error.to_string().contains(word), "{error} does not say {word}");
        }
        assert_eq!(loader.step(), 2, "a refused state changes nothing");
    };
    refused(build(cyclic(2), 5, ["x", "y"], 3), &["sampler", "seed=1", "seed=2"]);
    refused(build(cyclic(1).tail(Tail::Wrap), 5, ["x", "y"], 3), &["sampler"]);
    refused(build(Cyclic::new(20, 5, 1).unwrap(), 5, ["x", "y"], 3), &["sampler"]);
    refused(build(cyclic(1), 6, ["x", "y"], 3), &["seed", "5", "6"]);
    refused(build(cyclic(1), 5, ["x", "z"], 3), &["streams", "\"y\"", "\"z\""]);
    refused(build(cyclic(1), 5, ["y", "x"], 3), &["streams"]);
    refused(build(cyclic(1), 5, ["x", "y"], 4), &["stream \"y\"", "numbers * 3", "numbers * 4"]);

    let builder = Loader::builder().stream("x", Numbers::new(20)).sampler(cyclic(1)).resume(&state);
    assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::StateMismatch);
}

#[test]
fn a_state_goes_on_in_a_loader_that_is_already_under_way() {
    let mut loader = build(cyclic(1), 0, ["x", "y"], 3);
    let state = (0..3).map(|_| loader.next().unwrap().unwrap()).last().map(|_| loader.state()).unwrap();
    let expected = loader.next().unwrap().unwrap().indices().to_vec();
    for _ in 0..5 {
        loader.next().unwrap().unwrap();
    }
    loader.resume(&state).unwrap();
    assert_eq!(loader.next().unwrap().unwrap().indices(), expected);
}
