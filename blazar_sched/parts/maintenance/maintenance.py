# SPDX-License-Identifier: Apache-2.0
"""A maintenance: a window in which nothing may be on some hosts."""

import dataclasses

from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.host import MAINTENANCE
from blazar_sched.domain.window import Window

# The most characters of a name and of a reason.
MAX_NAME = 80
MAX_REASON = 255

# The statuses of a maintenance.
STATUSES = PLANNED, DRAINING, ACTIVE, OVER = (
    'PLANNED', 'DRAINING', 'ACTIVE', 'OVER'
)

# Why a reservation keeps its allocations on a host that will be closed: the
# reservation is open and has servers there, no other host has room, or an
# event of the lease is in progress.
WHYS = SERVERS, NO_ROOM, CHANGING = 'servers', 'no_room', 'changing'


@dataclasses.dataclass(frozen=True, slots=True)
class Maintenance:
    """A maintenance of hosts over a window.

    `hosts` are uuids. `reason` is shown to the owners of leases. `end` is
    FOREVER as long as the end is not known.
    """

    id: str
    name: str
    reason: str
    start: int
    end: int
    hosts: tuple[str, ...] = ()
    created_at: int | None = None
    updated_at: int | None = None

    @property
    def window(self) -> Window:
        """The window of the maintenance.

        :raises InvalidInput: if the window is empty or out of range
        """
        return Window(self.start, self.end)

    @property
    def on_host(self) -> ClosedWindow:
        """The copy of the maintenance that each of its hosts has."""
        return ClosedWindow(
            self.start, self.end, MAINTENANCE, self.id, self.name, self.reason
        )

    def status(self, now: int, lead_time: int) -> str:
        """Return the status, one of STATUSES.

        :param lead_time: seconds before the start at which the hosts begin to
            be vacated
        """
        if self.end <= now:
            return OVER
        if self.start <= now:
            return ACTIVE
        if self.start - lead_time <= now:
            return DRAINING
        return PLANNED
