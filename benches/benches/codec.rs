//! Codecs: what they save, what writing costs, and how near a gather comes to the decoder alone.
//!
//! The reference of each row is zstd's decoder with a reused context on the same frames in memory. On real MNIST, and on
//! two synthetic sets: token ids, which have frequent values and few repeats, and smooth images with noise.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use loaderx_benches::{Lcg, Work, random_indices};
use loaderx_core::convert::{ImportOptions, import_idx};
use loaderx_core::store::{Training, train_dictionary};
use loaderx_core::view::{Request, Source};
use loaderx_core::{Codec, CreateOptions, DType, Dense, DenseWriter, Literals, Store};
use zstd_safe::{CCtx, CParameter, DCtx, ParamSwitch};

const BATCH: usize = 256;

fn main() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mnist =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/mnist/data/train-images-idx3-ubyte.gz");
    let raw = dir.path().join("mnist");
    import_idx(mnist, &raw, &ImportOptions::new()).expect("MNIST");
    set("MNIST, 784 B", &Dense::open(raw).expect("the store"), dir.path());
    set("token ids, 2 KiB", &tokens(&dir.path().join("tokens")), dir.path());
    set("smooth images with noise, 12 KiB", &images(&dir.path().join("images")), dir.path());
}

fn tokens(path: &Path) -> Dense {
    let mut random = Lcg(1);
    let writer = DenseWriter::create(path, DType::I32, &[512], Codec::Raw).expect("a store");
    for _ in 0..20 {
        let ids: Vec<i32> = (0..1000 * 512)
            .map(|_| (32_000_f64.powf(f64::from(random.next_u32()) / f64::from(u32::MAX)) - 1.0) as i32)
            .collect();
        writer.append(ids).expect("an append");
    }
    writer.finish().expect("a store")
}

fn images(path: &Path) -> Dense {
    let mut random = Lcg(2);
    let writer = DenseWriter::create(path, DType::U8, &[64, 64, 3], Codec::Raw).expect("a store");
    for i in 0..4000 {
        let (fx, fy) = ((i % 9 + 1) as f32, (i % 7 + 1) as f32);
        let image: Vec<u8> = (0..64 * 64 * 3)
            .map(|at| {
                let (y, x) = ((at / 192) as f32, (at / 3 % 64) as f32);
                let wave = (x * fx / 20.0).sin() + (y * fy / 20.0).cos();
                (wave * 50.0 + 128.0) as u8 ^ (random.next_u32() >> 31) as u8
            })
            .collect();
        writer.append(image).expect("an append");
    }
    writer.finish().expect("a store")
}

fn set(name: &str, raw: &Dense, dir: &Path) {
    let everything: Vec<u64> = (0..raw.len()).collect();
    let bytes = raw.batch(&everything).expect("all of it").data().as_bytes().to_vec();
    let size = bytes.len() / everything.len();
    let records: Vec<&[u8]> = bytes.chunks_exact(size).collect();
    let sample: Vec<&[u8]> = records.iter().step_by(10).copied().collect();
    let dictionary = match train_dictionary(&sample, None).expect("a training") {
        Training::Trained(dictionary) => Some(dictionary),
        _ => None,
    };
    let levels = [
        Codec::zstd(),
        Codec::zstd().with_literals(Literals::Raw),
        Codec::zstd().with_level(9),
        Codec::zstd().with_level(9).with_literals(Literals::Raw),
        Codec::zstd_dict().with_level(3),
        Codec::zstd_dict().with_level(3).with_literals(Literals::Raw),
        Codec::zstd_dict().with_level(9),
        Codec::zstd_dict().with_level(19),
    ];
    for codec in levels {
        let needs_dictionary = matches!(codec, Codec::ZstdDict { .. });
        if needs_dictionary && dictionary.is_none() {
            continue;
        }
        let dictionary = dictionary.as_deref().filter(|_| needs_dictionary);
        // A level of 19 takes a minute for all of them.
        let some = &records[..records.len().min(20_000)];
        one(name, raw, dir, codec, dictionary, some);
    }
}

