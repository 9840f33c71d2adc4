//! Files of /proc that stay open and are read repeatedly. It must never know what they contain.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Most bytes that are read; what is beyond is left out.
const FILE_BYTES: usize = 1 << 14;

/// The file's current content.
pub(super) fn read_proc(file: &File) -> io::Result<String> {
    let mut text = vec![0; FILE_BYTES];
    let mut count = 0;
    loop {
        let got = file.read_at(&mut text[count..], count as u64)?;
        count += got;
        if got == 0 || count == text.len() {
            break;
        }
    }
    text.truncate(count);
    Ok(String::from_utf8_lossy(&text).into_owned())
}
