//! The images that the stores have, to name those that are near a missing image.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use symdex::ImageId;
use symdex_answer::{Symbolicator, SymbolicatorOptions};
use symdex_report::KnownImage;

/// How long a list is used. To make one, up to 20,000 indexes are opened.
const FRESH: Duration = Duration::from_secs(600);

/// The images of stores that are folders. Other stores may have any number.
#[derive(Debug)]
pub(crate) struct Known {
    sources: SymbolicatorOptions,
    listed: Mutex<Option<(Instant, Arc<[KnownImage]>)>>,
}

impl Known {
    /// The images of the stores that `sources` name.
    pub(crate) fn new(sources: SymbolicatorOptions) -> Self {
        Self { sources, listed: Mutex::default() }
    }

    /// The images, listed at most ten minutes ago. This blocks.
    pub(crate) fn images(&self) -> Arc<[KnownImage]> {
        // Other requests wait for the list, instead of making it too.
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        match &*listed {
            Some((at, images)) if at.elapsed() < FRESH => Arc::clone(images),
            _ => {
                // A symbolicator lists its sources once.
                let opened = Symbolicator::open(&self.sources, &mut |_| ());
                let images: Arc<[KnownImage]> =
                    opened.map_or_else(|_| [].into(), |opened| opened.known().into());
                *listed = Some((Instant::now(), Arc::clone(&images)));
                images
            }
        }
    }

    /// Removes an image that was deleted.
    pub(crate) fn remove(&self, id: &ImageId) {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, images)) = &mut *listed
            && images.iter().any(|image| image.id == *id)
        {
            *images = images.iter().filter(|image| image.id != *id).cloned().collect();
        }
    }

    /// Adds an image that was built since the images were listed.
    pub(crate) fn add(&self, image: KnownImage) {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, images)) = &mut *listed
            && !images.contains(&image)
        {
            *images = images.iter().cloned().chain([image]).collect();
        }
    }
}
