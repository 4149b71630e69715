# SPDX-License-Identifier: Apache-2.0
"""What open reservations lend on hosts, as of the replica."""

from collections import Counter

from blazar_sched.replica import state


def on(
    replica: state.Replica, host: str, end: int
) -> tuple[Counter[str], tuple[str, ...]]:
    """Return what is lent on a host until a time.

    Slots are lent only if their reservation lasts until then: later, the room
    of the host may be that of another reservation.

    :param host: the uuid of the host
    :returns: the amounts of the lent slots by resource class, and the
        reservations that lend the host as a whole
    """
    amounts: Counter[str] = Counter()
    whole = []
    for id_ in tuple(replica.lent.get(host, ())):
        lender = replica.reservations.get(id_)
        if lender is None:
            # The replica may change while it is being read.
            continue
        if lender.slot is None:
            whole.append(id_)
        elif end <= lender.end:
            units = lender.lent.get(host, 0)
            amounts.update({c: units * n for c, n in lender.slot.items()})
    return amounts, tuple(sorted(whole))
