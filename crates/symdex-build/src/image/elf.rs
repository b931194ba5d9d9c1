//! ELF: what its headers say of an image.

use symdex::Arch;

use super::Image;
use crate::companions::Companions;
use crate::error::Error;

/// The image in `bytes`, an ELF file.
pub(super) fn load<'d>(
    _arch: &Arch,
    _bytes: &'d [u8],
    _name: &str,
    _companions: &'d Companions,
) -> Result<Image<'d>, Error> {
    Err(Error::Unsupported { what: "ELF".to_owned() })
}
