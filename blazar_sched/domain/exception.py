# SPDX-License-Identifier: Apache-2.0
"""What can be refused, by name.

`status` is the HTTP status that the API answers with; `field` names the part
of the request that is wrong, where one is. Both travel over RPC: see
`kwargs`. Never change a class's name or status: clients read them.
"""

from collections.abc import Mapping
from typing import Any


class BlazarSchedError(Exception):
    """A refusal or failure that the caller may see."""

    status = 500

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        # oslo.messaging builds the exception anew from args and kwargs.
        self.kwargs: dict[str, Any] = {'field': field} if field else {}


class InvalidInput(BlazarSchedError):
    """A value that can never be accepted."""

    status = 400


class Unauthorized(BlazarSchedError):
    """Nobody who is known, or no longer."""

    status = 401


class NotAuthorized(BlazarSchedError):
    """The caller's roles do not allow it."""

    status = 403


class LimitExceeded(BlazarSchedError):
    """More than the operator lets a project have."""

    status = 400


class MaxLeaseDuration(LimitExceeded):
    """A lease that lasts for longer than the project may."""


class MaxStartHorizon(LimitExceeded):
    """A start that is further ahead than the project may."""


class MaxEndHorizon(LimitExceeded):
    """An end that is further ahead than the project may."""


class MaxLeases(LimitExceeded):
    """More leases at a time than the project may."""


class MaxHosts(LimitExceeded):
    """More hosts than the project may."""


class MaxInstances(LimitExceeded):
    """More instances than the project may."""


class ExternalServiceFilter(BlazarSchedError):
    """A service that the operator leaves the decision to has said no."""

    status = 400


class NotFound(BlazarSchedError):
    """Nothing by that id that the caller may see."""

    status = 404


class LeaseNotFound(NotFound):
    """No lease by that id that the caller may see."""


class HostNotFound(NotFound):
    """No host by that id, or Nova has none by that name."""


class PropertyNotFound(NotFound):
    """No property by that name that the caller may see."""


class FloatingIPNotFound(NotFound):
    """No floating IP by that id."""


class Conflict(BlazarSchedError):
    """Right in itself, but not as things stand."""

    status = 409


class NotEnoughHostsAvailable(Conflict):
    """The window has no room for the reservation.

    :param offer: what there is room for; see placing.offer
    """

    def __init__(
        self,
        message: str,
        field: str | None = None,
        offer: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, field)
        self.offer = offer
        if offer is not None:
            self.kwargs['offer'] = offer


class Uncountable(Conflict):
    """An allocation whose sum on its host is beyond what can be counted."""


class InvalidStatus(Conflict):
    """The lease is in a state that does not allow the change."""


class CantUpdateParameter(Conflict):
    """A parameter that is fixed from creation or from start on."""


class IdempotencyKeyReused(Conflict):
    """Another request of the project has used the idempotency key."""


class HostExists(Conflict):
    """The host is registered already."""


class HostHavingServers(Conflict):
    """Servers are on a host that is to be dedicated."""


class CantDeleteHost(Conflict):
    """The host still has allocations."""


class FloatingIPExists(Conflict):
    """The floating IP is registered already."""


class CantDeleteFloatingIP(Conflict):
    """The floating IP is allocated."""


class NotEnoughFloatingIPAvailable(Conflict):
    """The window has no room for the reservation."""


class CantAddExtraCapability(Conflict):
    """A coming reservation needs the capability as it is."""


class Unavailable(BlazarSchedError):
    """The service cannot decide now; the same request may work later."""

    status = 503


class NotUpgraded(Unavailable):
    """The database's tables are not those of this version."""


class DatabaseAccessDenied(Unavailable):
    """The database turns the user, the password or the name away."""


def cause(error: BaseException) -> str:
    """Return what went wrong at the bottom of an error, in a line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f'{type(error).__name__}: {error}'.splitlines()[0]


def reason(error: BaseException) -> str:
    """Return an error's text and, unless it has that, its cause, in a line.

    For logs and commands: a client of the API is not told of a cause.
    """
    text = str(error).replace('\n', ' ')
    bottom = cause(error)
    if error.__cause__ is None or bottom.partition(': ')[2] in text:
        return text
    return f'{text}: {bottom}'
