# SPDX-License-Identifier: Apache-2.0
"""Calendars: the operations on the links, and the leases that they show."""

from collections.abc import Callable
from typing import Any
import uuid

from blazar_sched.domain import plural
from blazar_sched.domain.lease import Lease
from blazar_sched.parts.calendar import FUTURE
from blazar_sched.parts.calendar import models
from blazar_sched.parts.calendar import PAST
from blazar_sched.parts.calendar.calls import CALENDARS
from blazar_sched.parts.calendar.exception import MaxCalendars
from blazar_sched.service.bus.calls import Values
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.manager import paging
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running

# The most leases of a calendar; of more leases, the first are shown.
MAX_LEASES = 1000


class Calendars:
    """The operations on calendars.

    :param clock: returns the time in epoch seconds
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._clock = clock

    def create(self, values: Values) -> Values:
        """Create a calendar.

        :param values: `project_id`, `name`, and the `digest` of the token
        :raises MaxCalendars: if the project has too many calendars
        """
        new: Values = {
            'id': str(uuid.uuid4()), **values,
            'created_at': int(self._clock()),
        }

        def work(tx: Tx) -> None:
            there = tx.run(models.list_, new['project_id'])
            if len(there) >= models.MAX_CALENDARS:
                most = plural.counted(models.MAX_CALENDARS, 'calendar')
                raise MaxCalendars(f'a project may have {most} at most')
            tx.run(models.put, new)

        self._ledger.write(work)
        return new

    def list(self, project_id: str | None) -> list[Values]:
        """Return the calendars of a project, or all, by id."""
        return self._ledger.run(models.list_, project_id)

    def get(self, calendar_id: str, project_id: str | None) -> Values:
        """Return a calendar.

        :raises CalendarNotFound: if the project has no such calendar
        """
        return self._ledger.run(models.get, calendar_id, project_id)

    def delete(self, calendar_id: str, project_id: str | None) -> None:
        """Delete a calendar: its link shows nothing any more.

        :raises CalendarNotFound: if the project has no such calendar
        """
        self._ledger.write(
            lambda tx: tx.run(models.delete, calendar_id, project_id)
        )

    def read(self, digest: str) -> Values:
        """Return the calendar of a token, with its leases by start as `items`.

        :raises CalendarNotFound: if there is no calendar of the token
        """
        found = self._ledger.run(models.with_digest, digest)
        now = int(self._clock())
        leases = self._ledger.leases(
            found['project_id'], after=now - PAST, before=now + FUTURE,
            sort=(('start', False),), limit=MAX_LEASES, bare=True,
        )
        page = paging.page(map(_entry, leases), 'id')
        return {'name': found['name'], **page}


def _entry(lease: Lease) -> dict[str, Any]:
    """Return what a calendar shows of a lease."""
    return {
        name: getattr(lease, name)
        for name in (
            'id', 'name', 'start', 'end', 'status', 'created_at',
            'updated_at', 'changes',
        )
    }


def start(manager: Manager) -> Running:
    """Answer the calls for calendars."""
    calendars = Calendars(manager.ledger, manager.clock)
    return Running({
        'create_calendar': calendars.create,
        'read_calendar': calendars.read,
        **paging.answers(CALENDARS, calendars),
    })
