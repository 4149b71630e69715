# SPDX-License-Identifier: Apache-2.0
"""Selection of hosts within the group limits.

Hosts are selected without regard to the limits first, so that a selection that
exceeds none costs nothing but a look at each group. Of a group of which too
much is selected, each host is limited to a part of what the group limit
allows, the hosts of the selection first, and hosts are selected again.
"""

import bisect
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import functools

from blazar_sched.domain import exception
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.host import Host
from blazar_sched.placing.room import Room
from blazar_sched.replica.catalog import Candidates
from blazar_sched.replica.group import Group

Slot = Mapping[str, int] | None


def pick(
    room: Room, candidates: Candidates, slot: Slot,
    select: Callable[[Candidates], dict[str, int]], together: int = 1,
    beside: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return how many instances, or 1 for a whole host, each host gets.

    A selection that exists may be missed if hosts of one group count
    differently, or if a host is in several groups. At most one selection more
    than there are groups.

    :param slot: the amounts of an instance, None for whole hosts
    :param select: returns the selection among some candidates
    :param together: the least number of instances that a host gets
    :param beside: how many instances hosts have of the reservation already
    :raises NotEnoughHostsAvailable: if there are too few hosts, naming the
        group limits that leave hosts out
    """
    held = beside or {}
    reached: list[str] = []
    while True:
        try:
            picked = select(candidates)
        except exception.NotEnoughHostsAvailable as e:
            if not reached:
                raise
            raise exception.NotEnoughHostsAvailable(
                f'{e}; {", ".join(reached)}', e.field, e.offer
            ) from e
        for group in room.indexes.groups:
            left = group.room(room.window, room.ignore)
            amounts = [
                _more(group, host, slot, held.get(host, 0), count)
                for host, count in picked.items() if host in group.members
            ]
            # What counts nothing is not refused even if the group has less
            # than is reserved of it.
            if sum(amounts) > max(left, 0):
                break
        else:
            return picked
        others = sorted(
            _with_room(room, candidates, slot, together),
            key=lambda host: group.amount(host, slot, together),
        )
        most = _most(group, left, slot, picked, others, together, held)
        reached.append(
            f'the group limit {group.limit.name} leaves {max(left, 0)} of '
            f'{group.most} in the window'
        )
        candidates = candidates.limited(room.indexes.main, most)


def check_kept(
    room: Room, slot: Mapping[str, int], kept: Mapping[str, int]
) -> None:
    """Refuse instances that a reservation has, and that the indexes have.

    :param kept: how many instances each host has
    :raises NotEnoughHostsAvailable: if they are more than a limit allows
    """
    for group in room.indexes.groups:
        left = group.room(room.window, room.ignore)
        if left < 0 and any(
            group.amount(host, slot, count) for host, count in kept.items()
        ):
            raise exception.NotEnoughHostsAvailable(
                'the present allocations of the lease have no room in the new '
                f'window: the group limit {group.limit.name} is exceeded by '
                f'{-left}',
                field='reservations',
            )


def open_hosts(
    room: Room, candidates: Candidates, demand: Demand
) -> Iterable[str]:
    """Return the candidates on which no group limit is reached yet."""
    slot = None if demand.whole else demand.slot
    hosts: Iterable[str] = candidates.hosts
    for group in room.indexes.groups:
        left = max(group.room(room.window, room.ignore), 0)
        hosts = [h for h in hosts if group.amount(h, slot, 1) <= left]
    return hosts


def least(group: Group, hosts: Mapping[str, Host], demand: Demand) -> int:
    """Return what a demand counts at least, whichever of the hosts it gets.
    """
    if not hosts or not hosts.keys() <= group.members.keys():
        return 0
    host = min(hosts, key=group.members.__getitem__)
    if demand.whole:
        return demand.least * group.amount(host, None, 1)
    return group.amount(host, demand.slot, demand.least)


def within(
    groups: Iterable[tuple[Group, int]], slot: Slot, counts: Mapping[str, int]
) -> dict[str, int]:
    """Return numbers of instances, or of whole hosts, cut to the limits.

    :param groups: the groups, with what may still be reserved in each
    :param counts: how many each host has room for
    """
    for group, left in groups:
        most = _most(group, left, slot, counts, (), 1, {})
        counts = {
            host: most.get(host, count) for host, count in counts.items()
        }
    return dict(counts)


def _with_room(
    room: Room, candidates: Candidates, slot: Slot, together: int
) -> Iterator[str]:
    for part, some in room.parts(candidates, slot):
        if slot is None:
            yield from part.pick_untaken(some.rows, len(some.rows))
        else:
            rows = part.fitting(some.rows, slot, together)
            yield from part.fullest(rows, len(rows), slot, together)


def _most(
    group: Group, left: int, slot: Slot, picked: Mapping[str, int],
    others: Iterable[str], together: int, beside: Mapping[str, int],
) -> dict[str, int]:
    """Return how many instances each host of a group may get.

    Whatever of these the hosts get, the limit is not exceeded. The picked
    hosts come first, then the others as long as the limit allows. Hosts that
    are not in the group are left out.

    :param left: what may still be reserved in the group
    :param beside: see `pick`
    """
    most = {}
    left = max(left, 0)
    wanted = sum(picked.values())
    for host in dict.fromkeys((*picked, *others)):
        if host not in group.members:
            continue
        amounts = functools.partial(
            _more, group, host, slot, beside.get(host, 0)
        )
        count = bisect.bisect_right(
            range(picked.get(host, wanted) + 1), left, key=amounts
        ) - 1
        most[host] = count if count >= together else 0
        left -= amounts(most[host])
    return most


def _more(group: Group, host: str, slot: Slot, first: int, count: int) -> int:
    """Return what a number of instances on a host counts beside the first."""
    amount = group.amount(host, slot, first + count)
    return amount - group.amount(host, slot, first)
