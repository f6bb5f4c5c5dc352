//! Every provider against a server on this machine that follows a script: what it is
//! sent is looked at to the byte, what it answers is decided by the test.

#[cfg(test)]
mod caching;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod common;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod ids;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod turns;
