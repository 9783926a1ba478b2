//! What a loader delivers is what a plain loop over the sampler delivers: straight, resumed, with any number of
//! workers, any prefetch and any world size.
#![forbid(unsafe_code)]

use std::sync::Arc;

use loaderx_core::sampler::{Cyclic, Iid, Sampler, Sequential, Tail};
use loaderx_core::{Codec, DType, Dense, DenseWriter, Loader, LoaderState};
use loaderx_tests::loading::{Numbers, numbers};

const WORKERS: [usize; 4] = [0, 1, 2, 7];
const STEPS: u64 = 14;

/// Every mode over `records` records in batches of `batch`.
fn modes(records: u64, batch: usize, seed: u64) -> Vec<Arc<dyn Sampler>> {
    let cyclic = |tail| Cyclic::new(records, batch, seed).unwrap().tail(tail);
    vec![
        Arc::new(Sequential::new(records, batch).unwrap()),
        Arc::new(Iid::new(records, batch, seed).unwrap()),
        Arc::new(cyclic(Tail::Drop)),
        Arc::new(cyclic(Tail::Wrap)),
        Arc::new(cyclic(Tail::Short)),
    ]
}

/// The naive oracle: draw each step, one after the other.
fn plain_loop(sampler: &dyn Sampler, steps: impl Iterator<Item = u64>) -> Vec<Vec<u64>> {
    let mut indices = Vec::new();
    steps
        .map(|step| {
            sampler.draw(step, &mut indices);
            indices.clone()
        })
        .collect()
}

fn loader(
    sampler: &Arc<dyn Sampler>,
    workers: usize,
    prefetch: usize,
    state: Option<&LoaderState>,
) -> Loader {
    let mut builder = Loader::builder()
        .stream("x", Numbers::new(sampler.len()))
        .stream("tenfold", Numbers { len: sampler.len(), scale: 10 })
        .sampler(Arc::clone(sampler))
        .workers(workers)
        .prefetch(prefetch);
    if let Some(state) = state {
        builder = builder.resume(state);
    }
    builder.build().unwrap()
}

/// Takes `steps` batches and checks that step, indices and columns belong together.
fn take(loader: &mut Loader, steps: usize) -> Vec<Vec<u64>> {
    let mut taken = Vec::new();
    while taken.len() < steps {
        let expected = loader.step();
        let batch = loader.next().unwrap().unwrap();
        assert_eq!(batch.step(), expected);
        assert_eq!(numbers(&batch, "x"), batch.indices());
        assert!(
            numbers(&batch, "tenfold").iter().zip(batch.indices()).all(|(ten, index)| *ten == index * 10)
        );
        taken.push(batch.indices().to_vec());
    }
    taken
}

#[test]
fn any_number_of_workers_delivers_what_a_plain_loop_does_straight_and_resumed_twice() {
    let mut runs = 0;
    for records in [1_u64, 2, 5, 7, 12] {
        for batch in [1_usize, 2, 3, 5, 12].into_iter().filter(|&batch| batch as u64 <= records) {
            for (mode, sampler) in modes(records, batch, 9).iter().enumerate() {
                let expected = plain_loop(sampler, 0..STEPS);
                for (place, workers) in WORKERS.into_iter().enumerate() {
                    for prefetch in [1, 2, 5] {
                        let straight = take(&mut loader(sampler, workers, prefetch, None), expected.len());
                        assert_eq!(straight, expected, "{} with {workers} workers", sampler.describe());
                    }
                    // Stopped after `first` steps, again after `second` more, each time resumed with another number
                    // of workers from what a checkpoint would hold.
                    let breaks = [(0, 1), (1, 3), (3, 3), (5, 2), (7, 7), (2, 11)];
                    let (first, second) = breaks[(mode + place + runs) % breaks.len()];
                    let mut delivered = Vec::new();
                    let mut state = None;
                    for (turn, steps) in
                        [first, second, expected.len() - first - second].into_iter().enumerate()
                    {
                        let workers = WORKERS[(place + turn) % WORKERS.len()];
                        let mut loader = loader(sampler, workers, 1 + (runs + turn) % 4, state.as_ref());
                        delivered.extend(take(&mut loader, steps));
                        state = Some(LoaderState::from_bytes(&loader.state().to_bytes().unwrap()).unwrap());
                    }
                    assert_eq!(delivered, expected, "{} broken at {first}, {second}", sampler.describe());
                    runs += 1;
                }
            }
        }
    }
    assert_eq!(runs, 5 * 4 * (1 + 2 + 4 + 4 + 5));
}

