//! The program `symdex`.

fn main() -> std::process::ExitCode {
    symdex_cli::main()
}
