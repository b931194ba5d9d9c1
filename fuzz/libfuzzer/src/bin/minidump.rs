#![no_main]

symdex_libfuzzer::program!(minidump);
