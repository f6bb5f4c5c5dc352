//! Modules that this Python does not have, and alternatives.

/// Modules of the standard library that this build does not include. A test compares the
/// list with the interpreter.
pub(crate) const ABSENT: &str = "\
    antigravity bdb bz2 cProfile cmd compileall ctypes curses dbm doctest ensurepip fcntl \
    ftplib grp idlelib imaplib lzma mailbox mmap modulefinder msvcrt multiprocessing netrc \
    nt pickletools plistlib poplib profile pstats pty pwd pyclbr pydoc pydoc_data readline \
    resource rlcompleter shelve smtplib socketserver ssl syslog tabnanny termios this \
    tkinter trace tty turtle turtledemo unittest venv wave webbrowser winreg winsound \
    wsgiref xmlrpc zipapp";

/// Popular packages with native code: import name and package name.
const NATIVE: [(&str, &str); 20] = [
    ("numpy", "numpy"),
    ("pandas", "pandas"),
    ("matplotlib", "matplotlib"),
    ("scipy", "scipy"),
    ("sklearn", "scikit-learn"),
    ("seaborn", "seaborn"),
    ("PIL", "pillow"),
    ("cv2", "opencv-python"),
    ("torch", "torch"),
    ("tensorflow", "tensorflow"),
    ("jax", "jax"),
    ("xgboost", "xgboost"),
    ("statsmodels", "statsmodels"),
    ("polars", "polars"),
    ("pyarrow", "pyarrow"),
    ("duckdb", "duckdb"),
    ("lxml", "lxml"),
    ("cryptography", "cryptography"),
    ("numba", "numba"),
    ("shapely", "shapely"),
];

/// Returns a hint for code that imports a missing module.
pub(crate) fn missing_module_hint(module: &str) -> String {
    let top = module.split('.').next().unwrap_or(module);
    if let Some(advice) = absent_module_hint(top) {
        return advice;
    }
    if let Some((_, package)) = NATIVE.iter().find(|(known, _)| *known == top) {
        return format!(
            "{top} has native code, which this Python cannot load; {}",
            native_package_hint(package)
        );
    }
    format!(
        "if {top} belongs to a pure Python package, install_packages can add it (the package may have another name)"
    )
}

/// Returns a hint for a module of the standard library that this build does not include.
pub(crate) fn absent_module_hint(module: &str) -> Option<String> {
    let mut names = ABSENT.split_whitespace();
    let name = names.find(|name| name.eq_ignore_ascii_case(module))?;
    let instead = match name {
        "unittest" | "doctest" => "; check results with plain assert statements",
        "lzma" | "bz2" => "; zlib, gzip and zipfile are available",
        "ssl" | "ftplib" | "imaplib" | "poplib" | "smtplib" | "socketserver" | "xmlrpc"
        | "wsgiref" | "webbrowser" => "; code here has no network",
        "multiprocessing" | "pty" => "; code here cannot start processes",
        "shelve" | "dbm" => "; sqlite3 and json are available",
        _ => "",
    };
    Some(format!(
        "{name} is part of the standard library, but this Python is built without it and install_packages cannot add it{instead}"
    ))
}

/// Returns a hint for code that needs a package with native code.
pub(crate) fn native_package_hint(package: &str) -> String {
    format!(
        "do it with the standard library (csv, statistics, sqlite3), or ask the user to set `execution: local` and to run `python3 -m venv .venv && .venv/bin/pip install {package}` (docs/sandbox.md, Data work)"
    )
}

/// Returns the missing module that an error message names.
pub(crate) fn missing_module(stderr: &str) -> Option<&str> {
    let (_, after) = stderr.rsplit_once("ModuleNotFoundError: No module named '")?;
    let (module, _) = after.split_once('\'')?;
    Some(module).filter(|module| !module.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_depends_on_the_kind_of_module() {
        let advice = missing_module_hint("unittest.mock");
        assert!(
            advice.contains("install_packages cannot add it"),
            "{advice}"
        );
        let advice = missing_module_hint("numpy.linalg");
        assert!(advice.contains("pip install numpy`"), "{advice}");
        assert!(missing_module_hint("PIL").contains("pip install pillow`"));
        let advice = missing_module_hint("yaml");
        assert!(advice.contains("install_packages can add it"), "{advice}");
        assert!(absent_module_hint("SSL").is_some());
        assert!(absent_module_hint("json").is_none());
    }

    #[test]
    fn the_missing_module_is_the_one_named_last() {
        let stderr = "Traceback (most recent call last):\n  File \"<code>\", line 1, in <module>\n\
            ModuleNotFoundError: No module named 'a.b'\n\nDuring handling of the above\n\
            ModuleNotFoundError: No module named 'numpy'\n";
        assert_eq!(missing_module(stderr), Some("numpy"));
        assert_eq!(missing_module("ModuleNotFoundError: No module named"), None);
        assert_eq!(missing_module(""), None);
    }
}
