# SPDX-License-Identifier: Apache-2.0
"""Relocation paths: where an instance goes when its host is needed.

An instance that lives longer than its host has room for may run there until
then, if it has room elsewhere from then on. Its path is a list of stays: the
first on its host, the others relocation allocations on other hosts, the last
until the end of the instance. Two stays overlap by the lead, in which the
instance is live-migrated.

A path takes at each step the host that has room for the longest time. For one
instance alone no path has fewer moves: whatever is reached by a shorter stay
is reached by a longer one too, which is the exchange argument for choosing
intervals greedily. For the same reason an instance that is smaller, or that
ends earlier, has a path wherever a larger or a longer one has. Therefore no
stay but the first has a shortest length.
"""

import array
from collections import Counter
from collections.abc import Mapping
import dataclasses
import itertools

from blazar_sched.domain import inventory
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.replica import packing
from blazar_sched.replica import state
from blazar_sched.replica.indexes import Indexes
from blazar_sched.replica.indexes import peaks_of

Path = tuple[Stay, ...]


class Targets:
    """The hosts that a path may use, for one demand.

    :param rows: rows of hosts in the main index
    :param amounts: the demand by RESOURCE_CLASSES
    :param extra: the demand by other resource classes
    :param headroom: the room of each row by RESOURCE_CLASSES, row-major, as
        the index takes it; None for the capacities of the hosts
    :param ignore: the owner whose entries are ignored
    """

    def __init__(
        self, indexes: Indexes, rows: 'array.array[int]',
        amounts: tuple[int, ...], extra: Mapping[str, int],
        headroom: 'array.array[int] | None' = None, ignore: str | None = None,
    ) -> None:
        self._indexes = indexes
        self._rows = rows
        self._amounts = amounts
        self._extra = extra
        self._headroom = headroom
        self._ignore = ignore
        # By the start that was asked for: for how many seconds each row has
        # room, and the positions of the two rows that have it the longest.
        self._seconds: dict[int, array.array[int]] = {}
        self._longest: dict[int, list[int]] = {}

    def next_stay(self, last: Stay, end: int, lead: int) -> Stay | None:
        """Return the longest stay that can follow another, on another host.

        If several hosts have room to `end`, the host with the least room left
        is taken by the index; with `headroom`, any of these hosts.

        O(1) with `headroom`, else O(hosts); a query of the index, too, for
        each start that is new.

        :param end: the end of the instance
        :param lead: seconds by which the stays overlap
        :returns: the stay; None if no other host has room
        """
        start = last.end - lead
        main = self._indexes.main
        [here] = main.rows([last.host])
        seconds = self._seconds_from(start)
        n = next((n for n in self._longest[start] if self._rows[n] != here), 0)
        if not self._rows or self._rows[n] == here or not seconds[n]:
            return None
        until = FOREVER if seconds[n] == FOREVER else start + seconds[n]
        if until < end or self._headroom is not None:
            [host] = main.row_keys(self._rows[n:n + 1])
        else:
            host = self._fullest(seconds, here, start, end)
        return Stay(host, start, min(until, end))

    def _fullest(
        self, seconds: 'array.array[int]', here: int, start: int, end: int
    ) -> str:
        """Return the host with the least room of those with room to an end."""
        least = end - start
        rows = array.array('i', itertools.compress(
            self._rows, map(least.__le__, seconds)
        ))
        if here in rows:
            rows.remove(here)
        main = self._indexes.main
        picked = main.pick(
            1, start, end, self._amounts, rows=rows, order='fullest',
            ignore=self._ignore,
        )
        [host] = picked or main.row_keys(rows[:1])
        return host

    def _seconds_from(self, at: int) -> 'array.array[int]':
        """Return for how many seconds each row has room from a time on."""
        found = self._seconds.get(at)
        if found is None:
            main = self._indexes.main
            found = main.horizon(
                self._rows, at, self._amounts, headroom=self._headroom,
                ignore=self._ignore,
            )
            if self._extra:
                found = array.array('q', map(
                    min, found, self._indexes.extra_horizon(
                        main.row_keys(self._rows), at, self._extra,
                        self._ignore,
                    )
                ))
            self._seconds[at] = found
            self._longest[at] = _two_longest(found)
        return found


