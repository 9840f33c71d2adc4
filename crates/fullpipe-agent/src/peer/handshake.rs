//! Mutual authentication: both ends prove that they know the token without sending it, before anything
//! else is read. Input is hostile until then, and bounded afterwards.
//!
//! ```text
//! far  -> near   HELLO (8 bytes), nonce of the far end (16)
//! near -> far    purpose (1), flow (4, little endian), nonce of the near end (16), proof (32)
//! far  -> near   proof (32)
//! ```
//! A proof is HMAC-SHA256 (RFC 2104) under the token of the prover's role, both nonces, the purpose
//! and the flow: it cannot be replayed, reflected, or used for another flow.

use std::io::{self, Read, Write};

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The first bytes of a far end; the digit is the protocol's version.
const HELLO: &[u8; 8] = b"fpagent1";
const NONCE_BYTES: usize = 16;
const PROOF_BYTES: usize = 32;
/// Bytes that the near end sends in total.
pub(crate) const NEAR_BYTES: u64 = (5 + NONCE_BYTES + PROOF_BYTES) as u64;
/// Bytes that the far end sends in total.
pub(crate) const FAR_BYTES: u64 = (HELLO.len() + NONCE_BYTES + PROOF_BYTES) as u64;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The run itself: request, samples, end.
    Control,
    /// The data of the flow with this id.
    Data(u32),
}

impl Purpose {
    fn bytes(self) -> [u8; 5] {
        let (kind, flow) = match self {
            Self::Control => (b'C', 0),
            Self::Data(flow) => (b'D', flow),
        };
        let flow = flow.to_le_bytes();
        [kind, flow[0], flow[1], flow[2], flow[3]]
    }

    fn read(bytes: [u8; 5]) -> Option<Self> {
        let flow = u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        match bytes[0] {
            b'C' if flow == 0 => Some(Self::Control),
            b'D' => Some(Self::Data(flow)),
            _ => None,
        }
    }
}

/// The near end's part, on a new connection. Fails if the other end is no agent or does not know the
/// token.
pub(crate) fn near(
    stream: &mut (impl Read + Write),
    token: &str,
    purpose: Purpose,
) -> io::Result<()> {
    let mut hello = [0; 8];
    let mut theirs = [0; NONCE_BYTES];
    stream.read_exact(&mut hello)?;
    if &hello != HELLO {
        return Err(refused("is no fullpipe agent of this version"));
    }
    stream.read_exact(&mut theirs)?;
    let ours = nonce()?;
    let mut message = Vec::with_capacity(5 + NONCE_BYTES + PROOF_BYTES);
    message.extend_from_slice(&purpose.bytes());
    message.extend_from_slice(&ours);
    message.extend_from_slice(
        &prove(token, b"near", &theirs, &ours, purpose)
            .finalize()
            .into_bytes(),
    );
    stream.write_all(&message)?;
    let mut proof = [0; PROOF_BYTES];
    stream
        .read_exact(&mut proof)
        .map_err(|_| refused("refused the token"))?;
    prove(token, b"far", &theirs, &ours, purpose)
        .verify_slice(&proof)
        .map_err(|_| refused("does not know the token"))
}

/// The far end's part, on an accepted connection. Fails if the other end does not prove that it knows
/// the token; nothing that depends on the token was sent then.
pub(crate) fn far(stream: &mut (impl Read + Write), token: &str) -> io::Result<Purpose> {
    let ours = nonce()?;
    stream.write_all(&[HELLO.as_slice(), &ours].concat())?;
    let mut purpose = [0; 5];
    let mut theirs = [0; NONCE_BYTES];
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut purpose)?;
    stream.read_exact(&mut theirs)?;
    stream.read_exact(&mut proof)?;
    let purpose =
        Purpose::read(purpose).ok_or_else(|| refused("asks for nothing that is known"))?;
    prove(token, b"near", &ours, &theirs, purpose)
        .verify_slice(&proof)
        .map_err(|_| refused("does not know the token"))?;
    stream.write_all(
        &prove(token, b"far", &ours, &theirs, purpose)
            .finalize()
            .into_bytes(),
    )?;
    Ok(purpose)
}

fn prove(
    token: &str,
    role: &[u8],
    far: &[u8; NONCE_BYTES],
    near: &[u8; NONCE_BYTES],
    purpose: Purpose,
) -> Hmac<Sha256> {
    let mut mac = match Hmac::<Sha256>::new_from_slice(token.as_bytes()) {
        Ok(mac) => mac,
        Err(error) => unreachable!("HMAC takes a key of any length: {error}"),
    };
    for part in [role, far, near, &purpose.bytes()] {
        mac.update(part);
    }
    mac
}

fn nonce() -> io::Result<[u8; NONCE_BYTES]> {
    let mut bytes = [0; NONCE_BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn refused(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("the other end {what}"),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    fn meet(
        near_token: &'static str,
        far_token: &'static str,
    ) -> (io::Result<()>, io::Result<Purpose>) {
        let (mut a, mut b) = UnixStream::pair().expect("a pair of sockets");
        let far_end = thread::spawn(move || far(&mut b, far_token));
        let near_end = near(&mut a, near_token, Purpose::Data(7));
        drop(a);
        (
            near_end,
            far_end.join().expect("the far end does not panic"),
        )
    }

    #[test]
    fn two_ends_with_one_token_agree_on_what_the_connection_is_for() {
        let (near_end, far_end) = meet("secret", "secret");
        near_end.expect("accepted");
        assert_eq!(far_end.expect("accepted"), Purpose::Data(7));
    }

    #[test]
    fn another_token_is_refused_at_both_ends() {
        let (near_end, far_end) = meet("secret", "Secret");
        assert!(near_end.is_err());
        assert_eq!(
            far_end.expect_err("refused").kind(),
            io::ErrorKind::PermissionDenied
        );
    }

    #[test]
    fn a_proof_for_one_flow_is_none_for_another_and_none_of_the_other_role() {
        let proof = |role: &[u8], purpose| {
            let mac = prove(
                "secret",
                role,
                &[1; NONCE_BYTES],
                &[2; NONCE_BYTES],
                purpose,
            );
            mac.finalize().into_bytes().to_vec()
        };
        let one = proof(b"near", Purpose::Data(1));
        assert_ne!(one, proof(b"near", Purpose::Data(2)));
        assert_ne!(one, proof(b"far", Purpose::Data(1)));
        assert_ne!(one, proof(b"near", Purpose::Control));
    }

    #[test]
    fn garbage_and_silence_end_the_far_part() {
        for garbage in [&[][..], &[0; 3], &[b'C'; 53], &[0xff; 53]] {
            let (mut a, mut b) = UnixStream::pair().expect("a pair of sockets");
            a.write_all(garbage).expect("written");
            a.shutdown(std::net::Shutdown::Write).expect("closed");
            assert!(far(&mut b, "secret").is_err());
        }
    }
}
