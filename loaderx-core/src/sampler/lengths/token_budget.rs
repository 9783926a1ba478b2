use super::plan::Plan;
use super::{ByLength, Group, group};
use crate::error::{Error, Result};
use crate::sampler::permutation::Layout;
use crate::sampler::random::{Domain, Stream};
use crate::sampler::{Sampler, clip, prepare};
use std::ops::Range;
use std::sync::Arc;

/// Batches of as many records as fit a number of tokens; every record once a cycle.
///
/// How tokens are counted is chosen by the constructor:
///
/// - [`TokenBudget::padded`]: number of records times the longest of them, what a padded batch occupies. Batches hold
///   records of similar length: from a group whose shortest is at least 32/33 of the longest, or down to about half
///   of it where so few records would not fill four batches, which leaves little to shuffle.
/// - [`TokenBudget::packed`]: the sum of the lengths, what a packed batch (values and `cu_seqlens`) occupies.
///   Batches hold records of all lengths.
///
/// A record of length 0 counts as one of length 1.
///
/// A step is computed, never replayed, because the cutting does not depend on the cycle. For packed batches the
/// records are sorted into classes of nearly equal length (the shortest at least 16/17 of the longest), one random
/// sequence of classes is cut greedily into batches, each record counted with its class's longest; in every
/// cycle the members of each class are dealt out afresh to the places of their class, and the batches come in
/// another order. So a batch's mixture of lengths recurs each cycle while its records change; where a class has but
/// one record, that record has the same place in the same mixture.
///
/// Building sorts the lengths once (about a second for ten million); a step costs the same wherever it is.
///
/// ```
/// use loaderx_core::sampler::{Sampler, TokenBudget};
///
/// let lengths: Vec<u32> = (0..10_000).map(|i| 16 + i * 7 % 497).collect();
/// let (mut out, of) = (vec![], |index: &u64| lengths[*index as usize]);
///
/// TokenBudget::padded(&lengths, 8_192, 42)?.draw(1_000_000, &mut out);
/// assert!(out.iter().map(of).max().unwrap() * out.len() as u32 <= 8_192);
///
/// TokenBudget::packed(&lengths, 8_192, 42)?.draw(1_000_000, &mut out);
/// assert!(out.iter().map(of).sum::<u32>() <= 8_192);
/// # Ok::<(), loaderx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TokenBudget {
    order: ByLength,
    cut: Cut,
    batch: usize,
    tokens: u64,
    seed: u64,
}

/// The batches that a group of similar lengths has to fill before its length alone ends it.
const MIXED: u64 = 4;

/// Records are similar whose lengths differ by less than one part in so many. On sentences of 5 to 64 tokens 8 leaves
/// 5 % padding, 16 2.6 %, 32 1.3 %, and equal lengths alone 0.8 %, with ever fewer records to meet in a batch.
const SIMILAR: u32 = 32;

#[derive(Clone, Debug)]
enum Cut {
    Padded(Plan),
    Packed(Packed),
}

impl TokenBudget {
    /// Batches whose number of records times their longest length is at most `tokens`.
    ///
    /// # Errors
    ///
    /// When there is no record, or 2^32 or more, or one is longer than `tokens`.
    pub fn padded(lengths: &[u32], tokens: u64, seed: u64) -> Result<Self> {
        let (order, sorted) = prepare_lengths(lengths, tokens)?;
        let groups = group(&sorted, |group, length| {
            let occupied = u64::from(group.len()) * u64::from(group.longest.max(1));
            let wide = length > group.shortest.saturating_add(group.shortest / SIMILAR);
            wide && occupied >= tokens.saturating_mul(MIXED) || length / 2 > group.shortest
        });
        let sized: Vec<(Group, usize)> = groups
            .into_iter()
            .map(|group| {
                let fitting = usize::try_from(tokens / u64::from(group.longest.max(1))).unwrap_or(usize::MAX);
                let batch = fitting.min(group.len() as usize);
                (group, batch)
            })
            .collect();
        let batch = sized.iter().map(|(_, batch)| *batch).max().unwrap_or(0);
        Ok(Self { order, cut: Cut::Padded(Plan::new(sized, true, seed)), batch, tokens, seed })
    }

    /// Batches whose lengths sum to at most `tokens`.
    ///
    /// # Errors
    ///
    /// When there is no record, or 2^32 or more, or one is longer than `tokens`.
    pub fn packed(lengths: &[u32], tokens: u64, seed: u64) -> Result<Self> {
        let (order, sorted) = prepare_lengths(lengths, tokens)?;
        let groups =
            group(&sorted, |class, length| length > class.shortest.saturating_add(class.shortest / 16));
        let packed = Packed::new(&groups, order.len(), tokens, seed);
        let batch = packed.largest();
        Ok(Self { order, cut: Cut::Packed(packed), batch, tokens, seed })
    }
}

