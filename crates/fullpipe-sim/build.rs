//! Hashes the sources that decide a run's result, part by part, so that a store of results knows
//! which of them a new build would leave as they are (`components()` in src/lib.rs).
//!
//! A part is what only plans that name it can reach: an algorithm of cc/ with the headers that it
//! includes, or a queue discipline or kind of link in a file or folder of its own. All the rest is
//! the core.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Files and folders of fullpipe-net that only plans of that `kind` reach.
const KINDS: &[&str] = &[
    "cake", "codel", "dualpi2", "fq", "fq_codel", "fq_pie", "pie", "prio", "red", "sfq", "tbf",
    "wifi",
];
/// Kinds that use another's file.
const USES: &[(&str, &[&str])] = &[("fq_codel", &["codel"]), ("fq_pie", &["pie"])];
/// Folders of sources, from this crate's.
const CORE: &[&str] = &[
    "src",
    "../fullpipe-tcp/src",
    "../fullpipe-workload/src",
    "../fullpipe-plan/src",
    "../fullpipe-cc/src",
];
/// Files of cc/ that decide no result: the list of algorithms, and what `cc check` calls them with.
const NO_RUN_REACHES: &[&str] = &["registry.h", "fuzz.c"];

fn main() {
    let mut parts: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    let mut core: BTreeSet<PathBuf> = CORE
        .iter()
        .flat_map(|folder| files(Path::new(folder)))
        .collect();
    core.insert("../../Cargo.lock".into());
    let mut kinds: BTreeMap<&str, BTreeSet<PathBuf>> = BTreeMap::new();
    for file in files(Path::new("../fullpipe-net/src")) {
        match KINDS.iter().find(|kind| is_of(&file, kind)) {
            Some(kind) => kinds.entry(kind).or_default().insert(file),
            None => core.insert(file),
        };
    }
    for (kind, own) in &kinds {
        let used = USES.iter().filter(|(name, _)| name == kind);
        let others = used.flat_map(|(_, uses)| uses.iter().filter_map(|name| kinds.get(name)));
        let all = own.iter().chain(others.flatten()).cloned().collect();
        parts.insert(format!("net:{kind}"), all);
    }
    let headers = files(Path::new("../../cc"));
    for header in headers.iter().filter(|path| is_algorithm(path)) {
        let name = header.file_stem().unwrap().to_string_lossy();
        parts.insert(format!("cc:{name}"), included(header));
    }
    // Parameters and flags of every algorithm are in plans; what is left of cc/ every run reaches.
    let private: BTreeSet<PathBuf> = parts.values().flatten().cloned().collect();
    core.extend(headers.into_iter().filter(|path| {
        !private.contains(path)
            && path.extension().is_some_and(|e| e == "h" || e == "c")
            && !NO_RUN_REACHES.iter().any(|name| path.ends_with(name))
    }));
    parts.insert("core".to_owned(), core);
    let mut text = String::from("&[\n");
    for (name, files) in &parts {
        let mut hash = Sha256::new();
        for file in files {
            hash.update(file.to_string_lossy().as_bytes());
            hash.update(fs::read(file).unwrap());
        }
        let digest = hash
            .finalize()
            .iter()
            .fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            });
        let _ = writeln!(text, "    ({name:?}, {digest:?}),");
    }
    text.push(']');
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
    fs::write(out.join("components.rs"), text).unwrap();
    for folder in CORE
        .iter()
        .chain(&["../fullpipe-net/src", "../../cc", "../../Cargo.lock"])
    {
        println!("cargo:rerun-if-changed={folder}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}

/// All files below a folder, in order.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path);
        }
    }
    found
}

/// Whether a file of fullpipe-net is `kind.rs` or lies in the folder `kind`.
fn is_of(file: &Path, kind: &str) -> bool {
    let below = file.strip_prefix("../fullpipe-net/src").unwrap();
    below == Path::new(&format!("{kind}.rs")) || below.starts_with(kind)
}

/// Whether a header defines an algorithm: `NAME_FLAGS`, by the contract.
fn is_algorithm(header: &Path) -> bool {
    let text = fs::read_to_string(header).unwrap_or_default();
    let name = header.file_stem().unwrap().to_string_lossy();
    header.extension().is_some_and(|e| e == "h") && text.contains(&format!("#define {name}_FLAGS"))
}

/// A header and all that it includes from its own folder.
fn included(header: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![header.to_owned()];
    while let Some(path) = open.pop() {
        if !found.insert(path.clone()) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix("#include \""));
        for name in names.filter_map(|rest| rest.split('"').next()) {
            let next = path.with_file_name(name);
            if next.is_file() {
                open.push(next);
            }
        }
    }
    found
}
