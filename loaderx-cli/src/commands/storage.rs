//! How new stores are stored: the options that every command has which writes some.

use clap::ValueEnum;
use loaderx_core::convert::{ImportOptions, Imported};
use loaderx_core::format::FormatVersion;
use loaderx_core::{Codec, Literals, Schema};
use serde_json::{Value, json};

use crate::bytes::{grouped, human};
use crate::output::{Failure, Output};
use crate::progress::Bar;

/// How records are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CodecName {
    /// As they are: the fastest to read.
    Raw,
    /// One zstd frame each.
    Zstd,
    /// zstd with a dictionary that is trained on the first records: for many small, similar ones.
    #[value(name = "zstd_dict", alias = "zstd-dict")]
    ZstdDict,
    /// Whichever does best on a sample: a codec must save 15 % of the bytes for each time that decoding takes twice as
    /// long, and 10 % in any case. Says which, and why.
    Auto,
}

/// Options of commands that write stores.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Storage {
    /// How records are stored.
    #[arg(long, value_enum, default_value = "raw")]
    pub(crate) codec: CodecName,

    /// zstd's compression level (3 for zstd and 19 for zstd_dict by default).
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-7..=22))]
    level: Option<i32>,

    /// Leave literals uncompressed in zstd frames: faster to read, larger. Compare with `loaderx bench`.
    #[arg(long)]
    raw_literals: bool,

    /// Format version; by default 3, which Python reads, or 4 where the data needs it.
    #[arg(long, value_parser = ["3", "4"])]
    format_version: Option<String>,
}

impl Storage {
    pub(crate) fn options(&self, output: &Output) -> ImportOptions {
        let options = ImportOptions::new().progress(Bar::new(output));
        let codec = match self.codec {
            CodecName::Raw => Some(Codec::Raw),
            CodecName::Zstd => Some(Codec::zstd()),
            CodecName::ZstdDict => Some(Codec::zstd_dict()),
            CodecName::Auto => None,
        };
        let options = match codec {
            Some(codec) => options.codec(self.refine(codec)),
            None => options.codec_by_sample(),
        };
        match self.format_version.as_deref() {
            Some("3") => options.format(FormatVersion::V3),
            Some(_) => options.format(FormatVersion::V4),
            None => options,
        }
    }

    fn refine(&self, codec: Codec) -> Codec {
        let codec = self.level.map_or(codec, |level| codec.with_level(level));
        if self.raw_literals { codec.with_literals(Literals::Raw) } else { codec }
    }
}

/// What records are, in words.
pub(crate) fn described(schema: Option<&Schema>) -> String {
    schema.map_or("plain bytes, no schema".to_owned(), ToString::to_string)
}

/// Prints what was made.
pub(crate) fn report(done: &Imported, output: &Output) -> Result<(), Failure> {
    output.line(format_args!("{}: {} records", done.path.display(), grouped(done.records)))?;
    for stream in &done.streams {
        let name = if stream.name.is_empty() { String::new() } else { format!("{}: ", stream.name) };
        output.line(format_args!(
            "  {name}{}, {}, codec {}",
            described(stream.schema.as_ref()),
            human(stream.bytes),
            stream.codec.name()
        ))?;
        for note in &stream.notes {
            output.line(format_args!("    note: {note}"))?;
        }
    }
    output.value(&to_json(done))?;
    Ok(())
}

/// What was made, as JSON.
pub(crate) fn to_json(done: &Imported) -> Value {
    let streams: Vec<Value> = done
        .streams
        .iter()
        .map(|stream| {
            json!({
                "name": stream.name,
                "kind": stream.schema.as_ref().map(|schema| schema.kind().name()),
                "dtype": stream.schema.as_ref().map(|schema| schema.dtype().name()),
                "item_shape": stream.schema.as_ref().map(Schema::item_shape),
                "codec": stream.codec.name(),
                "format_version": stream.format.number(),
                "records": stream.records,
                "bytes": stream.bytes,
                "notes": stream.notes,
            })
        })
        .collect();
    json!({ "path": done.path.display().to_string(), "records": done.records, "streams": streams })
}
