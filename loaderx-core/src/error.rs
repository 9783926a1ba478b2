//! One error type for the whole crate.
//!
//! An [`Error`] says what failed in a sentence, and carries where: the file, the chunk, the record, the byte
//! offset, and what the reader can do about it. Code that wants to react asks a predicate
//! ([`Error::is_corrupt`], [`Error::is_locked`], ...) or matches on [`Error::kind`]; the rest is for people.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument cannot be right whatever the store holds.
    InvalidArgument,
    /// An index, step or offset lies outside what exists.
    OutOfRange,
    /// A store, file or stream does not exist.
    NotFound,
    /// `create` met something that is already there.
    AlreadyExists,
    /// Another handle or process holds the lock that the operation needs.
    Locked,
    /// The operation needs write access and the handle, file or directory has none.
    ReadOnly,
    /// Stored bytes contradict themselves: truncated, overwritten, flipped.
    Corrupt,
    /// An interrupted delete or compact has to be finished by opening for writing first.
    NeedsRecovery,
    /// A format version, codec or element type that this build does not know.
    Unsupported,
    /// The dictionary is not the one that the records were compressed with.
    DictionaryMismatch,
    /// Data of another kind, element type or shape than the store holds.
    SchemaMismatch,
    /// A limit of the format or of the caller was reached.
    LimitExceeded,
    /// A saved loader state does not belong to this configuration.
    StateMismatch,
    /// The operating system reported a failure.
    Io,
    /// Code that the caller supplied (a transform, a record map) returned an error.
    Callback,
    /// Code on a worker thread panicked.
    Panicked,
    /// The loader has ended, after an error or because it was closed.
    Closed,
    /// The caller asked to stop before the end.
    Cancelled,
}

