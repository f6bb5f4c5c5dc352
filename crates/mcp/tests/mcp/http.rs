//! The server over HTTP, through sockets.

mod asking;
mod bed;
mod bounds;
mod doors;
mod gone;
mod streams;
mod versions;
