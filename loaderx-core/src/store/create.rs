//! Making a store: everything else first, durable, and `meta.zr` last, by a rename.

use std::sync::Arc;

use super::checks::{self, Checks};
use super::{CreateOptions, OpenOptions, Store, names};
use crate::codec::{Codec, Dictionary};
use crate::error::{Error, ErrorKind, Result};
use crate::format::Header;
use crate::format::check::DictionaryIdentity;
use crate::io::{Access, Directory};
use crate::schema;

impl CreateOptions {
    /// The dictionary that the store will have; refuses a codec that needs one without one.
    pub(super) fn parsed_dictionary(&self) -> Result<Option<Dictionary>> {
        match (&self.codec, &self.dictionary) {
            (_, Some(bytes)) => Dictionary::new(bytes.clone()).map(Some),
            (Codec::ZstdDict { .. }, None) => {
                Err(Error::invalid("the codec zstd_dict needs a dictionary, and none is given")
                    .with_hint("train one with train_dictionary() from a sample of the records"))
            }
            _ => Ok(None),
        }
    }

    /// As [`CreateOptions::create`], in a directory of any kind.
    ///
    /// # Errors
    ///
    /// As [`CreateOptions::create`].
    pub fn create_in(&self, directory: Arc<dyn Directory>) -> Result<Store> {
        let dictionary = self.parsed_dictionary()?;
        let path = directory.path().to_path_buf();
        // Before the lock, to leave a foreign directory as it is; and after, as another may be creating too.
        refuse_existing(directory.as_ref())?;
        let lock = super::open::lock_writer(directory.as_ref())?;
        refuse_existing(directory.as_ref())?;

        let write = |name: &str, bytes: &[u8]| -> Result<()> {
            let write = || {
                let file = directory.open(name, Access::Create)?;
                file.set_size(0)?;
                file.write_all_at(bytes, 0)?;
                file.sync()
            };
            write().map_err(|error| Error::io(format_args!("create {name}"), path.join(name), error))
        };
        // What a create that was cut short has left would otherwise become part of this store.
        let unwanted = [
            (schema::FILE_NAME, self.schema.is_none()),
            (names::DICTIONARY, dictionary.is_none()),
            (names::JOURNAL, true),
        ];
        for (name, _) in unwanted.iter().filter(|(_, unwanted)| *unwanted) {
            match directory.remove(name) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io(format_args!("remove an old {name}"), path.join(name), error));
                }
                _ => {}
            }
        }
        if let Some(schema) = &self.schema {
            write(schema::FILE_NAME, &schema.encode(self.codec.name())?)?;
        }
        let mut identity = DictionaryIdentity::default();
        if let Some(dictionary) = &dictionary {
            write(names::DICTIONARY, dictionary.bytes())?;
            identity = dictionary.identity();
        }
        write(&names::chunk(0), &[])?;
        let header = Header { version: self.version, tail_chunk: 0, tail_offset: 0, length: 0 };
        let checks_header = checks::new_header(identity, self.codec, self.checks);
        Checks::create(&directory, checks_header)?.sync()?;
        write(names::META_NEW, &header.encode())?;
        // The other files have their names before the one that makes them a store.
        let failed = |error| Error::io("create the store", &path, error);
        directory.sync().map_err(failed)?;
        directory.rename(names::META_NEW, names::META).map_err(failed)?;
        directory.sync().map_err(failed)?;

        let options = OpenOptions::new().writable(true).codec(self.codec);
        options.open_locked(directory, Some(lock), false)
    }
}

/// Refuses a directory with a store, or with anything that may be left of one.
fn refuse_existing(directory: &dyn Directory) -> Result<()> {
    let path = directory.path();
    let present = directory.names().map_err(|error| Error::io("list the directory", path, error))?;
    if present.iter().any(|name| name == names::META) {
        return Err(Error::new(ErrorKind::AlreadyExists, "there is a store already")
            .at_path(path)
            .with_hint("open it, or choose another directory; create never replaces anything"));
    }
    for name in present.iter().filter(|name| names::parse_chunk(name).is_some()) {
        // An interrupted create leaves an empty first chunk. Bytes are records whose table is lost.
        let size = directory.open(name, Access::Read).and_then(|file| file.size());
        let size = size.map_err(|error| Error::io("look at a chunk", path.join(name), error))?;
        if size > 0 {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("the directory has no meta.zr but a chunk file of {size} bytes"),
            )
            .at_path(path.join(name))
            .with_hint("put meta.zr back, move the files away, or choose another directory"));
        }
    }
    Ok(())
}
