# SPDX-License-Identifier: Apache-2.0
"""A replica of the ledger: entities and timeline indexes at one revision.

A replica has one writer. Readers see each change of the main index whole,
because the index takes a batch in one call. The indexes of the other resource
classes are changed one after the other: the entries that a batch adds are
there before the main index changes, and the entries that the batch removes
are there until after that. This module does no I/O: see replica.puller for
the source of the records.
"""

from collections import Counter
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import heapq
import itertools
from typing import Any
from typing import cast

from blazar_sched import ext
from blazar_sched.domain import host
from blazar_sched.domain import inventory
from blazar_sched.domain import reservation
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.catalog import Catalog
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.ext import packed
from blazar_sched.replica import accounting
from blazar_sched.replica import extra
from blazar_sched.replica import left_out
from blazar_sched.replica import packing
from blazar_sched.replica import present
from blazar_sched.replica import record
from blazar_sched.replica import reserved

# The number of ends up to which the ends are not pruned.
LEAST_ENDS = 100
Change = extra.Change
# Entities by the kind and key of their records; None for an entity that is
# gone.
Image = dict[record.Key, record.Entity | None]

# Entries that the index takes in one call, so that no call holds the GIL for
# long.
CHUNK = 1000
# An id that no entry has: see `_try`.
_NOTHING = 'nothing has this id'
# The owner of the entries that close hosts, and the prefix of their ids.
_CLOSED = 'closed'


