#![no_main]

symdex_libfuzzer::program!(units);
