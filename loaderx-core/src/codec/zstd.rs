use std::cell::RefCell;

use zstd_safe::{CCtx, CParameter, DCtx};

use crate::error::{Error, Result};

thread_local! {
    // Making a context costs more than decoding a small record with it.
    static DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    static ENCODER: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
}

/// Compresses `content` into one frame with content size and checksum.
pub(crate) fn compress(content: &[u8], level: i32) -> Result<Vec<u8>> {
    ENCODER.with_borrow_mut(|slot| {
        let context = slot.get_or_insert_with(CCtx::create);
        for parameter in [CParameter::CompressionLevel(level), CParameter::ChecksumFlag(true)] {
            context.set_parameter(parameter).map_err(|code| failed("set a compression parameter", code))?;
        }
        let mut frame = Vec::with_capacity(zstd_safe::compress_bound(content.len()));
        context.compress2(&mut frame, content).map_err(|code| failed("compress a record", code))?;
        Ok(frame)
    })
}

/// Decodes one frame into `destination`, which it must fill exactly.
pub(crate) fn decompress(frame: &[u8], destination: &mut [u8]) -> Result<()> {
    let wanted = destination.len();
    let written = DECODER.with_borrow_mut(|slot| {
        let context = slot.get_or_insert_with(DCtx::create);
        context.decompress(destination, frame).map_err(|code| failed("decode a zstd frame", code))
    })?;
    if written != wanted {
        return Err(Error::corrupt(format!(
            "a zstd frame holds {written} bytes, the record table says {wanted}"
        )));
    }
    Ok(())
}

fn failed(doing: &str, code: usize) -> Error {
    Error::corrupt(format!("failed to {doing}: {}", zstd_safe::get_error_name(code)))
}
