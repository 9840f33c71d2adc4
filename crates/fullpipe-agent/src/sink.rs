//! Destinations of frames: a file, or space shared with the virtual machine's host. A frame that has
//! been put survives whatever happens afterwards.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{fence, Ordering};

use fullpipe_plan::stream::{encode, Frame};

/// Takes frames.
pub(crate) trait Sink {
    /// Puts one frame. A frame that does not fit is dropped, and [`Sink::is_full`] becomes true.
    fn put(&mut self, frame: &Frame);
    /// Whether a frame was dropped.
    fn is_full(&self) -> bool;
}

/// Frames in a file.
pub(crate) struct FileSink {
    file: File,
    buffer: Vec<u8>,
    error: Option<io::Error>,
}

impl FileSink {
    pub(crate) fn create(path: &str) -> io::Result<Self> {
        Ok(Self {
            file: File::create(path)?,
            buffer: Vec::with_capacity(4096),
            error: None,
        })
    }

    /// Returns the first write error, if any.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.error.map_or(Ok(()), Err)
    }
}

impl Sink for FileSink {
    fn put(&mut self, frame: &Frame) {
        if self.error.is_some() {
            return;
        }
        self.buffer.clear();
        encode(frame, &mut self.buffer);
        self.error = self.file.write_all(&self.buffer).err();
    }

    fn is_full(&self) -> bool {
        self.error.is_some()
    }
}

/// Bytes at the end of the space that only [`Frame::Failure`], [`Frame::Problem`] and
/// [`Frame::End`] may use, so that a run that recorded too much can still report it.
const RESERVE_BYTES: usize = 16 * 1024;

/// Zeroed space that the host of a virtual machine reads.
pub(crate) enum Space {
    Memory(&'static mut [u8]),
    /// Part of a file of the host: where it begins, and its length.
    File(File, u64, usize),
}

impl Space {
    fn len(&self) -> usize {
        match self {
            Self::Memory(memory) => memory.len(),
            Self::File(_, _, bytes) => *bytes,
        }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                memory[at..at + bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            Self::File(file, start, _) => file.write_all_at(bytes, *start + at as u64),
        }
    }
}

/// Frames in shared space. A frame's length is written last, so the reader sees whole frames only.
pub(crate) struct SharedSink {
    space: Space,
    used: usize,
    buffer: Vec<u8>,
    is_full: bool,
}

impl SharedSink {
    pub(crate) fn new(space: Space) -> Self {
        Self {
            space,
            used: 0,
            buffer: Vec::with_capacity(4096),
            is_full: false,
        }
    }
}

impl Sink for SharedSink {
    fn put(&mut self, frame: &Frame) {
        self.buffer.clear();
        encode(frame, &mut self.buffer);
        let last_words = matches!(frame, Frame::Failure(_) | Frame::Problem(_) | Frame::End);
        let reserve = if last_words { 0 } else { RESERVE_BYTES };
        let end = self.used + self.buffer.len();
        if end + reserve > self.space.len() {
            self.is_full = true;
            return;
        }
        let (length, rest) = self.buffer.split_at(4);
        let written = self.space.write(self.used + 4, rest).and_then(|()| {
            fence(Ordering::Release);
            self.space.write(self.used, length)
        });
        if written.is_err() {
            self.is_full = true;
            return;
        }
        self.used = end;
    }

    fn is_full(&self) -> bool {
        self.is_full
    }
}
