//! Compiles cc/native.c with the system's C compiler. `cc` is a link to the checkout's sources; a published
//! crate has the files themselves. Warnings are no errors here, since compilers to come may have more of
//! them; tests/cc/run.sh makes them errors.

fn main() {
    println!("cargo:rerun-if-changed=cc");
    cc::Build::new()
        .file("cc/native.c")
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wconversion")
        .compile("fullpipe_cc_native");
}
