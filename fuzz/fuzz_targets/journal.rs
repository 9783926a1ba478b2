#![no_main]
#![doc = "See `loaderx_fuzz::journal`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| loaderx_fuzz::journal(data));
