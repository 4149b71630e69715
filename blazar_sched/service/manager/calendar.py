# SPDX-License-Identifier: Apache-2.0
"""Calendars: the operations on the links, and the leases that they show."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from typing import Any
import uuid

from blazar_sched.domain import calendar as rules
from blazar_sched.domain import exception
from blazar_sched.domain import plural
from blazar_sched.domain.calendar import Calendar
from blazar_sched.domain.lease import Lease
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import Tx

_Shown = dict[str, Any]


class Calendars:
    """The operations on calendars.

    :param clock: returns the time in epoch seconds
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._clock = clock

    def create(self, values: Mapping[str, Any]) -> _Shown:
        """Create a calendar.

        :param values: `project_id`, `name`, and the `digest` of the token
        :raises MaxCalendars: if the project has too many calendars
        """
        new = Calendar(
            str(uuid.uuid4()), created_at=int(self._clock()), **values
        )

        def work(tx: Tx) -> None:
            if len(tx.calendars(new.project_id)) >= rules.MAX_CALENDARS:
                raise exception.MaxCalendars(
                    'a project may have '
                    f'{plural.counted(rules.MAX_CALENDARS, "calendar")} at '
                    'most'
                )
            tx.put_calendar(new)

        self._ledger.write(work)
        return dataclasses.asdict(new)

    def read(self, digest: str) -> tuple[Calendar, list[Lease]]:
        """Return the calendar of a token, and its bare leases by start.

        :raises CalendarNotFound: if there is no calendar of the token
        """
        found = self._ledger.calendar_with(digest)
        now = int(self._clock())
        return found, self._ledger.leases(
            found.project_id,
            after=now - rules.PAST,
            before=now + rules.FUTURE,
            sort=(('start', False),),
            limit=rules.MAX_LEASES,
            bare=True,
        )

    def list(self, project_id: str | None) -> list[_Shown]:
        """Return the calendars of a project, or all, by id."""
        found = self._ledger.calendars(project_id)
        return [dataclasses.asdict(each) for each in found]

    def get(self, calendar_id: str, project_id: str | None) -> _Shown:
        """Return a calendar.

        :raises CalendarNotFound: if the project has no such calendar
        """
        return dataclasses.asdict(
            self._ledger.calendar(calendar_id, project_id)
        )

    def delete(self, calendar_id: str, project_id: str | None) -> None:
        """Delete a calendar: its link shows nothing any more.

        :raises CalendarNotFound: if the project has no such calendar
        """
        self._ledger.write(
            lambda tx: tx.delete_calendar(calendar_id, project_id)
        )
