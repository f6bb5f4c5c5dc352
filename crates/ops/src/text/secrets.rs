//! Finding secrets in texts that others wrote, to leave them out.

mod spelled;
mod userinfo;

pub use spelled::{Spelled, in_base64};
pub use userinfo::without_userinfo;
