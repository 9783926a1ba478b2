//! The subcommands, a file each.

pub(crate) mod bench;
pub(crate) mod cat;
pub(crate) mod compact;
pub(crate) mod delete;
pub(crate) mod described;
pub(crate) mod export;
pub(crate) mod generate;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod merge;
pub(crate) mod recode;
pub(crate) mod repair;
pub(crate) mod split;
pub(crate) mod storage;
pub(crate) mod train_dict;
pub(crate) mod verify;