class Replica:
    """The entities of the ledger by key, and the indexes built from them.

    Allocations, of which there are very many, are kept in the indexes alone:
    `index` counts RESOURCE_CLASSES, `extra` has one index for each other
    resource class, and `reserved` counts allocations alone: see
    replica.reserved.

    :param accounting_: how instances are counted; see replica.accounting
    :param overcommit: whether reservations may overcommit hosts; if so,
        `reserved` is None
    """

    def __init__(
        self,
        accounting_: accounting.Accounting,
        revision: int = 0,
        overcommit: bool = True,
    ) -> None:
        self.accounting = accounting_
        self.revision = revision
        self.hosts: dict[str, Host] = {}
        self.reservations: dict[str, record.Reservation] = {}
        self.instances: dict[str, Instance] = {}
        # The dedicated hosts, and the hosts with a policy of their own for
        # unbounded instances.
        self.dedicated: set[str] = set()
        self.with_policy: set[str] = set()
        # The reservations of whole hosts by project, and the magnetic ones
        # among these reservations by project.
        self.whole: dict[str, set[str]] = defaultdict(set)
        self.magnetic: dict[str, set[str]] = defaultdict(set)
        # Memory of the preemptible instances in MB, by host.
        self.preemptible_mb: Counter[str] = Counter()
        # The bound instances, by reservation.
        self.bound: dict[str, set[str]] = defaultdict(set)
        # The instances with amounts of other resource classes, by host.
        self._with_others: dict[str, set[str]] = defaultdict(set)
        self.index = ext.TimelineIndex(inventory.RESOURCE_CLASSES)
        self.extra = extra.Extra(self.hosts)
        self.reserved = None if overcommit else reserved.new()
        self.present = present.Present(self.hosts)
        self.left_out = left_out.LeftOut()
        self.catalog = Catalog(self.index, self.hosts)
        self._nouns: dict[str, dict[str, Any]] = {
            record.HOST: self.hosts,
            record.RESERVATION: self.reservations,
            record.INSTANCE: self.instances,
        }
        # The latest time that advance() was given. As of that time: the
        # bounded instances that are overdue, and a heap with the ends of the
        # others as (end, uuid). The heap also has outdated ends, of instances
        # that have another end by now or are gone.
        self._now = 0
        self._overdue: set[str] = set()
        self._ends: list[tuple[int, str]] = []

    def apply(
        self,
        revision: int,
        records: Iterable[record.Record],
        leave_out: bool = False,
    ) -> None:
        """Apply the records between the replica's revision and `revision`.

        Nothing is changed if a record is refused.

        :param leave_out: continue without the records that the indexes
            refuse, and close the hosts of these records: see replica.left_out
        :raises ValueError: if a record is malformed or refers to an unknown
            entity
        """
        image = self._decode(records)
        if leave_out:
            self._use_what_can_be(image)
        else:
            self._use(image)
        self._settle()
        self.revision = revision

    def check(self, records: Iterable[record.Record]) -> None:
        """Refuse the records that `apply` would refuse, but apply none.

        :raises ValueError: as `apply` does
        """
        batch = extra.Batch()
        changes = self._changes(self._decode(records), batch)
        with self.extra.trying(batch):
            _try(self.index, changes)

    def load(
        self,
        revision: int,
        records: Iterable[record.Record],
        allocations: Iterable[packing.Allocations] = (),
        leave_out: bool = False,
    ) -> set[str]:
        """Fill a new replica with a full copy of the ledger, in bulk.

        The records are read to their end, then the allocations in pieces.
        Nothing is changed if a record or an allocation is refused.

        :param leave_out: continue without the records and allocations that
            the indexes refuse, and close their hosts: see replica.left_out.
            This is slower.
        :returns: the ids of the instances and allocations that were left out
            because the copy lacks their host. Pages that were read at
            different times may have such entities, and the changes between
            those times name these entities: see Puller.
        :raises ValueError: if a record is malformed
        """
        if leave_out:
            missing = self._load_what_can_be(records, allocations)
        else:
            missing = self._load_all(records, allocations)
        self._settle()
        self.revision = revision
        return missing

    def _load_all(
        self,
        records: Iterable[record.Record],
        allocations: Iterable[packing.Allocations],
    ) -> set[str]:
        image = self._decode(records)
        batch = extra.Batch()
        changes = self._changes(image, batch)
        capacity = {c[1]: c[2] for c in changes if c[0] == 'capacity'}
        row_of = {host: row for row, host in enumerate(capacity)}
        missing: set[str] = set()
        others = extra.Extra(self.hosts)
        allocated: list[packing.Part] = []

        def placed(columns: packed.Columns) -> packing.Part:
            part, without_host = packing.placed(columns, row_of)
            missing.update(without_host)
            return part

        def parts() -> Iterator[packing.Part]:
            adds = [c for c in changes if c[0] == 'add']
            for each in allocations:
                if isinstance(each, Allocation):
                    adds += _add_allocation(each, batch)
                else:
                    part = placed(each)
                    if self.reserved is not None:
                        allocated.append(part)
                    yield part
            yield placed(_columns(adds))
            missing.update(others.load(batch))

        self.index.load_parts(
            list(capacity),
            list(itertools.chain.from_iterable(capacity.values())),
            parts(),
        )
        self.extra = others
        self._keep_all(image)
        if self.reserved is not None:
            allocated.append(placed(_columns(batch.allocations)))
            reserved.load(
                self.reserved,
                {uuid: self.hosts[uuid] for uuid in capacity},
                allocated,
            )
        for instance in self.instances.values():
            self.present.add(instance)
        return missing

    def _load_what_can_be(
        self,
        records: Iterable[record.Record],
        allocations: Iterable[packing.Allocations],
    ) -> set[str]:
        hosts: list[record.Record] = []
        others: list[record.Record] = []
        for each in records:
            (hosts if each[0] == record.HOST else others).append(each)
        self._use_what_can_be(self._decode(hosts))
        missing: set[str] = set()

        def there() -> Iterator[record.Record]:
            for each in itertools.chain(others, _records_of(allocations)):
                host = left_out.host_of(each)
                if host is None or host in self.hosts:
                    yield each
                else:
                    missing.add(each[1])

        those = there()
        while chunk := list(itertools.islice(those, CHUNK)):
            self._use_what_can_be(self._decode(chunk))
        return missing

    def advance(self, now: int) -> None:
        """Count the instances that are past their end as unbounded.

        A clock that is set back changes nothing. O(1) if no instance has
        ended.
        """
        self._now = max(self._now, now)
        while self._ends and self._ends[0][0] <= self._now:
            end, uuid = heapq.heappop(self._ends)
            instance = self.instances.get(uuid)
            if (
                instance is None
                or instance.end != end
                or uuid in self._overdue
            ):
                continue
            self._overdue.add(uuid)
            batch = extra.Batch()
            changes = self._remove_instance(uuid, batch)
            changes += self._add_instance(instance, batch)
            try:
                with self.extra.changing(batch):
                    self.index.apply(changes, force=True)
            except ext.TimelineError as e:
                self._leave_out([instance], e)
                self._settle()
        self.index.advance(now)

    def held(self, reservation_id: str) -> dict[str, Allocation]:
        """Return the allocations of a reservation by host.

        Amounts of 0 are left out. O(number of the allocations).
        """
        found: dict[str, Allocation] = {}
        all_amounts: dict[str, dict[str, int]] = defaultdict(dict)
        for index in (self.index, *tuple(self.extra.values())):
            for id_, on, start, end, amounts, whole in index.held(
                reservation_id
            ):
                own = all_amounts[on]
                own.update(
                    (c, amount)
                    for c, amount in zip(
                        index.resource_classes, amounts, strict=True
                    )
                    if amount
                )
                if on not in found:
                    found[on] = Allocation(
                        id_, reservation_id, on, start, end, own, whole
                    )
        return found

    def counted(
        self, instance: Instance
    ) -> Iterator[tuple[ext.TimelineIndex, list[int]]]:
        """Yield each index that counts an instance, with the counted amounts.

        A resource class that the host has no inventory of is left out: its
        amount comes from a resource provider below the host's own, which
        nobody can reserve.

        :raises KeyError: if the host of the instance is not known
        """
        has = self.hosts[instance.host].inventory
        amounts = instance.countable()
        others = (c for c in inventory.others(amounts) if c in has)
        for index in (self.index, *map(self.extra.__getitem__, others)):
            yield index, [amounts.get(c, 0) for c in index.resource_classes]

    def entries(
        self, many: Iterable[Allocation]
    ) -> Iterator[tuple[ext.TimelineIndex, list[Change]]]:
        """Yield each index with the changes that add allocations to it."""
        batch = extra.Batch()
        yield self.index, [
            change
            for allocation in many
            for change in _add_allocation(allocation, batch)
        ]
        by_class: dict[str, list[Change]] = defaultdict(list)
        for name, change in batch.adds:
            by_class[name].append(change)
        for name, changes in by_class.items():
            yield self.extra[name], changes
        if self.reserved is not None:
            yield self.reserved, batch.allocations

    def items(self) -> Iterator[packing.Item]:
        """Yield the items that rebuild this replica: see replica.packing."""
        for entities in self._nouns.values():
            for entity in entities.values():
                yield record.encode(entity)
        yield from self.left_out.items()
        reservations = dict.fromkeys(
            [*self.reservations, *self.left_out.reservations]
        )
        wide = set(filter(self.extra.owns, reservations))
        for reservation_id in wide:
            yield from map(record.encode, self.held(reservation_id).values())
        yield from packing.texts(
            (held[0], reservation_id, *held[1:])
            for reservation_id in reservations
            if reservation_id not in wide
            for held in self.index.held(reservation_id)
        )

    def _decode(self, records: Iterable[record.Record]) -> Image:
        image: Image = {}
        for kind, key, data in records:
            if kind not in record.KINDS:
                raise ValueError(f'unknown kind of record {kind!r}')
            if data is None:
                image[kind, key] = None
                continue
            if self.left_out.take((kind, key, data)):
                image.pop((kind, key), None)
                continue
            entity = record.decode(kind, data)
            own_key = record.key_of(entity)
            if own_key != key:
                raise ValueError(f'the {kind} {key!r} has another key')
            image[kind, own_key] = entity
        return image

    def _changes(self, image: Image, batch: extra.Batch) -> list[Change]:
        """Build the changes of the main index that bring it to an image.

        In the order of the changes, the host of an entry is always known
        while the entry is changed.

        :param batch: receives the changes of the other indexes
        """
        # The hosts come first: their inventories say which amounts of an
        # instance count.
        batch.hosts = {
            key: cast(Host | None, entity)
            for (kind, key), entity in image.items()
            if kind == record.HOST
        }
        capacities: list[Change] = [
            ('capacity', uuid, self.accounting.capacity(new))
            for uuid, new in batch.hosts.items()
            if new is not None
        ]
        gone = [
            uuid
            for uuid, new in batch.hosts.items()
            if new is None and uuid in self.hosts
        ]
        drops: list[Change] = [('drop', uuid) for uuid in gone]
        removes: list[Change] = [
            ('remove', each)
            for each in map(_closing_id, gone)
            if each in self.index
        ]
        adds: list[Change] = []
        for (kind, key), entity in image.items():
            if kind == record.ALLOCATION:
                removes += self._remove(key, batch)
                if entity is not None:
                    adds += _add_allocation(
                        cast(Allocation, entity), batch
                    )
            elif kind == record.INSTANCE:
                removes += self._remove_instance(key, batch)
                if entity is not None:
                    adds += self._add_instance(
                        cast(Instance, entity), batch
                    )
        for uuid in self._counted_anew(batch):
            of = record.INSTANCE, uuid
            if of not in image and of not in self.left_out:
                batch.removes.append(uuid)
                self._add_others(self.instances[uuid], batch)
        return capacities + removes + adds + drops

    def _instance_changes(self, image: Image) -> Iterator[present.Change]:
        """Yield each instance record that changes, before and after."""
        for (kind, key), entity in image.items():
            if kind == record.INSTANCE:
                yield (
                    self.instances.get(key),
                    cast(Instance | None, entity),
                )

    def _use(self, image: Image) -> None:
        """Count and keep the entities of an image: all of them, or none.

        :raises TimelineError: if the indexes refuse an entity
        """
        self._count(image)
        for key in image:
            self.left_out.discard(key)

    def _count(self, image: Image) -> None:
        batch = extra.Batch()
        changes = self._changes(image, batch)
        instances = self._instance_changes(image)
        with self.present.changing(instances), self.extra.changing(batch):
            self.index.apply(changes, force=True)
            self._count_reserved(batch)
        self._keep_all(image)

    def _count_reserved(self, batch: extra.Batch) -> None:
        if self.reserved is not None:
            reserved.apply(self.reserved, batch)

    def _use_what_can_be(self, image: Image) -> None:
        """Count and keep the entities of an image that the indexes accept."""
        try:
            self._use(image)
        except ext.TimelineError:
            for key in sorted(image, key=lambda key: _turn(key, image[key])):
                self._use_alone(key, image[key])

    def _use_alone(
        self, key: record.Key, entity: record.Entity | None
    ) -> None:
        try:
            self._use({key: entity})
        except ext.TimelineError as e:
            if entity is None:
                self.left_out.add((*key, None), e)
            elif isinstance(entity, Host):
                # The host gets a resource class of which its instances have
                # amounts.
                self._leave_out(
                    [self.instances[uuid]
                     for uuid in self._with_others.get(entity.uuid, ())],
                    e,
                )
                self._use({key: entity})
            else:
                self._leave_out([entity], e)

    def _leave_out(
        self, entities: Sequence[record.Entity], error: ext.TimelineError
    ) -> None:
        """Close the hosts of entities, then stop counting the entities."""
        batch = extra.Batch()
        changes: list[Change] = []
        for each in map(record.encode, entities):
            self.left_out.add(each, error)
            if each[0] == record.INSTANCE:
                changes += self._remove_instance(each[1], batch)
            else:
                changes += self._remove(each[1], batch)
        self._close_hosts()
        # The instances are on their hosts, though they cannot be counted.
        there: Image = {
            (record.INSTANCE, entity.uuid): entity
            for entity in entities
            if isinstance(entity, Instance)
        }
        instances = self._instance_changes(there)
        with self.present.changing(instances), self.extra.changing(batch):
            self.index.apply(changes, force=True)
            self._count_reserved(batch)
        self._keep_all(there)

    def _settle(self) -> None:
        """Retry the records left out for now, and reopen hosts if possible."""
        for each in self.left_out.for_now():
            [(key, entity)] = self._decode([each]).items()
            self._use_alone(key, entity)
        for uuid in self.left_out.hosts:
            if uuid not in self.hosts:
                self._count({(record.HOST, uuid): _stub(uuid)})
        self._close_hosts()
        self.index.apply(
            [('remove', id_) for id_, uuid, *_ in self.index.held(_CLOSED)
             if uuid not in self.left_out.closed],
            force=True,
        )
        self.extra.prune()

    def _close_hosts(self) -> None:
        """Close the hosts of the records left out: take each host whole."""
        nothing = (0,) * packing.WIDTH
        self.index.apply(
            [('add', _closing_id(uuid), _CLOSED, uuid, 0, window.FOREVER,
              nothing, True)
             for uuid in self.left_out.closed & self.hosts.keys()],
            force=True,
        )

    def _keep_all(self, image: Image) -> None:
        for (kind, key), entity in image.items():
            self._keep(kind, key, entity)

    def _keep(self, kind: str, key: str, entity: record.Entity | None) -> None:
        if kind == record.ALLOCATION:
            return
        # Replaced in place: a reader must not find an entity gone while the
        # entity only changes.
        old = self._nouns[kind].get(key)
        if entity is not None:
            self._nouns[kind][key] = entity
        else:
            self._nouns[kind].pop(key, None)
        if kind == record.HOST:
            self._keep_host(key, cast(Host, entity))
        elif kind == record.INSTANCE:
            self._keep_instance(key, old, cast(Instance, entity))
        elif kind == record.RESERVATION:
            _move(self.whole, key, _project_of_whole(old),
                  _project_of_whole(cast(record.Reservation, entity)))
            _move(self.magnetic, key, _drawn_project(old),
                  _drawn_project(cast(record.Reservation, entity)))

    def _keep_host(self, uuid: str, new: Host | None) -> None:
        self.catalog.forget()
        self.present.resize(uuid)
        if new is not None and new.hold == host.DEDICATED:
            self.dedicated.add(uuid)
        else:
            self.dedicated.discard(uuid)
        if new is not None and new.unbounded is not None:
            self.with_policy.add(uuid)
        else:
            self.with_policy.discard(uuid)

    def _keep_instance(
        self,
        uuid: str,
        old: Instance | None,
        new: Instance | None,
    ) -> None:
        self._overdue.discard(uuid)
        for entity, sign in ((old, -1), (new, 1)):
            if entity is not None and entity.preemptible:
                self.preemptible_mb[entity.host] += (
                    sign * entity.amounts.get(inventory.MEMORY_MB, 0)
                )
        _move(
            self.bound,
            uuid,
            None if old is None else old.reservation_id,
            None if new is None else new.reservation_id,
        )
        _move(
            self._with_others,
            uuid,
            _host_of_others(old),
            _host_of_others(new),
        )
        if new is None:
            return
        if new.end <= self._now:
            self._overdue.add(uuid)
        elif new.end != window.FOREVER:
            heapq.heappush(self._ends, (new.end, uuid))
            self._prune_ends()

    def _prune_ends(self) -> None:
        """Rebuild the heap of ends once most ends in it are out of date.

        O(1) for each end on average.
        """
        if len(self._ends) > 2 * len(self.instances) + LEAST_ENDS:
            self._ends = [
                (instance.end, uuid)
                for uuid, instance in self.instances.items()
                if instance.end != window.FOREVER and uuid not in self._overdue
            ]
            heapq.heapify(self._ends)

    def _add_instance(
        self, instance: Instance, batch: extra.Batch
    ) -> list[Change]:
        overdue = instance.end <= self._now
        self._add_others(instance, batch)
        return [
            ('add', id_, instance.uuid, instance.host, *step, False)
            for id_, step in zip(
                _ids(instance.uuid), self.accounting.steps(instance, overdue),
                strict=False,
            )
        ]

    def _add_others(
        self, instance: Instance, batch: extra.Batch
    ) -> None:
        """Add an instance to the indexes of the other resource classes.

        HostState has no figures of these classes, so their amounts are added
        up under either accounting. A class that the host has no inventory of
        is left out: its amount comes from a resource provider below the
        host's own, which nobody can reserve.
        """
        others = inventory.others(instance.countable())
        overdue = instance.end <= self._now
        occupied = accounting.occupancy(instance, overdue)
        if not others or occupied is None:
            return
        on = batch.hosts.get(instance.host, self.hosts.get(instance.host))
        if on is not None:
            others = {c: n for c, n in others.items() if c in on.inventory}
        batch.add(
            instance.uuid, instance.uuid, instance.host, *occupied, others
        )

    def _counted_anew(self, batch: extra.Batch) -> Iterator[str]:
        """Yield the instances on hosts whose resource classes change."""
        for uuid, new in batch.hosts.items():
            if new is None or uuid not in self._with_others:
                continue
            old = self.hosts.get(uuid)
            if old is None or (
                inventory.others(old.inventory).keys()
                != inventory.others(new.inventory).keys()
            ):
                yield from self._with_others[uuid]

    def _remove(self, id_: str, batch: extra.Batch) -> list[Change]:
        """Build the change that removes an allocation, if the index has it.

        :param batch: receives the removal for the other indexes
        """
        batch.removes.append(id_)
        return [('remove', id_)] if id_ in self.index else []

    def _remove_instance(
        self, uuid: str, batch: extra.Batch
    ) -> list[Change]:
        """Build the changes that remove an instance, if the index has it.

        :param batch: receives the removal for the other indexes
        """
        batch.removes.append(uuid)
        return [('remove', id_) for id_ in _ids(uuid) if id_ in self.index]


