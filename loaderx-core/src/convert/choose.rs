//! Which codec suits some data: tried on a sample of it.

use std::time::Instant;

use crate::codec::{Codec, Dictionary, Literals, Training, compress, decompress, train_dictionary};
use crate::error::{Error, Result};

/// The share of the bytes that a codec must save for each time that its decoding takes twice as long.
const PER_HALVING: f64 = 0.15;
/// The share that it must save in any case: less is not worth what encoding costs.
const AT_LEAST: f64 = 0.10;
/// What decodes faster than this counts as fast as this: random records do not come out of memory faster on one thread,
/// though a sample does, from the cache.
const MEMORY_RATE: f64 = 4e9;
/// Each is decoded so often, and its best time counts, as the machine may be busy with something else.
const PASSES: usize = 3;
/// Records that are tried; enough for a ratio of two digits.
const TRIED: usize = 2048;
/// Dictionaries help small records; none is trained for larger ones.
const SMALL: usize = 64 << 10;

/// How one codec did on the sample.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CodecTrial {
    /// The codec that was tried.
    pub codec: Codec,
    /// Bytes before by bytes after; of records that the dictionary was not trained on.
    pub ratio: f64,
    /// Decoded bytes a second, on one thread of this machine.
    pub decode_rate: f64,
}

/// The codec that was chosen for some data, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChosenCodec {
    /// The choice.
    pub codec: Codec,
    /// The dictionary that it needs.
    pub dictionary: Option<Vec<u8>>,
    /// What was measured.
    pub trials: Vec<CodecTrial>,
    /// A sentence that says why.
    pub reason: String,
}

/// Tries raw, zstd, and zstd with a dictionary on sample records, zstd with raw and with compressed literals, and
/// chooses by bytes and decoding speed.
///
/// Each candidate in turn is held against the best so far, raw being the first. It must save 15 % of the bytes for each
/// time that decoding takes twice as long (so 28 % at a quarter of the speed, 39 % at an eighth), and 10 % in any case. More
/// than 4 GB/s counts as 4 GB/s, as random records do not come out of memory faster.
///
/// A dictionary is trained on every second record and judged by the others.
///
/// # Errors
///
/// When there is no memory for the dictionary's training.
pub fn choose_codec(records: &[&[u8]]) -> Result<ChosenCodec> {
    let step = records.len().div_ceil(2 * TRIED).max(1);
    let picked: Vec<&[u8]> =
        records.iter().step_by(step).copied().filter(|record| !record.is_empty()).collect();
    if picked.is_empty() {
        return Ok(ChosenCodec {
            codec: Codec::Raw,
            dictionary: None,
            trials: Vec::new(),
            reason: "there are no bytes to compress".to_owned(),
        });
    }
    let judged: Vec<&[u8]> = picked.iter().skip(1).step_by(2).copied().collect();
    let judged = if judged.is_empty() { picked.clone() } else { judged };
    let mut trials = vec![
        CodecTrial { codec: Codec::Raw, ratio: 1.0, decode_rate: copy_rate(&judged)? },
        try_codec(Codec::zstd().with_literals(Literals::Raw), None, &judged)?,
        try_codec(Codec::zstd(), None, &judged)?,
    ];
    let mut dictionary = None;
    let average = picked.iter().map(|record| record.len()).sum::<usize>() / picked.len();
    if average <= SMALL {
        let trained: Vec<&[u8]> = picked.iter().step_by(2).copied().collect();
        if let Training::Trained(bytes) = train_dictionary(&trained, None)? {
            let digested = Dictionary::new(bytes.clone())?;
            for literals in [Literals::Raw, Literals::Compressed] {
                let codec = Codec::zstd_dict().with_literals(literals);
                trials.push(try_codec(codec, Some(&digested), &judged)?);
            }
            dictionary = Some(bytes);
        }
    }
    let (codec, why) = decide(&trials);
    if !matches!(codec, Codec::ZstdDict { .. }) {
        dictionary = None;
    }
    let measured: Vec<String> = trials
        .iter()
        .map(|trial| {
            format!("{} {:.2} times at {:.0} MB/s", words(trial.codec), trial.ratio, trial.decode_rate / 1e6)
        })
        .collect();
    let reason = format!(
        "codec {} was chosen on a sample of {} records: {why} (smaller by, decoding at: {})",
        words(codec),
        judged.len(),
        measured.join(", ")
    );
    Ok(ChosenCodec { codec, dictionary, trials, reason })
}

/// The rule of [`choose_codec`] on what was measured: the choice, and a clause for each comparison.
fn decide(trials: &[CodecTrial]) -> (Codec, String) {
    let Some((mut best, others)) = trials.split_first() else { return (Codec::Raw, String::new()) };
    let mut clauses = Vec::new();
    for trial in others {
        let speed = trial.decode_rate.min(MEMORY_RATE) / best.decode_rate.clamp(1.0, MEMORY_RATE);
        let halvings = (-speed.log2()).max(0.0);
        let asked = (1.0 - (1.0 - PER_HALVING).powf(halvings)).max(AT_LEAST);
        let saved = 1.0 - best.ratio / trial.ratio;
        let wins = saved >= asked;
        clauses.push(format!(
            "{} saves {:.0} % of {}'s bytes, {} the {:.0} % that decoding at {:.2} of its speed has to save",
            words(trial.codec),
            100.0 * saved.max(0.0),
            words(best.codec),
            if wins { "at least" } else { "less than" },
            100.0 * asked,
            speed
        ));
        if wins {
            best = trial;
        }
    }
    (best.codec, clauses.join("; "))
}

/// The codec's name, and what is done with literals where that is not the usual.
fn words(codec: Codec) -> String {
    let raw = codec.frames().is_some_and(|frames| frames.literals == Literals::Raw);
    format!("{}{}", codec.name(), if raw { " with raw literals" } else { "" })
}

