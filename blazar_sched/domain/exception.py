# SPDX-License-Identifier: Apache-2.0
"""Exceptions for the refusals and failures that a caller may see.

`status` is the HTTP status that the API answers with, and `name` the name of
the error in the answer; `field` names the part of the request that is wrong,
if there is such a part. All of them travel over RPC: see `kwargs`. Never
change a class's name or status: clients read them. Filters and drivers of
other packages may raise subclasses of their own: see `portable`.
"""

from collections.abc import Mapping
from typing import Any


class BlazarSchedError(Exception):
    """A refusal or failure that the caller may see.

    :param name: the name of the error, by default that of the class
    :param status: the HTTP status, by default that of the class
    """

    status = 500

    def __init__(
        self, message: str, field: str | None = None, *,
        name: str | None = None, status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.field = field
        self.name = name or type(self).__name__
        self.status = status or type(self).status
        # oslo.messaging builds the exception anew from args and kwargs.
        own = {'field': field, 'name': name, 'status': status}
        self.kwargs: dict[str, Any] = {k: v for k, v in own.items() if v}


class InvalidInput(BlazarSchedError):
    """A value that can never be accepted."""

    status = 400


class Unauthorized(BlazarSchedError):
    """A caller who is not known, or no longer known."""

    status = 401


class NotAuthorized(BlazarSchedError):
    """A request that the caller's roles do not allow."""

    status = 403


class LimitExceeded(BlazarSchedError):
    """A request for more than the operator lets a project have."""

    status = 400


class MaxLeaseDuration(LimitExceeded):
    """A lease that lasts longer than the project's limit."""


class MinStartLead(LimitExceeded):
    """A start that is sooner than the operator allows."""


class MaxStartHorizon(LimitExceeded):
    """A start that is further ahead than the project's limit."""


class MaxEndHorizon(LimitExceeded):
    """An end that is further ahead than the project's limit."""


class MaxResources(LimitExceeded):
    """More of a resource class than the project's limit."""


class NotFound(BlazarSchedError):
    """An id for which there is nothing that the caller may see."""

    status = 404


class LeaseNotFound(NotFound):
    """An id for which there is no lease that the caller may see."""


class HostNotFound(NotFound):
    """An id without a host, or a name without a host in Nova."""


class PropertyNotFound(NotFound):
    """A name for which there is no property that the caller may see."""


class Conflict(BlazarSchedError):
    """A valid request that conflicts with the present state."""

    status = 409


class NoRoom(Conflict):
    """A window that has no room for a reservation."""


class NotEnoughHostsAvailable(NoRoom):
    """A window that has no room for a reservation of hosts or instances.

    :param offer: the room that there is: `available` is the number of hosts or
        instances that the window has room for, and `reservation` the position
        in the lease of the reservation that lacks room; `start` and `end` are
        those of another window in which the whole lease finds room, None if no
        such window is known; `in_the_way` says what takes the hosts, and
        `in_the_way_left_out` how many entries are left out there
    """

    def __init__(
        self, message: str, field: str | None = None,
        offer: Mapping[str, Any] | None = None, **own: Any,
    ) -> None:
        super().__init__(message, field, **own)
        self.offer = offer
        if offer is not None:
            self.kwargs['offer'] = offer


class Uncountable(Conflict):
    """An allocation whose sum on its host is beyond what can be counted."""


class InvalidStatus(Conflict):
    """A change that the status of the lease does not allow."""


class CantUpdateParameter(Conflict):
    """A change of a parameter that is fixed from creation or from start on."""


class IdempotencyKeyReused(Conflict):
    """An idempotency key that another request of the project has used."""


class HostExists(Conflict):
    """A host that is registered already."""


class HostHavingServers(Conflict):
    """A host with servers on it that is to be dedicated."""


class CantDeleteHost(Conflict):
    """A host to delete that still has allocations."""


class CantAddExtraCapability(Conflict):
    """A capability that a coming reservation needs as it is."""


class Unavailable(BlazarSchedError):
    """A request that cannot be decided now but may succeed later unchanged.

    :param detail: the answer of another service, or its address: for logs and
        commands, never for callers
    :param service: the type of the service of OpenStack that has not done what
        was asked, such as ``compute``
    :param refused: whether that service has refused what was asked; otherwise
        the service cannot do anything now
    :param wait: the seconds after which that service wants to be asked again
    """

    status = 503
    # Seconds after which the request may be sent again.
    retry_after = 5

    def __init__(
        self, message: str, field: str | None = None, detail: str = '', *,
        service: str = '', refused: bool = False, wait: float = 0, **own: Any,
    ) -> None:
        super().__init__(message, field, **own)
        self.detail = detail
        self.service = service
        self.refused = refused
        self.wait = wait

    def __str__(self) -> str:
        return ': '.join(filter(None, (*self.args, self.detail)))


class TooManyRequests(Unavailable):
    """A request that is refused because there are too many requests.

    :param retry_after: seconds after which the request may be sent again
    """

    status = 429

    def __init__(
        self, message: str, field: str | None = None, detail: str = '',
        retry_after: int = 1, *, service: str = '', wait: float = 0,
        **own: Any,
    ) -> None:
        super().__init__(
            message, field, detail, service=service, wait=wait, **own
        )
        self.retry_after = retry_after
        self.kwargs['retry_after'] = retry_after


class NotUpgraded(Unavailable):
    """A database whose tables are not those of this version."""


class DatabaseAccessDenied(Unavailable):
    """A database that refuses the user, the password or the database name."""


def portable(error: BlazarSchedError) -> BlazarSchedError:
    """Return an error as an error of this module, which every process has.

    An error of another package becomes its base class, with its own name and
    status.
    """
    base = next(c for c in type(error).__mro__ if c.__module__ == __name__)
    if base is type(error):
        return error
    own = {**error.kwargs, 'name': error.name, 'status': error.status}
    made: BlazarSchedError = base(str(error.args[0]), **own)
    return made


def cause(error: BaseException) -> str:
    """Return the root cause of an error, in a line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f'{type(error).__name__}: {error}'.splitlines()[0]


def reason(error: BaseException) -> str:
    """Return an error's text and, unless in the text, its cause, in a line.

    The line is for logs and commands: a client of the API does not get the
    cause.
    """
    text = str(error).replace('\n', ' ')
    bottom = cause(error)
    if error.__cause__ is None or bottom.partition(': ')[2] in text:
        return text
    return f'{text}: {bottom}'
