//! The store: what goes in comes out, whatever happens in between.

mod append_gather;
mod bit_flips;
mod crash;
mod failed_append;
mod format_document;
mod frontier;
mod golden;
mod hostile;
mod limits;
mod missing_chunk;
mod model;
mod operations;
mod recovery;
mod truncation;
mod verify_repair;
