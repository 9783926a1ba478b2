//! One zstd frame for each record, with contexts that live as long as their thread.
//!
//! Making a context costs more than decoding a small record with it, and digesting a dictionary many times more, so
//! each thread keeps a plain pair and the few contexts with a dictionary that it used last.

use std::cell::RefCell;

use zstd_safe::{CCtx, CParameter, DCtx, ParamSwitch, WriteBuf};

use super::{Dictionary, FrameOptions, Literals};
use crate::error::{Error, ErrorKind, Result};

/// Contexts that a thread keeps: plain and with a dictionary, for a training and a validation store.
const KEPT: usize = 4;

thread_local! {
    static DECODERS: RefCell<Contexts<Option<u64>, DCtx<'static>>> = const { RefCell::new(Contexts::new()) };
    static ENCODERS: RefCell<Contexts<(Option<u64>, FrameOptions), CCtx<'static>>> =
        const { RefCell::new(Contexts::new()) };
}

/// The contexts of one thread, the last used first. Their keys name the dictionary, `None` for none.
struct Contexts<K, C> {
    kept: Vec<(K, C)>,
}

impl<K: PartialEq, C> Contexts<K, C> {
    const fn new() -> Self {
        Self { kept: Vec::new() }
    }

    fn get(&mut self, key: K, make: impl FnOnce() -> Result<C>) -> Result<&mut C> {
        match self.kept.iter().position(|(other, _)| *other == key) {
            Some(0) => {}
            Some(at) => self.kept[..=at].rotate_right(1),
            None => {
                self.kept.truncate(KEPT - 1);
                self.kept.insert(0, (key, make()?));
            }
        }
        match self.kept.first_mut() {
            Some((_, context)) => Ok(context),
            None => Err(Error::invalid("no compression context was made")),
        }
    }
}

/// Compresses `content` into one frame with content size and checksum, appended to `frames`. Returns its length.
pub(crate) fn compress(
    content: &[u8],
    options: FrameOptions,
    dictionary: Option<&Dictionary>,
    frames: &mut Vec<u8>,
) -> Result<usize> {
    ENCODERS.with_borrow_mut(|contexts| {
        let context = contexts.get((dictionary.map(Dictionary::key), options), || {
            let mut context = CCtx::create();
            let literals = match options.literals {
                Literals::Compressed => ParamSwitch::Auto,
                Literals::Raw => ParamSwitch::Disable,
            };
            for parameter in [
                CParameter::CompressionLevel(options.level),
                CParameter::LiteralCompressionMode(literals),
                CParameter::ChecksumFlag(true),
            ] {
                context.set_parameter(parameter).map_err(|code| encoding("set up the compressor", code))?;
            }
            if let Some(dictionary) = dictionary {
                context
                    .load_dictionary(dictionary.bytes())
                    .map_err(|code| encoding("load the dictionary for compression", code))?;
            }
            Ok(context)
        })?;
        let start = frames.len();
        frames.reserve(zstd_safe::compress_bound(content.len()));
        let mut end = std::io::Cursor::new(&mut *frames);
        end.set_position(start as u64);
        context.compress2(&mut end, content).map_err(|code| encoding("compress a record", code))?;
        Ok(frames.len() - start)
    })
}

/// Decodes one frame into `destination`, which it must fill exactly: `length` bytes.
pub(crate) fn decompress<C: WriteBuf + ?Sized>(
    frame: &[u8],
    dictionary: Option<&Dictionary>,
    destination: &mut C,
    length: usize,
) -> Result<()> {
    let written = DECODERS.with_borrow_mut(|contexts| {
        let context = contexts.get(dictionary.map(Dictionary::key), || {
            let mut context = DCtx::create();
            if let Some(dictionary) = dictionary {
                context
                    .load_dictionary(dictionary.bytes())
                    .map_err(|code| decoding("load the dictionary", code))?;
            }
            Ok(context)
        })?;
        context.decompress(destination, frame).map_err(|code| decoding("decode a zstd frame", code))
    });
    let written = written.map_err(|error| explain(error, frame, dictionary))?;
    if written != length {
        return Err(Error::corrupt(format!(
            "a zstd frame holds {written} bytes, the record table says {length}"
        )));
    }
    Ok(())
}

