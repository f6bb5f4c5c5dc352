//! Finding entries of real trees, by both roads.
