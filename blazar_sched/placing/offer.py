# SPDX-License-Identifier: Apache-2.0
"""An offer: what there is room for, where there is none for what was asked.

It has `available`, how many hosts or instances the window has room for, and
`reservation`, the position in the lease of the one that lacks some; `start`
and `end` of a later window in which all of the lease would find room, None if
none is known.
"""

import array
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import TIME_LIMIT
from blazar_sched.domain.window import Window

Offer = Mapping[str, Any]

# Seconds to the second start that is tried, and how often it is twice as far.
STEP = 3600
TRIES = 16


def bound(
    index: ext.TimelineIndex,
    reservation: Reservation,
    rows: 'array.array[int]',
    window: Window,
) -> int | None:
    """Return a start before which a reservation finds no room in an index.

    From a window's own on; it is the first that has room, but for one of
    instances that may be anywhere, or that takes other resource classes.

    :param rows: the hosts that it may use
    :returns: None if there is no such start
    """
    count, amounts = _least(reservation)
    if amounts is not None and not any(amounts):
        return window.start
    if amounts is not None and max(amounts) > ext.AMOUNT_LIMIT:
        return None
    found = index.earliest(
        count, window.duration, window.start, amounts, rows,
        whole=amounts is None,
    )
    return None if found is None else found[0]


def _least(
    reservation: Reservation,
) -> tuple[int, list[int] | None]:
    """Return how many hosts it needs at least, and what of each.

    None is all of them.
    """
    if not reservation.has_slots:
        return reservation.parameters['min'], None
    slot = reservation.slot()
    amounts = [slot.get(c, 0) for c in inventory.RESOURCE_CLASSES]
    wanted = reservation.parameters['amount']
    affinity = reservation.parameters['affinity']
    if affinity:
        return 1, [wanted * amount for amount in amounts]
    return (1 if affinity is None else wanted), amounts


def search(fits: Callable[[int], bool], start: int) -> int | None:
    """Return a start that fits: the first one where all later ones do.

    Else one that comes after one that does not. Doubling steps, then halves:
    O(log of the distance) questions.

    :param fits: tells whether a start does
    :param start: the first to look at
    """
    if fits(start):
        return start
    failed, step = start, STEP
    for _ in range(TRIES):
        later = failed + step
        if later >= TIME_LIMIT:
            return None
        if fits(later):
            return _between(fits, failed, later)
        failed, step = later, 2 * step
    return None


def last(fits: Callable[[int], bool], end: int, latest: int) -> int:
    """Return the last end that fits: the later one is, the harder to fit.

    :param end: one that fits
    :param latest: the last one to look at
    """
    while end < latest:
        middle = (end + latest + 1) // 2
        if fits(middle):
            end = middle
        else:
            latest = middle - 1
    return end


def _between(fits: Callable[[int], bool], failed: int, later: int) -> int:
    while later - failed > 1:
        middle = (failed + later) // 2
        if fits(middle):
            later = middle
        else:
            failed = middle
    return later
