//! Finding secrets in foreign text, to redact them.

mod spelled;
mod unescaped;
mod userinfo;

pub use spelled::{Spelled, in_base64};
pub use userinfo::without_userinfo;
