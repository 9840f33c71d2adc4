//! Messages of the two ends on the control connection: a length (u32, little endian) and JSON. After
//! a run, the far end sends its stream of frames with a length of 64 bits.

use std::io::{self, Read, Write};

use fullpipe_plan::Plan;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Both ends begin this long after [`Command::Go`], which is longer than any wake-up takes.
pub(super) const LEAD_NS: u64 = 200_000_000;
/// Far longer than a plan of 10,000 flows.
const MESSAGE_BYTES_MAX: u32 = 64 << 20;
/// Ten times the stream of 100 flows sampled 100 times a second for 600 s.
const STREAM_BYTES_MAX: u64 = 4 << 30;

/// From the near end.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Command {
    /// Prepare this run.
    Prepare(Box<Plan>),
    /// Reply at once: the near end measures the round-trip time.
    Echo,
    /// Begin [`LEAD_NS`] after this arrives.
    Go,
    /// Stop and send what was recorded.
    End,
}

/// From the far end.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// The command succeeded.
    Done,
    /// The command is not possible; the reason.
    Refused(String),
}

/// Writes one message.
pub(super) fn send(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).map_err(|_| bad("a message is too long"))?;
    stream.write_all(&[&length.to_le_bytes(), text.as_slice()].concat())
}

/// Reads one message. A message longer than any real one is refused before it is read.
pub(super) fn recv<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<T> {
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
    use proptest::prelude::*;

    use super::*;

    /// JSON values, such as a hostile end may send.
    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "prepare|echo|go|end|done|refused|.{0,8}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let key = "prepare|refused|name|flows|links|host|access|[a-z_]{1,8}";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map(key, inner, 0..4)
                    .prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_is_a_message_that_is_written_alike_or_is_refused(value in any_json()) {
            let mut wire = Vec::new();
            send(&mut wire, &value).expect("written");
            if let Ok(command) = recv::<Command>(&mut wire.as_slice()) {
                let mut again = Vec::new();
                send(&mut again, &command).expect("written");
                let read: serde_json::Value = recv(&mut again.as_slice()).expect("read");
                prop_assert!(recv::<Command>(&mut again.as_slice()).is_ok(), "{read}");
            }
            if let Ok(Reply::Refused(sentence)) = recv::<Reply>(&mut wire.as_slice()) {
                prop_assert_eq!(&value["refused"], &serde_json::Value::from(sentence));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            length in any::<u32>(),
        ) {
            // With a length of the sender's choice, and with the right one.
            for length in [length, bytes.len() as u32] {
                let wire = [&length.to_le_bytes(), bytes.as_slice()].concat();
                let _ = recv::<Command>(&mut wire.as_slice());
                let _ = recv::<Reply>(&mut wire.as_slice());
            }
            let received = receive_frames(&mut bytes.as_slice());
            prop_assert!(received.map_or(0, |frames| frames.len()) <= bytes.len());
        }

        #[test]
        fn a_message_cut_off_anywhere_is_refused(
            sentence in ".{0,40}",
            cut in any::<prop::sample::Index>(),
        ) {
            let mut wire = Vec::new();
            send(&mut wire, &Reply::Refused(sentence)).expect("written");
            let cut = cut.index(wire.len());
            prop_assert!(recv::<Reply>(&mut &wire[..cut]).is_err());
        }
    }

    #[test]
    fn a_message_that_is_sent_is_received() {
        let mut wire = Vec::new();
        send(&mut wire, &Reply::Refused("no".to_owned())).expect("written");
        match recv(&mut wire.as_slice()).expect("read") {
            Reply::Refused(sentence) => assert_eq!(sentence, "no"),
            Reply::Done => panic!("another reply"),
        }
    }

    #[test]
    fn an_absurd_length_is_refused_and_allocates_nothing() {
        assert!(recv::<Reply>(&mut [0xff; 64].as_slice()).is_err());
        assert!(receive_frames(&mut [0xff; 64].as_slice()).is_err());
        assert!(recv::<Reply>(&mut [8, 0, 0, 0, b'"'].as_slice()).is_err());
    }
}