def _ids(uuid: str) -> tuple[str, str]:
    """Return the ids that an instance's index entries have, two at most."""
    return uuid, f'{uuid}+'


def _move(
    groups: dict[str, set[str]], uuid: str, was: str | None, now: str | None
) -> None:
    """Move a uuid from one group to another; None stands for no group."""
    if now is not None:
        groups[now].add(uuid)
    if was is not None and was != now:
        groups[was].discard(uuid)
        if not groups[was]:
            del groups[was]


def _host_of_others(instance: Instance | None) -> str | None:
    """Return the host of an instance with amounts of other classes."""
    if instance is None or not inventory.others(instance.amounts):
        return None
    return instance.host


def _project_of_whole(entity: record.Reservation | None) -> str | None:
    """Return the project of a reservation of whole hosts."""
    if entity is None or entity.resource_type != reservation.PHYSICAL_HOST:
        return None
    return entity.project_id


def _drawn_project(reservation: record.Reservation | None) -> str | None:
    """Return the project whose servers draw on a reservation without a hint.

    A server of another project draws on a reservation only by a hint, which
    is that project's consent.
    """
    if reservation is None or not reservation.magnetic:
        return None
    return reservation.project_id


def _turn(key: record.Key, entity: record.Entity | None) -> int:
    """Return the rank at which an entity is used, while its host is known."""
    if key[0] == record.HOST:
        return 3 if entity is None else 0
    return 1 if entity is None else 2


