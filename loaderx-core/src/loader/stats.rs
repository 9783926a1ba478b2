use std::time::Duration;

/// Where a loader's time went and what it delivered, since it was built.
///
/// `waiting_for_data` near zero means that the training loop is the slow side and more workers gain nothing.
/// When it is a large part of [`Stats::elapsed`], the loader is the slow side: use more workers, or look at
/// what the transform does.
///
/// ```
/// # use std::time::Duration;
/// # fn show(stats: loaderx_core::loader::Stats) {
/// println!("{:.0} MiB/s, waiting {:.1} %", stats.bytes_per_second() / 1048576.0, 100.0 * stats.waiting_share());
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Since the loader was built.
    pub elapsed: Duration,
    /// Steps delivered, failed ones among them.
    pub batches: u64,
    /// Records delivered.
    pub records: u64,
    /// Bytes of the delivered batches as they were gathered, before the transform.
    pub bytes: u64,
    /// Steps that delivered an error.
    pub errors: u64,
    /// Damaged records that were left out ([`OnDamage::Skip`](super::OnDamage::Skip)).
    pub skipped: u64,
    /// Time that the training loop spent in `next`, waiting for data. Without workers this is all of the work.
    pub waiting_for_data: Duration,
    /// Time that workers slept because the queue was full in batches or bytes, summed over the workers.
    pub waiting_for_consumer: Duration,
    /// Finished steps that wait in the queue now.
    pub queued: usize,
    /// Bytes held by queued batches and those being gathered now.
    pub bytes_in_flight: u64,
    /// The most that `bytes_in_flight` has been.
    pub peak_bytes_in_flight: u64,
}

impl Stats {
    /// Bytes delivered a second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        rate(self.bytes, self.elapsed)
    }

    /// Records delivered a second.
    #[must_use]
    pub fn records_per_second(&self) -> f64 {
        rate(self.records, self.elapsed)
    }

    /// The share of the time, from 0 to 1, that the training loop waited for data.
    #[must_use]
    pub fn waiting_share(&self) -> f64 {
        let elapsed = self.elapsed.as_secs_f64();
        if elapsed > 0.0 { self.waiting_for_data.as_secs_f64() / elapsed } else { 0.0 }
    }
}

fn rate(count: u64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
