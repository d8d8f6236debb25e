"""A responder of RPC-over-RDMA on raw verbs, in front of an NFS server's TCP port: does what no server should do.

Usage: python3 responder ADDRESS PORT BEHAVIOUR [NUMBER...]

Prints a line for each connection and for what it does with it, until it is killed.
"""

import contextlib
import sys
import threading
import time
from typing import NoReturn

import bad_calls
import behaviours
import behaviours_2
import drops
import errors_2
import faults_2
import iwarp
import provides
import returns
import reverse_2
import verbs
from events import Events
from failure import Failure
from forger import Forger
from proxy import Proxy
from proxy_2 import Proxy2

HERE = "127.0.0.1", 2049
# The only one that has no device.
FORGES = "forges"


def main() -> None:
    address, port, name, *numbers = sys.argv[1:]
    if name == FORGES:
        forge(address, int(port))
    by_name = (behaviours.BY_NAME | bad_calls.BY_NAME | drops.BY_NAME | provides.BY_NAME | returns.BY_NAME
               | behaviours_2.BY_NAME | errors_2.BY_NAME | faults_2.BY_NAME | reverse_2.BY_NAME)
    behaviour = by_name[name](*map(int, numbers))
    listener = Events()
    listener.listen(address, int(port))
    say("listening")
    while True:
        request = listener.next_request()
        if request is not None:
            threading.Thread(target=serve, args=(*request, behaviour), daemon=True).start()


def forge(address: str, port: int) -> NoReturn:
    """Take connections one after the other."""
    listener = iwarp.listening(address, port)
    say("listening")
    while True:
        connection, _ = listener.accept()
        try:
            with contextlib.closing(Forger(connection, HERE)) as forger:
                say(f"accepted at {time.monotonic():.1f}")
                forger.run()
        except (Failure, OSError) as failure:
            say(f"ended: {failure}")


def serve(requested, private: bytes, behaviour: behaviours.Behaviour) -> None:
    """One connection, from the wish for it to its end."""
    events = Events(requested)
    if behaviour.rejects:
        say(f"rejected at {time.monotonic():.1f}")
        events.reject()
        events.close()
        return
    make = Proxy2 if isinstance(behaviour, behaviours_2.Behaviour2) else Proxy
    proxy = make(events, private, behaviour, HERE)
    events.accept(behaviour.private)
    say(f"accepted at {time.monotonic():.1f}")
    try:
        events.expect(verbs.ESTABLISHED)
        proxy.run()
    except (Failure, OSError) as failure:
        say(f"ended: {failure}")
    proxy.close()


def say(line: str) -> None:
    # At once: somebody reads it.
    print(line, flush=True)


if __name__ == "__main__":
    main()
