//! Which types threads may share. The tests compile only if this is true.

use symdex_build::debug_files::{
    DebugFile, FileError, FindImageError, ImageFiles, InputFiles, JoinedImage, ListedImage,
};
use symdex_build::{
    BuildOptions, BuildReport, Built, Companions, DirectLookup, Error, FoundFiles, Identity, Image,
    SharedCache, SharedCacheImage, Slice, SymbolMap, SymbolMaps,
};

fn is_send<T: Send>() {}
fn is_shared<T: Send + Sync>() {}

#[test]
fn images_and_what_they_are_made_of_can_be_shared() {
    is_shared::<Image<'_>>();
    is_shared::<Slice<'_>>();
    is_shared::<Identity>();
    is_shared::<SharedCache>();
    is_shared::<SharedCacheImage<'_>>();
    is_shared::<SymbolMap>();
    is_shared::<SymbolMaps>();
    is_shared::<FoundFiles>();
    is_shared::<Error>();
}

#[test]
fn builds_and_debug_files_can_be_shared() {
    is_shared::<DebugFile>();
    is_shared::<InputFiles>();
    is_shared::<ImageFiles>();
    is_shared::<JoinedImage<'_>>();
    is_shared::<ListedImage>();
    is_shared::<FileError>();
    is_shared::<FindImageError>();
    is_shared::<Built>();
    is_shared::<BuildReport>();
}

#[test]
fn options_companions_and_lookups_can_be_given_to_a_thread() {
    is_shared::<BuildOptions<'_>>();
    // Only one thread at a time may load images with the same companions.
    is_send::<Companions>();
    is_shared::<DirectLookup<'_, '_>>();
}
