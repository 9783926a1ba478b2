#![no_main]
#![doc = "See `loaderx_fuzz::header`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| loaderx_fuzz::header(data));
