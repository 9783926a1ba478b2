//! Training a zstd dictionary.

use crate::error::{Error, Result};

/// More records than this are not looked at.
const MAX_SAMPLES: usize = 8192;
const MIN_BYTES: usize = 8 << 10;
const MAX_BYTES: usize = 1 << 20;

/// The outcome of a training.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Training {
    /// A dictionary, for [`CreateOptions::dictionary`](crate::CreateOptions::dictionary).
    Trained(Vec<u8>),
    /// The records do not make one, and why: too few, too short, too much alike. Plain zstd is the codec for them.
    Unsuitable(String),
}

impl Training {
    /// The dictionary, if there is one.
    #[must_use]
    pub fn into_dictionary(self) -> Option<Vec<u8>> {
        match self {
            Self::Trained(dictionary) => Some(dictionary),
            Self::Unsuitable(_) => None,
        }
    }
}

/// Trains a dictionary on records like those that will be appended.
///
/// At most 8,192 of `records`, evenly spaced, are looked at. The dictionary has 1 % of their bytes, at least 8 KiB and at
/// most `max_bytes` (1 MiB if `None`).
///
/// # Errors
///
/// When `max_bytes` is 0 or there is no memory for the samples. That the records do not make a dictionary is no error
/// but [`Training::Unsuitable`].
pub fn train_dictionary(records: &[&[u8]], max_bytes: Option<usize>) -> Result<Training> {
    let limit = max_bytes.unwrap_or(MAX_BYTES).min(MAX_BYTES);
    if limit == 0 {
        return Err(Error::invalid("a dictionary of at most 0 bytes was asked for"));
    }
    let count = records.len().min(MAX_SAMPLES);
    let chosen = (0..count).filter_map(|i| records.get(i * records.len() / count));
    let (mut samples, mut sizes) = (Vec::new(), Vec::new());
    for record in chosen.filter(|record| !record.is_empty()) {
        samples.extend_from_slice(record);
        sizes.push(record.len());
    }
    let unsuitable = |reason: String| {
        Ok(Training::Unsuitable(format!(
            "{} records of {} bytes in all make no dictionary: {reason}",
            sizes.len(),
            samples.len()
        )))
    };
    if sizes.len() < 8 {
        return unsuitable("zstd wants many more".to_owned());
    }
    let size = (samples.len() / 100).max(MIN_BYTES).min(limit);
    let mut dictionary = Vec::with_capacity(size);
    match zstd_safe::train_from_buffer(&mut dictionary, &samples, &sizes) {
        Ok(_) if zstd_safe::get_dict_id_from_dict(&dictionary).is_some() => Ok(Training::Trained(dictionary)),
        Ok(_) => unsuitable("zstd gave one without an id".to_owned()),
        Err(code) => unsuitable(format!("zstd says \"{}\"", zstd_safe::get_error_name(code))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Dictionary, FrameOptions, compress, decompress};

    fn records(count: usize) -> Vec<Vec<u8>> {
        (0..count)
            .map(|i| format!("{{\"id\": {i}, \"name\": \"user {}\", \"ok\": true}}", i * 7919).into())
            .collect()
    }

    fn slices(records: &[Vec<u8>]) -> Vec<&[u8]> {
        records.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn a_trained_dictionary_makes_small_records_smaller() {
        let records = records(3000);
        let bytes = train_dictionary(&slices(&records), None).unwrap().into_dictionary().unwrap();
        let dictionary = Dictionary::new(bytes).unwrap();
        assert_ne!(dictionary.identity().id, 0);
        let (mut plain, mut shared) = (Vec::new(), Vec::new());
        let without = compress(&records[5], FrameOptions::level(3), None, &mut plain).unwrap();
        let with = compress(&records[5], FrameOptions::level(3), Some(&dictionary), &mut shared).unwrap();
        assert!(with * 3 < without * 2, "{with} against {without}");
        let mut decoded = vec![0; records[5].len()];
        let length = decoded.len();
        decompress(&shared, Some(&dictionary), decoded.as_mut_slice(), length).unwrap();
        assert_eq!(decoded, records[5]);
        let error = decompress(&shared, None, decoded.as_mut_slice(), length).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::DictionaryMismatch);
    }

    #[test]
    fn samples_that_make_no_dictionary_are_said_to() {
        let empty = vec![Vec::new(); 500];
        for samples in [&records(0), &records(1), &records(6), &records(7), &empty] {
            let training = train_dictionary(&slices(samples), None).unwrap();
            assert!(matches!(training, Training::Unsuitable(_)), "{training:?}");
        }
    }

    #[test]
    fn awkward_samples_train_or_are_refused_and_never_do_harm() {
        let same = vec![b"the same".to_vec(); 500];
        let short = vec![b"abc".to_vec(); 500];
        let one_long: Vec<Vec<u8>> = (0..9).map(|i| vec![i; if i == 0 { 1 << 20 } else { 1 }]).collect();
        for samples in [&same, &short, &one_long] {
            let Training::Trained(bytes) = train_dictionary(&slices(samples), None).unwrap() else {
                continue;
            };
            let dictionary = Dictionary::new(bytes).unwrap();
            let (mut frame, mut decoded) = (Vec::new(), vec![0; 8]);
            compress(b"the same", FrameOptions::level(19), Some(&dictionary), &mut frame).unwrap();
            decompress(&frame, Some(&dictionary), decoded.as_mut_slice(), 8).unwrap();
            assert_eq!(decoded, b"the same");
        }
    }

    #[test]
    fn the_size_is_capped() {
        let records = records(8000);
        let bytes = train_dictionary(&slices(&records), Some(1000)).unwrap().into_dictionary().unwrap();
        assert!(bytes.len() <= 1000);
        assert!(train_dictionary(&slices(&records), Some(0)).is_err());
    }
}
