//! A channel as a link of a network: forward is from the stations to the access point.

use super::edca::category_of_dscp;
use super::params::Wifi;
use super::state::{Channel, Delivered};
use crate::link::{Direction, DirectionState, Exit, Link, Passed};
use crate::packet::Packet;

/// Both directions share the medium, and so its timer.
const TIMER: usize = 0;

/// A channel, and the stations of flows.
#[derive(Debug)]
pub struct WifiLink<P> {
    channel: Channel<P>,
    /// Indices of stations by flow key; flows behind its end are at the first station.
    stations: Vec<u16>,
    delivered: Vec<Delivered<P>>,
}

impl<P: Packet> WifiLink<P> {
    /// The link of a plan; `later`: stations that flows will be at later. The error names a key.
    pub fn new(wifi: &Wifi, stations: &[u16], later: &[u16], seed: u64) -> Result<Self, String> {
        let count = wifi.stations.len();
        if stations
            .iter()
            .chain(later)
            .any(|&station| usize::from(station) >= count)
        {
            return Err(format!("stations: there are only {count}"));
        }
        Ok(Self {
            channel: Channel::new(wifi, seed)?,
            stations: stations.to_vec(),
            delivered: Vec::with_capacity(64),
        })
    }
}

impl<P: Packet> Link<P> for WifiLink<P> {
    fn timer(&self, _way: Direction) -> usize {
        TIMER
    }

    fn offer(&mut self, now_ns: u64, direction: Direction, packet: P, passed: &mut Passed<P>) {
        let station = self.stations.get(packet.flow_key() as usize);
        let station = usize::from(station.copied().unwrap_or(0));
        let category = category_of_dscp(packet.dscp());
        let up = direction == Direction::Forward;
        self.channel
            .send(now_ns, station, up, category, packet, &mut passed.dropped);
    }

    fn advance(&mut self, now_ns: u64, _timer: usize, passed: &mut Passed<P>) {
        self.channel
            .advance(now_ns, &mut self.delivered, &mut passed.dropped);
        let exits = self.delivered.drain(..).map(|delivered| Exit {
            at_ns: now_ns,
            direction: if delivered.up {
                Direction::Forward
            } else {
                Direction::Reverse
            },
            packet: delivered.packet,
        });
        passed.out.extend(exits);
    }

    fn due_ns(&self, timer: usize) -> Option<u64> {
        let due_ns = self.channel.next_ns();
        (timer == TIMER && due_ns < u64::MAX).then_some(due_ns)
    }

    fn set_station(&mut self, flow_key: u32, station: u16) {
        let flow_key = flow_key as usize;
        if self.stations.len() <= flow_key {
            self.stations.resize(flow_key + 1, 0);
        }
        self.stations[flow_key] = station;
    }

    fn state(&self, direction: Direction) -> Option<DirectionState> {
        let up = direction == Direction::Forward;
        let (queue_packets, queue_bytes) = self.channel.backlog(up);
        Some(DirectionState {
            queue_bytes,
            queue_packets,
            counters: self.channel.counters(up),
            lost_packets: 0,
            marked_packets: 0,
        })
    }
}
