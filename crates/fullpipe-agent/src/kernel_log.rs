//! What the kernel logs during a run: printk, warnings with their traces. `/dev/kmsg` gives a record for
//! each read (Documentation/ABI/testing/dev-kmsg). It must not know what any line means.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use fullpipe_plan::stream::Frame;

use crate::sink::Sink;

const LOG: &str = "/dev/kmsg";
/// The longest record (PRINTK_MESSAGE_MAX).
const RECORD_BYTES: usize = 2048;
/// What of a flood is kept; a warning with its trace takes some 3 KiB.
const MOST_BYTES: usize = 64 << 10;

/// A sink that puts what the kernel logged since the last report of progress in front of the next one:
/// a machine that dies leaves what it had logged, and little is overwritten in the kernel's buffer.
pub(crate) struct WithLog<'a> {
    sink: &'a mut dyn Sink,
    /// `None` where the kernel has no log to read.
    file: Option<File>,
    kept: Kept,
}

impl<'a> WithLog<'a> {
    /// With the log from now on.
    pub(crate) fn new(sink: &'a mut dyn Sink) -> Self {
        let mut file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(LOG)
            .ok();
        if let Some(file) = &mut file {
            let _ = file.seek(SeekFrom::End(0));
        }
        Self {
            sink,
            file,
            kept: Kept::default(),
        }
    }

    /// Puts what was logged since the last look, and how much was left out.
    pub(crate) fn finish(mut self) {
        self.put_new();
        if let Some(line) = self.kept.remark() {
            self.sink.put(&Frame::Log(line));
        }
    }

    fn put_new(&mut self) {
        let Some(file) = &mut self.file else { return };
        let mut text = String::new();
        let mut record = [0; RECORD_BYTES];
        loop {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(bytes) => self.kept.take(&record[..bytes], &mut text),
                // The oldest records made way for newer ones; the next one's number says how many.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => break,
            }
        }
        if !text.is_empty() {
            self.sink.put(&Frame::Log(text));
        }
    }
}

impl Sink for WithLog<'_> {
    fn put(&mut self, frame: &Frame) {
        if matches!(frame, Frame::Progress(_)) {
            self.put_new();
        }
        self.sink.put(frame);
    }

    fn is_full(&self) -> bool {
        self.sink.is_full()
    }
}

/// How much of a log was kept, and what was not.
#[derive(Debug, Default)]
struct Kept {
    bytes: usize,
    /// The number of the record that comes next; `None`: none was read yet.
    next: Option<u64>,
    left_out: u64,
}

impl Kept {
    /// Writes a record `PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT` as `dmesg` does, unless enough was
    /// written; lines of properties, which begin with a space, are left out.
    fn take(&mut self, record: &[u8], text: &mut String) {
        let record = String::from_utf8_lossy(record);
        let Some((head, message)) = record.split_once(';') else {
            return;
        };
        let mut words = head.split(',').skip(1).map(str::parse);
        let (Some(Ok(sequence)), Some(Ok(time_us))) = (words.next(), words.next()) else {
            return;
        };
        let lost = sequence - self.next.unwrap_or(sequence).min(sequence);
        self.next = Some(sequence + 1);
        if self.bytes >= MOST_BYTES {
            self.left_out += lost + 1;
            return;
        }
        let begin = text.len();
        if lost > 0 {
            let _ = writeln!(text, "({lost} lines lost, faster than they could be read)");
        }
        put_lines(time_us, message.lines().next().unwrap_or_default(), text);
        self.bytes += text.len() - begin;
    }

    fn remark(&self) -> Option<String> {
        (self.left_out > 0).then(|| format!("({} lines more)\n", self.left_out))
    }
}

/// Writes a message as lines with its time.
fn put_lines(time_us: u64, message: &str, text: &mut String) {
    let (seconds, rest) = (time_us / 1_000_000, time_us % 1_000_000);
    for line in unescaped(message).split('\n') {
        let _ = writeln!(text, "[{seconds:5}.{rest:06}] {line}");
    }
}

/// A message without the escapes (`\xNN`) of line ends, backslashes and letters beyond ASCII; those of
/// control characters stay.
fn unescaped(message: &str) -> String {
    let mut parts = message.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(code @ (b'\n' | b'\\' | 0x80..)) => {
                bytes.push(code);
                bytes.extend(&part.as_bytes()[2..]);
            }
            _ => {
                bytes.extend(b"\\x");
                bytes.extend(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(kept: &mut Kept, records: &[&[u8]]) -> String {
        let mut text = String::new();
        for record in records {
            kept.take(record, &mut text);
        }
        text
    }

    #[test]
    fn a_record_becomes_the_line_that_dmesg_writes() {
        let records: [&[u8]; 2] = [
            b"4,617,3012345,-;twist: beta is 870\n SUBSYSTEM=net\n",
            b"6,618,12000001,c;second\n",
        ];
        assert_eq!(
            text_of(&mut Kept::default(), &records),
            "[    3.012345] twist: beta is 870\n[   12.000001] second\n"
        );
    }

    #[test]
    fn escapes_of_line_ends_letters_and_backslashes_are_undone_and_those_of_controls_stay() {
        let records: [&[u8]; 1] = [br"6,1,1000000,-;two\x0alines \xc3\xa4 a\x5cb \x1b[31m \x"];
        assert_eq!(
            text_of(&mut Kept::default(), &records),
            "[    1.000000] two\n[    1.000000] lines \u{e4} a\\b \\x1b[31m \\x\n"
        );
    }

    #[test]
    fn what_is_no_record_is_left_out() {
        let records: [&[u8]; 3] = [b"no record", b"6;no number\n", b""];
        assert_eq!(text_of(&mut Kept::default(), &records), "");
    }

    #[test]
    fn records_that_were_overwritten_before_they_were_read_are_counted_where_they_lack() {
        let mut kept = Kept::default();
        let records: [&[u8]; 2] = [b"6,10,0,-;first\n", b"6,15,0,-;sixth\n"];
        let lines = text_of(&mut kept, &records);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("(4 lines lost"), "{}", lines[1]);
        assert_eq!(kept.remark(), None);
    }

    #[test]
    fn of_a_flood_the_first_64_kib_are_kept_and_the_rest_is_counted() {
        let mut kept = Kept::default();
        let mut text = String::new();
        for sequence in 0..2000 {
            kept.take(
                format!("6,{sequence},0,-;{:0>84}\n", 7).as_bytes(),
                &mut text,
            );
        }
        // A line has 100 bytes: the first that begins beyond 64 KiB is left out.
        let lines = text.lines().count();
        assert_eq!(lines, (64usize << 10).div_ceil(100));
        // Ten are overwritten.
        kept.take(b"6,2010,0,-;last\n", &mut text);
        let remark = format!("({} lines more)\n", 2011 - lines);
        assert_eq!(kept.remark(), Some(remark));
    }
}
