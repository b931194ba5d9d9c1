//! Prints the function, file and line of an address, and of what is inlined there.

use symdex::{FrameAddress, Index, LinePolicy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let index = Index::open(std::fs::read("indexes/4c4c442755553144a19dbd913be790e0.symdex")?)?;
    let address = FrameAddress::ReturnAddress(0x1_0499_02f0);
    let offset = address.image_offset(0x1_0498_c000, &index.metadata().arch).ok_or("below the image")?;
    for frame in index.frames(offset, LinePolicy::Statement)? {
        let name = symdex_demangle::demangle(frame.name.as_deref().unwrap_or(b"??"));
        println!("{name} at {}:{}", frame.file_lossy().unwrap_or_default(), frame.line.unwrap_or_default());
    }
    Ok(())
}
