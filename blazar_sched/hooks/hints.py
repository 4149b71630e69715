# SPDX-License-Identifier: Apache-2.0
"""Checks and completion of scheduler hints, while the user can be answered.

After nova-api an error in a hint cannot be reported to the user any more, and
the time from which a duration counts is no longer known.
"""

from collections.abc import Mapping
import re
from typing import Any

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import hints
from blazar_sched.domain import window
from blazar_sched.domain.label import hinted
from blazar_sched.domain.way import read_way

RESERVATION_ID = r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'

# The hints that each hint excludes.
_INSTEAD_OF = {
    hints.LEASE_END: (hints.LIFETIME,),
    hints.LEASE_PARAMS: (
        hints.LEASE_START, hints.LEASE_END, hints.LIFETIME, hints.LEASE_NAME,
    ),
    # A reservation has a window of its own.
    hints.RESERVATION: (hints.LEASE_START, hints.LEASE_PARAMS),
}


def complete(
    given: Mapping[str, Any], now: int, default: str
) -> dict[str, str]:
    """Return the hints to add: the declared times as absolute times.

    :param given: all hints of the request
    :param default: the duration to use if no end is declared; '' for none
    :raises InvalidInput: naming the hint that is wrong
    """
    ours = {
        name: _text(name, given[name]) for name in hints.ALL if name in given
    }
    _check(ours)
    declared = hints.read(ours, {}, now)
    added = {}
    if declared.start is not None:
        added[hints.LEASE_START] = declared.start
    if declared.end != window.FOREVER:
        added[hints.LEASE_END] = declared.end
    elif hints.RESERVATION not in ours:
        added[hints.DEFAULT_END] = hints.read(ours, {}, now, default).end
    return {
        name: duration.format_time(at)
        for name, at in added.items()
        if at != window.FOREVER
    }


def _text(name: str, value: Any) -> str:
    # Nova would convert a number to text, too.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise exception.InvalidInput(f'{name} must be text', field=name)
    return value


def _check(ours: Mapping[str, str]) -> None:
    """Refuse contradictory hints, and hints that are not meant for users."""
    if hints.DEFAULT_END in ours:
        raise exception.InvalidInput(
            f'{hints.DEFAULT_END} is not for users: {hints.LEASE_END} and '
            f'{hints.LIFETIME} are',
            field=hints.DEFAULT_END,
        )
    for name, others in _INSTEAD_OF.items():
        for other in others:
            if name in ours and other in ours:
                raise exception.InvalidInput(
                    f'{name} and {other} cannot be given together', field=other
                )
    movable = ours.get(hints.MOVABLE)
    if movable is not None and read_way(movable) is None:
        raise exception.InvalidInput(
            f'{hints.MOVABLE} must be true, cold or false', field=hints.MOVABLE
        )
    claim = ours.get(hints.RESERVATION)
    if claim is not None and not (
        re.fullmatch(RESERVATION_ID, claim) or hinted(claim)
    ):
        raise exception.InvalidInput(
            f'{hints.RESERVATION} must be the id of a reservation, or '
            'label:key=value',
            field=hints.RESERVATION,
        )
