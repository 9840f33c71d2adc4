//! Two hosts that a wire joins, each in a namespace of its own.

use std::net::Ipv4Addr;

use crate::clock::wake_when_due;
use crate::net::{join, End, Home, Node, Port};

/// Of both ports, without the link header.
const MTU_BYTES: u32 = 1_500;

/// Fields are dropped in this order: the thread returns when the namespaces are gone.
pub(super) struct Hosts {
    pub(super) host: Node,
    pub(super) peer: Node,
    pub(super) near: Port,
    pub(super) far: Port,
    _home: Home,
}

impl Hosts {
    /// The host's port is `near`, the peer's is `far`, with these addresses. The thread's timers expire when
    /// they are due.
    pub(super) fn join(near: Ipv4Addr, far: Ipv4Addr) -> Result<Self, String> {
        let home = Home::remember().map_err(|error| format!("network namespace: {error}"))?;
        let mut host = Node::create("host".to_owned())?;
        let mut peer = Node::create("peer".to_owned())?;
        let end = |node, name: &str, address| End {
            node,
            name: name.to_owned(),
            address,
        };
        let (near, far) = join(
            end(&mut host, "near", near),
            end(&mut peer, "far", far),
            MTU_BYTES,
        )?;
        wake_when_due();
        Ok(Self {
            host,
            peer,
            near,
            far,
            _home: home,
        })
    }
}
