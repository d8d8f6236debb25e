// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the ends of a connection know of each other: the version that they speak, and the sizes of
//! their messages.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/negotiation.rs"]
mod tests;

use crate::kapi::sys::address::SocketAddress;
use core::fmt;
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};
use xdr::{
    peek_err_vers,
    v2::{
        Properties,
        ReverseSupport, //
    },
    FixedHeader,
    Role,
    Version, //
};

/// Bytes of all messages together that bring the properties of a peer.
pub(crate) const PROPERTY_OCTETS: u32 = 16 << 10;

/// The value of a version that is not known yet.
const OPEN: u32 = 0;

/// Why a connection speaks its version.
#[derive(Clone, Copy)]
pub(crate) enum Why {
    /// No other is allowed.
    Allowed,
    /// The peer speaks version 2, too.
    Agreed,
    /// The server has refused version 2.
    Refused,
    /// It has not answered version 2 before.
    NotAnswered,
    /// The client began with it.
    Clients,
    /// It is not known yet.
    Open,
}

impl Why {
    /// Returns the words for it, which are those of the trace event.
    fn words(self) -> &'static str {
        match self {
            Self::Allowed => "no other is allowed",
            Self::Agreed => "agreed",
            Self::Refused => "refused",
            Self::NotAnswered => "not answered before",
            Self::Clients => "the client's",
            Self::Open => "not known yet",
        }
    }
}

/// What the ends of a connection know of each other.
pub(crate) struct Negotiated {
    role: Role,
    peer: SocketAddress,
    /// The server has not answered version 2 before.
    unanswered: Atomic<bool>,
    /// The highest version that this end may speak.
    highest: Version,
    /// The number of the version, or [`OPEN`].
    version: Atomic<u32>,
    /// Bytes of the longest message that this end sends, and receives (RFC 8166, section 3.3.3).
    send: Atomic<u32>,
    receive: Atomic<u32>,
    /// The same of a Reply to a Call that offers no Reply chunk.
    unoffered: Atomic<u32>,
    /// What the peer takes in the reverse direction: [`ReverseSupport`].
    reverse: Atomic<u32>,
}

/// The inline thresholds of a connection, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Inline {
    /// The longest message that this end sends.
    pub(crate) send: u32,
    /// The longest message that it receives.
    pub(crate) receive: u32,
    /// The longest Reply that it sends if no Reply chunk was offered.
    pub(crate) unoffered: u32,
}

impl Negotiated {
    /// Creates the state of a new connection of that version, or of one that is not known yet, at
    /// the end of that role.
    pub(super) fn new(role: Role, peer: SocketAddress, version: Option<Version>) -> Self {
        // The default of RFC 8166, section 3.3.3.
        let least = || Atomic::new(1024);
        Self {
            role,
            peer,
            unanswered: Atomic::new(false),
            highest: version.unwrap_or(Version::Two),
            version: Atomic::new(version.map_or(OPEN, Version::number)),
            send: least(),
            receive: least(),
            unoffered: least(),
            // As far as version 1 says it.
            reverse: Atomic::new(ReverseSupport::Continued as u32),
        }
    }

    /// Returns the version; none if it is not known yet.
    #[inline]
    pub(super) fn version(&self) -> Option<Version> {
        // There is no other. Most ask here, and each load is a call.
        if self.highest == Version::One {
            return Some(Version::One);
        }
        match self.version.load(Relaxed) {
            OPEN => None,
            number if number == Version::Two.number() => Some(Version::Two),
            _ => Some(Version::One),
        }
    }

    /// Notes the version.
    pub(super) fn settle(&self, version: Version) {
        self.version.store(version.number(), Relaxed);
    }

    /// Notes that the server has not answered version 2 before.
    pub(super) fn note_unanswered(&self) {
        self.unanswered.store(true, Relaxed);
    }

    /// Returns why the connection speaks its version.
    pub(super) fn why(&self) -> Why {
        match (self.version(), self.highest, self.role) {
            (None, ..) => Why::Open,
            (Some(Version::Two), ..) => Why::Agreed,
            (_, Version::Two, Role::Requester) => Why::Refused,
            (_, Version::Two, Role::Responder) => Why::Clients,
            (_, Version::One, _) if self.unanswered.load(Relaxed) => Why::NotAnswered,
            (_, Version::One, _) => Why::Allowed,
        }
    }

    /// Returns the highest version that this end may speak.
    pub(super) fn highest(&self) -> Version {
        self.highest
    }

    /// Returns what the peer takes in the reverse direction.
    pub(super) fn reverse(&self) -> ReverseSupport {
        let number = self.reverse.load(Relaxed);
        [ReverseSupport::None, ReverseSupport::Simple]
            .into_iter()
            .find(|support| *support as u32 == number)
            // Chunks are not sent in any case.
            .unwrap_or(ReverseSupport::Continued)
    }

    /// Sets the sizes by the properties of both ends (section 4.2.2 of the draft).
    pub(super) fn apply(&self, own: &Properties, theirs: &Properties) {
        self.reverse.store(theirs.reverse as u32, Relaxed);
        // Fragments have whole words.
        let send = own.max_send.min(theirs.min_receive) & !3;
        self.set_inline(&Inline {
            send,
            receive: theirs.max_send.min(own.min_receive) & !3,
            unoffered: send,
        });
    }

    /// Returns the inline thresholds, one by one, since each load is a call.
    #[inline]
    pub(super) fn send(&self) -> u32 {
        self.send.load(Relaxed)
    }

    #[inline]
    pub(super) fn receive(&self) -> u32 {
        self.receive.load(Relaxed)
    }

    #[inline]
    pub(super) fn unoffered(&self) -> u32 {
        self.unoffered.load(Relaxed)
    }

    pub(super) fn set_inline(&self, inline: &Inline) {
        self.send.store(inline.send, Relaxed);
        self.receive.store(inline.receive, Relaxed);
        self.unoffered.store(inline.unoffered, Relaxed);
    }
}

/// Writes which end of which connection it is, and what version that speaks, for what reason.
impl fmt::Display for Negotiated {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peer, why) = (&self.peer, self.why().words());
        let end = match self.role {
            Role::Requester => "client",
            Role::Responder => "server",
        };
        match self.version().map(Version::number) {
            Some(number) => write!(to, "{end} of {peer}: version {number}, {why}"),
            None => write!(to, "{end} of {peer}: version {why}"),
        }
    }
}

/// Returns the version that the first message to an end of that role speaks of: its own, or that
/// which it wants. None if it is neither, so that the version stays open.
pub(super) fn first(to: Role, message: &[u8]) -> Option<Version> {
    if let (Role::Requester, Some((low, high))) = (to, peek_err_vers(message)) {
        return (low..=high)
            .contains(&Version::One.number())
            .then_some(Version::One);
    }
    let number = FixedHeader::peek(message)?.version;
    let spoken = [Version::One, Version::Two]
        .into_iter()
        .find(|v| v.number() == number);
    // A server that speaks version 1 has not understood what this end has begun with.
    spoken.filter(|version| to == Role::Responder || *version == Version::Two)
}
