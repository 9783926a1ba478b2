#![no_main]
#![doc = "See `loaderx_fuzz::schema`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| loaderx_fuzz::schema(data));
