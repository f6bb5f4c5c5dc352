//! Which places are the sandbox's own.

use std::path::{Component, Path};

/// Who holds a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// The call alone.
    Private,
    /// The sandbox.
    Own,
    /// The session, if it has such a folder; else the sandbox.
    Temp,
    /// The session.
    Session,
}

/// Who holds this one.
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
    fn few_places_are_not_the_sessions() {
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
