//! What the kernel logs during a run: printk, warnings with their traces. `/dev/kmsg` gives a record for
//! each read (Documentation/ABI/testing/dev-kmsg). It must not know what any line means.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

const LOG: &str = "/dev/kmsg";
/// The longest record (PRINTK_MESSAGE_MAX).
const RECORD_BYTES: usize = 2048;
/// What of a flood is kept; a warning with its trace takes some 3 KiB.
const MOST_BYTES: usize = 64 << 10;

/// The log from some moment on.
pub(crate) struct KernelLog(File);

impl KernelLog {
    /// The log from now on; `None` where the kernel has none to read.
    pub(crate) fn from_now() -> Option<Self> {
        let mut file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(LOG)
            .ok()?;
        file.seek(SeekFrom::End(0)).ok()?;
        Some(Self(file))
    }

    /// The lines since then, as `dmesg` writes them.
    pub(crate) fn text(mut self) -> String {
        let mut text = String::new();
        let mut record = [0; RECORD_BYTES];
        let mut left_out = 0;
        loop {
            match self.0.read(&mut record) {
                Ok(0) => break,
                Ok(bytes) if text.len() < MOST_BYTES => put_line(&record[..bytes], &mut text),
                Ok(_) => left_out += 1,
                // The oldest records made way for newer ones.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => break,
            }
        }
        if left_out > 0 {
            let _ = writeln!(text, "({left_out} lines more)");
        }
        text
    }
}

/// Writes a record `PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT` as a line; lines of properties, which
/// begin with a space, are left out.
fn put_line(record: &[u8], text: &mut String) {
    let record = String::from_utf8_lossy(record);
    let Some((head, message)) = record.split_once(';') else {
        return;
    };
    let time_us: u64 = head
        .split(',')
        .nth(2)
        .and_then(|word| word.parse().ok())
        .unwrap_or_default();
    let message = message.lines().next().unwrap_or_default();
    let (seconds, rest) = (time_us / 1_000_000, time_us % 1_000_000);
    let _ = writeln!(text, "[{seconds:5}.{rest:06}] {message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_the_line_that_dmesg_writes() {
        let mut text = String::new();
        put_line(
            b"4,617,3012345,-;twist: beta is 870\n SUBSYSTEM=net\n",
            &mut text,
        );
        put_line(b"6,618,12000001,c;second\n", &mut text);
        assert_eq!(
            text,
            "[    3.012345] twist: beta is 870\n[   12.000001] second\n"
        );
    }

    #[test]
    fn what_is_no_record_is_left_out() {
        let mut text = String::new();
        put_line(b"no record", &mut text);
        assert_eq!(text, "");
    }
}
