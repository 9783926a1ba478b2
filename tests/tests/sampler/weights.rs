//! Draws by weight: the alias table's distribution, and mixtures that keep their proportions in every stretch.
#![forbid(unsafe_code)]

use loaderx_core::sampler::{Cyclic, Mixture, Sampler, Tail, Weighted};
use proptest::prelude::*;

fn draw(sampler: &impl Sampler, step: u64) -> Vec<u64> {
    let mut out = Vec::new();
    sampler.draw(step, &mut out);
    out
}

fn stream(sampler: &impl Sampler, steps: std::ops::Range<u64>) -> Vec<u64> {
    steps.flat_map(|step| draw(sampler, step)).collect()
}

#[test]
fn weighted_draws_have_the_weights_as_their_distribution() {
    let weights = [1.0, 0.0, 2.5, 0.001, 7.0, 0.0, 0.3, 4.0];
    let sum: f64 = weights.iter().sum();
    let draws = 400_000;
    let mut counts = [0_u32; 8];
    let sampler = Weighted::new(&weights, 8, 3).unwrap();
    for index in stream(&sampler, 0..draws / 8) {
        counts[usize::try_from(index).unwrap()] += 1;
    }
    for (weight, count) in weights.iter().zip(counts) {
        let p = weight / sum;
        let expected = p * draws as f64;
        // Five standard deviations of a binomial count; exactly none for weight 0.
        let tolerance = 5.0 * (expected * (1.0 - p)).sqrt();
        assert!((f64::from(count) - expected).abs() <= tolerance, "{count} draws instead of {expected}");
    }
}

#[test]
fn a_record_of_weight_zero_is_never_drawn_among_more_than_2_pow_24() {
    let len = (1 << 24) + 1_000;
    let last = (1 << 24) + 7;
    // All weight lies on records that a 24-bit mantissa cannot tell from their neighbours.
    let mut weights = vec![0.0; len];
    weights[last] = 1.0;
    weights[last + 2] = 3.0;
    let sampler = Weighted::new(&weights, 4_096, 11).unwrap();
    let draws = stream(&sampler, 0..10);
    let heavy = draws.iter().filter(|index| **index == last as u64 + 2).count();
    let light = draws.iter().filter(|index| **index == last as u64).count();
    assert_eq!(heavy + light, draws.len());
    // 3/4 of 40,960 with a standard deviation of 88.
    assert!((30_280..=31_160).contains(&heavy), "{heavy}");
}

#[test]
fn weighted_steps_and_slices_are_pure() {
    let sampler = Weighted::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 6, 1).unwrap();
    for step in [0, 1, u64::MAX] {
        let whole = draw(&sampler, step);
        assert_eq!(whole, draw(&sampler.clone(), step));
        let slices = (0..4).flat_map(|rank| draw(&sampler.clone().sharded(rank, 4).unwrap(), step));
        assert_eq!(slices.collect::<Vec<_>>(), whole);
    }
    assert_ne!(stream(&sampler, 0..5), stream(&Weighted::new(&[1.0; 6], 6, 1).unwrap(), 0..5));
}

#[test]
fn weights_that_cannot_be_are_refused_by_number_and_value() {
    for (weights, texts) in [
        (&[1.0, -0.5][..], ["record 1", "-0.5"]),
        (&[f64::NAN, 1.0], ["record 0", "NaN"]),
        (&[1.0, f64::INFINITY], ["record 1", "inf"]),
        (&[0.0, 0.0, 0.0], ["3", "positive"]),
    ] {
        let error = Weighted::new(weights, 1, 0).unwrap_err();
        assert!(texts.iter().all(|text| error.message().contains(text)), "{error}");
        let sources: Vec<_> = weights.iter().map(|weight| (10, *weight)).collect();
        let error = Mixture::new(&sources, 1, 0).unwrap_err();
        let texts = texts.map(|text| text.replace("record", "source"));
        assert!(texts.iter().all(|text| error.message().contains(text)), "{error}");
    }
    let error = Weighted::new(&[1.0, 1.0], 3, 0).unwrap_err();
    assert!(error.message().contains('3') && error.message().contains('2'), "{error}");
    let error = Mixture::new(&[(4, 1.0), (0, 1.0)], 3, 0).unwrap_err();
    assert!(error.message().contains("source 1"), "{error}");
    assert!(Mixture::new(&[], 3, 0).is_err());
}

#[test]
fn huge_and_tiny_weights_stay_in_range() {
    let sampler = Weighted::new(&[f64::MAX, f64::MAX, f64::MIN_POSITIVE, 0.0], 4, 5).unwrap();
    let draws = stream(&sampler, 0..1_000);
    let first = draws.iter().filter(|index| **index == 0).count();
    assert!(draws.iter().all(|index| *index < 2));
    assert!((1_840..=2_160).contains(&first), "{first} of 4,000");
    let sampler = Mixture::new(&[(9, f64::MAX), (9, f64::MAX), (9, 5e-324)], 4, 5).unwrap();
    assert!(draw(&sampler, 0).iter().filter(|index| **index < 9).count() >= 1);
}

