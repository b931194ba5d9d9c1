//! ELF.
