//! noq over UDP on 127.0.0.1 with our controllers. Nothing here measures time.

use std::net::Ipv4Addr;
use std::sync::Arc;

use fullpipe_quic_cc::noq::{Controller, Factory};
use fullpipe_quic_cc::Settings;
use noq::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use noq::rustls::RootCertStore;
use noq::{ClientConfig, Endpoint, PathId, ServerConfig, TransportConfig};

const BYTES: usize = 2_000_000;

/// Sends [`BYTES`] from a server to a client; returns the bytes received and the server's controller.
async fn transfer(name: &str) -> (usize, Controller) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a name");
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let settings = Settings::new(name).expect("built in").seed(1);
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Factory::new(settings)));
    let mut config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())
        .expect("the key is the certificate's");
    config.transport_config(Arc::new(transport));
    let here = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Endpoint::server(config, here).expect("a free port");

    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("roots");
    let client = Endpoint::client(here).expect("a free port");
    let to = server.local_addr().expect("it is bound");
    let connecting = client
        .connect_with(config, to, "localhost")
        .expect("a valid name");

    let sending = async {
        let incoming = server.accept().await.expect("the endpoint is open");
        let connection = incoming.await.expect("a handshake");
        let mut stream = connection.open_uni().await.expect("a stream");
        stream.write_all(&vec![0; BYTES]).await.expect("a reader");
        stream.finish().expect("once");
        stream.stopped().await.expect("all was acknowledged");
        let state = connection.congestion_state(PathId::ZERO);
        connection.close(0u32.into(), b"done");
        Controller::of(state.expect("the path is open").as_ref()).expect("ours")
    };
    let reading = async {
        let connection = connecting.await.expect("a handshake");
        let mut stream = connection.accept_uni().await.expect("a stream");
        let received = stream.read_to_end(2 * BYTES).await.expect("all of it");
        connection.closed().await;
        received.len()
    };
    let (control, received) = tokio::join!(sending, reading);
    (received, control)
}

#[tokio::test]
async fn a_server_sends_by_cubic() {
    let (received, control) = transfer("cubic").await;
    assert_eq!(received, BYTES);
    let host = control.host();
    assert!(host.smoothed_rtt_us().is_some());
    assert!(host.cwnd_packets() > 10, "{}", host.cwnd_packets());
    assert_eq!(host.pacing_rate_bytes_per_s(), None);
}

#[tokio::test]
async fn a_server_sends_by_bbr3() {
    let (received, control) = transfer("bbr3").await;
    assert_eq!(received, BYTES);
    let host = control.host();
    assert!(host.variable("max_bw_bps").is_some_and(|bps| bps > 0.0));
    assert!(host
        .variable("round_count")
        .is_some_and(|rounds| rounds > 3.0));
    assert!(host.variable("min_rtt_us").is_some());
    assert!(host.pacing_rate_bytes_per_s().is_some());
}