#[test]
fn every_break_point_splits_a_run_into_two_that_make_up_the_whole() {
    for sampler in modes(7, 3, 4) {
        let expected = plain_loop(&sampler, 0..STEPS);
        for workers in WORKERS {
            for break_point in 0..expected.len() {
                let mut before = loader(&sampler, workers, 3, None);
                let mut whole = take(&mut before, break_point);
                let state = before.state();
                // What was prefetched and never delivered must not be lost: drop it at once.
                drop(before);
                let mut after = loader(&sampler, workers, 3, Some(&state));
                whole.extend(take(&mut after, expected.len() - break_point));
                assert_eq!(whole, expected, "{} broken at {break_point}", sampler.describe());
            }
        }
    }
}

#[test]
fn a_state_at_the_end_of_a_cycle_begins_the_next_cycle() {
    for tail in [Tail::Drop, Tail::Wrap, Tail::Short] {
        let sampler: Arc<dyn Sampler> = Arc::new(Cyclic::new(12, 4, 1).unwrap().tail(tail));
        let mut first = loader(&sampler, 2, 4, None);
        let cycle = take(&mut first, 3).concat();
        let state = first.state();
        let next = take(&mut loader(&sampler, 1, 2, Some(&state)), 3).concat();
        for cycle in [&cycle, &next] {
            let mut sorted = cycle.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..12).collect::<Vec<_>>());
        }
        assert_ne!(cycle, next, "a cycle must not repeat the one before");
    }
}

#[test]
fn ranks_of_a_changing_world_deliver_the_global_batches_of_one_rank() {
    for (records, batch) in [(17_u64, 6_usize), (12, 5), (9, 7)] {
        for tail in [Tail::Drop, Tail::Wrap, Tail::Short] {
            let global = Cyclic::new(records, batch, 11).unwrap().tail(tail);
            let expected = plain_loop(&global, 0..STEPS);
            let mut delivered: Vec<Vec<u64>> = Vec::new();
            let mut state: Option<LoaderState> = None;
            for (world, steps) in [(1_usize, 3), (2, 4), (3, 2), (1, 5)] {
                let mut parts = vec![Vec::new(); steps];
                let mut states = Vec::new();
                for rank in 0..world {
                    let sampler: Arc<dyn Sampler> = Arc::new(global.clone().sharded(rank, world).unwrap());
                    let mut loader = loader(&sampler, WORKERS[rank + 1], 2, state.as_ref());
                    for (part, slice) in parts.iter_mut().zip(take(&mut loader, steps)) {
                        part.extend(slice);
                    }
                    states.push(loader.state());
                }
                delivered.extend(parts);
                // Every rank holds the same state: any of them can be the checkpoint of all.
                assert!(states.iter().all(|other| *other == states[0]));
                state = states.pop();
            }
            assert_eq!(delivered, expected, "{}", global.describe());
        }
    }
}

#[test]
fn augmentation_is_the_same_for_any_workers_any_world_and_after_a_resume() {
    let dir = tempfile::tempdir().unwrap();
    let writer = DenseWriter::create(dir.path().join("x"), DType::U64, &[], Codec::Raw).unwrap();
    writer.append((0..23).collect::<Vec<u64>>()).unwrap();
    let dense = writer.finish().unwrap();
    // Each record becomes itself and two random numbers.
    let augmented = || {
        dense
            .map(&[3], DType::U64, |rng, stored, row| {
                row.copy_from(&[stored.index(), rng.next_u64(), rng.next_u64()])?;
                loaderx_core::Result::Ok(())
            })
            .unwrap()
    };
    let global = Cyclic::new(23, 7, 3).unwrap().tail(Tail::Short);
    let run = |rank: usize, world: usize, seed: u64, workers: usize, steps: std::ops::Range<u64>| {
        let mut loader = Loader::builder()
            .stream("x", augmented())
            .sampler(global.clone().sharded(rank, world).unwrap())
            .seed(seed)
            .workers(workers)
            .build()
            .unwrap();
        loader.seek(steps.start);
        let rows = |batch: loaderx_core::Result<loaderx_core::Batch>| {
            batch.unwrap().take_dense("x").unwrap().into_vec::<u64>().unwrap().0
        };
        let count = usize::try_from(steps.end - steps.start).unwrap();
        (&mut loader).take(count).map(rows).collect::<Vec<Vec<u64>>>()
    };
    let expected = run(0, 1, 5, 0, 0..9);
    assert_ne!(run(0, 1, 6, 0, 0..9), expected, "another seed augments differently");
    let mut numbers: Vec<u64> = expected.concat().chunks(3).flat_map(|row| [row[1], row[2]]).collect();
    let drawn = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), drawn, "no two records draw the same numbers");
    for workers in WORKERS {
        assert_eq!(run(0, 1, 5, workers, 0..9), expected);
        assert_eq!(run(0, 1, 5, workers, 4..9), expected[4..]);
    }
    for world in [2, 3] {
        let ranks: Vec<_> = (0..world).map(|rank| run(rank, world, 5, 2, 0..9)).collect();
        for (step, whole) in expected.iter().enumerate() {
            let joined: Vec<u64> = ranks.iter().flat_map(|rank| rank[step].clone()).collect();
            assert_eq!(joined, *whole, "step {step} in a world of {world}");
        }
    }
}

