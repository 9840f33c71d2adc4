//! Copies of cc/ with one structure changed, compiled and refused.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process};

use libloading::os::unix::Library;

use super::*;

/// A copy of cc/, removed when it is dropped.
struct Copy(PathBuf);

impl Copy {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("fullpipe-cc-{}-{name}", process::id()));
        fs::create_dir_all(&folder).expect("a folder for the copy");
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("cc");
        for file in fs::read_dir(original).expect("cc/ is beside the crate") {
            let file = file.expect("cc/ can be listed");
            fs::copy(file.path(), folder.join(file.file_name())).expect("a file of cc/");
        }
        Self(folder)
    }

    /// Replaces `old`, which stands once in all headers.
    fn change(&self, old: &str, new: &str) {
        let mut changed = 0;
        for file in fs::read_dir(&self.0).expect("the copy can be listed") {
            let path = file.expect("the copy can be listed").path();
            let text = fs::read_to_string(&path).expect("a text");
            changed += text.matches(old).count();
            fs::write(&path, text.replace(old, new)).expect("the copy can be written");
        }
        assert_eq!(changed, 1, "{old}");
    }

    fn grow(&self, structure: &str) {
        let head = format!("struct {structure} {{\n");
        for file in fs::read_dir(&self.0).expect("the copy can be listed") {
            let path = file.expect("the copy can be listed").path();
            let text = fs::read_to_string(&path).expect("a text");
            let Some(begin) = text.find(&head) else {
                continue;
            };
            let end = begin + text[begin..].find("\n};").expect("it ends") + 1;
            let (before, after) = text.split_at(end);
            fs::write(&path, format!("{before}\tu64 grown;\n{after}")).expect("writable");
            return;
        }
        panic!("struct {structure} is in no header");
    }

    fn compiled(&self, source: &str, arguments: &[&str]) -> PathBuf {
        let object = self.0.join("compiled.so");
        let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let done = Command::new(compiler)
            .args(["-std=c11", "-shared", "-fPIC", "-w", "-o"])
            .arg(&object)
            .args(arguments)
            .arg(self.0.join(source))
            .output()
            .expect("a C compiler");
        assert!(done.status.success(), "{done:?}");
        object
    }

    /// The message about a native.c that was compiled from the copy.
    fn native(&self) -> Result<(), String> {
        let object = self.compiled("native.c", &[]);
        // SAFETY: code of this project without initialisers.
        let library = unsafe { Library::new(object) }.expect("it can be loaded");
        // SAFETY: native.c defines a table of this type by the name.
        let table = unsafe { library.get::<*const LayoutRow>(b"cc_layout") };
        // SAFETY: it ends with a null row, and the library lives until the end of this function.
        unsafe { check(*table.expect("native.c has the table")) }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn native_code_with_the_same_structures_is_accepted() {
    assert_eq!(Copy::new("same").native(), Ok(()));
}

#[test]
fn a_structure_that_grew_is_named_with_the_last_field_that_both_know() {
    let copy = Copy::new("grown");
    copy.grow("cc_ctl");
    let refused = copy.native().expect_err("cc_ctl has another size");
    assert_eq!(
        refused,
        "struct cc_ctl has 48 bytes in C, 40 in Rust, where its last field is timer_us"
    );
}

#[test]
fn a_field_that_moved_is_named_with_both_offsets() {
    let copy = Copy::new("moved");
    copy.change("\tu32 cwnd, ssthresh;\n", "\tu32 grown, cwnd, ssthresh;\n");
    let refused = copy.native().expect_err("cwnd moved");
    assert_eq!(
        refused,
        "field cwnd of struct cc_ctl has 4 bytes at offset 12 in C, 4 at 8 in Rust"
    );
}

#[test]
fn a_field_that_c_alone_lists_is_named() {
    let copy = Copy::new("listed");
    copy.grow("cc_event");
    copy.change(
        "F(s, packets) F(s, is_app_limited)",
        "F(s, packets) F(s, is_app_limited) F(s, grown)",
    );
    let refused = copy.native().expect_err("the field is unknown here");
    assert_eq!(refused, "struct cc_event has a field grown in C only");
}

#[test]
fn two_fields_that_changed_places_are_found() {
    let copy = Copy::new("swapped");
    copy.change(
        "F(s, sacked_out) F(s, lost_out)",
        "F(s, lost_out) F(s, sacked_out)",
    );
    let refused = copy.native().expect_err("the order differs");
    assert_eq!(
        refused,
        "struct cc_conn has the field lost_out in C where Rust has sacked_out"
    );
}

#[cfg(feature = "external")]
mod external {
    use super::*;
    use crate::external::load;

    impl Copy {
        /// The message about a user's file that was compiled with the copy.
        fn external(&self, name: &str) -> Result<&'static str, String> {
            let arguments = ["-DCC_NAME=reno", "-DCC_SOURCE=<reno.h>", "-DCC_TITLE=\"\""];
            let include = format!("-I{}", self.0.display());
            let object = self.compiled("external.c", &[&arguments[..], &[&include]].concat());
            let loaded = load(&object, name).map_err(|error| error.to_string())?;
            Ok(loaded.algorithm.name)
        }
    }

    #[test]
    fn a_file_compiled_with_the_same_contract_is_loaded() {
        assert_eq!(Copy::new("file").external("same@1"), Ok("same@1"));
    }

    #[test]
    fn a_file_compiled_with_any_grown_structure_is_refused_by_its_name() {
        for structure in STRUCTURES {
            let copy = Copy::new(structure.name);
            copy.grow(structure.name);
            let refused = copy.external("grown@1").expect_err(structure.name);
            assert!(
                refused.contains("another cc.h than this program's: ")
                    && refused.contains(&format!("struct {} ", structure.name))
                    && refused.contains(structure.fields.last().expect("it has fields").name),
                "{refused}"
            );
            assert!(crate::algorithm("grown@1").is_none());
        }
    }

    #[test]
    fn a_file_without_a_table_is_refused() {
        let copy = Copy::new("bare");
        fs::write(
            copy.0.join("external.c"),
            "#include CC_SOURCE\nconst void *cc_external;\n",
        )
        .expect("writable");
        let refused = copy
            .external("bare@1")
            .expect_err("nothing says what it has");
        assert!(
            refused.ends_with("it has no table of its structures (cc_layout)"),
            "{refused}"
        );
    }
}
