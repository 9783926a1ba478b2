//! The files, what of them is durable, and the counting of calls.

use std::collections::BTreeMap;
use std::io;

use super::fault::{Class, Fault, Unsynced, What};
use crate::io::Access;

#[derive(Clone, Debug)]
enum Change {
    Bytes { offset: u64, bytes: Vec<u8> },
    Size(u64),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) -> io::Result<()> {
        let to_usize = |value: u64| usize::try_from(value).map_err(io::Error::other);
        match self {
            Self::Bytes { offset, bytes } => {
                let start = to_usize(*offset)?;
                let end = start + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[start..end].copy_from_slice(bytes);
            }
            Self::Size(size) => content.resize(to_usize(*size)?, 0),
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
struct Node {
    name: String,
    content: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Made { name: String, node: usize },
    Renamed { from: String, to: String },
    Removed { name: String },
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Made { name, node } => {
                names.insert(name.clone(), *node);
            }
            Self::Renamed { from, to } => {
                if let Some(node) = names.remove(from) {
                    names.insert(to.clone(), node);
                }
            }
            Self::Removed { name } => {
                names.remove(name);
            }
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Made { name, .. } | Self::Removed { name } => name,
            Self::Renamed { to, .. } => to,
        }
    }
}

/// What a counted call may do.
enum Go {
    Ahead,
    Half(io::Error),
}

#[derive(Clone, Debug, Default)]
pub(super) struct State {
    nodes: Vec<Node>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    unsynced_names: Vec<NameChange>,
    fault: Option<Fault>,
    stopped: bool,
    pub(super) changes: u64,
    pub(super) reads: u64,
    pub(super) trace: Vec<String>,
    pub(super) epoch: u64,
    pub(super) writer: bool,
    pub(super) exclusive: bool,
    pub(super) shared: usize,
}

impl State {
    pub(super) fn plan(&mut self, fault: Option<Fault>) {
        self.fault = fault;
        self.stopped = false;
        self.changes = 0;
        self.reads = 0;
        self.trace.clear();
    }

    pub(super) fn restart(&mut self) {
        self.plan(None);
        self.epoch += 1;
        self.writer = false;
        self.exclusive = false;
        self.shared = 0;
    }

    pub(super) fn power_cut(&mut self, mut lost: impl FnMut(&Unsynced<'_>) -> bool) {
        self.restart();
        let mut number = 0;
        for node in &mut self.nodes {
            for change in std::mem::take(&mut node.unsynced) {
                let (offset, len) = match &change {
                    Change::Bytes { offset, bytes } => (Some(*offset), bytes.len()),
                    Change::Size(_) => (None, 0),
                };
                let class = Class::of(&node.name, offset);
                let unsynced = Unsynced { number, file: &node.name, class, offset, len };
                number += 1;
                if !lost(&unsynced) {
                    // Sizes were checked when the change was made.
                    let _ = change.apply(&mut node.durable);
                }
            }
            node.content.clone_from(&node.durable);
        }
        for change in std::mem::take(&mut self.unsynced_names) {
            let unsynced =
                Unsynced { number, file: change.name(), class: Class::Names, offset: None, len: 0 };
            number += 1;
            if !lost(&unsynced) {
                change.apply(&mut self.durable_names);
            }
        }
        self.names.clone_from(&self.durable_names);
    }

    pub(super) fn fork(&self) -> Self {
        let mut fork = Self::default();
        for (name, &node) in &self.names {
            fork.put(name, &self.nodes[node].content);
        }
        fork
    }

    pub(super) fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.names.get(name).map(|&node| self.nodes[node].content.clone())
    }