fn one(name: &str, raw: &Dense, dir: &Path, codec: Codec, dictionary: Option<&[u8]>, records: &[&[u8]]) {
    let path = dir.join("compressed");
    let _ = std::fs::remove_dir_all(&path);
    let options = CreateOptions::new().schema(raw.schema().clone()).codec(codec);
    let options = match dictionary {
        Some(dictionary) => options.dictionary(dictionary.to_vec()),
        None => options,
    };
    let store = Store::create(&path, options).expect("a store");
    let start = Instant::now();
    store.append_slices(records.iter().copied()).expect("an append");
    let append = start.elapsed().as_secs_f64();
    let stats = store.stats().expect("statistics");
    drop(store);

    let (level, literals) = match codec {
        Codec::Zstd { level, literals, .. } | Codec::ZstdDict { level, literals, .. } => (level, literals),
        _ => return,
    };
    let frames = frames(level, literals, dictionary, records);
    let mut decoder = DCtx::create();
    if let Some(dictionary) = dictionary {
        decoder.load_dictionary(dictionary).expect("the dictionary");
    }
    let compressed = Dense::open(&path).expect("the store");
    let everything = random_indices(3, 1 << 16, compressed.len());
    let batches: Vec<&[u64]> = everything.chunks_exact(BATCH).collect();
    let check = compressed.batch(batches[0]).expect("a batch");
    for (row, &index) in check.data().as_bytes().chunks_exact(records[0].len()).zip(batches[0]) {
        assert_eq!(row, records[index as usize], "a gather delivered another record");
    }

    let size = records[0].len();
    let (mut out, mut pool) = (vec![0_u8; BATCH * size], [0; 3]);
    let [a, b, c] = &mut pool;
    let turn = |at: &mut usize| -> &[u64] {
        *at += 1;
        batches[*at % batches.len()]
    };
    let memory = loaderx_core::buffer::Pool::new();
    let gather = |indices: &[u64], threads: usize| {
        let request = Request::new(indices).threads(threads).memory(&memory);
        drop(black_box(compressed.gather(&request).expect("a batch")));
    };
    let literals = if literals == Literals::Raw { ", raw literals" } else { "" };
    Work::new(
        format!(
            "{name}, {} level {level}{literals}: {:.2} times smaller, appended at {:.0} MB/s",
            codec.name(),
            stats.decoded_bytes as f64 / stats.stored_bytes as f64,
            stats.decoded_bytes as f64 / append / 1e6
        ),
        (BATCH * size) as u64,
        BATCH as u64,
    )
    .variant("zstd alone, frames in memory", || {
        for (row, &index) in out.chunks_exact_mut(size).zip(turn(a)) {
            match &frames[index as usize] {
                Some(frame) => assert_eq!(decoder.decompress(row, frame), Ok(size)),
                None => row.copy_from_slice(records[index as usize]),
            }
        }
        black_box(&out);
    })
    .variant("gather, 1 thread", || gather(turn(b), 1))
    .variant("gather, 2 threads", || gather(turn(c), 2))
    .run();
}

/// What a store makes of the records; `None` for one that does not become smaller.
fn frames(
    level: i32,
    literals: Literals,
    dictionary: Option<&[u8]>,
    records: &[&[u8]],
) -> Vec<Option<Vec<u8>>> {
    let mut encoder = CCtx::create();
    let literals = if literals == Literals::Raw { ParamSwitch::Disable } else { ParamSwitch::Auto };
    for parameter in [
        CParameter::CompressionLevel(level),
        CParameter::ChecksumFlag(true),
        CParameter::LiteralCompressionMode(literals),
    ] {
        encoder.set_parameter(parameter).expect("a parameter");
    }
    if let Some(dictionary) = dictionary {
        encoder.load_dictionary(dictionary).expect("the dictionary");
    }
    records
        .iter()
        .map(|record| {
            let mut frame = Vec::with_capacity(zstd_safe::compress_bound(record.len()));
            encoder.compress2(&mut frame, record).expect("a frame");
            (frame.len() < record.len()).then_some(frame)
        })
        .collect()
}
