//! Compiles cc/native.c with the system's C compiler. `cc` is a link to the checkout's sources; a published
//! crate has the files themselves; in the source distribution of the Python package, which keeps no link
//! to a folder, they are where the link leads. Warnings are no errors here, since compilers to come may
//! have more of them; tests/cc/run.sh makes them errors.

use std::path::Path;

fn main() {
    let is_here = |folder: &&str| Path::new(folder).join("native.c").exists();
    let sources = ["cc", "../../cc"].into_iter().find(is_here);
    let sources = sources.expect("cc/native.c in the crate, or two folders up");
    println!("cargo:rerun-if-changed={sources}");
    cc::Build::new()
        .file(format!("{sources}/native.c"))
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wconversion")
        .compile("fullpipe_cc_native");
}
