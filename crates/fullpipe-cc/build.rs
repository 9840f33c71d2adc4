//! Compiles cc/native.c with the system's C compiler.

fn main() {
    println!("cargo:rerun-if-changed=../../cc");
    cc::Build::new()
        .file("../../cc/native.c")
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .flag("-Werror")
        .flag("-Wconversion")
        .compile("fullpipe_cc_native");
}
