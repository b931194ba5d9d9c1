//! The bodies of all requests and answers, whatever their handlers do with them.
//!
//! Bytes that wait to be read, by a handler or by a client, take a part of the memory of requests until they are
//! dropped.
//!
//! Bodies may be refused before they are read. If the server closes a connection while the client still sends, the
//! client may see the broken connection instead of the answer. It may also send its next request on the connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};

use super::budget::{Budget, Reserved};
use crate::problem::Problem;

/// How much of a refused body is read.
const MAX_READ: usize = 256 << 10;
/// How long the server waits for it.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// How many bytes of a body are not counted.
const UNCOUNTED: u64 = 64 << 10;

/// An extension of answers whose bytes are counted already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IsCounted;

/// Counts the body of a request and that of its answer. Reads the rest of a body that was refused if that is short.
/// Otherwise the answer says that the connection is closed.
pub(crate) async fn watch(State(budget): State<Budget>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return counted(next.run(request).await, &budget);
    }
    // Such a client sends its body when it is asked for.
    let is_sent = !request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    let mut body = SharedBody::new(body, Waiting::none(&budget));
    let response = next.run(Request::from_parts(parts, Body::new(body.clone()))).await;
    let is_read = body.is_end_stream()
        || is_sent && tokio::time::timeout(MAX_WAIT, body.read_rest()).await.unwrap_or(false);
    let mut response = counted(response, &budget);
    if !is_read {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The same answer, whose bytes count. The problem of the budget if it is a long one that does not fit.
fn counted(response: Response, budget: &Budget) -> Response {
    let size = response.body().size_hint().exact();
    if response.extensions().get::<IsCounted>().is_some() || size.is_some_and(|size| size <= UNCOUNTED) {
        return response;
    }
    let mut waiting = Waiting::none(budget);
    match waiting.add(size.unwrap_or(0)) {
        Ok(()) => response.map(|body| Body::new(SharedBody::new(body, waiting))),
        Err(problem) => problem.into_response(),
    }
}

/// The bytes of a body that are in memory.
#[derive(Debug)]
struct Waiting {
    bytes: u64,
    reserved: Reserved,
}

impl Waiting {
    fn none(budget: &Budget) -> Self {
        Self { bytes: 0, reserved: budget.reserve() }
    }

    fn add(&mut self, bytes: u64) -> Result<(), Problem> {
        let all = self.bytes + bytes;
        self.reserved.resize(all.saturating_sub(UNCOUNTED))?;
        self.bytes = all;
        Ok(())
    }

    fn remove(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.reserved.shrink(self.bytes.saturating_sub(UNCOUNTED));
    }
}

/// A part of a body. Its bytes count until the last copy of them is dropped.
struct Part {
    bytes: Bytes,
    waiting: Arc<Mutex<Waiting>>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        lock(&self.waiting).remove(self.bytes.len() as u64);
    }
}

/// A body whose parts count, and that can be read on when its handler has dropped it.
#[derive(Clone)]
struct SharedBody {
    body: Arc<Mutex<Body>>,
    waiting: Arc<Mutex<Waiting>>,
    /// Whether its bytes are counted before they are read.
    is_counted: bool,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedBody {
    /// The rest of `body`, of which `waiting` has all bytes or none.
    fn new(body: Body, waiting: Waiting) -> Self {
        let is_counted = waiting.bytes != 0;
        Self { body: Arc::new(Mutex::new(body)), waiting: Arc::new(Mutex::new(waiting)), is_counted }
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

    fn count(&self, bytes: Bytes) -> Result<Bytes, Problem> {
        if !self.is_counted {
            lock(&self.waiting).add(bytes.len() as u64)?;
        }
        Ok(Bytes::from_owner(Part { bytes, waiting: Arc::clone(&self.waiting) }))
    }
}

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut *lock(&self.body)).poll_frame(context));
        let counted = |frame: Frame<Bytes>| match frame.into_data() {
            Ok(bytes) => self.count(bytes).map(Frame::data).map_err(axum::Error::new),
            Err(frame) => Ok(frame),
        };
        Poll::Ready(frame.map(|frame| frame.and_then(counted)))
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.body).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.body).size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::super::budget::tests::budget_of;
    use super::*;

    fn shared(parts: Vec<Vec<u8>>, budget: &Budget) -> SharedBody {
        let parts = stream::iter(parts.into_iter().map(|part| Ok::<_, std::io::Error>(Bytes::from(part))));
        SharedBody::new(Body::from_stream(parts), Waiting::none(budget))
    }

    /// The data of the next part.
    async fn part(body: &mut SharedBody) -> Result<Bytes, axum::Error> {
        Ok(body.frame().await.expect("a part")?.into_data().expect("data"))
    }

    #[tokio::test]
    async fn a_short_rest_is_read_and_a_long_one_is_not() {
        let body = |parts| shared(parts, &budget_of(1 << 30));
        let mut short = body(vec![b"first".to_vec(), b"second".to_vec()]);
        assert_eq!(part(&mut short.clone()).await.expect("data"), "first");
        assert!(short.read_rest().await);
        assert!(short.frame().await.is_none());
        assert!(body(vec![vec![0; MAX_READ]]).read_rest().await);
        assert!(!body(vec![vec![0; MAX_READ], vec![0]]).read_rest().await);
    }

    #[tokio::test]
    async fn parts_of_a_body_count_until_they_are_dropped() {
        let budget = budget_of(1 << 20);
        let mut body = shared(vec![vec![0; 300 << 10]; 4], &budget);
        let first = part(&mut body).await.expect("fits");
        let second = part(&mut body).await.expect("fits");
        assert_eq!(budget.free(), (1 << 20) - (576 << 10), "64 KiB are free, and 64 KiB are a unit");
        let refused = part(&mut body).await.expect_err("a client has three quarters");
        assert!(Problem::of_body(refused).to_string().contains("more memory than a client may have"));
        let copy = first.slice(1..2);
        drop((first, second));
        assert_eq!(budget.free(), (1 << 20) - (576 << 10) + (320 << 10));
        drop((copy, body));
        assert_eq!(budget.free(), 1 << 20);
    }

    #[tokio::test]
    async fn an_answer_counts_until_its_client_has_read_it() {
        let budget = budget_of(1 << 20);
        let answer = |size: usize| counted(vec![0; size].into_response(), &budget);
        let mut sent: Vec<_> = (0..6).map(|_| answer(192 << 10)).collect();
        assert_eq!(sent.iter().filter(|answer| answer.status() == 200).count(), 6);
        assert_eq!(budget.free(), 256 << 10);
        assert_eq!(answer(192 << 10).status(), 503);
        assert_eq!(answer(1 << 20).status(), 413);
        assert_eq!(answer(64 << 10).status(), 200, "short ones are free");
        // The connection has the bytes when the body is dropped.
        let frame = sent.pop().expect("an answer").into_body().frame().await.expect("a frame").expect("data");
        assert_eq!(budget.free(), 256 << 10);
        drop(frame);
        assert_eq!(answer(192 << 10).status(), 200);
        sent.clear();
        assert_eq!(budget.free(), 1 << 20);
    }
}
