//! Queue disciplines of this kernel, by netlink (linux/pkt_sched.h). Must not know where in a path one is
//! attached.

mod attach;
mod cake;
mod disciplines;
mod netem;
mod policer;
mod red;
mod shaper;
mod spec;

pub(crate) use attach::{attach, change, handle, inside, tcmsg, ROOT};
pub(crate) use disciplines::{filtered, marks, pacing_fq, queue};
pub(crate) use netem::{netem, Netem};
pub(crate) use policer::{police, policed};
pub(crate) use shaper::{class_line, htb, link_rate, put_htb_class, Shape, HTB_CLASS};
pub(crate) use spec::Spec;
