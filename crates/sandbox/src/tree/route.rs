//! Decides which folders belong to the session and which to haft-sandbox.

use std::path::{Component, Path};

/// Owner of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// The current call.
    Private,
    /// haft-sandbox.
    Own,
    /// The session if it has such a folder, otherwise haft-sandbox.
    Temp,
    /// The session.
    Session,
}

/// Returns the owner of a path.
pub(super) fn route(path: &Path) -> Route {
    if path.starts_with("/dev/haft") {
        return Route::Private;
    }
    let mut parts = path.components();
    parts.next();
    match parts.next() {
        Some(Component::Normal(name)) if name == "dev" || name == "proc" => Route::Own,
        Some(Component::Normal(name)) if name == "site-packages" => Route::Own,
        Some(Component::Normal(name)) if name == "tmp" => Route::Temp,
        _ => Route::Session,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_special_folders_are_not_the_sessions() {
        let of = |path: &str| route(Path::new(path));
        assert_eq!(of("/dev/haft/result"), Route::Private);
        assert_eq!(of("/dev/null"), Route::Own);
        assert_eq!(of("/site-packages/six.py"), Route::Own);
        assert_eq!(of("/tmp"), Route::Temp);
        assert_eq!(of("/"), Route::Session);
        assert_eq!(of("/tmpfile"), Route::Session);
        assert_eq!(of("/src/tmp/x"), Route::Session);
        assert_eq!(of("/etc/passwd"), Route::Session);
    }
}
