//! Writes the seeds below `seeds/`: small real files of each kind, from which mutation starts.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use loaderx_core::format::FormatVersion;
use loaderx_core::io::memory::{Fault, MemoryDisk};
use loaderx_core::store::train_dictionary;
use loaderx_core::{Codec, CreateOptions, DType, Schema};
use loaderx_fuzz::pack;
use loaderx_tests::churn::Operation;
use loaderx_tests::crash;
use loaderx_tests::random::Random;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = folder.join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    };
    let dictionary = {
        let samples = Random::new(3).records(400, 100, 200);
        let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
        train_dictionary(&samples, Some(1024)).unwrap().into_dictionary().unwrap()
    };
    let dense = Schema::dense(DType::U8, &[2, 20]).unwrap();
    let ragged = Schema::ragged(DType::U16, &[5]).unwrap();
    let options = [
        ("raw", CreateOptions::new()),
        ("zstd", CreateOptions::new().codec(Codec::zstd()).schema(dense)),
        ("dict", CreateOptions::new().codec(Codec::zstd_dict()).dictionary(dictionary).schema(ragged)),
        ("v4", CreateOptions::new().format(FormatVersion::V4)),
    ];
    for (name, options) in options {
        let operations =
            [Operation::Append(Random::new(4).records(7, 40, 40)), Operation::Delete(vec![1, 3])];
        let (disk, _) = crash::prepare(&options, &operations);
        let content = |file: &str| disk.content(file).unwrap();
        write("header", name, &content("meta.zr")[..16]);
        write("location", name, &content("meta.zr")[16..32]);
        write("checks", name, &content("check.zr")[..128]);
        if let Some(schema) = disk.content("schema.msgpack") {
            write("schema", name, &schema);
        }
        write("directory", name, &files(&disk));
        for (what, operation) in [("delete", Operation::Delete(vec![0, 2])), ("compact", Operation::Compact)]
        {
            if let Some(interrupted) = with_journal(&disk, &operation) {
                write("journal", &format!("{name}-{what}"), &interrupted.content("journal.zr").unwrap());
                write("directory", &format!("{name}-{what}"), &files(&interrupted));
            }
        }
    }
    for (i, fault) in (0_u8..6).enumerate() {
        let mut bytes = vec![u8::try_from(i).unwrap(), fault, 9];
        bytes.extend((0..16).map(|i| i * 13 + fault));
        write("operations", &format!("{fault}"), &bytes);
    }
}

fn files(disk: &MemoryDisk) -> Vec<u8> {
    let names = disk.file_names();
    let files: Vec<(&str, Vec<u8>)> =
        names.iter().map(|name| (name.as_str(), disk.content(name).unwrap())).collect();
    pack(&files)
}

/// The first state of `operation` in which a whole journal lies there.
fn with_journal(prepared: &MemoryDisk, operation: &Operation) -> Option<MemoryDisk> {
    (1..200).find_map(|k| {
        let disk = prepared.fork();
        disk.inject(Fault::stop_at(k));
        let mut store = crash::open_writable(&disk).ok()?;
        operation.apply(&mut store).err()?;
        drop(store);
        disk.restart();
        let waits = loaderx_core::OpenOptions::new().open_in(disk.directory()).is_err();
        waits.then_some(disk)
    })
}
