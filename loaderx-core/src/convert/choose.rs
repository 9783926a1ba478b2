//! Which codec suits some data: tried on a sample of it.

use std::time::Instant;

use crate::codec::{Codec, Dictionary, Training, compress, decompress, train_dictionary};
use crate::error::Result;

/// Saving less than this share of the bytes is not worth decoding.
const WORTHWHILE: f64 = 1.1;
/// A dictionary must beat plain zstd by this factor to be worth its training and its slower writing.
const DICTIONARY_WORTHWHILE: f64 = 1.15;
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

/// Tries raw, zstd, and zstd with a dictionary on sample records, and chooses: raw unless zstd saves a tenth of the
/// bytes, a dictionary if it makes zstd's result at least 15 % smaller.
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
        CodecTrial { codec: Codec::Raw, ratio: 1.0, decode_rate: copy_rate(&judged) },
        try_codec(Codec::zstd(), None, &judged)?,
    ];
    let mut dictionary = None;
    let average = picked.iter().map(|record| record.len()).sum::<usize>() / picked.len();
    if average <= SMALL {
        let trained: Vec<&[u8]> = picked.iter().step_by(2).copied().collect();
        if let Training::Trained(bytes) = train_dictionary(&trained, None)? {
            trials.push(try_codec(Codec::zstd_dict(), Some(&Dictionary::new(bytes.clone())?), &judged)?);
            dictionary = Some(bytes);
        }
    }
    let ratio =
        |codec: Codec| trials.iter().find(|trial| trial.codec == codec).map_or(0.0, |trial| trial.ratio);
    let (plain, with) = (ratio(Codec::zstd()), ratio(Codec::zstd_dict()));
    let (codec, why) = if plain.max(with) < WORTHWHILE {
        (Codec::Raw, "compression saves less than a tenth")
    } else if with >= plain * DICTIONARY_WORTHWHILE {
        (Codec::zstd_dict(), "the records have much in common")
    } else {
        (Codec::zstd(), "it saves bytes, and a dictionary would not save many more")
    };
    if codec != Codec::zstd_dict() {
        dictionary = None;
    }
    let measured: Vec<String> = trials
        .iter()
        .map(|trial| {
            format!("{} {:.2} times at {:.0} MB/s", trial.codec.name(), trial.ratio, trial.decode_rate / 1e6)
        })
        .collect();
    let reason = format!(
        "codec {} was chosen on a sample of {} records, as {why} (smaller by, decoding at: {})",
        codec.name(),
        judged.len(),
        measured.join(", ")
    );
    Ok(ChosenCodec { codec, dictionary, trials, reason })
}

fn try_codec(codec: Codec, dictionary: Option<&Dictionary>, records: &[&[u8]]) -> Result<CodecTrial> {
    let level = match codec {
        Codec::Raw => 0,
        Codec::Zstd { level } | Codec::ZstdDict { level } => level,
    };
    let (mut frames, mut ends, mut stored, mut decoded) = (Vec::new(), vec![0], 0, 0);
    for record in records {
        let length = compress(record, level, dictionary, &mut frames)?;
        ends.push(frames.len());
        // A store keeps a record raw that does not become smaller.
        stored += length.min(record.len());
        decoded += record.len();
    }
    let mut content = Vec::with_capacity(records.iter().map(|record| record.len()).max().unwrap_or(0));
    let started = Instant::now();
    for (record, bounds) in records.iter().zip(ends.windows(2)) {
        let frame = bounds.first().zip(bounds.last()).and_then(|(&start, &end)| frames.get(start..end));
        content.clear();
        decompress(frame.unwrap_or_default(), dictionary, &mut content, record.len())?;
    }
    Ok(CodecTrial { codec, ratio: quotient(decoded, stored), decode_rate: rate(decoded, started) })
}

fn copy_rate(records: &[&[u8]]) -> f64 {
    let mut content = Vec::with_capacity(records.iter().map(|record| record.len()).max().unwrap_or(0));
    let started = Instant::now();
    for record in records {
        content.clear();
        content.extend_from_slice(std::hint::black_box(record));
        std::hint::black_box(&mut content);
    }
    rate(records.iter().map(|record| record.len()).sum(), started)
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
    fn noise_stays_raw_and_repetition_is_compressed() {
        let noisy: Vec<_> = (0..64).map(|seed| noise(seed, 4096)).collect();
        assert_eq!(chosen(&noisy).codec, Codec::Raw);
        let smooth: Vec<_> = (0..64_u8).map(|value| vec![value; 100_000]).collect();
        let choice = chosen(&smooth);
        assert_eq!((choice.codec, choice.dictionary), (Codec::zstd(), None));
        assert!(choice.reason.contains("zstd"), "{}", choice.reason);
    }

    #[test]
    fn short_records_with_much_in_common_get_a_dictionary() {
        let common = noise(7, 300);
        let records: Vec<_> = (0..2000).map(|seed| [noise(seed + 1, 20), common.clone()].concat()).collect();
        let choice = chosen(&records);
        assert_eq!(choice.codec, Codec::zstd_dict(), "{}", choice.reason);
        assert!(choice.dictionary.is_some());
    }

    #[test]
    fn nothing_and_empty_records_stay_raw() {
        assert_eq!(chosen(&[]).codec, Codec::Raw);
        assert_eq!(chosen(&[Vec::new()]).codec, Codec::Raw);
        assert!(chosen(&[vec![1]]).trials.len() >= 2);
    }
}
