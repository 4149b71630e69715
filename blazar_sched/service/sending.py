# SPDX-License-Identifier: Apache-2.0
"""The sending of a call that changes something and may be sent again.

A call that no manager answers in time is sent again, to another manager. The
bus may deliver the first message after that, when the caller has the answer to
the second one. So a sending that is not the first is noted in the ledger
before it is handled, and no earlier one commits anything from then on.
"""

from collections.abc import Iterator
import contextlib
import contextvars
import dataclasses

# The name of the number in the context of a call.
NUMBER = 'sending'


@dataclasses.dataclass(frozen=True, slots=True)
class Sending:
    """A sending of a call.

    :param call_id: the id of the request to the API that has made the call
    :param number: 1 for the first sending
    """

    call_id: str
    number: int


_CURRENT: contextvars.ContextVar[Sending | None] = contextvars.ContextVar(
    'sending', default=None
)


def current() -> Sending | None:
    """Return the sending that this thread handles, None for other work."""
    return _CURRENT.get()


@contextlib.contextmanager
def handling(sent: Sending | None) -> Iterator[None]:
    """Handle a sending in a block."""
    token = _CURRENT.set(sent)
    try:
        yield
    finally:
        _CURRENT.reset(token)
