//! Passes a hash of each stage's sources to the crate, so that a table can tell which kernels made it.
//!
//! `FACTORY_SOURCES_DEDUP` covers `src/dedup` and `Cargo.toml`, which names the versions of all dependencies.

use std::path::{Path, PathBuf};
use std::{fs, io};

fn main() -> io::Result<()> {
    for entry in fs::read_dir("src")? {
        let folder = entry?.path();
        if folder.is_dir() {
            let stage = folder
                .file_name()
                .expect("a folder has a name")
                .to_string_lossy()
                .to_uppercase();
            println!(
                "cargo:rustc-env=FACTORY_SOURCES_{stage}={:016x}",
                source_hash(&folder)?
            );
        }
    }
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=Cargo.toml");
    Ok(())
}

fn source_hash(folder: &Path) -> io::Result<u64> {
    let mut files = vec![PathBuf::from("Cargo.toml")];
    collect(folder, &mut files)?;
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64; // FNV-1a: stable over compilers, unlike the standard hasher
    for file in &files {
        for byte in file.to_string_lossy().bytes().chain(fs::read(file)?) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    Ok(hash)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
