# SPDX-License-Identifier: Apache-2.0
"""The demand of fixed instances for all hosts together, by resource class.

A fixed instance counts for itself and cannot be moved, so a lease can only
have what such instances leave. There is one index for each resource class,
with one row: the sum of all hosts. No lane of an index holds a sum above
2**31, so MEMORY_MB is counted in GiB, and amounts are rounded up.
"""

from collections import Counter
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.replica.batch import Change
from blazar_sched.replica.batch import Lifetime

# The only host of each index.
_ALL = 'all hosts'
# The most that is counted of one amount.
_MAX_AMOUNT = 1 << 20
# Entries that an index takes in one call, so that no call holds the GIL for
# long.
CHUNK = 1000


class FixedDemand:
    """The fixed instances, at the revision of a replica.

    :param hosts: every host by uuid
    :ivar latest: the latest end of the fixed instances on a host, by host
    """

    def __init__(self, hosts: Iterable[Host]) -> None:
        self.latest: dict[str, int] = {}
        # The ends of the fixed instances by uuid, by host.
        self._ends: dict[str, dict[str, int]] = defaultdict(dict)
        self._host_of: dict[str, str] = {}
        self._indexes: dict[str, ext.TimelineIndex] = {}
        self._capacities = {host.uuid: _capacity(host) for host in hosts}
        self._capacity = self._summed()

    def has_room(
        self, start: int, end: int, amounts: Mapping[str, int], share: float,
        ignore: str | None = None,
    ) -> bool:
        """Tell whether fixed instances may hold further amounts in a window.

        A class of which no host has inventory has room.

        :param amounts: by resource class
        :param share: the share of the capacity of all hosts that fixed
            instances may hold
        :param ignore: the instance whose entries are ignored
        """
        return all(
            self._peak(name, start, end, ignore) + amount
            <= int(share * self._capacity[name])
            for name, amount in _scaled(amounts).items()
            if amount and name in self._capacity
        )

    def hosts_at(self, at: int) -> list[str]:
        """Return the hosts with a fixed instance that lasts beyond a time."""
        return [host for host, end in self.latest.items() if end > at]

    def apply(
        self, removes: Iterable[str], lifetimes: Iterable[Lifetime],
        hosts: Mapping[str, Host | None],
    ) -> set[str]:
        """Apply the changes of a batch that the main index has taken.

        :param lifetimes: the instances that count for themselves
        :returns: the hosts of which `latest` may have changed
        """
        touched = self._remove([
            uuid for uuid in removes if uuid in self._host_of
        ])
        for uuid, host in hosts.items():
            self._capacities.pop(uuid, None)
            if host is not None:
                self._capacities[uuid] = _capacity(host)
        if hosts:
            self._capacity = self._summed()
        fixed = [each for each in lifetimes if not each[0].movable]
        self._add(fixed)
        return touched.union(each[0].host for each in fixed)

    def _add(self, lifetimes: Iterable[Lifetime]) -> None:
        by_class: dict[str, list[Change]] = defaultdict(list)
        for instance, start, end in lifetimes:
            uuid, host = instance.uuid, instance.host
            self._host_of[uuid] = host
            self._ends[host][uuid] = end
            self.latest[host] = max(end, self.latest.get(host, 0))
            for name, amount in _scaled(instance.countable()).items():
                if amount:
                    by_class[name].append((
                        'add', uuid, uuid, _ALL, start, end, (amount,), False
                    ))
        for name, changes in by_class.items():
            index = self._index(name)
            for at in range(0, len(changes), CHUNK):
                _put(index, changes[at:at + CHUNK])

    def _remove(self, uuids: Sequence[str]) -> set[str]:
        touched = set()
        for uuid in uuids:
            host = self._host_of.pop(uuid)
            touched.add(host)
            ends = self._ends[host]
            del ends[uuid]
            if ends:
                self.latest[host] = max(ends.values())
            else:
                del self._ends[host], self.latest[host]
        for index in self._indexes.values():
            index.apply(
                [('remove', uuid) for uuid in uuids if uuid in index],
                force=True,
            )
        return touched

    def _index(self, name: str) -> ext.TimelineIndex:
        found = self._indexes.get(name)
        if found is None:
            found = self._indexes[name] = ext.TimelineIndex((name,))
            found.apply([('capacity', _ALL, (_MAX_AMOUNT,))])
        return found

    def _peak(
        self, name: str, start: int, end: int, ignore: str | None
    ) -> int:
        index = self._indexes.get(name)
        if index is None:
            return 0
        peak: int = index.peak(
            index.rows([_ALL]), start, end, ignore=ignore
        )[0]
        return peak

    def _summed(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for capacity in self._capacities.values():
            total.update(capacity)
        return total


def _put(index: ext.TimelineIndex, changes: list[Change]) -> None:
    """Add entries, but none that cannot be added up with the others.

    Such entries leave no room in any case.
    """
    try:
        index.apply(changes, force=True)
    except ext.AmountOverflow:
        for each in changes:
            with contextlib.suppress(ext.AmountOverflow):
                index.apply([each], force=True)


def _capacity(host: Host) -> Mapping[str, int]:
    return {
        name: _in_units(name, host.capacity(name), up=False)
        for name in host.inventory
    }


def _scaled(amounts: Mapping[str, int]) -> dict[str, int]:
    return {
        name: min(_MAX_AMOUNT, _in_units(name, amount, up=True))
        for name, amount in amounts.items()
    }


def _in_units(name: str, amount: int, up: bool) -> int:
    """Return an amount in the units in which its class is counted."""
    if name != inventory.MEMORY_MB:
        return amount
    return -(-amount // inventory.MIB_PER_GIB) if up else (
        amount // inventory.MIB_PER_GIB
    )
