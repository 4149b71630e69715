# SPDX-License-Identifier: Apache-2.0
"""Orders in which the reservations of a lease are placed.

A reservation may take the only host that suits another reservation of the
lease, and leave a host that suits itself alone. A reservation that finds too
little room is therefore placed first in the next attempt: see Joslin and
Clements, "Squeaky Wheel" Optimization, Journal of Artificial Intelligence
Research 10 (1999).
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from blazar_sched.domain.reservation import Reservation

# The most placings of single reservations that one call makes, because the
# commits of others wait meanwhile: n + 1 orders of up to 31 reservations, and
# fewer orders of more.
MAX_PLACINGS = 1000


def attempt(
    reservations: Iterable[Reservation],
    place: Callable[[Sequence[Reservation]], Reservation | None],
    kind: Callable[[Reservation], object] = lambda reservation: reservation,
) -> None:
    """Place reservations in one order after the other, until all find room.

    Both orders of two reservations are tried, and at most n + 1 orders of n;
    the given order is the first. Orders of the same kinds are one order.

    :param place: places the reservations in an order, and returns a
        reservation that finds too little room, None if there is none
    :param kind: returns what is equal for reservations that find room on the
        same hosts
    """
    order = list(reservations)
    most = min(len(order), MAX_PLACINGS // max(len(order), 1)) + 1
    tried: list[list[object]] = []
    while (kinds := list(map(kind, order))) not in tried and (
        len(tried) < most
    ):
        tried.append(kinds)
        short = place(order)
        if short is None:
            return
        order = [short, *(r for r in order if r is not short)]
