//! Threads encode chunks, which wait in a temporary file until all are there.

use symdex::Table;
use symdex::write::{ChunkEncoder, EncodedChunk};

use super::Build;
use crate::chunk_job::ChunkJob;
use crate::chunker::CHUNK_SPAN;
use crate::error::Error;
use crate::queue::Queue;

/// How many chunks one task encodes.
const CHUNKS_AT_A_TIME: usize = 8;
/// How many encoding tasks may be unfinished.
const ENCODE_AHEAD: usize = 8;

/// The chunks of one task.
pub(crate) type Encoded = Result<Vec<EncodedChunk>, symdex::Error>;

impl<'a, 'd> Build<'a, 'd> {
    /// Adds tasks that encode `jobs`, and writes chunks that are encoded.
    pub(super) fn encode<'scope>(
        &mut self,
        table: Table,
        jobs: Vec<ChunkJob>,
        chunks: &mut Queue<'_, 'scope, Encoded>,
    ) -> Result<(), Error>
    where
        'a: 'scope,
        'd: 'scope,
    {
        let image_size = self.info.image_size;
        let mut jobs = jobs.into_iter().peekable();
        let max_size = self.budget.of_chunks();
        while jobs.peek().is_some() {
            let (mut some, mut size) = (Vec::new(), 0);
            while some.len() < CHUNKS_AT_A_TIME
                && let Some(job) =
                    jobs.next_if(|job| some.is_empty() || size + job.size() <= max_size / ENCODE_AHEAD)
            {
                size += job.size();
                self.encoded.add(table, &job.ranges);
                some.push(job);
            }
            self.encoding.push_back(size);
            chunks.add(move || {
                let mut encoder = ChunkEncoder::new(CHUNK_SPAN, image_size);
                let encode = |job: ChunkJob| encoder.encode(table, job.index, &job.ranges);
                some.into_iter().map(encode).collect()
            });
            self.finish_chunks(chunks, ENCODE_AHEAD)?;
        }
        Ok(())
    }

    /// Writes chunks until `left` tasks are left, and these do not take too much memory.
    pub(crate) fn finish_chunks(
        &mut self,
        chunks: &mut Queue<'_, '_, Encoded>,
        left: usize,
    ) -> Result<(), Error> {
        while chunks.len() > left || self.encoding.iter().sum::<usize>() > self.budget.of_chunks() {
            self.encoding.pop_front();
            let encoded = chunks.take().unwrap_or_else(|| Ok(Vec::new()))?;
            for chunk in encoded {
                // Chunks wait in a temporary file until all are there.
                let pushed = self.writer.push(chunk);
                // What fails after the deadline fails because of it.
                pushed.map_err(|error| self.deadline.check().err().unwrap_or_else(|| spool_failed(error)))?;
            }
        }
        Ok(())
    }
}

pub(super) fn spill_failed(source: std::io::Error) -> Error {
    Error::TemporaryFile { folder: std::env::temp_dir(), source }
}

/// Keeping the chunks in a temporary file failed.
pub(super) fn spool_failed(error: symdex::Error) -> Error {
    match error {
        symdex::Error::Io(source) => spill_failed(source),
        error => error.into(),
    }
}
