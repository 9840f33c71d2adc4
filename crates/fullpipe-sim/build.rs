//! Hashes the sources that decide a run's result, part by part, so that a store of results knows
//! which of them a new build would leave as they are (`components()` in src/lib.rs).
//!
//! A part is what only plans that name it reach: an algorithm of cc/ with the headers that it includes, a
//! queue discipline with the other disciplines that it names, or Wi-Fi. All the rest is the core. Tests
//! belong to no part.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Sources of the path elements.
const NET: &str = "../fullpipe-net/src";
/// Registries of fullpipe-net: they name every kind.
const REGISTRIES: &[&str] = &["lib.rs", "medium.rs", "queue/mod.rs"];
/// Folders of sources, from this crate's.
const CORE: &[&str] = &[
    "src",
    "../fullpipe-tcp/src",
    "../fullpipe-transport/src",
    "../fullpipe-workload/src",
    "../fullpipe-plan/src",
    "../fullpipe-cc/src",
];
/// Files of cc/ that decide no result: the list of algorithms, and what `cc check` calls them with.
const NO_RUN_REACHES: &[&str] = &["registry.h", "fuzz.c", "every_input.c"];

fn main() {
    let mut parts: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    let mut core: BTreeSet<PathBuf> = CORE
        .iter()
        .flat_map(|folder| files(Path::new(folder)))
        .collect();
    core.insert("../../Cargo.lock".into());
    let net: BTreeSet<PathBuf> = files(Path::new(NET))
        .into_iter()
        .filter(|file| !is_test(file))
        .collect();
    let kinds = kinds(&net);
    for kind in kinds.keys() {
        let files = reached(kind, &kinds).into_iter().cloned();
        parts.insert(format!("net:{kind}"), files.collect());
    }
    let is_of_kind = |file: &PathBuf| kinds.values().any(|own| own.contains(file));
    for file in net.iter().filter(|file| !is_of_kind(file)) {
        let is_registry = REGISTRIES
            .iter()
            .any(|name| *file == Path::new(NET).join(name));
        if let (Some(kind), false) = (named(file, &kinds).pop_first(), is_registry) {
            panic!("{file:?}: names {kind}, so that plans without {kind} would reach its code");
        }
        core.insert(file.clone());
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
    for folder in CORE.iter().chain(&[NET, "../../cc", "../../Cargo.lock"]) {
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

fn is_test(file: &Path) -> bool {
    let mut names = file.components().map(|part| part.as_os_str());
    names.any(|name| name == "tests" || name == "tests.rs" || name == "testing.rs")
}

/// The kinds of queue disciplines and links, with their files: a discipline is a file or folder of
/// `queue` that implements `Discipline`.
fn kinds(net: &BTreeSet<PathBuf>) -> BTreeMap<String, BTreeSet<PathBuf>> {
    let queue = Path::new(NET).join("queue");
    let mut kinds = BTreeMap::new();
    for file in net.iter().filter(|file| file.starts_with(&queue)) {
        let name = file.strip_prefix(&queue).unwrap().with_extension("");
        let name = match name.file_name() {
            Some(last) if last == "mod" => name.parent().unwrap().to_owned(),
            _ => name,
        };
        let is_discipline = code(file).contains(" Discipline<P> for ");
        if let (true, Some(kind)) = (is_discipline, name.to_str()) {
            let is_own = |other: &&PathBuf| *other == file || other.starts_with(queue.join(kind));
            kinds.insert(
                kind.to_owned(),
                net.iter().filter(is_own).cloned().collect(),
            );
        }
    }
    assert!(kinds.len() > 1, "no disciplines in {queue:?}");
    let wifi = Path::new(NET).join("wifi");
    let own = net.iter().filter(|file| file.starts_with(&wifi));
    kinds.insert("wifi".to_owned(), own.cloned().collect());
    kinds
}

/// The files of a kind and of all kinds that it names.
fn reached<'a>(
    kind: &'a str,
    kinds: &'a BTreeMap<String, BTreeSet<PathBuf>>,
) -> BTreeSet<&'a PathBuf> {
    let (mut found, mut open) = (BTreeSet::new(), vec![kind]);
    while let Some(kind) = open.pop() {
        for file in &kinds[kind] {
            if found.insert(file) {
                open.extend(named(file, kinds));
            }
        }
    }
    found
}

/// The kinds whose module a file names. Any word counts, so that no use is missed.
fn named<'a>(file: &Path, kinds: &'a BTreeMap<String, BTreeSet<PathBuf>>) -> BTreeSet<&'a str> {
    let code = code(file);
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter_map(|word| kinds.get_key_value(word))
        .map(|(kind, _)| kind.as_str())
        .collect()
}

/// A source without its comments.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
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
