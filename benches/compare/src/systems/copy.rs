use std::hint::black_box;

use crate::harness::{Outcome, System, burst};
use crate::work::Work;

/// Copying as many bytes in one piece, out of a source larger than the cache: the floor.
pub(crate) fn system<'a>(work: &Work) -> Outcome<System<'a>> {
    let bytes = usize::try_from(work.bytes)?;
    let source = vec![7_u8; (128 << 20).max(bytes)];
    let mut copied = vec![0_u8; bytes];
    let mut at = 0;
    Ok(System {
        name: "plain sequential copy".into(),
        threads: 1,
        burst: burst(move || {
            if at + bytes > source.len() {
                at = 0;
            }
            copied.copy_from_slice(&source[at..at + bytes]);
            black_box(&copied);
            at += bytes;
            Ok(())
        }),
    })
}
