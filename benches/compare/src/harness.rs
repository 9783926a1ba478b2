//! Systems take turns; each turn is two bursts of batches, and the mean time of the second is one sample. The first
//! meets what the turns before have left: cold caches, and pages that the system has taken back from whoever was idle.

use std::time::Instant;

use crate::report::Row;
use crate::work::Work;

/// What can go wrong here is for a person to read.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Batches before the measurement: as many as there are lists of indices.
const WARM_UP: usize = crate::systems::BATCHES;

/// Runs `count` batches and gives the mean time of one, in microseconds.
pub(crate) type Burst<'a> = Box<dyn FnMut(usize) -> Outcome<f64> + 'a>;

/// One system that can do a piece of work.
pub(crate) struct System<'a> {
    /// Its name in the tables.
    pub(crate) name: String,
    /// Threads that work on batches.
    pub(crate) threads: usize,
    /// Runs a burst.
    pub(crate) burst: Burst<'a>,
}

/// A burst of a closure that does one batch.
pub(crate) fn burst<'a>(mut batch: impl FnMut() -> Outcome<()> + 'a) -> Burst<'a> {
    Box::new(move |count| {
        let start = Instant::now();
        for _ in 0..count {
            batch()?;
        }
        Ok(start.elapsed().as_secs_f64() * 1e6 / count as f64)
    })
}

/// Lets the systems take turns and prints their rows; ratios are medians over the rounds.
pub(crate) fn measure(work: &Work, mut systems: Vec<System<'_>>, quick: bool) -> Outcome<Vec<Row>> {
    let rounds = if quick { 3 } else { 25 };
    let mut samples = vec![Vec::with_capacity(rounds); systems.len()];
    let mut counts = Vec::with_capacity(systems.len());
    for system in &mut systems {
        // Every batch of indices once, so that no system's turn is a row of first touches; then one that counts.
        (system.burst)(if quick { 2 } else { WARM_UP })?;
        let first = (system.burst)(2)?;
        // About 20 ms a turn: long against the clock, short against the machine's slow phases.
        let budget = if quick { 2_000.0 } else { 20_000.0 };
        counts.push(((budget / first.max(0.01)) as usize).clamp(2, 20_000));
    }
    for _ in 0..rounds {
        for ((system, samples), &count) in systems.iter_mut().zip(&mut samples).zip(&counts) {
            (system.burst)(count)?;
            samples.push((system.burst)(count)?);
        }
    }
    let ours = systems.iter().position(|system| system.name == "loaderx").unwrap_or(0);
    let reference = samples[ours].clone();
    let mut rows = Vec::new();
    for (system, samples) in systems.iter().zip(samples) {
        let mut ratios: Vec<f64> = samples.iter().zip(&reference).map(|(own, ours)| own / ours).collect();
        ratios.sort_by(f64::total_cmp);
        let mut sorted = samples;
        sorted.sort_by(f64::total_cmp);
        let at = |percent: usize| sorted[(sorted.len() - 1) * percent / 100];
        let seconds = at(50) / 1e6;
        rows.push(Row {
            work: work.name.clone(),
            system: system.name.clone(),
            threads: system.threads,
            median_us: at(50),
            p10_us: at(10),
            p90_us: at(90),
            mib_s: work.bytes as f64 / seconds / f64::from(1 << 20),
            records_s: work.batch as f64 / seconds,
            ratio_to_loaderx: ratios[ratios.len() / 2],
        });
    }
    Ok(rows)
}
