//! The structures of cc/cc.h and cc/native.h, field by field in C's layout.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

/// 1.0 as a gain (`CC_ONE`).
pub const ONE: u32 = 1024;
/// "No bound" (`CC_INFINITE`).
pub const INFINITE: u32 = 0x7fff_ffff;

/// Where a structure's fields lie in memory.
pub(crate) struct Structure {
    pub(crate) name: &'static str,
    pub(crate) size_bytes: usize,
    pub(crate) fields: &'static [Field],
}

/// Where a field lies in its structure.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) offset_bytes: usize,
    pub(crate) size_bytes: usize,
}

/// Defines structures in C's layout, each `Name: name_in_c`, and lists them in [`STRUCTURES`]. A field
/// that is called something else in C is `name as name_in_c`.
macro_rules! structures {
    (@c_name $field:ident) => {
        stringify!($field)
    };
    (@c_name $field:ident $c_field:ident) => {
        stringify!($c_field)
    };
    ($(
        $(#[$attribute:meta])*
        $visible:vis struct $name:ident: $c_name:ident {
            $(
                $(#[$field_attribute:meta])*
                $field_visible:vis $field:ident $(as $c_field:ident)?: $type:ty,
            )*
        }
    )*) => {
        $(
            $(#[$attribute])*
            #[repr(C)]
            $visible struct $name {
                $(
                    $(#[$field_attribute])*
                    $field_visible $field: $type,
                )*
            }
        )*

        /// The structures that cross, as they are here; cc/layout.h has the same list of C's.
        pub(crate) const STRUCTURES: &[Structure] = &[$(
            Structure {
                name: stringify!($c_name),
                size_bytes: size_of::<$name>(),
                fields: &[$(
                    Field {
                        name: structures!(@c_name $field $($c_field)?),
                        offset_bytes: offset_of!($name, $field),
                        size_bytes: size_of::<$type>(),
                    },
                )*],
            },
        )*];
    };
}

structures! {
    /// `struct cc_conn`: the state of the connection at a call.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[allow(missing_docs)] // documented in cc/cc.h, which is the contract
    pub struct Conn: cc_conn {
        pub now_us: u64,
        pub now_ns: u64,
        pub edt_ns: u64,
        pub delivered_us: u64,
        pub last_send_us: u64,
        pub pacing_rate_cap_bytes_per_s as pacing_rate_cap_Bps: u64,
        pub mss_bytes: u32,
        pub delivered: u32,
        pub delivered_ce: u32,
        pub lost: u32,
        pub packets_out: u32,
        pub inflight: u32,
        pub snd_una: u32,
        pub snd_nxt: u32,
        pub srtt_us: u32,
        pub app_limited: u32,
        pub cwnd_clamp: u32,
        pub gso_max_segs: u32,
        pub seed: u32,
        pub ca_state: u8,
        pub prior_ca_state: u8,
        pub is_cwnd_limited: u8,
        pub ecn_ok: u8,
        pub ecn_low: u8,
        pub is_paced: u8,
        pub is_cwnd_full: u8,
        pub unused as unused_: [u8; 5],
        pub min_rtt_us: u32,
        pub rttvar_us: u32,
        pub unsent_bytes: u32,
        pub unsent_packets: u32,
        pub acks: u32,
        pub rcv_tsval: u32,
        pub rcv_tsecr: u32,
        pub ts_tick_us: u32,
        pub sacked_out: u32,
        pub lost_out: u32,
        pub retrans_out: u32,
        pub max_packets_out: u32,
        pub high_seq: u32,
        pub reordering: u32,
        pub prior_cwnd: u32,
        pub lost_age_us: u32,
    }

    /// `struct cc_ack`: one ACK's rate sample.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[allow(missing_docs)] // documented in cc/cc.h, which is the contract
    pub struct Ack: cc_ack {
        pub prior_us: u64,
        pub prior_delivered: u32,
        pub prior_delivered_ce: u32,
        pub delivered: i32,
        pub delivered_ce: i32,
        pub interval_us: i32,
        pub rtt_us: i32,
        pub losses: u32,
        pub acked_sacked: u32,
        pub prior_inflight: u32,
        pub last_end_seq: u32,
        pub tx_inflight: u32,
        pub lost: u32,
        pub is_app_limited: u8,
        pub is_retrans: u8,
        pub is_ack_delayed: u8,
        pub is_probe_answer: u8,
        pub age_us: u32,
    }

    /// `struct cc_event`: anything but an ACK.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Event: cc_event {
        /// One of [`EventKind`].
        pub kind: u32,
        /// Depends on the kind.
        pub value: u32,
        /// Depends on the kind.
        pub packets: u32,
        /// The packet that it is about was sent while application-limited; of an RTT with
        /// `WANTS_EVERY_RTT`, the packets delivered since the newest one acknowledged was sent.
        pub is_app_limited: u32,
    }

    /// `struct cc_ctl`: what an algorithm sets.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[allow(missing_docs)] // documented in cc/cc.h, which is the contract
    pub struct Ctl: cc_ctl {
        pub pacing_rate_bytes_per_s as pacing_rate_Bps: u64,
        pub cwnd: u32,
        pub ssthresh: u32,
        pub tso_segs: u32,
        pub sndbuf_factor: u32,
        pub cwnd_cnt: u32,
        pub tso_most: u16,
        pub is_scalable: u8,
        pub enters_cwr: u8,
        pub timer_us: u64,
    }

    /// `struct cc_info`: what an algorithm without a list of its own variables lets others see.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[allow(missing_docs)] // documented in cc/cc.h, which is the contract
    pub struct Info: cc_info {
        pub bw_bytes_per_s as bw_Bps: u64,
        pub max_bw_bytes_per_s as max_bw_Bps: u64,
        pub bw_shortterm_bytes_per_s as bw_shortterm_Bps: u64,
        pub min_rtt_us: u32,
        pub phase: u32,
        pub pacing_gain: u32,
        pub cwnd_gain: u32,
        pub inflight_longterm: u32,
        pub inflight_shortterm: u32,
        pub extra_acked: u32,
        pub round_count: u32,
    }

    /// `struct cc_kept` of cc/defaults.h.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Kept: cc_kept {
        pub(crate) sndbuf_factor: u32,
        pub(crate) sets_pacing: u32,
        pub(crate) timer_us: u64,
        pub(crate) recovery: [u32; 6],
    }

    pub(crate) struct ParamInfo: cc_param_info {
        pub(crate) name: *const c_char,
        pub(crate) unit: *const c_char,
        pub(crate) zero: *const c_char,
        pub(crate) source: *const c_char,
        pub(crate) meaning: *const c_char,
        pub(crate) dflt: u32,
        pub(crate) min: u32,
        pub(crate) max: u32,
        pub(crate) scale: u32,
        pub(crate) origin: u32,
        pub(crate) unused_: u32,
    }

    pub(crate) struct StateInfo: cc_state_info {
        pub(crate) name: *const c_char,
        pub(crate) unit: *const c_char,
        pub(crate) meaning: *const c_char,
        pub(crate) scale: u32,
        pub(crate) unused_: u32,
    }

    pub(crate) struct Algorithm: cc_algorithm {
        pub(crate) name: *const c_char,
        pub(crate) title: *const c_char,
        pub(crate) sources: *const c_char,
        pub(crate) params: *const ParamInfo,
        pub(crate) variables: *const StateInfo,
        pub(crate) param_count: u32,
        pub(crate) variable_count: u32,
        pub(crate) state_bytes: u32,
        pub(crate) flags: u32,
        pub(crate) init:
            unsafe extern "C" fn(*mut c_void, *const c_void, *mut Kept, *const Conn, *mut Ctl),
        pub(crate) on_ack: unsafe extern "C" fn(
            *mut c_void,
            *const c_void,
            *mut Kept,
            *const Conn,
            *const Ack,
            *mut Ctl,
        ),
        pub(crate) on_event: unsafe extern "C" fn(
            *mut c_void,
            *const c_void,
            *mut Kept,
            *const Conn,
            *const Event,
            *mut Ctl,
        ),
        pub(crate) read: unsafe extern "C" fn(*const c_void, *const c_void, *mut i64),
        pub(crate) flags_of: unsafe extern "C" fn(*const c_void) -> u32,
    }

    pub(crate) struct Override: cc_override {
        pub(crate) param: *const c_char,
        pub(crate) value: u32,
        pub(crate) unused_: u32,
    }

    pub(crate) struct Set: cc_set {
        pub(crate) name: *const c_char,
        pub(crate) algorithm: *const c_char,
        pub(crate) kernel_name: *const c_char,
        pub(crate) title: *const c_char,
        pub(crate) overrides: *const Override,
    }
}

/// `enum cc_event_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)] // documented in cc/cc.h, which is the contract
pub enum EventKind {
    TxStart = 1,
    CwndRestart,
    CompleteCwr,
    Rto,
    EcnCe,
    State,
    Ssthresh,
    Undo,
    Rtt,
    Send,
    Lost,
    TlpRecovery,
    Ack,
    Timer,
}

/// `enum cc_ca_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // Linux enum tcp_ca_state
pub enum CaState {
    #[default]
    Open,
    Disorder,
    Cwr,
    Recovery,
    Loss,
}

// SAFETY: native.c's tables are immutable and point only to immutable data and to functions that
// touch nothing but their arguments.
unsafe impl Send for Algorithm {}
// SAFETY: as for Send.
unsafe impl Sync for Algorithm {}

/// A row of cc/layout.h's table: a structure, and then each of its fields.
#[repr(C)]
pub(crate) struct LayoutRow {
    /// Null ends the table.
    pub(crate) structure: *const c_char,
    /// Null: the row is the structure itself.
    pub(crate) field: *const c_char,
    pub(crate) offset_bytes: u32,
    pub(crate) size_bytes: u32,
}

extern "C" {
    pub(crate) static cc_layout: [LayoutRow; 0];
    pub(crate) static cc_algorithms: [Algorithm; 0];
    pub(crate) static cc_algorithm_count: u32;
    pub(crate) static cc_sets: [Set; 0];
    pub(crate) static cc_set_count: u32;
    pub(crate) static cc_ring_bytes: u32;
    pub(crate) static cc_info_variables: [StateInfo; 0];
    pub(crate) static cc_info_variable_count: u32;
    pub(crate) fn cc_info_read(info: *const Info, values: *mut i64);
    pub(crate) fn cc_ring_take_native(ring: *mut c_void, conn: *const Conn, event: *const Event);
    pub(crate) fn cc_ring_sample_native(ring: *const c_void, conn: *const Conn, ack: *mut Ack);
    pub(crate) fn cc_least_burst(kept: *mut Kept, ctl: *mut Ctl) -> u32;
    pub(crate) static cc_pacing_ss_percent: u32;
    pub(crate) static cc_pacing_ca_percent: u32;
    pub(crate) fn cc_window_rate(
        ctl: *const Ctl,
        packets_out: u32,
        mss_bytes: u32,
        srtt_us8: u64,
        ss_percent: u32,
        ca_percent: u32,
    ) -> u64;
    pub(crate) fn cc_open_ctl_native(kept: *mut Kept, flags: u32, event_kind: u32, ctl: *mut Ctl);
    pub(crate) fn cc_settle_ack_native(
        kept: *mut Kept,
        flags: u32,
        conn: *const Conn,
        ack: *const Ack,
        cwnd: u32,
        ctl: *mut Ctl,
    );
    pub(crate) fn cc_settle_event_native(
        kept: *mut Kept,
        flags: u32,
        conn: *const Conn,
        event: *const Event,
        ctl: *mut Ctl,
    );
    pub(crate) fn cc_close_ctl_native(
        kept: *mut Kept,
        flags: u32,
        conn: *const Conn,
        host_rate_bytes_per_s: u64,
        ctl: *mut Ctl,
    );
}
