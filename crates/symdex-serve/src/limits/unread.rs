//! Bodies that are refused before they are read.
//!
//! If the server closes a connection while the client still sends, the client may see the broken connection instead of
//! the answer. It may also send its next request on the connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};

/// How much of a refused body is read.
const MAX_READ: usize = 256 << 10;
/// How long the server waits for it.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Answers a request, and reads the rest of its body if that is short. Otherwise the answer says that the connection is
/// closed.
pub(crate) async fn read_rest(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    // Such a client sends its body when it is asked for.
    let is_sent = !request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    let mut body = SharedBody(Arc::new(Mutex::new(body)));
    let mut response = next.run(Request::from_parts(parts, Body::new(body.clone()))).await;
    let is_read = body.is_end_stream()
        || is_sent && tokio::time::timeout(MAX_WAIT, body.read_rest()).await.unwrap_or(false);
    if !is_read {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// A body that can be read on when its handler has dropped it.
#[derive(Clone)]
struct SharedBody(Arc<Mutex<Body>>);

impl SharedBody {
    fn with<T>(&self, work: impl FnOnce(&mut Body) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the rest. Returns whether the end was reached.
    async fn read_rest(&mut self) -> bool {
        let mut length = 0;
        while let Some(frame) = self.frame().await {
            let Ok(frame) = frame else { return false };
            length += frame.data_ref().map_or(0, Bytes::len);
            if length > MAX_READ {
                return false;
            }
        }
        true
    }
}

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.with(|body| Pin::new(body).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.with(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|body| body.size_hint())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn body(parts: Vec<Vec<u8>>) -> SharedBody {
        let parts = stream::iter(parts.into_iter().map(|part| Ok::<_, std::io::Error>(Bytes::from(part))));
        SharedBody(Arc::new(Mutex::new(Body::from_stream(parts))))
    }

    #[tokio::test]
    async fn a_short_rest_is_read_and_a_long_one_is_not() {
        let mut short = body(vec![b"first".to_vec(), b"second".to_vec()]);
        let first = short.clone().frame().await.expect("a part").expect("data");
        assert_eq!(first.data_ref().map(|data| &data[..]), Some(&b"first"[..]));
        assert!(short.read_rest().await);
        assert!(short.frame().await.is_none());
        assert!(body(vec![vec![0; MAX_READ]]).read_rest().await);
        assert!(!body(vec![vec![0; MAX_READ], vec![0]]).read_rest().await);
    }
}
