//! The client, the tools and the channels against servers on this machine. Each server follows a
//! script and records exactly what it receives.

#[cfg(test)]
mod bed;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod cache;
#[cfg(test)]
mod channels;
#[cfg(test)]
mod client;
#[cfg(test)]
mod email;
#[cfg(test)]
mod fetch;
#[cfg(test)]
mod forgery;
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod http_server;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod search;
#[cfg(test)]
mod smtp_server;
#[cfg(test)]
mod tls;
