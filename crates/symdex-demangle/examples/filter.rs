//! Demangles each line of standard input, as `c++filt` does: `cargo run --package symdex-demangle --example filter <
//! names`.

use std::io::{BufRead, BufWriter, Write, stdin, stdout};

fn main() -> std::io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    for name in stdin().lock().split(b'\n') {
        writeln!(out, "{}", symdex_demangle::demangle(&name?))?;
    }
    out.flush()
}