/// A frame that names another dictionary did not fail because it is damaged.
fn explain(error: Error, frame: &[u8], dictionary: Option<&Dictionary>) -> Error {
    let wanted = zstd_safe::get_dict_id_from_frame(frame).map_or(0, std::num::NonZeroU32::get);
    let have = dictionary.map_or(0, |dictionary| dictionary.identity().id);
    if wanted == 0 || wanted == have {
        return error;
    }
    Error::new(
        ErrorKind::DictionaryMismatch,
        format!("the record was compressed with dictionary {wanted}, the store has {have}"),
    )
    .with_hint("put back the dict.zr that the store was written with")
}

fn encoding(doing: &str, code: usize) -> Error {
    Error::new(ErrorKind::Io, format!("failed to {doing}: {}", zstd_safe::get_error_name(code)))
}

fn decoding(doing: &str, code: usize) -> Error {
    Error::corrupt(format!("failed to {doing}: {}", zstd_safe::get_error_name(code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(content: &[u8], dictionary: Option<&Dictionary>) -> Vec<u8> {
        round_trip_with(FrameOptions::level(3), content, dictionary)
    }

    fn round_trip_with(options: FrameOptions, content: &[u8], dictionary: Option<&Dictionary>) -> Vec<u8> {
        let mut frames = vec![1, 2, 3];
        let length = compress(content, options, dictionary, &mut frames).unwrap();
        assert_eq!(frames.len(), 3 + length);
        let mut decoded = vec![0; content.len()];
        decompress(&frames[3..], dictionary, decoded.as_mut_slice(), content.len()).unwrap();
        assert_eq!(decoded, content);
        frames.split_off(3)
    }

    #[test]
    fn frames_carry_content_size_and_checksum() {
        let frame = round_trip(&[7; 1000], None);
        assert_eq!(zstd_safe::get_frame_content_size(&frame).unwrap(), Some(1000));
        for bit in 0..frame.len() * 8 {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let mut decoded = vec![0; 1000];
            let result = decompress(&damaged, None, decoded.as_mut_slice(), 1000);
            assert!(result.is_err() || decoded == [7; 1000], "bit {bit} gave wrong data");
        }
    }

    #[test]
    fn raw_literals_change_the_size_and_not_the_content() {
        // Bytes of few values that repeat nothing: only the Huffman code of the literals makes them shorter.
        let content: Vec<u8> = (0..4000_u32)
            .scan(1_u32, |state, _| {
                *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                Some(state.to_be_bytes()[0] >> 4)
            })
            .collect();
        let small = round_trip_with(FrameOptions::level(3), &content, None);
        let raw = FrameOptions { level: 3, literals: Literals::Raw };
        let large = round_trip_with(raw, &content, None);
        assert!(small.len() < 2500 && large.len() > 3900, "{} and {} bytes", small.len(), large.len());
    }

    #[test]
    fn contexts_of_several_dictionaries_do_not_mix() {
        let dictionaries: Vec<_> =
            (0..7_u8).map(|i| Dictionary::new(vec![i; 64 + usize::from(i)]).unwrap()).collect();
        for round in 0..3 {
            for dictionary in &dictionaries {
                round_trip(&[round; 300], Some(dictionary));
                round_trip(&[round; 300], None);
            }
        }
    }

    #[test]
    fn a_frame_of_another_length_is_corrupt() {
        let frame = round_trip(&[7; 100], None);
        let mut larger = vec![0; 101];
        assert!(decompress(&frame, None, larger.as_mut_slice(), 101).unwrap_err().is_corrupt());
        let mut smaller = vec![0; 99];
        assert!(decompress(&frame, None, smaller.as_mut_slice(), 99).unwrap_err().is_corrupt());
    }
}