fn try_codec(codec: Codec, dictionary: Option<&Dictionary>, records: &[&[u8]]) -> Result<CodecTrial> {
    let options = codec.frames().ok_or_else(|| Error::invalid("raw records are not tried"))?;
    let (mut frames, mut ends, mut stored, mut decoded) = (Vec::new(), vec![0], 0, 0);
    for record in records {
        let length = compress(record, options, dictionary, &mut frames)?;
        ends.push(frames.len());
        // A store keeps a record raw that does not become smaller.
        stored += length.min(record.len());
        decoded += record.len();
    }
    let mut content = Vec::with_capacity(records.iter().map(|record| record.len()).max().unwrap_or(0));
    let decode_rate = best_rate(decoded, || {
        for (record, bounds) in records.iter().zip(ends.windows(2)) {
            let frame = bounds.first().zip(bounds.last()).and_then(|(&start, &end)| frames.get(start..end));
            content.clear();
            decompress(frame.unwrap_or_default(), dictionary, &mut content, record.len())?;
        }
        Ok(())
    })?;
    Ok(CodecTrial { codec, ratio: quotient(decoded, stored), decode_rate })
}

fn copy_rate(records: &[&[u8]]) -> Result<f64> {
    let mut content = Vec::with_capacity(records.iter().map(|record| record.len()).max().unwrap_or(0));
    best_rate(records.iter().map(|record| record.len()).sum(), || {
        for record in records {
            content.clear();
            content.extend_from_slice(std::hint::black_box(record));
            std::hint::black_box(&mut content);
        }
        Ok(())
    })
}

/// The rate of the fastest pass over so many bytes.
fn best_rate(bytes: usize, mut pass: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = 0.0_f64;
    for _ in 0..PASSES {
        let started = Instant::now();
        pass()?;
        best = best.max(rate(bytes, started));
    }
    Ok(best)
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn quotient(a: usize, b: usize) -> f64 {
    a as f64 / (b.max(1)) as f64
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn rate(bytes: usize, started: Instant) -> f64 {
    bytes as f64 / started.elapsed().as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(records: &[Vec<u8>]) -> ChosenCodec {
        choose_codec(&records.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap()
    }

    /// Bytes without a pattern.
    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..length)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[3]
            })
            .collect()
    }

    #[test]
    fn slower_codecs_must_save_more() {
        let decided = |measured: &[(f64, f64)]| {
            let codecs = [Codec::Raw, Codec::zstd(), Codec::zstd_dict()];
            let trials = codecs.into_iter().zip(measured);
            let trials =
                trials.map(|(codec, &(ratio, decode_rate))| CodecTrial { codec, ratio, decode_rate });
            decide(&trials.collect::<Vec<_>>())
        };
        // As fast: a tenth is enough, less is not.
        assert_eq!(decided(&[(1.0, 4e9), (1.12, 4e9)]).0, Codec::zstd());
        assert_eq!(decided(&[(1.0, 4e9), (1.11, 4e9)]).0, Codec::Raw);
        // An eighth of the speed: 39 % of the bytes, also where the sample was copied within the cache.
        for raw in [4e9, 30e9] {
            assert_eq!(decided(&[(1.0, raw), (1.65, 0.5e9)]).0, Codec::zstd());
            assert_eq!(decided(&[(1.0, raw), (1.61, 0.5e9)]).0, Codec::Raw);
        }
        // A dictionary that saves 16 % of zstd's bytes is worth it at zstd's speed, and not at a third of it.
        assert_eq!(decided(&[(1.0, 2.8e9), (3.76, 0.475e9), (4.46, 0.5e9)]).0, Codec::zstd_dict());
        assert_eq!(decided(&[(1.0, 2.8e9), (3.76, 0.475e9), (4.46, 0.16e9)]).0, Codec::zstd());
        // What zstd alone is not worth, zstd with a dictionary may be.
        assert_eq!(decided(&[(1.0, 4e9), (1.2, 0.5e9), (5.0, 0.5e9)]).0, Codec::zstd_dict());
        let (_, why) = decided(&[(1.0, 4e9), (1.6, 0.5e9)]);
        let expected = "zstd saves 38 % of raw's bytes, less than the 39 % that decoding at 0.12 of its speed has to save";
        assert_eq!(why, expected);
    }

    #[test]
    fn noise_stays_raw_and_repetition_is_compressed() {
        let noisy: Vec<_> = (0..64).map(|seed| noise(seed, 4096)).collect();
        assert_eq!(chosen(&noisy).codec, Codec::Raw);
        let smooth: Vec<_> = (0..64_u8).map(|value| vec![value; 100_000]).collect();
        let choice = chosen(&smooth);
        assert!(matches!(choice.codec, Codec::Zstd { .. }), "{}", choice.reason);
        assert_eq!(choice.dictionary, None);
        assert!(choice.reason.contains("zstd"), "{}", choice.reason);
    }

    #[test]
    fn short_records_with_much_in_common_get_a_dictionary() {
        let common = noise(7, 300);
        let records: Vec<_> = (0..2000).map(|seed| [noise(seed + 1, 20), common.clone()].concat()).collect();
        let choice = chosen(&records);
        assert!(matches!(choice.codec, Codec::ZstdDict { .. }), "{}", choice.reason);
        assert!(choice.dictionary.is_some());
    }

    #[test]
    fn nothing_and_empty_records_stay_raw() {
        assert_eq!(chosen(&[]).codec, Codec::Raw);
        assert_eq!(chosen(&[Vec::new()]).codec, Codec::Raw);
        assert!(chosen(&[vec![1]]).trials.len() >= 2);
    }
}
