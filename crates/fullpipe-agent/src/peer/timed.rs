//! A connection whose reads and writes must all be done by one time: who sends a byte now and then
//! gains nothing by it. This module must not know what is sent on the connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A connection until a time.
pub(super) struct Timed<'a> {
    stream: &'a mut TcpStream,
    allowed: Duration,
    until: Instant,
}

impl<'a> Timed<'a> {
    pub(super) fn new(stream: &'a mut TcpStream, allowed: Duration) -> Self {
        Self {
            stream,
            allowed,
            until: Instant::now() + allowed,
        }
    }

    /// From now on each read and write may take as long as all of them had.
    pub(super) fn end(self) -> io::Result<()> {
        self.stream.set_read_timeout(Some(self.allowed))?;
        self.stream.set_write_timeout(Some(self.allowed))
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("did not say who it is within {} s", self.allowed.as_secs()),
            )),
            false => Ok(left),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn reads_that_each_come_in_time_end_at_the_time_of_all() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let mut near = TcpStream::connect(to).expect("connected");
        let (mut far, _) = listener.accept().expect("accepted");
        let allowed = Duration::from_millis(50);
        let dribble = std::thread::spawn(move || {
            // One byte in every fifth of the time; the other end closes the connection.
            while near.write_all(&[0]).is_ok() {
                std::thread::sleep(allowed / 5);
            }
        });
        let mut timed = Timed::new(&mut far, allowed);
        let mut all = [0; 53];
        assert!(timed.read_exact(&mut all).is_err());
        drop(far);
        dribble.join().expect("ended");
    }
}
