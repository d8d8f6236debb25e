// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How a connection is, for an administrator.

use crate::{
    kapi::sys::{
        listing::Listed,
        time::{
            self,
            HZ, //
        },
    },
    transport::{
        endpoint::{
            Endpoint,
            Handler, //
        },
        terms::Terms,
    },
};
use kernel::fmt::{
    self,
    Formatter, //
};

impl<H: Handler> Listed for Endpoint<H> {
    fn describe(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let (parts, negotiated) = (self.consumer(), self.negotiated());
        let seconds = time::since(parts.since) / HZ;
        let (send, receive) = (negotiated.send(), negotiated.receive());
        writeln!(to, "{negotiated}")?;
        writeln!(to, "\tdevice: {}", parts.port)?;
        writeln!(to, "\tage: {seconds} s")?;
        writeln!(to, "\tinline: {send} sent, {receive} received")?;
        if let Some(terms) = parts.terms.as_ref() {
            terms.describe(negotiated.version(), to)?;
        }
        self.handler().describe(to)
    }
}

impl<H: Handler> Endpoint<H> {
    /// Notes what the private data of both ends come to.
    pub(crate) fn set_terms(&self, terms: Terms) {
        // They are exchanged once.
        let _ = self.consumer().terms.populate(terms);
    }
}
