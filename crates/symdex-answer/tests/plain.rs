//! Tests that need nothing besides the repository.

#[cfg(feature = "remote")]
mod fetch;
#[cfg(feature = "remote")]
mod fetch_redirects;
mod resolve;
mod symbolicator;
