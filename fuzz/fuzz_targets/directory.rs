#![no_main]
#![doc = "See `loaderx_fuzz::directory`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| loaderx_fuzz::directory(data));
