//! The far end: listens on one address, authenticates peers by the token, and does one run at a time.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fullpipe_plan::stream::{encode, Frame};
use fullpipe_plan::Plan;

use super::messages::{recv, send, send_frames, Command, Reply, LEAD_NS};
use super::unauthenticated::{Place, Unauthenticated};
use crate::check::check_for_peers;
use crate::clock::now_ns;
use crate::peer::{accept_peer, ArrivalSender, Arrivals, PeerLink, Purpose};
use crate::request::{Clock, Request};
use crate::session::{self, Session};
use crate::sink::Sink;

/// Read timeout of the control connection before a run begins.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(60);

struct Server {
    token: String,
    objects: String,
    unauthenticated: Arc<Unauthenticated>,
    /// Receives the data connections of the run in progress.
    arrivals: Mutex<Option<ArrivalSender>>,
}

/// Listens on `address` until the process ends.
pub(crate) fn serve(address: &str, token: String, objects: String) -> Result<(), String> {
    let place = |error: io::Error| format!("{address}: {error}");
    let listener = TcpListener::bind(address).map_err(place)?;
    println!("listening on {}", listener.local_addr().map_err(place)?);
    io::stdout().flush().map_err(place)?;
    let server = Arc::new(Server {
        token,
        objects,
        unauthenticated: Arc::default(),
        arrivals: Mutex::new(None),
    });
    for stream in listener.incoming() {
        // A connection may be reset while it waits in the backlog.
        let Ok(stream) = stream else { continue };
        // A connection that has been reset has no address any more.
        let Ok(place) = server.unauthenticated.admit(&stream) else {
            continue;
        };
        let server = Arc::clone(&server);
        // Without a thread for it, the connection is closed.
        let _ = std::thread::Builder::new().spawn(move || server.accept(stream, place));
    }
    Ok(())
}

impl Server {
    fn accept(&self, stream: TcpStream, place: Place) {
        let from = stream.peer_addr();
        let accepted = accept_peer(stream, &self.token);
        drop(place);
        let outcome = accepted.and_then(|(purpose, stream)| match purpose {
            Purpose::Control => self.control(stream),
            Purpose::Data(flow) => {
                if let Some(sender) = &*self.arrivals() {
                    sender.hand_over((flow as usize, Ok(OwnedFd::from(stream))));
                }
                Ok(())
            }
        });
        if let Err(error) = outcome {
            let from = from.map_or_else(|_| "unknown address".to_owned(), |from| from.to_string());
            // Standard error may be closed.
            let _ = writeln!(io::stderr(), "{from}: {error}");
        }
    }

    fn arrivals(&self) -> MutexGuard<'_, Option<ArrivalSender>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one run, unless another is in progress.
    fn control(&self, mut control: TcpStream) -> io::Result<()> {
        control.set_nodelay(true)?;
        control.set_read_timeout(Some(CONTROL_TIMEOUT))?;
        let Command::Prepare(plan) = recv(&mut control)? else {
            return Err(io::Error::other("the first command is not a plan"));
        };
        let (arrivals, sender) = Arrivals::new()?;
        {
            let mut current = self.arrivals();
            if current.is_some() {
                let busy = Reply::Refused("another run is in progress".to_owned());
                return send(&mut control, &busy);
            }
            *current = Some(sender);
        }
        let peer_link = PeerLink {
            arrivals,
            dial: None,
        };
        if let Ok(near) = control.peer_addr() {
            self.unauthenticated.expect(near.ip(), plan.flows.len());
        }
        let outcome = self.run(control, *plan, peer_link);
        self.unauthenticated.expect_nobody();
        *self.arrivals() = None;
        outcome
    }

    fn run(&self, mut control: TcpStream, plan: Plan, peer_link: PeerLink) -> io::Result<()> {
        let request = Request {
            web: None,
            plan,
            clock: Clock::Wall,
            objects: self.objects.clone(),
            module: None,
            inserted: Vec::new(),
            cc_states: false,
            capture: false,
            cc_trace: None,
            cc_cost: false,
            background_processes: 0,
            peer: None,
        };
        let session =
            check_for_peers(&request.plan).and_then(|()| Session::with_peer(&request, peer_link));
        let session = match session {
            Ok(session) => session,
            Err(sentence) => return send(&mut control, &Reply::Refused(sentence)),
        };
        send(&mut control, &Reply::Done)?;
        loop {
            match recv(&mut control)? {
                Command::Echo => send(&mut control, &Reply::Done)?,
                Command::Go => break,
                Command::Prepare(_) | Command::End => return Ok(()),
            }
        }
        let start_ns = now_ns() + LEAD_NS;
        session.end_with(&control)?;
        let mut frames = Frames(Vec::new());
        frames.put(&session::kernel_fact());
        let done = session.run_from(start_ns, &mut frames);
        frames.put(&done.map_or_else(Frame::Failure, |()| Frame::End));
        let Command::End = recv(&mut control)? else {
            return Err(io::Error::other(
                "the near end sent another command instead of End",
            ));
        };
        send_frames(&mut control, &frames.0)
    }
}

/// Frames in memory: no result may be sent over the network while it is measured.
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
