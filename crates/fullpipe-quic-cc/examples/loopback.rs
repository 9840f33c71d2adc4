//! A quinn server that sends with an algorithm of fullpipe, and a client that reads, over UDP on 127.0.0.1:
//!
//! ```console
//! $ cargo run --release --example loopback -- bbr3 20
//! ```
//!
//! The second argument is the amount in MB, of 1 to 1,000. It ends after a minute at the latest.

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fullpipe_quic_cc::quinn::{Controller, Factory};
use fullpipe_quic_cc::Settings;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::rustls::RootCertStore;
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const AT_MOST: Duration = Duration::from_secs(60);
const SERVER_NAME: &str = "localhost";
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "bbr3".to_owned());
    let megabytes: usize = arguments.next().map_or(Ok(20), |text| text.parse())?;
    if !(1..=1000).contains(&megabytes) {
        return Err("the amount is 1 to 1000 MB".into());
    }
    let run = transfer(&name, megabytes * 1_000_000);
    tokio::time::timeout(AT_MOST, run).await?
}

async fn transfer(name: &str, bytes: usize) -> Outcome<()> {
    let made = rcgen::generate_simple_self_signed([SERVER_NAME.to_owned()])?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());

    // What a server has to do: a factory in its transport configuration.
    let mut transport = TransportConfig::default();
    let settings = Settings::new(name)?.seed(1);
    transport.congestion_controller_factory(Arc::new(Factory::new(settings)));
    let mut config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    config.transport_config(Arc::new(transport));
    let here = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Endpoint::server(config, here)?;

    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let client = Endpoint::client(here)?;
    let config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let connecting = client.connect_with(config, server.local_addr()?, SERVER_NAME)?;

    let sending = async {
        let incoming = server.accept().await.ok_or("the endpoint is closed")?;
        send(incoming.await?, bytes).await
    };
    let reading = async { read(connecting.await?).await };
    let (sent, received) = tokio::join!(sending, reading);
    sent?;
    let (received, took) = received?;
    let mbps = received as f64 * 8e-6 / took.as_secs_f64();
    println!("{name}: {received} bytes in {took:.3?}, {mbps:.0} Mbit/s");
    Ok(())
}

/// Sends so many bytes, waits until all are acknowledged, and prints the state of the algorithm.
async fn send(connection: Connection, bytes: usize) -> Outcome<()> {
    let mut stream = connection.open_uni().await?;
    let mut left = bytes;
    while left > 0 {
        left -= stream.write(&ZEROS[..left.min(ZEROS.len())]).await?;
    }
    stream.finish()?;
    stream.stopped().await?;
    let state = connection.congestion_state();
    let control = Controller::of(state.as_ref()).ok_or("another congestion control")?;
    let host = control.host();
    println!("window: {} packets", host.cwnd_packets());
    for (known, value) in host.variables() {
        let value = value.map_or("none".to_owned(), |value| format!("{value:.0}"));
        println!("{}: {value}", known.column);
    }
    connection.close(0u32.into(), b"done");
    Ok(())
}

/// Reads one stream to its end; the time is from its beginning.
async fn read(connection: Connection) -> Outcome<(usize, Duration)> {
    let mut stream = connection.accept_uni().await?;
    let begin = Instant::now();
    let mut received = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
        received += chunk.bytes.len();
    }
    let took = begin.elapsed();
    connection.closed().await;
    Ok((received, took))
}
