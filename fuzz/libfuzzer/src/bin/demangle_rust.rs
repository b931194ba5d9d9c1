#![no_main]

symdex_libfuzzer::program!(demangle_rust);
