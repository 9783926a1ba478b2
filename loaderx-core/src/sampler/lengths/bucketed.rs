use super::plan::Plan;
use super::{ByLength, Group, group};
use crate::error::{Error, Result};
use crate::sampler::random::Digest;
use crate::sampler::{Sampler, Tail, check_batch};
use std::ops::Range;

/// Batches of records of similar length, so that padding wastes little.
///
/// The records are put into buckets by their lengths. In each cycle each bucket is shuffled afresh and cut into
/// batches, and the batches of all buckets are delivered in a shuffled order; so every record comes once a cycle, with
/// other companions each time. With [`Tail::Drop`] (the default) what remains of each bucket is dropped, another
/// remainder each cycle; with [`Tail::Short`] it becomes a short batch.
///
/// Building sorts the lengths once; a step costs the same wherever it is.
///
/// ```
/// use loaderx_core::sampler::{Bucketed, Sampler, Tail};
///
/// let lengths: Vec<u32> = (0..10_000).map(|i| 16 + i * 7 % 497).collect();
/// let sampler = Bucketed::new(&lengths, 20, 32, Tail::Drop, 42)?;
/// let mut out = vec![];
/// sampler.draw(1_000_000, &mut out);
/// let of = |index: &u64| lengths[*index as usize];
/// let (shortest, longest) = (out.iter().map(of).min(), out.iter().map(of).max());
/// assert!(longest.unwrap() - shortest.unwrap() <= 497 / 20 + 1);
/// # Ok::<(), loaderx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bucketed {
    order: ByLength,
    plan: Plan,
    batch: usize,
    text: String,
}

impl Bucketed {
    /// A sampler over `lengths.len()` records in `buckets` buckets of equally many records (to within one), `batch`
    /// indices a step; `tail` says what happens to what remains of a bucket, `seed` decides the order.
    ///
    /// # Errors
    ///
    /// When `batch` or `buckets` is 0, either exceeds the number of records, there are 2^32 records or more, `tail` is
    /// [`Tail::Wrap`] (a bucket's batches do not run on into its next cycle), or it is [`Tail::Drop`] and a bucket has
    /// fewer records than a batch, so that they would never be delivered.
    pub fn new(lengths: &[u32], buckets: usize, batch: usize, tail: Tail, seed: u64) -> Result<Self> {
        check_batch(lengths.len() as u64, batch)?;
        if buckets == 0 || buckets > lengths.len() {
            return Err(Error::invalid(format!(
                "{} records cannot be put into {buckets} buckets",
                lengths.len()
            )));
        }
        let (order, sorted) = ByLength::new(lengths)?;
        let (share, more) = (sorted.len() / buckets, sorted.len() % buckets);
        // The first `more` buckets have one record more.
        let starts = |place: usize| match place.checked_sub(more * (share + 1)) {
            None => place.is_multiple_of(share + 1),
            Some(behind) => behind.is_multiple_of(share),
        };
        let groups = group(&sorted, |bucket, _| starts(bucket.places.end as usize));
        Self::build(order, groups, batch, tail, seed)
    }

    /// As [`Bucketed::new`], with the buckets' bounds given: bucket `k` holds the lengths from `bounds[k - 1]` to
    /// below `bounds[k]`, the first one those below `bounds[0]`, and one more those from the last bound up. Buckets
    /// without records do not count.
    ///
    /// # Errors
    ///
    /// As [`Bucketed::new`], and when the bounds do not rise.
    pub fn with_bounds(lengths: &[u32], bounds: &[u32], batch: usize, tail: Tail, seed: u64) -> Result<Self> {
        check_batch(lengths.len() as u64, batch)?;
        if let Some(pair) = bounds.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Error::invalid(format!("the bounds of buckets have to rise, and {pair:?} do not")));
        }
        let (order, sorted) = ByLength::new(lengths)?;
        let number = |length: u32| bounds.partition_point(|bound| *bound <= length);
        let groups = group(&sorted, |bucket, length| number(bucket.shortest) != number(length));
        Self::build(order, groups, batch, tail, seed)
    }

    fn build(order: ByLength, buckets: Vec<Group>, batch: usize, tail: Tail, seed: u64) -> Result<Self> {
        if tail == Tail::Wrap {
            return Err(Error::invalid("buckets have no tail policy `Wrap`")
                .with_hint("use `Tail::Drop` for full batches or `Tail::Short` for every record"));
        }
        let small = buckets.iter().enumerate().find(|(_, bucket)| (bucket.len() as usize) < batch);
        if let (Tail::Drop, Some((number, bucket))) = (tail, small) {
            return Err(Error::invalid(format!(
                "bucket {number}, of lengths {} to {}, has {} records, fewer than a batch of {batch}: none of them \
                 would be delivered",
                bucket.shortest,
                bucket.longest,
                bucket.len()
            ))
            .with_hint("use fewer buckets, a smaller batch or `Tail::Short`"));
        }
        let mut digest = Digest::new();
        digest.add(order.digest);
        buckets.iter().for_each(|bucket| digest.add(u64::from(bucket.places.start)));
        let text = format!(
            "bucketed(len={}, batch={batch}, buckets={}, tail={tail}, seed={seed}, digest={:016x})",
            order.len(),
            buckets.len(),
            digest.finish()
        );
        let plan = Plan::new(buckets.into_iter().map(|bucket| (bucket, batch)), tail == Tail::Short, seed);
        Ok(Self { order, plan, batch, text })
    }

    /// The number of buckets that hold records.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.plan.groups()
    }
}

impl Sampler for Bucketed {
    fn len(&self) -> u64 {
        self.order.len()
    }

    fn batch_size(&self) -> usize {
        self.batch
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        self.plan.batch(step).draw(&self.order, &positions, out);
    }

    fn batch_len(&self, step: u64) -> usize {
        self.plan.batch(step).len()
    }

    fn steps_per_cycle(&self) -> Option<u64> {
        Some(self.plan.steps_per_cycle())
    }

    fn describe(&self) -> String {
        self.text.clone()
    }
}
