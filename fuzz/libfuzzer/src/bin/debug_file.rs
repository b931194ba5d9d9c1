#![no_main]

symdex_libfuzzer::program!(debug_file);
