//! What holds for every discipline of the registry, with parameters of all kinds.

mod allocation;
mod conservation;
