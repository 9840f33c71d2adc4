//! quiche reads clocks and random numbers itself: calls of these functions go to
//! ../common/src/virtual_time.rs instead (ld's `--wrap`), as in ../build.rs.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["clock_gettime", "getrandom", "syscall", "RAND_bytes"] {
        println!("cargo:rustc-link-arg-cdylib=-Wl,--wrap={name}");
    }
}
