# SPDX-License-Identifier: Apache-2.0
"""The timeline of all hosts together.

An instance that can be relocated needs room somewhere, not on one host. This
index therefore has one row, with the sum of all hosts: the allocations, and
what the instances need to their ends, wherever their relocation paths lead. A
preemptible instance yields, and a bound one is a part of its reservation.

A lane of an index holds no sum above 2**31, so memory is counted in GiB:
capacities are rounded down, and amounts up. A last lane counts the hosts that
are reserved whole, or have instances that cannot be moved.
"""

from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.domain.window import FOREVER
from blazar_sched.replica import packing
from blazar_sched.replica.batch import Batch
from blazar_sched.replica.batch import Change
from blazar_sched.replica.batch import Lifetime
from blazar_sched.replica.fixed import CHUNK
from blazar_sched.replica.fixed import FixedDemand

CLASSES = (inventory.VCPU, inventory.MEMORY_MB)
# The class of the last lane of the index.
_HOSTS = 'hosts'
# The only host of the index.
_ALL = 'all hosts'
# The most that is counted of one amount, so that no sum of amounts overflows.
_MAX_AMOUNT = 1 << 20
_NOTHING = 0, 0, 0


class Total:
    """The demand for all hosts together, at the revision of a replica.

    :param hosts: every host
    :ivar fixed: the demand of the instances that cannot be moved
    """

    def __init__(self, hosts: Collection[Host]) -> None:
        self._index = ext.TimelineIndex((*CLASSES, _HOSTS))
        self._capacities = {host.uuid: _capacity(host) for host in hosts}
        # The entries of whole hosts, by host and id: such an entry takes the
        # capacity of its host, which may change.
        self._whole: dict[str, dict[str, Change]] = defaultdict(dict)
        self._host_of: dict[str, str] = {}
        self.fixed = FixedDemand(hosts)
        # The capacity of all hosts by CLASSES, memory in GiB, and their count.
        self.capacity = self._summed()
        self._index.apply([('capacity', _ALL, self.capacity)])
        self._row = self._index.rows([_ALL])

    def hosts_in(self, share: float) -> int:
        """Return the number of hosts in a share of all hosts."""
        return int(share * self.capacity[-1])

    def has_host(self, start: int, end: int, kept_free: int) -> bool:
        """Tell whether a further host may be kept from leases in a window.

        :param kept_free: the number of hosts that have to stay without
            instances that cannot be moved, and without leases of whole hosts
        """
        wanted = 0, 0, 1 + kept_free
        return self._index.fits(self._row, start, end, wanted) == b'\1'

    def has_room(
        self, start: int, end: int, amounts: Mapping[str, int],
        kept_free: float, ignore: str | None = None,
    ) -> bool:
        """Tell whether all hosts together have room in a window.

        :param amounts: by resource class, as the timeline index counts them
        :param kept_free: the share of the capacity that has to stay free
        :param ignore: the owner whose entries are ignored
        """
        wanted = [
            amount + int(kept_free * capacity)
            for amount, capacity in zip(
                _scaled(packing.amounts_of(amounts)), self.capacity,
                strict=True,
            )
        ]
        [fits] = self._index.fits(self._row, start, end, wanted, ignore=ignore)
        return bool(fits)

    def free_shares(self, start: int) -> dict[str, float]:
        """Return the share of each class that is free from a time on for ever.

        A share is below 0 if more is taken than the hosts have. A class of
        which the hosts have nothing is left out.
        """
        peaks = self._index.peak(self._row, start, FOREVER)
        return {
            name: 1 - taken / capacity
            for name, taken, capacity in zip(
                CLASSES, peaks, self.capacity, strict=False
            )
            if capacity
        }

    def add(
        self, allocations: Iterable[Change], lifetimes: Collection[Lifetime]
    ) -> None:
        """Add any number of entries.

        :param allocations: changes of the main index
        """
        changes = [*self._added(allocations), *_entries(lifetimes)]
        changes += self._fixed_hosts(self.fixed.apply((), lifetimes, {}))
        for at in range(0, len(changes), CHUNK):
            self._index.apply(changes[at:at + CHUNK], force=True)

    def apply(self, batch: Batch) -> None:
        """Apply a batch that the main index has taken."""
        changes: list[Change] = [
            ('remove', id_) for id_ in batch.removes if id_ in self._index
        ]
        for id_ in batch.removes:
            host = self._host_of.pop(id_, None)
            if host is not None:
                del self._whole[host][id_]
        if batch.hosts:
            changes += self._resized(batch.hosts)
        changes += self._added(batch.allocations)
        changes += _entries(batch.lifetimes)
        changes += self._fixed_hosts(self.fixed.apply(
            batch.removes, batch.lifetimes, batch.hosts
        ))
        self._index.apply(changes, force=True)

    def _fixed_hosts(self, hosts: Iterable[str]) -> Iterator[Change]:
        """Yield the changes for hosts whose fixed instances have changed."""
        for host in hosts:
            if host in self._index:
                yield 'remove', host
            end = self.fixed.latest.get(host)
            if end is not None:
                yield 'add', host, host, _ALL, 0, end, (0, 0, 1), False

    def _added(self, allocations: Iterable[Change]) -> Iterator[Change]:
        for change in allocations:
            _, id_, owner, host, start, end, amounts, whole = change
            if whole:
                self._whole[host][id_] = change
                self._host_of[id_] = host
                amounts = self._capacities.get(host, _NOTHING)
            else:
                amounts = _scaled(amounts)
            if any(amounts):
                yield 'add', id_, owner, _ALL, start, end, amounts, False

    def _resized(self, hosts: Mapping[str, Host | None]) -> Iterator[Change]:
        """Yield the changes for hosts that have changed, come or gone."""
        for uuid, host in hosts.items():
            if host is None:
                self._capacities.pop(uuid, None)
            else:
                self._capacities[uuid] = _capacity(host)
            on_host = tuple(self._whole[uuid].values())
            for change in on_host:
                if change[1] in self._index:
                    yield 'remove', change[1]
            yield from self._added(on_host)
        self.capacity = self._summed()
        yield 'capacity', _ALL, self.capacity

    def _summed(self) -> tuple[int, ...]:
        sums = map(sum, zip(*self._capacities.values(), strict=True))
        return tuple(sums) or _NOTHING


def _entries(lifetimes: Iterable[Lifetime]) -> Iterator[Change]:
    """Yield the entries of instances; bare metal has amounts of neither class.
    """
    for instance, start, end in lifetimes:
        amounts = _scaled(packing.amounts_of(instance.countable()))
        if any(amounts):
            yield (
                'add', instance.uuid, instance.uuid, _ALL, start, end, amounts,
                False,
            )


def _capacity(host: Host) -> tuple[int, ...]:
    vcpus, memory_mb, *_ = host.amounts()
    memory_gib = memory_mb // inventory.MIB_PER_GIB
    return min(vcpus, _MAX_AMOUNT), min(memory_gib, _MAX_AMOUNT), 1


def _scaled(amounts: Sequence[int]) -> tuple[int, ...]:
    """Return amounts by RESOURCE_CLASSES as amounts by the lanes."""
    vcpus, memory_mb, *_ = amounts
    memory_gib = -(-memory_mb // inventory.MIB_PER_GIB)
    return min(vcpus, _MAX_AMOUNT), min(memory_gib, _MAX_AMOUNT), 0
