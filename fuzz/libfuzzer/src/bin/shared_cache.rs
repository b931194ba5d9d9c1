#![no_main]

symdex_libfuzzer::program!(shared_cache);
