use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use loaderx_core::convert::{Staging, choose_codec};
use loaderx_core::store::{Training, train_dictionary};
use loaderx_core::{Codec, Error, Literals, Store};
use serde_json::json;

use crate::bytes::human;
use crate::output::{Outcome, Output};
use crate::target::Target;

/// Records that are looked at have at most so many bytes together.
const SAMPLE_BYTES: u64 = 64 << 20;
const SAMPLE_RECORDS: u64 = 8192;

/// Train a zstd dictionary on a store's records and say what it would save.
///
/// The ratio is that of records which the dictionary was not trained on. `loaderx recode --codec zstd_dict` trains one
/// by itself; the file is for other uses.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  loaderx train-dict train/text\n  loaderx train-dict train/text --output text.dict"
)]
pub(crate) struct Args {
    /// The store.
    path: PathBuf,

    /// Write the dictionary to this file.
    #[arg(long, short)]
    output: Option<PathBuf>,

    /// The most bytes that it may have.
    #[arg(long)]
    max_bytes: Option<usize>,
}

impl Args {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let target = Target::open(&self.path)?;
        let records = sample(target.single(&self.path)?)?;
        let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let dictionary = match train_dictionary(&records, self.max_bytes)? {
            Training::Trained(dictionary) => dictionary,
            Training::Unsuitable(reason) => {
                return Err(Error::invalid(reason).at_path(&self.path).with_hint("use codec zstd").into());
            }
            _ => return Err(Error::invalid("the training had no result").at_path(&self.path).into()),
        };
        let choice = choose_codec(&records)?;
        output.line(format_args!(
            "a dictionary of {} from {} records; on records that it was not trained on:",
            human(dictionary.len() as u64),
            records.len()
        ))?;
        let mut trials = Vec::new();
        for trial in &choice.trials {
            let raw_literals =
                trial.codec != Codec::Raw && trial.codec == trial.codec.with_literals(Literals::Raw);
            output.line(format_args!(
                "  {:<10} ratio {:>6.2}, decodes {:>6.0} MB/s{}",
                trial.codec.name(),
                trial.ratio,
                trial.decode_rate / 1e6,
                if raw_literals { ", raw literals" } else { "" }
            ))?;
            trials.push(json!({
                "codec": trial.codec.name(), "raw_literals": raw_literals, "ratio": trial.ratio, "decode_bytes_per_second": trial.decode_rate,
            }));
        }
        output.line(format_args!("{}", choice.reason))?;
        if let Some(file) = &self.output {
            write(file, &dictionary)?;
            output.line(format_args!("written to {}", file.display()))?;
        }
        output.value(&json!({
            "dictionary_bytes": dictionary.len(),
            "records": records.len(),
            "trials": trials,
            "advice": choice.codec.name(),
            "output": self.output.as_ref().map(|file| file.display().to_string()),
        }))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Records from all over the store.
fn sample(store: &Store) -> loaderx_core::Result<Vec<Vec<u8>>> {
    let step = store.len().div_ceil(SAMPLE_RECORDS).max(1);
    let (mut records, mut bytes) = (Vec::new(), 0);
    for index in (0..store.len()).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        let record = store.get(index)?;
        bytes += record.len() as u64;
        records.push(record);
        if bytes > SAMPLE_BYTES {
            break;
        }
    }
    Ok(records)
}

fn write(file: &Path, dictionary: &[u8]) -> loaderx_core::Result<()> {
    let staging = Staging::begin(file)?;
    let written = File::create_new(staging.path()).and_then(|mut output| {
        output.write_all(dictionary)?;
        output.sync_all()
    });
    written.map_err(|error| Error::io("write the dictionary", file, error))?;
    staging.commit()
}
