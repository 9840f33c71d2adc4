//! The far end: listens on one address, lets in who knows the token, and does one run at a time.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fullpipe_plan::stream::{encode, Frame};
use fullpipe_plan::Plan;

use super::arrivals::{receive, Arrivals, Door, Meeting};
use super::handshake::Purpose;
use super::messages::{hear, say, send_frames, Answer, Ask};
use super::near::LEAD_NS;
use crate::check::check_for_peers;
use crate::clock::now_ns;
use crate::request::{Clock, Request};
use crate::session::{self, Session};
use crate::sink::Sink;

/// Connections that have not yet proved who they are.
const STRANGERS_MAX: usize = 64;
/// How long the near end may be silent between two messages before a run begins.
const PATIENCE: Duration = Duration::from_secs(60);

struct Server {
    token: String,
    objects: String,
    strangers: AtomicUsize,
    /// Where data connections of the run go, while there is one.
    door: Mutex<Option<Door>>,
}

/// Listens on `address` until the process is told to end.
pub(crate) fn serve(address: &str, token: String, objects: String) -> Result<(), String> {
    let place = |error: io::Error| format!("{address}: {error}");
    let listener = TcpListener::bind(address).map_err(place)?;
    println!("listening on {}", listener.local_addr().map_err(place)?);
    io::stdout().flush().map_err(place)?;
    let server = Arc::new(Server {
        token,
        objects,
        strangers: AtomicUsize::new(0),
        door: Mutex::new(None),
    });
    for stream in listener.incoming() {
        // A connection that was reset while it waited is no reason to end.
        let Ok(stream) = stream else { continue };
        if server.strangers.fetch_add(1, Ordering::Relaxed) >= STRANGERS_MAX {
            server.strangers.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let server = Arc::clone(&server);
        std::thread::spawn(move || server.meet(stream));
    }
    Ok(())
}

impl Server {
    fn meet(&self, stream: TcpStream) {
        let from = stream.peer_addr();
        let met = receive(stream, &self.token);
        self.strangers.fetch_sub(1, Ordering::Relaxed);
        let outcome = met.and_then(|(purpose, stream)| match purpose {
            Purpose::Control => self.control(stream),
            Purpose::Data(flow) => {
                if let Some(door) = &*self.door() {
                    door.hand_over((flow as usize, Ok(OwnedFd::from(stream))));
                }
                Ok(())
            }
        });
        if let Err(error) = outcome {
            let from = from.map_or_else(|_| "somebody".to_owned(), |from| from.to_string());
            // Nobody may be reading what this process says.
            let _ = writeln!(io::stderr(), "{from}: {error}");
        }
    }

    fn door(&self) -> MutexGuard<'_, Option<Door>> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One run, as long as nobody else has one.
    fn control(&self, mut control: TcpStream) -> io::Result<()> {
        control.set_nodelay(true)?;
        control.set_read_timeout(Some(PATIENCE))?;
        let Ask::Prepare(plan) = hear(&mut control)? else {
            return Err(io::Error::other("no plan came"));
        };
        let (arrivals, door) = Arrivals::new()?;
        {
            let mut place = self.door();
            if place.is_some() {
                let busy = Answer::Refused("another run is going on".to_owned());
                return say(&mut control, &busy);
            }
            *place = Some(door);
        }
        let meeting = Meeting {
            arrivals,
            dial: None,
        };
        let outcome = self.run(control, *plan, meeting);
        *self.door() = None;
        outcome
    }

    fn run(&self, mut control: TcpStream, plan: Plan, meeting: Meeting) -> io::Result<()> {
        let request = Request {
            web: None,
            plan,
            clock: Clock::Wall,
            objects: self.objects.clone(),
            cc_trace: None,
            cc_cost: false,
            background_processes: 0,
            peer: None,
        };
        let session =
            check_for_peers(&request.plan).and_then(|()| Session::with_peer(&request, meeting));
        let mut session = match session {
            Ok(session) => session,
            Err(sentence) => return say(&mut control, &Answer::Refused(sentence)),
        };
        say(&mut control, &Answer::Done)?;
        loop {
            match hear(&mut control)? {
                Ask::Echo => say(&mut control, &Answer::Done)?,
                Ask::Go => break,
                Ask::Prepare(_) | Ask::End => return Ok(()),
            }
        }
        let start_ns = now_ns() + LEAD_NS;
        session.end_with(&control)?;
        let mut frames = Frames(Vec::new());
        frames.put(&session::kernel_fact());
        let done = session.run_from(start_ns, &mut frames);
        let done = done.and_then(|()| session.finish(&mut frames));
        frames.put(&done.map_or_else(Frame::Failure, |()| Frame::End));
        let Ask::End = hear(&mut control)? else {
            return Err(io::Error::other(
                "the near end asks for something else than the end",
            ));
        };
        send_frames(&mut control, &frames.0)
    }
}

/// Frames in memory: nothing of a measurement may travel over the network that is measured.
struct Frames(Vec<u8>);

impl Sink for Frames {
    fn put(&mut self, frame: &Frame) {
        if !self.is_full() {
            encode(frame, &mut self.0);
        }
    }

    fn is_full(&self) -> bool {
        const MAX_BYTES: usize = 1 << 30;
        self.0.len() > MAX_BYTES
    }
}