impl ErrorKind {
    fn label(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid argument",
            Self::OutOfRange => "out of range",
            Self::NotFound => "not found",
            Self::AlreadyExists => "already exists",
            Self::Locked => "locked",
            Self::ReadOnly => "read only",
            Self::Corrupt => "corrupt",
            Self::NeedsRecovery => "needs recovery",
            Self::Unsupported => "unsupported",
            Self::DictionaryMismatch => "dictionary mismatch",
            Self::SchemaMismatch => "schema mismatch",
            Self::LimitExceeded => "limit exceeded",
            Self::StateMismatch => "state mismatch",
            Self::Io => "i/o",
            Self::Callback => "callback",
            Self::Panicked => "panicked",
            Self::Closed => "closed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// An error with its place and its remedy.
///
/// It is one pointer wide, so that the good path pays nothing for the detail of the bad one.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    chunk: Option<u32>,
    record: Option<u64>,
    offset: Option<u64>,
    stream: Option<String>,
    step: Option<u64>,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Makes an error of `kind` whose `message` says in a sentence what failed, with the numbers.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            path: None,
            chunk: None,
            record: None,
            offset: None,
            stream: None,
            step: None,
            hint: None,
            source: None,
        }))
    }

    /// Shorthand for [`ErrorKind::InvalidArgument`].
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// Shorthand for [`ErrorKind::Corrupt`].
    #[must_use]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Wraps a failure of the operating system; `doing` completes the sentence "failed to ...".
    #[must_use]
    pub fn io(doing: impl fmt::Display, path: impl AsRef<Path>, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
            _ => ErrorKind::Io,
        };
        let hint = match source.kind() {
            io::ErrorKind::StorageFull => {
                Some("free some space on this file system and try again; what was committed before is intact")
            }
            io::ErrorKind::PermissionDenied => {
                Some("check the permissions of the directory and who runs the program")
            }
            _ => None,
        };
        let mut error = Self::new(kind, format!("failed to {doing}")).at_path(path).caused_by(source);
        if let Some(hint) = hint {
            error = error.with_hint(hint);
        }
        error
    }

    /// Names the file or directory that the error is about. The innermost name stays.
    #[must_use]
    pub fn at_path(mut self, path: impl AsRef<Path>) -> Self {
        self.0.path.get_or_insert_with(|| path.as_ref().to_path_buf());
        self
    }

    /// Names the chunk (the `N` of `N.zr`).
    #[must_use]
    pub fn in_chunk(mut self, chunk: u32) -> Self {
        self.0.chunk.get_or_insert(chunk);
        self
    }

    /// Names the record by its index.
    #[must_use]
    pub fn for_record(mut self, record: u64) -> Self {
        self.0.record.get_or_insert(record);
        self
    }

    /// Names the byte offset within the file.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Names the stream of a loader.
    #[must_use]
    pub fn in_stream(mut self, stream: &str) -> Self {
        self.0.stream.get_or_insert_with(|| stream.to_owned());
        self
    }

    /// Names the step of a loader.
    #[must_use]
    pub fn at_step(mut self, step: u64) -> Self {
        self.0.step.get_or_insert(step);
        self
    }

    /// Says what the reader can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Keeps the error below, shown by [`std::error::Error::source`] and in the message.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What failed, without place and remedy.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file or directory, where one is known.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The chunk, where one is known.
    #[must_use]
    pub fn chunk(&self) -> Option<u32> {
        self.0.chunk
    }

    /// The record's index, where one is known.
    #[must_use]
    pub fn record(&self) -> Option<u64> {
        self.0.record
    }

    /// The byte offset in the file, where one is known.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The loader's stream, where one is known.
    #[must_use]
    pub fn stream(&self) -> Option<&str> {
        self.0.stream.as_deref()
    }

    /// The loader's step, where one is known.
    #[must_use]
    pub fn step(&self) -> Option<u64> {
        self.0.step
    }

    /// What to do about it, where there is something to say.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Whether stored bytes are damaged.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        self.0.kind == ErrorKind::Corrupt
    }

    /// Whether another handle or process holds the lock.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.0.kind == ErrorKind::Locked
    }

    /// Whether the store or file is missing.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.0.kind == ErrorKind::NotFound
    }

    /// Whether the file system has no room left.
    #[must_use]
    pub fn is_storage_full(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::StorageFull)
    }

    fn io_kind(&self) -> Option<io::ErrorKind> {
        let source = self.0.source.as_ref()?;
        source.downcast_ref::<io::Error>().map(io::Error::kind)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        write!(f, "{}: {}", inner.kind.label(), inner.message)?;
        let mut separator = " (";
        let mut place = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            let result = write!(f, "{separator}{text}");
            separator = ", ";
            result
        };
        if let Some(path) = &inner.path {
            place(f, format_args!("{}", path.display()))?;
        }
        if let Some(chunk) = inner.chunk {
            place(f, format_args!("chunk {chunk}"))?;
        }
        if let Some(record) = inner.record {
            place(f, format_args!("record {record}"))?;
        }
        if let Some(offset) = inner.offset {
            place(f, format_args!("offset {offset}"))?;
        }
        if let Some(stream) = &inner.stream {
            place(f, format_args!("stream {stream:?}"))?;
        }
        if let Some(step) = inner.step {
            place(f, format_args!("step {step}"))?;
        }
        if separator == ", " {
            f.write_str(")")?;
        }
        if let Some(source) = &inner.source {
            write!(f, ": {source}")?;
        }
        if let Some(hint) = &inner.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

// The same text: a test that fails on `unwrap()` and a `main` that returns the error both print `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| -> &(dyn std::error::Error + 'static) { source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_place_cause_and_remedy() {
        let error = Error::io("append 512 bytes", "a/0.zr", io::Error::from(io::ErrorKind::StorageFull))
            .in_chunk(0)
            .for_record(7)
            .at_offset(4096);
        assert_eq!(
            error.to_string(),
            "i/o: failed to append 512 bytes (a/0.zr, chunk 0, record 7, offset 4096): no storage space; \
             free some space on this file system and try again; what was committed before is intact"
        );
        assert!(error.is_storage_full());
        assert!(!error.is_corrupt());
    }

    #[test]
    fn the_innermost_place_is_kept() {
        let error =
            Error::corrupt("short record").for_record(3).at_path("inner").for_record(9).at_path("outer");
        assert_eq!(error.record(), Some(3));
        assert_eq!(error.path(), Some(Path::new("inner")));
    }

    #[test]
    fn an_error_is_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
