//! Attributes of variable size, and numbers.

use gimli::{DwForm, Reader as _, constants};

use crate::image::Reader;

/// Attributes of variable size. Their bytes state the size.
#[derive(Clone, Copy)]
pub(crate) enum Varying {
    Leb,
    Block1,
    Block2,
    Block4,
    Block,
    String,
}

impl Varying {
    pub(super) fn of(form: DwForm) -> Option<Self> {
        Some(match form {
            constants::DW_FORM_block1 => Self::Block1,
            constants::DW_FORM_block2 => Self::Block2,
            constants::DW_FORM_block4 => Self::Block4,
            constants::DW_FORM_block | constants::DW_FORM_exprloc => Self::Block,
            constants::DW_FORM_string => Self::String,
            constants::DW_FORM_udata
            | constants::DW_FORM_sdata
            | constants::DW_FORM_ref_udata
            | constants::DW_FORM_strx
            | constants::DW_FORM_GNU_str_index
            | constants::DW_FORM_addrx
            | constants::DW_FORM_GNU_addr_index
            | constants::DW_FORM_loclistx
            | constants::DW_FORM_rnglistx => Self::Leb,
            _ => return None,
        })
    }

    /// The end of the attribute that begins at `at`. The result may be past the end of `bytes`.
    #[inline]
    pub(crate) fn end(self, bytes: &[u8], mut at: usize) -> Option<usize> {
        let block = |size: u8| {
            let (rest, own) = (sized(Spare::of(size), bytes, at)?, usize::from(size));
            Some(at.saturating_add(own).saturating_add(usize::try_from(rest).ok()?))
        };
        match self {
            Self::Leb => leb(bytes, &mut at).map(|_| at),
            Self::String => Some(at + memchr::memchr(0, bytes.get(at..)?)? + 1),
            Self::Block1 => block(1),
            Self::Block2 => block(2),
            Self::Block4 => block(4),
            Self::Block => {
                let size = leb(bytes, &mut at)?;
                Some(at.saturating_add(usize::try_from(size).ok()?))
            }
        }
    }
}

/// The size of a number of 1 to 8 bytes, stated as the number of unused bits of eight bytes.
#[derive(Clone, Copy)]
pub(crate) struct Spare(u8);

impl Spare {
    pub(super) fn of(size: u8) -> Self {
        Self(64 - 8 * size)
    }

    pub(super) fn size(self) -> u8 {
        8 - self.0 / 8
    }
}

/// The number of this size at `at`.
#[inline]
pub(crate) fn sized(spare: Spare, bytes: &[u8], at: usize) -> Option<u64> {
    // One path reads all sizes, because the processor cannot predict a branch on the size.
    if let Some(eight) = bytes.get(at..at.saturating_add(8)).and_then(<[u8]>::first_chunk) {
        return Some(u64::from_le_bytes(*eight) << spare.0 >> spare.0);
    }
    let number = bytes.get(at..)?.get(..usize::from(spare.size()))?;
    Some(number.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Reads the LEB128 number at `at`, and moves `at` past it. Most numbers take one byte.
#[inline]
pub(crate) fn leb(bytes: &[u8], at: &mut usize) -> Option<u64> {
    match *bytes.get(*at)? {
        byte @ 0..0x80 => {
            *at += 1;
            Some(u64::from(byte))
        }
        _ => {
            let mut input = Reader::new(&bytes[*at..], gimli::LittleEndian);
            let number = input.read_uleb128().ok()?;
            *at = bytes.len() - input.len();
            Some(number)
        }
    }
}
