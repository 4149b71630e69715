# SPDX-License-Identifier: Apache-2.0
"""What a thread works on: a call, a loop or a type of event, by its name."""

from collections.abc import Iterator
import contextlib
import contextvars

# Of a command, and of a thread that has not named its work.
OTHER = 'other'

_CURRENT = contextvars.ContextVar('cause', default=OTHER)


def current() -> str:
    """Return the name of what this thread works on."""
    return _CURRENT.get()


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Name the work of this thread in a block."""
    token = _CURRENT.set(name)
    try:
        yield
    finally:
        _CURRENT.reset(token)
