//! What one append was given: records, in portions of bounded size.

/// Content is encoded and written in portions of about this many bytes.
const PORTION_BYTES: usize = 32 << 20;

/// Records of one append.
#[derive(Clone, Copy)]
pub(super) struct Records<'s, 'a> {
    pub(super) slices: &'s [&'a [u8]],
    /// All of them one after the other and nothing else, where the caller has them so: they can be written as they lie.
    pub(super) packed: Option<&'a [u8]>,
}

impl<'s, 'a> Records<'s, 'a> {
    /// Records that lie anywhere.
    pub(super) fn scattered(slices: &'s [&'a [u8]]) -> Self {
        Self { slices, packed: None }
    }

    /// The first records of about [`PORTION_BYTES`], at least one, and the others.
    pub(super) fn portion(self) -> (Self, Self) {
        let mut bytes = 0;
        let count = self
            .slices
            .iter()
            .take_while(|record| {
                let fits = bytes < PORTION_BYTES;
                if fits {
                    bytes += record.len();
                }
                fits
            })
            .count();
        let (first, rest) = self.slices.split_at(count);
        let packed = self.packed.and_then(|packed| packed.split_at_checked(bytes));
        let (first_packed, rest_packed) = packed.unzip();
        (Self { slices: first, packed: first_packed }, Self { slices: rest, packed: rest_packed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_keep_every_record_and_the_packed_bytes_beside_them() {
        let bytes: Vec<u8> = (0..100 << 20).map(|i: u32| i.to_le_bytes()[1]).collect();
        for length in [1 << 20, 31 << 20, 40 << 20] {
            let slices: Vec<&[u8]> = bytes.chunks(length).collect();
            let mut rest = Records { slices: &slices, packed: Some(&bytes) };
            let (mut seen, mut seen_packed) = (Vec::new(), Vec::new());
            while !rest.slices.is_empty() {
                let (portion, after) = rest.portion();
                assert!(!portion.slices.is_empty());
                assert_eq!(portion.slices.concat(), portion.packed.unwrap());
                assert!(portion.slices.len() == 1 || portion.packed.unwrap().len() < PORTION_BYTES + length);
                seen.extend_from_slice(portion.slices);
                seen_packed.extend_from_slice(portion.packed.unwrap());
                rest = after;
            }
            assert_eq!(seen, slices);
            assert_eq!(seen_packed, bytes);
        }
    }
}
