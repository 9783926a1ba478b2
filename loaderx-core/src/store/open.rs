//! Opening a store: locks first, then every file that is needed is read and held against the others.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

use super::checks::{self, Checks};
use super::recover::{Recovery, recover_journal, recover_table};
use super::region::{self, Region};
use super::snapshot::Snapshot;
use super::writer::Writer;
use super::{OpenOptions, Store, journal, names};
use crate::codec::{Codec, Dictionary};
use crate::error::{Error, ErrorKind, Result};
use crate::format::check::{CheckHeader, DictionaryIdentity};
use crate::format::{HEADER_BYTES, Header};
use crate::io::{Access, Directory, LockGuard, LockName};
use crate::schema::{self, Schema};

/// The lock of the one writer.
pub(super) fn lock_writer(directory: &dyn Directory) -> Result<Box<dyn LockGuard>> {
    let path = directory.path();
    let lock = directory.lock(LockName::Writer).map_err(|error| {
        Error::io("lock the store for writing", path, error)
            .with_hint("the directory must exist, be writable, and lie on a file system that can lock files")
    })?;
    lock.ok_or_else(|| {
        Error::new(ErrorKind::Locked, "another handle or process has the store open for writing")
            .at_path(path)
            .with_hint("close it first, or open this one for reading; readers may work beside a writer")
    })
}

fn lock_presence(directory: &dyn Directory) -> Result<Box<dyn LockGuard>> {
    let path = directory.path();
    let lock = directory
        .lock(LockName::Presence)
        .map_err(|error| Error::io("open the store", path.join(names::META), error))?;
    lock.ok_or_else(|| {
        Error::new(ErrorKind::Locked, "records are just being deleted or compacted")
            .at_path(path)
            .with_hint("try again when that has ended")
    })
}

/// Why there is no `meta.zr` to open.
pub(super) fn cannot_open(directory: &dyn Directory, error: std::io::Error) -> Error {
    let path = directory.path().join(names::META);
    if error.kind() != std::io::ErrorKind::NotFound {
        return Error::io("open the store", path, error);
    }
    // A create that was cut short leaves this chunk empty, and `meta.zr` is there before the first append.
    let chunk = directory.open(&names::chunk(0), Access::Read);
    if chunk.is_ok_and(|chunk| chunk.size().is_ok_and(|bytes| bytes > 0)) {
        return Error::corrupt("the store has lost its header and record table")
            .at_path(path)
            .caused_by(error)
            .with_hint("restore meta.zr from a copy; without it the chunks cannot be divided into records");
    }
    Error::io("open the store", path, error).with_hint(
        "there is no store in this directory; check the path, or make a store with Store::create or `loaderx import`",
    )
}