#[test]
fn bytes_from_disk_are_the_same_for_any_worker_count_and_after_a_resume() {
    let dir = tempfile::tempdir().unwrap();
    let records = 37_u16;
    let content: Vec<u16> = (0..records * 15).map(|i| i.wrapping_mul(40_503)).collect();
    for codec in [Codec::Raw, Codec::zstd()] {
        let path = dir.path().join(format!("{codec:?}").replace(|c: char| !c.is_alphanumeric(), "_"));
        let writer = DenseWriter::create(&path, DType::U16, &[3, 5], codec).unwrap();
        writer.append(content.clone()).unwrap();
        writer.finish().unwrap();
        let dense = Dense::open(&path).unwrap();
        let sampler = Cyclic::new(u64::from(records), 8, 2).unwrap().tail(Tail::Short);
        let expected: Vec<Vec<u16>> = plain_loop(&sampler, 0..STEPS)
            .iter()
            .map(|indices| {
                let rows =
                    indices.iter().map(|&index| &content[usize::try_from(index).unwrap() * 15..][..15]);
                rows.flatten().copied().collect()
            })
            .collect();
        let build = |workers| {
            Loader::builder().stream("x", dense.clone()).sampler(sampler.clone()).workers(workers).prefetch(3)
        };
        let take = |loader: &mut Loader, steps: usize| -> Vec<Vec<u16>> {
            let column = |batch: loaderx_core::Result<loaderx_core::Batch>| {
                batch.unwrap().take_dense("x").unwrap().into_vec::<u16>().unwrap().0
            };
            loader.take(steps).map(column).collect()
        };
        for workers in WORKERS {
            assert_eq!(take(&mut build(workers).build().unwrap(), expected.len()), expected);
            let mut before = build(workers).build().unwrap();
            let mut whole = take(&mut before, 5);
            let mut after = build(7 - workers).resume(&before.state()).build().unwrap();
            whole.extend(take(&mut after, expected.len() - 5));
            assert_eq!(whole, expected);
        }
    }
}

#[test]
fn a_seek_forth_and_back_delivers_what_was_delivered_there() {
    for sampler in modes(11, 4, 6) {
        let expected = plain_loop(&sampler, 0..40);
        for workers in WORKERS {
            let mut loader = loader(&sampler, workers, 4, None);
            for step in [0_u64, 30, 2, 2, 3, 39, 0, 17, 18] {
                loader.seek(step);
                let place = usize::try_from(step).unwrap();
                assert_eq!(take(&mut loader, 1), expected[place..=place]);
                assert_eq!(loader.step(), step + 1);
            }
        }
    }
}

#[test]
fn the_last_step_of_all_can_be_reached_and_is_the_end() {
    for sampler in modes(11, 4, 6) {
        for workers in [0, 2] {
            let mut loader = loader(&sampler, workers, 4, None);
            loader.seek(u64::MAX - 1);
            let mut expected = Vec::new();
            sampler.draw(u64::MAX - 1, &mut expected);
            assert_eq!(loader.next().unwrap().unwrap().indices(), expected);
            assert!(loader.next().is_none());
            assert_eq!(loader.step(), u64::MAX);
            assert!(loader.next().is_none());
        }
    }
}

#[test]
fn two_seeds_deliver_two_orders_and_one_seed_delivers_one() {
    let orders: Vec<Vec<Vec<u64>>> = [1, 2, 1]
        .into_iter()
        .map(|seed| {
            let sampler: Arc<dyn Sampler> = Arc::new(Cyclic::new(100, 10, seed).unwrap());
            take(&mut loader(&sampler, 2, 4, None), 10)
        })
        .collect();
    assert_ne!(orders[0], orders[1]);
    assert_eq!(orders[0], orders[2]);
}
