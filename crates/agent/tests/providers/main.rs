//! Every provider against a scripted local server. Requests are compared byte by byte.

#[cfg(test)]
mod caching;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod common;
#[cfg(test)]
mod effort;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod gateways;
#[cfg(test)]
mod ids;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod turns;