/// The number of draws of each source.
fn count(sampler: &Mixture, draws: &[u64]) -> Vec<usize> {
    sampler.ranges().map(|range| draws.iter().filter(|index| range.contains(index)).count()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_stretch_of_a_mixture_keeps_the_proportions(
        sources in prop::collection::vec((1_u64..50, 0.0_f64..10.0), 1..9),
        seed: u64,
        step in prop_oneof![0_u64..1_000, Just(u64::MAX - 300)],
    ) {
        let sum: f64 = sources.iter().map(|(_, weight)| weight).sum();
        prop_assume!(sum > 0.0);
        let sampler = Mixture::new(&sources, 1, seed).unwrap();
        let draws = stream(&sampler, step..step + 300);
        for window in [1, 2, 7, 32, 100, 256] {
            for stretch in draws.windows(window) {
                for ((_, weight), count) in sources.iter().zip(count(&sampler, stretch)) {
                    let share = weight / sum * window as f64;
                    prop_assert!((count as f64 - share).abs() < 4.0, "{count} of {window}, {share} expected");
                    prop_assert!(*weight > 0.0 || count == 0);
                }
            }
        }
    }

    #[test]
    fn a_mixture_does_not_depend_on_how_it_is_cut_into_batches(
        sources in prop::collection::vec((1_u64..5_000, 0.1_f64..10.0), 1..6),
        seed: u64,
        batch in 1_usize..40,
        step in 0_u64..1_000_000,
    ) {
        let records: u64 = sources.iter().map(|(len, _)| len).sum();
        prop_assume!(batch as u64 <= records);
        let single = Mixture::new(&sources, 1, seed).unwrap();
        let sampler = Mixture::new(&sources, batch, seed).unwrap();
        let first = step * batch as u64;
        prop_assert_eq!(draw(&sampler, step), stream(&single, first..first + batch as u64));
        let world = batch.min(3);
        let slices = (0..world).flat_map(|rank| draw(&sampler.clone().sharded(rank, world).unwrap(), step));
        prop_assert_eq!(slices.collect::<Vec<_>>(), draw(&sampler, step));
    }
}

#[test]
fn each_source_of_a_mixture_goes_through_its_own_cycles() {
    let sizes = [5, 70, 5_000];
    let sampler = Mixture::new(&[(5, 0.5), (70, 1.5), (5_000, 8.0)], 50, 9).unwrap();
    let draws = stream(&sampler, 0..400);
    let mut orders = Vec::new();
    for (range, size) in sampler.ranges().zip(sizes) {
        let own: Vec<u64> = draws.iter().copied().filter(|index| range.contains(index)).collect();
        assert!(own.len() > 2 * size);
        for cycle in own.chunks_exact(size) {
            let mut records = cycle.to_vec();
            records.sort_unstable();
            assert_eq!(records, range.clone().collect::<Vec<_>>(), "every record once a cycle");
        }
        assert_ne!(own[..size], own[size..2 * size], "another order in the next cycle");
        orders.push(own);
    }
    // Other weights change when a source is drawn, not the order in which it goes through its records.
    let other = Mixture::new(&[(5, 3.0), (70, 1.0), (5_000, 1.0)], 50, 9).unwrap();
    let draws = stream(&other, 0..100);
    for (range, order) in other.ranges().zip(&orders) {
        let own: Vec<u64> = draws.iter().copied().filter(|index| range.contains(index)).collect();
        let common = own.len().min(order.len());
        assert_eq!(own[..common], order[..common]);
    }
}

#[test]
fn a_mixture_is_defined_at_the_last_steps() {
    let sampler = Mixture::new(&[(1, 1.0), (1 << 40, 1.0), (3, 1.0)], 1 << 12, 9).unwrap();
    for step in [u64::MAX - 1, u64::MAX] {
        let draws = draw(&sampler, step);
        assert_eq!(draws, draw(&sampler, step));
        let counts = count(&sampler, &draws);
        assert!(counts.iter().all(|count| (1_364..=1_367).contains(count)), "{counts:?}");
    }
}

#[test]
fn a_mixture_of_one_source_is_that_source() {
    let mixture = Mixture::new(&[(0x1000, 0.3)], 64, 9).unwrap();
    let mut cycle = stream(&mixture, 0..64);
    cycle.sort_unstable();
    assert_eq!(cycle, (0..0x1000).collect::<Vec<_>>());
    let plain = Cyclic::new(0x1000, 64, 9).unwrap().tail(Tail::Wrap);
    assert_ne!(draw(&mixture, 0), draw(&plain, 0), "a source's order has keys of its own");
}
