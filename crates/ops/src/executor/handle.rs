//! Passing a file descriptor from haft to a supervisor.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// Payload byte, because an empty message cannot carry a descriptor.
const CARRIER: u8 = b'h';

/// Sends a file descriptor, or fails if that would block.
pub(super) fn send(line: impl AsFd, handle: impl AsFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let handles = [handle.as_fd()];
    if !ancillary.push(SendAncillaryMessage::ScmRights(&handles)) {
        return Err(io::Error::other("no room for a file descriptor"));
    }
    let carrier = [IoSlice::new(&[CARRIER])];
    sendmsg(line, &carrier, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits for a file descriptor.
pub(super) fn receive(line: impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut carrier = [0];
    let mut slices = [IoSliceMut::new(&mut carrier)];
    recvmsg(line, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let handles = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
        _ => None,
    });
    let missing = || io::Error::from(io::ErrorKind::UnexpectedEof);
    handles.into_iter().next().ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_descriptor_arrives_and_works() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(&ours, &writer).unwrap();
        drop(writer);
        let mut writer = std::fs::File::from(receive(&theirs).unwrap());
        writer.write_all(b"hello").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn a_closed_socket_is_an_error() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(ours);
        assert!(receive(&theirs).is_err());
    }
}