/// Refuses what no batch can hold, and sorts.
fn prepare_lengths(lengths: &[u32], tokens: u64) -> Result<(ByLength, Vec<u32>)> {
    if lengths.is_empty() {
        return Err(Error::invalid(format!("batches of {tokens} tokens cannot be drawn from 0 records")));
    }
    if let Some((record, length)) =
        (0_u64..).zip(lengths).find(|(_, length)| u64::from((**length).max(1)) > tokens)
    {
        return Err(Error::invalid(format!(
            "record {record} has {length} tokens, more than a batch of {tokens}"
        ))
        .for_record(record)
        .with_hint("raise the budget, cut long records, or leave them out with a `Subset`"));
    }
    ByLength::new(lengths)
}

/// A fixed sequence of classes, cut into batches, whose places the members of each class fill anew in each cycle.
#[derive(Clone, Debug)]
struct Packed {
    classes: Arc<[Class]>,
    /// Which place in the order of lengths a position of the sequence stands for.
    sequence: Layout,
    /// The position of each batch's first record, and of the end.
    bounds: Arc<[u32]>,
    batches: Layout,
    seed: u64,
}

#[derive(Clone, Debug)]
struct Class {
    first_place: u64,
    seed: u64,
    layout: Layout,
}

impl Packed {
    fn new(groups: &[Group], records: u64, tokens: u64, seed: u64) -> Self {
        let sequence = Layout::new(records);
        let mut bounds = vec![0];
        let (mut position, mut used) = (0_u32, 0);
        let permutation = sequence.keyed(seed, Domain::Template, 0);
        let mut places = [0; 1024];
        let mut start = 0;
        while start < records {
            let count = crate::sampler::index((records - start).min(places.len() as u64));
            let places = &mut places[..count];
            permutation.fill(start, places);
            for place in &*places {
                let class = groups.partition_point(|group| u64::from(group.places.start) <= *place) - 1;
                let length = u64::from(groups[class].longest.max(1));
                if used + length > tokens {
                    bounds.push(position);
                    used = 0;
                }
                used += length;
                position += 1;
            }
            start += count as u64;
        }
        bounds.push(position);
        let classes = groups.iter().enumerate().map(|(number, group)| Class {
            first_place: u64::from(group.places.start),
            seed: Stream::new(seed, Domain::Members, number as u64).word(0),
            layout: Layout::new(u64::from(group.len())),
        });
        let batches = Layout::new(bounds.len() as u64 - 1);
        Self { classes: classes.collect(), sequence, bounds: bounds.into(), batches, seed }
    }

    /// The number of records of the largest batch.
    fn largest(&self) -> usize {
        self.bounds.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
    }

    fn steps_per_cycle(&self) -> u64 {
        self.bounds.len() as u64 - 1
    }

    /// The cycle of `step` and its batch's positions in the sequence.
    fn locate(&self, step: u64) -> (u64, Range<u64>) {
        let per_cycle = self.steps_per_cycle();
        let cycle = step / per_cycle;
        let batch = self.batches.keyed(self.seed, Domain::Batches, cycle).at(step % per_cycle);
        let batch = crate::sampler::index(batch);
        (cycle, u64::from(self.bounds[batch])..u64::from(self.bounds[batch + 1]))
    }

    fn draw(&self, step: u64, positions: &Range<usize>, out: &mut Vec<u64>) {
        let (cycle, batch) = self.locate(step);
        let (start, count) = clip(positions, crate::sampler::index(batch.end - batch.start));
        let out = prepare(out, count);
        self.sequence.keyed(self.seed, Domain::Template, 0).fill(batch.start + start as u64, out);
        for place in out {
            let class = self.classes.partition_point(|class| class.first_place <= *place) - 1;
            let class = &self.classes[class];
            let member = *place - class.first_place;
            *place = class.first_place + class.layout.keyed(class.seed, Domain::Cycle, cycle).at(member);
        }
    }
}

impl Sampler for TokenBudget {
    fn len(&self) -> u64 {
        self.order.len()
    }

    /// The number of records of the largest batch.
    fn batch_size(&self) -> usize {
        self.batch
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        match &self.cut {
            Cut::Padded(plan) => plan.batch(step).draw(&self.order, &positions, out),
            Cut::Packed(packed) => {
                packed.draw(step, &positions, out);
                self.order.map(out);
            }
        }
    }

    fn batch_len(&self, step: u64) -> usize {
        match &self.cut {
            Cut::Padded(plan) => plan.batch(step).len(),
            Cut::Packed(packed) => {
                let (_, batch) = packed.locate(step);
                crate::sampler::index(batch.end - batch.start)
            }
        }
    }

    fn steps_per_cycle(&self) -> Option<u64> {
        Some(match &self.cut {
            Cut::Padded(plan) => plan.steps_per_cycle(),
            Cut::Packed(packed) => packed.steps_per_cycle(),
        })
    }

    fn describe(&self) -> String {
        let count = match self.cut {
            Cut::Padded(_) => "padded",
            Cut::Packed(_) => "packed",
        };
        format!(
            "token_budget(len={}, tokens={}, count={count}, seed={}, digest={:016x})",
            self.len(),
            self.tokens,
            self.seed,
            self.order.digest
        )
    }
}
