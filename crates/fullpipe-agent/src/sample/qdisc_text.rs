//! The qdiscs of a namespace with their counters, in the words of `tc -s qdisc` (iproute2, tc/tc_qdisc.c,
//! print_tcstats2_attr()). It must never know what a path is.

use nix::net::if_::if_indextoname;

use super::qdisc_counters::{parse, Counters};
use crate::net::netlink::{attribute, u32_at, Message, DUMP};
use crate::net::qdisc::{tcmsg, ROOT};
use crate::net::Node;

/// Words of struct tcmsg.
const PORT: usize = 1;
const HANDLE: usize = 2;
const PARENT: usize = 3;
const FIXED_BYTES: usize = 20;

/// Those that queue or delay. Enters the node.
pub(crate) fn qdisc_text(node: &mut Node) -> Result<String, String> {
    node.enter()?;
    let message = Message::request(libc::RTM_GETQDISC, DUMP, &tcmsg(0, 0, 0));
    let mut text = String::new();
    node.netlink
        .ask_for(message, |body| text += &words(body).unwrap_or_default())
        .map_err(|error| format!("{}: reading qdiscs: {error}", node.name))?;
    Ok(text)
}

fn words(body: &[u8]) -> Option<String> {
    let kind = attribute(body.get(FIXED_BYTES..)?, libc::TCA_KIND)?;
    let kind = String::from_utf8_lossy(kind.strip_suffix(&[0]).unwrap_or(kind)).into_owned();
    if kind == "noqueue" {
        return None;
    }
    let port = u32_at(body, PORT)?;
    let name = if_indextoname(port).map_or_else(
        |_| port.to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    let place = match u32_at(body, PARENT)? {
        ROOT => "root".to_owned(),
        parent => format!("parent {:x}:{:x}", parent >> 16, parent & 0xffff),
    };
    let handle = u32_at(body, HANDLE)? >> 16;
    let head = format!("qdisc {kind} {handle:x}: dev {name} {place}");
    Some(format!("{head}\n{}", counted(parse(body)?)))
}

fn counted(counters: Counters) -> String {
    let mut text = format!(
        " Sent {} bytes {} pkt (dropped {}, overlimits {} requeues {})\n backlog {}b {}p requeues {}\n",
        counters.sent_bytes,
        counters.sent_packets,
        counters.dropped_packets,
        counters.overlimits,
        counters.requeues,
        counters.backlog_bytes,
        counters.backlog_packets,
        counters.requeues
    );
    if counters.marked_packets > 0 {
        text += &format!(" ecn_mark {}\n", counters.marked_packets);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_words_of_tc() {
        let counters = Counters {
            sent_bytes: 3000,
            sent_packets: 2,
            dropped_packets: 1,
            overlimits: 5,
            backlog_bytes: 1500,
            backlog_packets: 1,
            marked_packets: 7,
            ..Counters::default()
        };
        assert_eq!(
            counted(counters),
            " Sent 3000 bytes 2 pkt (dropped 1, overlimits 5 requeues 0)\n \
             backlog 1500b 1p requeues 0\n ecn_mark 7\n"
        );
    }
}