def _two_longest(seconds: 'array.array[int]') -> list[int]:
    """Return the positions of the two largest numbers, the largest first."""
    if len(seconds) < 2:
        return list(range(len(seconds)))
    first = seconds.index(max(seconds))
    others = seconds[:first] + seconds[first + 1:]
    second = others.index(max(others))
    return [first, second + (second >= first)]


def find(
    targets: Targets, host: str, now: int, until: int, end: int, rules: Rules,
    movable: str, urgent: bool = False,
) -> Path | None:
    """Return the relocation path of an instance on a host.

    O(moves) calls of `Targets.next_stay`.

    :param host: the host of the first stay
    :param until: the time until which that host has room for the instance
    :param end: the end of the instance
    :param movable: how the instance is moved
    :param urgent: whether the first stay may be shorter than the rules say:
        the first move then has less time than the lead, or is late
    :returns: the stays; no stay if the host has room to the end of the
        instance; None if the rules allow no path
    """
    if until >= end:
        return ()
    if until - now < rules.least_stay(movable) and not urgent:
        return None
    stays = [Stay(host, now, until)]
    for _ in range(rules.most_moves):
        last = stays[-1]
        lead = min(rules.lead_of(movable), last.end - now)
        following = targets.next_stay(last, end, lead)
        if following is None or following.end <= last.end:
            return None
        stays.append(following)
        if following.end == end:
            return tuple(stays)
    return None


def plan(
    replica: state.Replica, instance: Instance, now: int, rules: Rules,
    urgent: bool = False, avoid: str | None = None,
) -> Path | None:
    """Return the relocation path of an instance, by the ledger's records.

    Entries of the instance itself are ignored, so that the path may be
    another one than before.

    :param replica: by LedgerAccounting
    :param urgent: as for `find`
    :param avoid: a host that the path does not lead to
    :returns: as `find`; None as well if the instance is not movable and must
        leave
    """
    indexes = replica.indexes
    until = _room_until(replica, instance, now)
    if until < instance.end and not instance.movable:
        return None
    amounts = instance.countable()
    extra = inventory.others(amounts)
    rows = replica.catalog.relocation_targets(
        replica.hosts[instance.host], amounts
    ).rows
    if avoid is not None:
        [avoided] = indexes.main.rows([avoid])
        rows = array.array('i', (row for row in rows if row != avoided))
    targets = Targets(
        indexes, rows, packing.amounts_of(amounts), extra, ignore=instance.uuid
    )
    return find(
        targets, instance.host, now, until, instance.end, rules,
        instance.movable, urgent,
    )


def must_leave(replica: state.Replica, instance: Instance, now: int) -> bool:
    """Tell whether an instance has no room on its host to its end."""
    return _room_until(replica, instance, now) < instance.end


def is_open(replica: state.Replica, instance: Instance, now: int) -> bool:
    """Tell whether an instance can still go along its relocation path.

    A host of the path may take no instances any more, or may be full: with an
    instance that no filter has admitted, or because the host has shrunk. A
    stay may be over. The present host may be closed before the first move.
    """
    return _room_until(replica, instance, now) >= instance.leaves_at and all(
        now < stay.end
        and replica.hosts[stay.host].takes_relocated
        and replica.indexes.has_room(
            dataclasses.replace(instance, host=stay.host),
            Window(max(now, stay.start), stay.end),
        )
        for stay in instance.relocations
    )


def _room_until(replica: state.Replica, instance: Instance, now: int) -> int:
    """Return until when the host of an instance has room for the instance."""
    seconds = replica.indexes.horizon(instance, now)
    return FOREVER if seconds == FOREVER else now + seconds


def taken_now(
    replica: state.Replica, host_uuid: str, now: int, ignore: str | None = None
) -> Counter[str]:
    """Return what is taken on a host at this moment.

    The amounts are those of instances, with the unused amounts of open
    reservations.

    :param ignore: the uuid of an instance that is not counted
    """
    taken: Counter[str] = Counter()
    for index in replica.indexes.by_class():
        rows = index.rows([host_uuid])
        if rows[0] >= 0:
            peaks = peaks_of(index, rows, Window(now, now + 1), ignore)
            taken.update({c: peaks[c][0] for c in index.resource_classes})
    for uuid in replica.preemptible.get(host_uuid, ()):
        amounts = replica.instances[uuid].countable()
        taken.update({c: amounts.get(c, 0) for c in taken})
    return taken
