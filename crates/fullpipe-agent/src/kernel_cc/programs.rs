//! Congestion controls that a user wrote as eBPF programs (struct_ops) for kernels: loads an object as it
//! is and registers what it has. It must not know anything of `bpf/`.

use std::fs;

use libbpf_rs::{MapCore, MapType, ObjectBuilder};

use super::load::{collect_log, failed, ONE_AT_A_TIME};

/// Registers every struct_ops of the object until this process ends.
pub(crate) fn register_object(path: &str) -> Result<(), String> {
    let bytes = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let _guard = ONE_AT_A_TIME.lock();
    collect_log();
    let open = ObjectBuilder::default()
        .open_memory(&bytes)
        .map_err(|error| failed(&format!("{name} cannot be read: {error}")))?;
    let mut object = open
        .load()
        .map_err(|error| failed(&format!("the kernel refuses {name}: {error}")))?;
    let mut links = Vec::new();
    for mut map in object.maps_mut() {
        if map.map_type() == MapType::StructOps {
            let shown = map.name().to_string_lossy().into_owned();
            let link = map.attach_struct_ops().map_err(|error| {
                failed(&format!("{name}: {shown} cannot be registered: {error}"))
            })?;
            links.push(link);
        }
    }
    if links.is_empty() {
        return Err(format!("{name} has no struct_ops"));
    }
    // What is registered stays until its link is closed.
    std::mem::forget((object, links));
    Ok(())
}
