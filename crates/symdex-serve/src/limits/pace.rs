//! The lowest rate at which clients may send bodies and read answers. What a request holds in memory is held as long as
//! its client sends or reads.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Bytes a second.
const LOWEST_RATE: f64 = 16.0 * 1024.0;

/// How long, and how many bytes, the server reads from a client after its last answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 16 << 20;

/// How long a client may still keep the server waiting. Each byte that it sends or reads adds time.
#[derive(Debug)]
pub(crate) struct Pace {
    left: Duration,
    patience: Duration,
}

impl Pace {
    /// `patience` is the longest time that a client may keep the server waiting, and what it has at the start.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { left: patience, patience }
    }

    /// How long the server waits for the next bytes.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// The client has kept the server waiting for `time`, and has moved `bytes` then.
    pub(crate) fn moved(&mut self, time: Duration, bytes: usize) {
        let earned = Duration::from_secs_f64(bytes as f64 / LOWEST_RATE);
        self.left = self.left.saturating_sub(time).saturating_add(earned).min(self.patience);
    }
}

/// A stream whose writing fails if the client reads too slowly.
#[derive(Debug)]
pub(crate) struct PacedWriter<S> {
    stream: S,
    pace: Pace,
    /// Since when the stream takes no more bytes, and when the client has kept the server waiting too long.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
    /// After the last answer: until when the client is read, and how many more bytes of it.
    lingering: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<S> PacedWriter<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, pace: Pace::new(patience), waiting: None, lingering: None }
    }

    /// What the stream has answered; an error if it has been waiting too long. `bytes` are those that it has taken.
    fn check<T>(
        &mut self,
        context: &mut Context<'_>,
        answered: Poll<io::Result<T>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(result) = answered {
            let waited = self.waiting.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
            self.pace.moved(waited, result.as_ref().map_or(0, bytes));
            return Poll::Ready(result);
        }
        let pace = &self.pace;
        let (_, late) = self.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(pace.left()))));
        ready!(late.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PacedWriter<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for PacedWriter<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let answered = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.check(context, answered, |written| *written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let answered = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.check(context, answered, |written| *written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let answered = Pin::new(&mut this.stream).poll_flush(context);
        this.check(context, answered, |()| 0)
    }

    /// Reads and drops what the client is still sending, for a short time. If a connection is closed with bytes that
    /// were not read, the system resets it, and the client may lose the answer.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingering.is_none() {
            let answered = Pin::new(&mut this.stream).poll_shutdown(context);
            ready!(this.check(context, answered, |()| 0))?;
        }
        let (end, left) = this.lingering.get_or_insert_with(|| (Box::pin(sleep(LINGER)), LINGER_BYTES));
        let mut part = [0; 4 << 10];
        while *left != 0 && end.as_mut().poll(context).is_pending() {
            let mut part = ReadBuf::new(&mut part);
            let read = ready!(Pin::new(&mut this.stream).poll_read(context, &mut part));
            if read.is_err() || part.filled().is_empty() {
                break;
            }
            *left = left.saturating_sub(part.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_byte_adds_time_up_to_the_patience() {
        let mut pace = Pace::new(10 * SECOND);
        pace.moved(4 * SECOND, 16 << 10);
        assert_eq!(pace.left(), 7 * SECOND);
        pace.moved(20 * SECOND, 0);
        assert_eq!(pace.left(), Duration::ZERO);
        pace.moved(Duration::ZERO, 1 << 30);
        assert_eq!(pace.left(), 10 * SECOND);
    }

    /// A server that writes 1 MB with a patience of ten seconds, to a client that reads `part` bytes a second. Returns
    /// what the server got, when it got it, and how many bytes the client got.
    async fn write_to_reader_of(part: usize) -> (io::Result<()>, Duration, usize) {
        let (server, mut client) = duplex(1 << 10);
        let mut server = PacedWriter::new(server, 10 * SECOND);
        let reader = tokio::spawn(async move {
            let (mut buffer, mut total) = (vec![0; part], 0);
            while let Ok(size @ 1..) = client.read_exact(&mut buffer).await {
                total += size;
                tokio::time::sleep(SECOND).await;
            }
            total
        });
        let started = Instant::now();
        let written = server.write_all(&[0; 1_000_000]).await;
        let time = started.elapsed();
        drop(server);
        (written, time, reader.await.expect("no panic"))
    }

    // Time is that of the test: it passes while everybody waits.

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_too_slowly_is_left() {
        let (written, time, _) = write_to_reader_of(100).await;
        assert_eq!(written.expect_err("100 bytes a second").kind(), io::ErrorKind::TimedOut);
        assert!(time < 12 * SECOND, "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_fast_enough_gets_everything() {
        let (written, time, total) = write_to_reader_of(20_000).await;
        written.expect("20 kB a second");
        assert!(time > 40 * SECOND, "{time:?}");
        assert_eq!(total, 1_000_000);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_client_still_sends_is_read_for_a_second_after_the_answer() {
        let (server, mut client) = duplex(1 << 10);
        let mut server = PacedWriter::new(server, 10 * SECOND);
        let started = Instant::now();
        let (closed, sent) = tokio::join!(server.shutdown(), client.write_all(&[0; 100_000]));
        assert!(closed.is_ok() && sent.is_ok());
        assert_eq!(started.elapsed().as_secs(), 1);
    }
}
