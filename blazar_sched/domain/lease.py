# SPDX-License-Identifier: Apache-2.0
"""A lease: a project's contract over one window."""

import dataclasses

from blazar_sched.domain import event
from blazar_sched.domain import reservation
from blazar_sched.domain import window


@dataclasses.dataclass(frozen=True, slots=True)
class Lease:
    """A lease with all that it owns, as the ledger holds it."""

    id: str
    name: str
    project_id: str
    user_id: str
    start: int
    end: int
    status: str
    degraded: bool = False
    trust_id: str | None = None
    reservations: tuple[reservation.Reservation, ...] = ()
    events: tuple[event.Event, ...] = ()
    created_at: int | None = None
    updated_at: int | None = None

    @property
    def window(self) -> window.Window:
        return window.Window(self.start, self.end)

    @property
    def before_end(self) -> int | None:
        """When the owner is told of the coming end, None for never."""
        for e in self.events:
            if e.event_type == event.BEFORE_END_LEASE:
                return e.time
        return None
