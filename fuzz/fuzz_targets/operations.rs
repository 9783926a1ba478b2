#![no_main]
#![doc = "See `loaderx_fuzz::operations`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| loaderx_fuzz::operations(data));
