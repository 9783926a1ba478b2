#![no_main]
#![doc = "See `loaderx_fuzz::checks`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| loaderx_fuzz::checks(data));
