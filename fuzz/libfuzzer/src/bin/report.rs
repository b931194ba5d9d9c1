#![no_main]

symdex_libfuzzer::program!(report);
