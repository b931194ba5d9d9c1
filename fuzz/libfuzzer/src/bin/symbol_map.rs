#![no_main]

symdex_libfuzzer::program!(symbol_map);
