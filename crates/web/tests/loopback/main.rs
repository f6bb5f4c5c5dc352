//! The client and the channels against servers on this machine that follow a
//! script: what they get is recorded to the byte, what they answer is decided
//! by the test.

mod channels;
mod client;
mod email;
mod http_server;
mod limits;
mod smtp_server;
mod tls;
