//! tquic reads clocks and random numbers itself: calls of these functions go to common/src/virtual_time.rs
//! instead (ld's `--wrap`). A definition of the same name would not do, as in a library that Python loads the
//! program's own comes first.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_TQUIC").is_some() {
        for name in ["clock_gettime", "getrandom", "syscall", "RAND_bytes"] {
            println!("cargo:rustc-link-arg-cdylib=-Wl,--wrap={name}");
        }
    }
}
