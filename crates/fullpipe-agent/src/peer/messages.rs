//! What the two ends say to each other on the control connection: JSON behind a length (u32, little
//! endian), then, at the end of a run, the far end's stream of frames behind a length of 64 bits.

use std::io::{self, Read, Write};

use fullpipe_plan::Plan;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A plan of 10,000 flows is far shorter.
const MESSAGE_BYTES_MAX: u32 = 64 << 20;
/// 600 s of 100 flows, sampled 100 times a second, are a tenth of it.
const STREAM_BYTES_MAX: u64 = 4 << 30;

/// From the near end.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// Prepare this run.
    Prepare(Box<Plan>),
    /// Answer at once, so that the way there and back can be timed.
    Echo,
    /// Begin [`super::near::LEAD_NS`] after this arrives.
    Go,
    /// Stop and send what was recorded.
    End,
}

/// From the far end.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// As asked.
    Done,
    /// Not possible, and why.
    Refused(String),
}

/// Writes one message.
pub(super) fn say(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).map_err(|_| bad("a message is too long"))?;
    stream.write_all(&[&length.to_le_bytes(), text.as_slice()].concat())
}

/// Reads one message; longer ones than any real one are refused unread.
pub(super) fn hear<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MESSAGE_BYTES_MAX {
        return Err(bad("a message is too long"));
    }
    let mut text = Vec::new();
    stream.take(u64::from(length)).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Sends a stream of frames.
pub(super) fn send_frames(stream: &mut impl Write, frames: &[u8]) -> io::Result<()> {
    stream.write_all(&(frames.len() as u64).to_le_bytes())?;
    stream.write_all(frames)
}

/// Receives a stream of frames.
pub(super) fn receive_frames(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > STREAM_BYTES_MAX {
        return Err(bad("the far end's recording is too long"));
    }
    let mut frames = Vec::new();
    stream.take(length).read_to_end(&mut frames)?;
    Ok(frames)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        let mut wire = Vec::new();
        say(&mut wire, &Answer::Refused("no".to_owned())).expect("written");
        match hear(&mut wire.as_slice()).expect("read") {
            Answer::Refused(sentence) => assert_eq!(sentence, "no"),
            Answer::Done => panic!("another answer"),
        }
    }

    #[test]
    fn a_length_that_nobody_means_costs_no_memory_and_is_refused() {
        assert!(hear::<Answer>(&mut [0xff; 64].as_slice()).is_err());
        assert!(receive_frames(&mut [0xff; 64].as_slice()).is_err());
        assert!(hear::<Answer>(&mut [8, 0, 0, 0, b'"'].as_slice()).is_err());
    }
}