    pub(super) fn put(&mut self, name: &str, content: &[u8]) {
        let node = self.nodes.len();
        self.nodes.push(Node {
            name: name.to_owned(),
            content: content.to_vec(),
            durable: content.to_vec(),
            unsynced: Vec::new(),
        });
        self.names.insert(name.to_owned(), node);
        self.durable_names.insert(name.to_owned(), node);
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    /// Counts a changing call. `grows` tells whether it needs room on the disk.
    fn changing(&mut self, grows: bool, what: impl FnOnce() -> String) -> io::Result<Go> {
        if self.stopped {
            return Err(io::Error::other("the process has been stopped"));
        }
        self.changes += 1;
        self.trace.push(what());
        let Some(fault) = self.fault else { return Ok(Go::Ahead) };
        match fault.what {
            What::Stop if self.changes == fault.at => {
                self.stopped = true;
                Err(io::Error::other("the process has been stopped"))
            }
            What::Tear if self.changes == fault.at => {
                self.stopped = true;
                Ok(Go::Half(io::Error::other("the process has been stopped")))
            }
            What::Fail(kind) if self.changes == fault.at => Ok(Go::Half(kind.into())),
            What::Full if self.changes >= fault.at && grows => {
                Ok(Go::Half(io::ErrorKind::StorageFull.into()))
            }
            _ => Ok(Go::Ahead),
        }
    }

    /// The same for calls that happen as a whole or not at all.
    fn changing_whole(&mut self, grows: bool, what: impl FnOnce() -> String) -> io::Result<()> {
        match self.changing(grows, what)? {
            Go::Ahead => Ok(()),
            Go::Half(error) => Err(error),
        }
    }

    /// Counts a read.
    pub(super) fn reading(&mut self) -> io::Result<()> {
        if self.stopped {
            return Err(io::Error::other("the process has been stopped"));
        }
        self.reads += 1;
        match self.fault {
            Some(Fault { at, what: What::FailRead(kind) }) if self.reads == at => Err(kind.into()),
            _ => Ok(()),
        }
    }

    pub(super) fn open(&mut self, name: &str, access: Access) -> io::Result<usize> {
        if let Some(&node) = self.names.get(name) {
            self.reading()?;
            return Ok(node);
        }
        if access != Access::Create {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.changing_whole(true, || format!("make {name}"))?;
        let node = self.nodes.len();
        self.nodes.push(Node { name: name.to_owned(), ..Node::default() });
        self.change_name(NameChange::Made { name: name.to_owned(), node });
        Ok(node)
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let &node = self.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        self.changing_whole(false, || format!("rename {from} to {to}"))?;
        self.nodes[node].name = to.to_owned();
        self.change_name(NameChange::Renamed { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> io::Result<()> {
        if !self.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.changing_whole(false, || format!("remove {name}"))?;
        self.change_name(NameChange::Removed { name: name.to_owned() });
        Ok(())
    }

    pub(super) fn sync_names(&mut self) -> io::Result<()> {
        self.changing_whole(false, || "sync the names".to_owned())?;
        self.unsynced_names.clear();
        self.durable_names.clone_from(&self.names);
        Ok(())
    }

    pub(super) fn size(&mut self, node: usize) -> io::Result<u64> {
        self.reading()?;
        Ok(self.nodes[node].content.len() as u64)
    }

    pub(super) fn read(&mut self, node: usize, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.reading()?;
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let bytes = self.nodes[node].content.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn change(&mut self, node: usize, change: Change) -> io::Result<()> {
        let node = &mut self.nodes[node];
        change.apply(&mut node.content)?;
        node.unsynced.push(change);
        Ok(())
    }

    pub(super) fn write(&mut self, node: usize, bytes: &[u8], offset: u64) -> io::Result<()> {
        let name = self.nodes[node].name.clone();
        let grows = offset + bytes.len() as u64 > self.nodes[node].content.len() as u64;
        let go = self.changing(grows, || format!("write {} bytes at {offset} of {name}", bytes.len()))?;
        let (bytes, result) = match go {
            Go::Ahead => (bytes, Ok(())),
            Go::Half(error) => (&bytes[..bytes.len() / 2], Err(error)),
        };
        self.change(node, Change::Bytes { offset, bytes: bytes.to_vec() })?;
        result
    }

    pub(super) fn set_size(&mut self, node: usize, size: u64) -> io::Result<()> {
        let name = self.nodes[node].name.clone();
        let grows = size > self.nodes[node].content.len() as u64;
        self.changing_whole(grows, || format!("set {name} to {size} bytes"))?;
        self.change(node, Change::Size(size))
    }

    pub(super) fn store_u64(&mut self, node: usize, offset: u64, value: u64) -> io::Result<()> {
        let name = self.nodes[node].name.clone();
        self.changing_whole(false, || format!("store the word at {offset} of {name}"))?;
        if !offset.is_multiple_of(8) || offset + 8 > self.nodes[node].content.len() as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a header word outside the header"));
        }
        self.change(node, Change::Bytes { offset, bytes: value.to_le_bytes().to_vec() })
    }

    pub(super) fn sync(&mut self, node: usize) -> io::Result<()> {
        let name = self.nodes[node].name.clone();
        self.changing_whole(false, || format!("sync {name}"))?;
        let node = &mut self.nodes[node];
        node.durable.clone_from(&node.content);
        node.unsynced.clear();
        Ok(())
    }
}
