//! s2n-quic over UDP on 127.0.0.1 with our controllers. Nothing here measures time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use fullpipe_quic_cc::s2n::{Controller, Endpoint};
use fullpipe_quic_cc::Settings;
use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{self, PathInfo};
use s2n_quic::{Client, Server};

const BYTES: usize = 2_000_000;

/// Counts the controllers that the server makes. That they are called is what the stack's types say.
#[derive(Debug)]
struct Counted(Endpoint, Arc<AtomicU64>);

impl congestion_controller::Endpoint for Counted {
    type CongestionController = Controller;

    fn new_congestion_controller(&mut self, path_info: PathInfo) -> Controller {
        self.1.fetch_add(1, Relaxed);
        self.0.new_congestion_controller(path_info)
    }
}

/// Sends [`BYTES`] from a server to a client; returns the bytes received and the controllers made.
async fn transfer(name: &str) -> (usize, u64) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a name");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let settings = Settings::new(name).expect("built in").seed(1);
    let count = Arc::new(AtomicU64::new(0));
    let control = Counted(Endpoint::new(settings), Arc::clone(&count));
    let mut server = Server::builder()
        .with_tls((certificate.as_str(), key.as_str()))
        .expect("the key is the certificate's")
        .with_io("127.0.0.1:0")
        .expect("a free port")
        .with_congestion_controller(control)
        .expect("it cannot fail")
        .start()
        .expect("an endpoint");
    let client = Client::builder()
        .with_tls(certificate.as_str())
        .expect("a certificate")
        .with_io("127.0.0.1:0")
        .expect("a free port")
        .start()
        .expect("an endpoint");
    let to = server.local_addr().expect("it is bound");

    let sending = async {
        let mut connection = server.accept().await.expect("the endpoint is open");
        let mut stream = connection.open_send_stream().await.expect("a stream");
        stream.send(vec![0; BYTES].into()).await.expect("a reader");
        stream.close().await.expect("all was acknowledged");
    };
    let reading = async {
        let connect = Connect::new(to).with_server_name("localhost");
        let mut connection = client.connect(connect).await.expect("a handshake");
        let stream = connection.accept_receive_stream().await.expect("a stream");
        let mut stream = stream.expect("the connection is open");
        let mut received = 0;
        while let Some(chunk) = stream.receive().await.expect("all of it") {
            received += chunk.len();
        }
        (received, connection) // open until the sender has its ACKs
    };
    let ((), (received, _connection)) = tokio::join!(sending, reading);
    (received, count.load(Relaxed))
}

#[tokio::test]
async fn a_server_sends_by_cubic() {
    assert_eq!(transfer("cubic").await, (BYTES, 1));
}

#[tokio::test]
async fn a_server_sends_by_bbr3() {
    assert_eq!(transfer("bbr3").await, (BYTES, 1));
}
