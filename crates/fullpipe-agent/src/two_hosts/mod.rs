//! Runs between two hosts: the near end has the scenario, the far end serves. Each end measures the
//! flows that it sends, and the near end joins both recordings. This module must not know how
//! connections are authenticated.

mod far;
mod messages;
mod near;
mod unauthenticated;

pub(crate) use far::serve;
pub(crate) use near::run;
