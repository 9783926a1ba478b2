//! Any sequence of operations leaves what the same sequence does to a vector of byte strings.
#![forbid(unsafe_code)]

use loaderx_core::format::FormatVersion;
use loaderx_core::io::memory::MemoryDisk;
use loaderx_core::store::train_dictionary;
use loaderx_core::{Codec, CreateOptions, OpenOptions, Store};
use loaderx_tests::churn::Operation;
use loaderx_tests::crash::{self, Outcome};
use loaderx_tests::model::Model;
use loaderx_tests::random::Random;
use proptest::prelude::*;

/// What happens to a store.
#[derive(Clone, Debug)]
enum Event {
    Append {
        seed: u64,
        count: usize,
        max: usize,
    },
    /// The parts of the store's length.
    Delete(Vec<u16>),
    Compact,
    CompactInSmallSteps,
    Sync,
    Reopen,
    Kill,
    /// Loses the unsynced writes whose number has its bit set.
    PowerCut(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        5 => (any::<u64>(), 1_usize..12, 1_usize..400)
            .prop_map(|(seed, count, max)| Event::Append { seed, count, max }),
        3 => proptest::collection::vec(any::<u16>(), 1..8).prop_map(Event::Delete),
        1 => Just(Event::Compact),
        1 => Just(Event::CompactInSmallSteps),
        1 => Just(Event::Sync),
        1 => Just(Event::Reopen),
        1 => Just(Event::Kill),
        2 => any::<u64>().prop_map(Event::PowerCut),
    ]
}

fn options() -> Vec<CreateOptions> {
    let samples = Random::new(5).records(500, 100, 300);
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let dictionary = train_dictionary(&samples, Some(2048)).unwrap().into_dictionary().unwrap();
    let mut options = Vec::new();
    for format in [FormatVersion::V3, FormatVersion::V4] {
        let format = CreateOptions::new().format(format);
        options.push(format.clone());
        options.push(format.clone().codec(Codec::zstd()));
        options.push(format.codec(Codec::zstd_dict()).dictionary(dictionary.clone()));
    }
    options
}

/// A store in memory, and what it holds.
struct Run {
    disk: MemoryDisk,
    store: Option<Store>,
    outcome: Outcome,
}

impl Run {
    fn store(&mut self) -> &mut Store {
        self.store.get_or_insert_with(|| crash::open_writable(&self.disk).unwrap())
    }

    fn does(&mut self, operation: Operation) {
        let mut outcome = std::mem::replace(&mut self.outcome, Outcome::start(&Model::default()));
        outcome.run(self.store(), &[operation]);
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        self.outcome = outcome;
    }

    fn check(&mut self) {
        let model = self.outcome.current.clone();
        model.compare(self.store()).unwrap();
    }

    fn event(&mut self, event: &Event) {
        let length = self.outcome.current.records.len();
        match event {
            Event::Append { seed, count, max } => {
                self.does(Operation::Append(Random::new(*seed).records(*count, 1, *max)));
            }
            Event::Delete(parts) if length > 0 => {
                let indices = parts.iter().map(|&part| u64::from(part) % length as u64).collect();
                self.does(Operation::Delete(indices));
            }
            Event::Delete(_) => {}
            Event::Compact => self.does(Operation::Compact),
            Event::CompactInSmallSteps => {
                self.store().compact_with_steps(500, 200, 3).unwrap();
                self.outcome.durable = self.outcome.current.clone();
            }
            Event::Sync => self.does(Operation::Sync),
            Event::Reopen => {
                self.store = None;
                self.check();
            }
            Event::Kill => {
                self.disk.restart();
                self.store = None;
                self.check();
                self.outcome.durable = self.outcome.current.clone();
            }
            Event::PowerCut(lost) => {
                self.disk.power_cut(|unsynced| lost >> (unsynced.number % 64) & 1 == 1);
                self.store = None;
                let outcome = std::mem::replace(&mut self.outcome, Outcome::start(&Model::default()));
                let found = outcome.allows_after_power_cut(self.store());
                let model = found.unwrap_or_else(|wrong| panic!("{wrong}"));
                self.outcome = Outcome::start(&model);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_sequence_of_operations_and_crashes_is_what_a_vector_makes_of_it(
        events in proptest::collection::vec(event(), 1..24),
    ) {
        for options in options() {
            let (disk, model) = crash::prepare(&options, &[]);
            let mut run = Run { disk, store: None, outcome: Outcome::start(&model) };
            for event in &events {
                run.event(event);
                run.check();
            }
            let model = run.outcome.current.clone();
            model.assert_holds(run.store());
            run.store = None;
            let store = OpenOptions::new().verify(true).open_in(run.disk.directory()).unwrap();
            model.assert_holds(&store);
            prop_assert!(store.verify().unwrap().is_sound());
        }
    }
}
