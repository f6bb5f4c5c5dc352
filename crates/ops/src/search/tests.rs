//! Searching real trees, by both roads.
