#![no_main]
#![doc = "See `loaderx_fuzz::location`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| loaderx_fuzz::location(data));
