//! What a zstd frame can hold, found out before memory is made for it.
//!
//! A record table that was damaged or forged may promise any length, and so may the frame itself. But each block of a
//! frame takes room in the file, and decodes to what its own 3 bytes allow.

use crate::error::{Error, Result};

/// Up to this many bytes are believed without asking the frame.
pub(crate) const BELIEVED_BYTES: u32 = 1 << 20;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const BLOCK_HEADER_BYTES: u64 = 3;
const BLOCK_DECODED_BYTES: u64 = 128 << 10;

/// Whether a frame of `stored` bytes, read with `read(offset, buffer)`, may decode to `decoded` bytes: its header has to
/// say so, or say nothing up to [`BELIEVED_BYTES`], and beyond these its blocks have to be there and to have the room.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if not; an error of `read`.
pub(crate) fn check_promise(
    stored: u64,
    decoded: u32,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let mut head = [0; 18];
    let length = stored.min(head.len() as u64);
    let head = head.get_mut(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
    read(0, head)?;
    let says = zstd_safe::get_frame_content_size(head).ok().flatten();
    match says {
        Some(says) if says == u64::from(decoded) => {}
        // Some writers leave it out.
        None if decoded <= BELIEVED_BYTES => {}
        _ => {
            let says = says.map_or("nothing".to_owned(), |says| format!("{says} bytes"));
            return Err(Error::corrupt(format!(
                "the frame says that it holds {says}, the record table says {decoded} bytes"
            )));
        }
    }
    if decoded <= BELIEVED_BYTES {
        return Ok(());
    }
    let most = most_decoded(head, stored, read)?;
    if most < u64::from(decoded) {
        return Err(Error::corrupt(format!(
            "the blocks of the frame hold at most {most} bytes, the record table says {decoded}"
        )));
    }
    Ok(())
}

/// The most bytes that the blocks of a frame can decode to, as far as they are within its `stored` bytes.
fn most_decoded(head: &[u8], stored: u64, mut read: impl FnMut(u64, &mut [u8]) -> Result<()>) -> Result<u64> {
    let Some(mut at) = header_bytes(head) else { return Ok(0) };
    let mut most = 0;
    while at + BLOCK_HEADER_BYTES <= stored {
        let mut block = [0; 4];
        read(at, &mut block[..3])?;
        let block = u32::from_le_bytes(block);
        let size = u64::from(block >> 3);
        at += BLOCK_HEADER_BYTES;
        let (takes, gives) = match block >> 1 & 3 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, BLOCK_DECODED_BYTES),
            _ => return Ok(most),
        };
        at += takes;
        if at > stored {
            return Ok(most);
        }
        most += gives.min(BLOCK_DECODED_BYTES);
        if block & 1 == 1 {
            break;
        }
    }
    Ok(most)
}

/// The length of a frame's header; `None` if it is none.
fn header_bytes(head: &[u8]) -> Option<u64> {
    if head.get(..4)? != MAGIC {
        return None;
    }
    let descriptor = *head.get(4)?;
    let single_segment = descriptor >> 5 & 1 == 1;
    let dictionary_id = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_size = match descriptor >> 6 {
        0 => u64::from(single_segment),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    Some(5 + u64::from(!single_segment) + dictionary_id + content_size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{FrameOptions, compress};

    fn check(frame: &[u8], decoded: u32) -> Result<()> {
        check_promise(frame.len() as u64, decoded, |at, buffer| {
            let at = usize::try_from(at).unwrap();
            buffer.copy_from_slice(&frame[at..at + buffer.len()]);
            Ok(())
        })
    }

    #[test]
    fn frames_of_every_kind_and_length_are_believed_as_they_are_and_not_otherwise() {
        for length in [0_u32, 1, 255, 256, 65_791, 65_792, 1 << 20, (1 << 20) + 1, 5 << 20] {
            let noise = (0..length).map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes()[1]);
            for content in [vec![7; length as usize], noise.collect()] {
                let mut frame = Vec::new();
                compress(&content, FrameOptions::level(3), None, &mut frame).unwrap();
                check(&frame, length).unwrap_or_else(|error| panic!("{length}: {error}"));
                assert!(check(&frame, length + 1).unwrap_err().is_corrupt());
                if length > BELIEVED_BYTES {
                    // Without its last block the frame has no room for what it says.
                    assert!(check(&frame[..frame.len() - 8], length).unwrap_err().is_corrupt());
                }
            }
        }
    }

    #[test]
    fn a_frame_that_says_nothing_is_believed_up_to_a_limit() {
        // A frame's magic, no content size, a window of 1 KiB, one empty last block.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x00, 0x01, 0x00, 0x00];
        assert!(check(&frame, BELIEVED_BYTES).is_ok());
        assert!(check(&frame, BELIEVED_BYTES + 1).unwrap_err().is_corrupt());
    }

    #[test]
    fn a_frame_that_says_gigabytes_needs_the_blocks_for_them() {
        // One segment, 8 bytes of content size.
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
        frame.extend((1_u64 << 31).to_le_bytes());
        frame.resize(70_000, 0x55);
        assert!(check(&frame, 1 << 31).unwrap_err().is_corrupt());
    }
}
