# SPDX-License-Identifier: Apache-2.0
"""What can be refused, by name.

`status` is the HTTP status that the API answers with; `field` names the part
of the request that is wrong, where one is. Both travel over RPC: see
`kwargs`. Never change a class's name or status: clients read them.
"""


class BlazarSchedError(Exception):
    """A refusal or failure that the caller may see."""

    status = 500

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        # oslo.messaging builds the exception anew from args and kwargs.
        self.kwargs = {'field': field} if field else {}


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
    pass


class MaxStartHorizon(LimitExceeded):
    pass


class MaxEndHorizon(LimitExceeded):
    pass


class MaxLeases(LimitExceeded):
    pass


class MaxHosts(LimitExceeded):
    pass


class MaxInstances(LimitExceeded):
    pass


class ExternalServiceFilter(BlazarSchedError):
    """A service that the operator leaves the decision to has said no."""

    status = 400


class NotFound(BlazarSchedError):
    """Nothing by that id that the caller may see."""

    status = 404


class LeaseNotFound(NotFound):
    pass


class HostNotFound(NotFound):
    pass


class PropertyNotFound(NotFound):
    pass


class FloatingIPNotFound(NotFound):
    pass


class Conflict(BlazarSchedError):
    """Right in itself, but not as things stand."""

    status = 409


class NotEnoughHostsAvailable(Conflict):
    """The window has no room for the reservation."""


class InvalidStatus(Conflict):
    """The lease is in a state that does not allow the change."""


class CantUpdateParameter(Conflict):
    """A parameter that is fixed from creation or from start on."""


class IdempotencyKeyReused(Conflict):
    """Another request of the project has used the idempotency key."""


class HostExists(Conflict):
    pass


class HostHavingServers(Conflict):
    """Servers are on a host that is to be dedicated."""


class CantDeleteHost(Conflict):
    """The host still has allocations."""


class FloatingIPExists(Conflict):
    pass


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
