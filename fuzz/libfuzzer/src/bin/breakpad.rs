#![no_main]

symdex_libfuzzer::program!(breakpad);