def _stub(uuid: str) -> Host:
    """Return the placeholder for a host whose record cannot be used."""
    return Host(uuid, '', '', disabled=True)


def _closing_id(host_uuid: str) -> str:
    return f'{_CLOSED} {host_uuid}'


def _try(index: ext.TimelineIndex, changes: list[Change]) -> None:
    """Refuse the changes that an index would refuse, but apply none.

    The last change of the batch is one that the index always refuses, and an
    index undoes a batch whose last change it refuses.
    """
    try:
        index.apply([*changes, ('remove', _NOTHING)], force=True)
    except ext.UnknownEntry as e:
        if e.id != _NOTHING:
            raise


def _records_of(
    allocations: Iterable[packing.Allocations],
) -> Iterator[record.Record]:
    for each in allocations:
        if isinstance(each, Allocation):
            yield record.encode(each)
        else:
            yield from map(record.encode, packing.allocations(each))


def add_allocation(allocation: Allocation) -> Change:
    return (
        'add', allocation.id, allocation.reservation_id, allocation.host,
        allocation.start, allocation.end,
        packing.amounts_of(allocation.amounts), allocation.whole,
    )


def _add_allocation(
    allocation: Allocation, batch: extra.Batch
) -> list[Change]:
    """Build the change that adds an allocation to the main index, if any.

    :param batch: receives the changes of the other indexes
    """
    before = len(batch.adds)
    batch.add(
        allocation.id, allocation.reservation_id, allocation.host,
        allocation.start, allocation.end, allocation.amounts,
    )
    change = add_allocation(allocation)
    if len(batch.adds) > before and not any(change[6]):
        return []
    batch.allocations.append(change)
    return [change]


def _columns(adds: Iterable[Change]) -> packed.Columns:
    return packing.columns(*packing.transposed(add[1:] for add in adds))