impl OpenOptions {
    /// As [`OpenOptions::open`], for a directory of any kind.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn open_in(&self, directory: Arc<dyn Directory>) -> Result<Store> {
        // Before the lock, which would be made in a directory without a store.
        let access = if self.writable { Access::Write } else { Access::Read };
        if let Err(error) = directory.open(names::META, access) {
            return Err(cannot_open(directory.as_ref(), error));
        }
        let lock = if self.writable { Some(lock_writer(directory.as_ref())?) } else { None };
        self.open_locked(directory, lock, false)
    }

    /// Opens with the writer's lock held, or for reading with none. A repair looks at what was not synced by itself.
    pub(super) fn open_locked(
        &self,
        directory: Arc<dyn Directory>,
        lock: Option<Box<dyn LockGuard>>,
        repairing: bool,
    ) -> Result<Store> {
        let presence = lock_presence(directory.as_ref())?;
        let path = directory.path().to_path_buf();
        let meta_path = path.join(names::META);
        let access = if lock.is_some() { Access::Write } else { Access::Read };
        let meta = directory
            .open(names::META, access)
            .map_err(|error| Error::io("open the record table", &meta_path, error))?;
        let size = meta.size().map_err(|error| Error::io("open the record table", &meta_path, error))?;
        if size < HEADER_BYTES as u64 {
            return Err(Error::corrupt(format!(
                "meta.zr has {size} bytes, its header alone has {HEADER_BYTES}"
            ))
            .at_path(meta_path)
            .with_hint("restore it from a copy; without it the chunks cannot be divided into records"));
        }
        let words = region::header_words(meta.as_ref())
            .map_err(|error| Error::io("read the header", &meta_path, error))?;
        let header = Header::from_words(words).map_err(|error| error.at_path(&meta_path))?;

        let checks_header = match checks::read_header(directory.as_ref()) {
            Ok(header) => header,
            // Damaged checks cost the checks, not the store: verify() names them, a writer makes new ones.
            Err(error) if error.is_corrupt() => None,
            Err(error) => return Err(error),
        };
        if !repairing
            && let Some(checks_header) = &checks_header
            && let Some(contradiction) = checks_header.contradicts(&header)
            // A writer may have been at work between the two reads.
            && checks::read_header(directory.as_ref()).is_ok_and(|again| again.as_ref() == Some(checks_header))
            && region::header_words(meta.as_ref()).is_ok_and(|again| again == words)
        {
            return Err(Error::corrupt(contradiction).at_path(meta_path).with_hint(
                "the header is damaged; repair() puts the frontier behind the records that are there",
            ));
        }
        let (schema, codec_name) = read_schema(directory.as_ref())?;
        let dictionary = read_dictionary(directory.as_ref(), checks_header.as_ref())?;
        let codec = self
            .append_codec(codec_name.as_deref(), checks_header.as_ref(), dictionary.is_some())
            .map_err(|error| error.at_path(path.join(schema::FILE_NAME)))?;
        if lock.is_some() && matches!(codec, Codec::ZstdDict { .. }) && dictionary.is_none() {
            return Err(Error::new(
                ErrorKind::DictionaryMismatch,
                "the store appends with a dictionary, and dict.zr is missing",
            )
            .at_path(path.join(names::DICTIONARY))
            .with_hint("put it back, or open with another codec for appends"));
        }

        let found = journal::read(directory.as_ref(), header)?;
        if lock.is_none() && matches!(found, journal::Found::Valid(_)) {
            return Err(journal::needs_recovery(directory.as_ref()));
        }
        drop(found);
        let (mut header, mut writer, mut recovery) = (header, None, Recovery::default());
        if let Some(lock) = lock {
            let identity = dictionary.as_ref().map_or_else(DictionaryIdentity::default, Dictionary::identity);
            let checks = match checks_header {
                Some(header) => Checks::open(&directory, header)?,
                None => Checks::create(&directory, checks::header_for_foreign(identity, codec))?,
            };
            let mut one = Writer::new(Arc::clone(&directory), Arc::clone(&meta), header, Some(checks), lock);
            recover_journal(&mut one, presence.as_ref(), &mut recovery)?;
            recover_table(&mut one, &mut recovery)?;
            header = one.header;
            writer = Some(Mutex::new(one));
        }

        let mut store = Store {
            directory: Arc::clone(&directory),
            path,
            version: header.version,
            codec,
            schema,
            mode: self.mode,
            checked: self.checked,
            dictionary: dictionary.map(Arc::new),
            snapshot: RwLock::new(Arc::new(Snapshot {
                header: Header { length: 0, tail_chunk: 0, tail_offset: 0, version: header.version },
                table: Arc::new(Region::File { file: Arc::clone(&meta), size }),
                chunks: Vec::new(),
                checks: None,
                check_header: None,
            })),
            growth: Mutex::new(()),
            meta: Arc::clone(&meta),
            writer,
            broken: AtomicBool::new(false),
            presence,
            recovery,
        };
        store.reset_snapshot(header)?;
        if store.is_writable() {
            // After the table was seen to be whole, as the hole would hide that it is not.
            if let Some(full) = header.version.meta_bytes()
                && directory.keeps_holes()
                && size < full
            {
                meta.set_size(full).map_err(|error| {
                    Error::io("make the record table as long as Python needs it", &meta_path, error)
                })?;
            }
        }
        if store.is_writable() && !repairing {
            store.recover_unsynced()?;
        }
        Ok(store)
    }

    /// The codec of appends: as asked for, as the writer before said, or by the schema's word for it.
    fn append_codec(
        &self,
        name: Option<&str>,
        checks: Option<&CheckHeader>,
        has_dictionary: bool,
    ) -> Result<Codec> {
        if let Some(codec) = self.codec {
            return Ok(codec);
        }
        let remembered = checks.and_then(checks::remembered_codec);
        match (name, remembered) {
            // The schema's word may have been changed by Python since; the level is ours.
            (Some(name), Some(codec)) if codec.name() == name => Ok(codec),
            (Some(name), _) => Codec::from_name(name),
            (None, Some(codec)) => Ok(codec),
            // A store of plain bytes says nothing; one with a dictionary was made to use it.
            (None, None) if has_dictionary => Ok(Codec::zstd_dict()),
            (None, None) => Ok(Codec::Raw),
        }
    }
}

/// Reads a whole small file; `None` if it does not exist.
fn read_small(directory: &dyn Directory, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
    let path = directory.path().join(name);
    let failed = |error| Error::io(format_args!("read {name}"), &path, error);
    let file = match directory.open(name, Access::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let size = file.size().map_err(failed)?;
    if size > limit {
        return Err(
            Error::corrupt(format!("{name} has {size} bytes, at most {limit} are possible")).at_path(&path)
        );
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, 0).map_err(failed)?;
    Ok(Some(bytes))
}

fn read_schema(directory: &dyn Directory) -> Result<(Option<Schema>, Option<String>)> {
    match read_small(directory, schema::FILE_NAME, 1 << 20)? {
        Some(bytes) => {
            let path = directory.path().join(schema::FILE_NAME);
            let (schema, codec) = Schema::decode(&bytes).map_err(|error| error.at_path(path))?;
            Ok((Some(schema), Some(codec)))
        }
        None => Ok((None, None)),
    }
}

/// Reads `dict.zr` and holds it against the identity that the checks remember.
fn read_dictionary(directory: &dyn Directory, checks: Option<&CheckHeader>) -> Result<Option<Dictionary>> {
    let path = directory.path().join(names::DICTIONARY);
    let dictionary = match read_small(directory, names::DICTIONARY, 128 << 20)? {
        Some(bytes) => Some(Dictionary::new(bytes).map_err(|error| error.at_path(&path))?),
        None => None,
    };
    let expected = checks.map(|header| header.dictionary).filter(|identity| identity.length > 0);
    let actual = dictionary.as_ref().map(Dictionary::identity);
    match (expected, actual) {
        (Some(expected), Some(actual)) if expected != actual => Err(Error::new(
            ErrorKind::DictionaryMismatch,
            format!(
                "dict.zr is dictionary {} of {} bytes (crc {:08x}); the store was written with dictionary {} of {} \
                 bytes (crc {:08x})",
                actual.id, actual.length, actual.crc, expected.id, expected.length, expected.crc
            ),
        )
        .at_path(path)
        .with_hint("put back the dict.zr that the store was written with")),
        _ => Ok(dictionary),
    }
}
