//! Compiles src/told.c with the headers of the ngtcp2 that ngtcp2-sys has built.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=src/told.c");
    let public = env::var("DEP_NGTCP2_INCLUDE").expect("ngtcp2-sys tells where it is");
    let built = PathBuf::from(&public);
    let out = built.parent().expect("it is in a folder");
    cc::Build::new()
        .file("src/told.c")
        .std("c11")
        .define("HAVE_CONFIG_H", None)
        .include(&public)
        // Of the library's own headers and of the configuration that it was compiled with.
        .include(out.join("ngtcp2/lib"))
        .include(out.join("build"))
        .compile("fullpipe_ngtcp2_told");
}
