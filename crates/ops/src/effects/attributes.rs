//! Extended attributes.

use rustix::fs::{
    XattrFlags, fgetxattr, flistxattr, getxattr, lgetxattr, listxattr, llistxattr, removexattr,
    setxattr,
};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;

/// Names and values, sorted by name.
pub(super) type Attributes = Vec<(Box<[u8]>, Box<[u8]>)>;

/// Maximum size of a list or a value in the kernel.
const MOST: usize = 64 << 10;

/// Reads the attributes of an entry, without following it.
pub(super) fn of_path(path: &Path) -> rustix::io::Result<Attributes> {
    read(
        |buffer| llistxattr(path, buffer),
        |name, buffer| lgetxattr(path, name, buffer),
    )
}

/// Reads the attributes of an open file.
pub(super) fn of_file(file: &File) -> rustix::io::Result<Attributes> {
    read(
        |buffer| flistxattr(file, buffer),
        |name, buffer| fgetxattr(file, name, buffer),
    )
}

fn read(
    list: impl Fn(&mut [u8]) -> rustix::io::Result<usize>,
    get: impl Fn(&[u8], &mut [u8]) -> rustix::io::Result<usize>,
) -> rustix::io::Result<Attributes> {
    // Almost no file has any, so the first question is a small one.
    let mut names = [0; 256];
    let length = match list(&mut names) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOENT) => return Ok(Vec::new()),
        Err(Errno::RANGE) => MOST,
        length => length?,
    };
    let mut long = Vec::new();
    let names = if length <= names.len() {
        names.get(..length).unwrap_or_default()
    } else {
        long.resize(MOST, 0);
        let length = list(&mut long)?;
        long.get(..length).unwrap_or_default()
    };
    let mut found = Attributes::new();
    for name in names.split(|byte| *byte == 0) {
        if name.is_empty() {
            continue;
        }
        let mut value = vec![0; MOST];
        match get(name, &mut value) {
            Ok(length) => {
                value.truncate(length);
                found.push((name.into(), value.into_boxed_slice()));
            }
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(errno),
        }
    }
    found.sort();
    Ok(found)
}

/// Gives an entry exactly these attributes. The path leads to an open file. Those of security modules are set by the kernel
/// itself where haft may not set them; of these, only a program's capabilities would be a
/// loss.
pub(super) fn restore(path: &Path, wanted: &Attributes) -> rustix::io::Result<()> {
    let present = read(
        |buffer| listxattr(path, buffer),
        |name, buffer| getxattr(path, name, buffer),
    )?;
    for (name, _) in &present {
        if !wanted.iter().any(|(wanted, _)| wanted == name) {
            match removexattr(path, &**name) {
                Err(_) if name.starts_with(b"security.") => {}
                removed => removed?,
            }
        }
    }
    for attribute in wanted {
        if present.contains(attribute) {
            continue;
        }
        let (name, value) = attribute;
        let by_the_kernel = name.starts_with(b"security.") || name.starts_with(b"trusted.");
        match setxattr(path, &**name, value, XattrFlags::empty()) {
            Err(_) if by_the_kernel && **name != *b"security.capability" => {}
            set => set?,
        }
    }
    Ok(())
}
