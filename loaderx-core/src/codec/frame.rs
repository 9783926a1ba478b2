//! How a zstd frame is made; nothing that a reader has to know.

/// What zstd does with literals, the bytes of a record that repeat nothing before them.
///
/// Either way the frame is an ordinary one that every zstd reader decodes, and a store may hold both kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Literals {
    /// Compressed with a Huffman code: zstd's usual way, and the smallest.
    #[default]
    Compressed,
    /// Left as they are. A small record spends most of its decoding on the table of that code, so this decodes
    /// MNIST's images about 1.9 times as fast at 2 % more bytes; but data without repeats, such as token ids or noisy
    /// images, lose much or all of their compression. Try it on the data at hand.
    Raw,
}

/// Level and literals of the frames of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameOptions {
    pub(crate) level: i32,
    pub(crate) literals: Literals,
}

impl FrameOptions {
    /// The usual way of zstd at `level`.
    #[cfg(test)]
    pub(crate) const fn level(level: i32) -> Self {
        Self { level, literals: Literals::Compressed }
    }
}
