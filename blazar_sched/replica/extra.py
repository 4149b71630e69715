# SPDX-License-Identifier: Apache-2.0
"""Timeline indexes of the resource classes that the main index does not have.

HostState has no figures of these classes, few hosts have inventory of them,
and every cloud has its own classes. Each class therefore has an index of its
own, with the hosts that have inventory of the class. An entry in such an index
has the same id and owner as in the main index. An entry that takes nothing of
RESOURCE_CLASSES is only here; an entry that takes a whole host is only in the
main index.
"""

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import itertools

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.replica.batch import Batch
from blazar_sched.replica.batch import Change

# Changes that a new index takes in one call, so that no call holds the GIL for
# long.
CHUNK = 1000
# The id of the second copy of an entry that changes, as long as the index has
# the entry twice.
_TWIN = '{}+'


@dataclasses.dataclass(frozen=True, slots=True)
class _Plan:
    """The changes of one index: the first, how to undo these, and the last."""

    first: list[Change] = dataclasses.field(default_factory=list)
    undo: list[Change] = dataclasses.field(default_factory=list)
    last: list[Change] = dataclasses.field(default_factory=list)


class Extra(dict[str, ext.TimelineIndex]):
    """The indexes of the other resource classes, by resource class.

    A host whose inventory of a class is gone stays in the index, without
    capacity, as long as a reservation holds an amount of the class there. The
    amounts that the host's instances have of the class are not counted: see
    batch.

    :param hosts: every host by uuid, as it was before a batch; the caller
        that changes a host must call `prune`
    """

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        super().__init__()
        self._hosts = hosts
        # The hosts whose inventory is gone, as (resource class, uuid).
        self._without: set[tuple[str, str]] = set()

    def owns(self, owner: str) -> bool:
        """Tell whether an owner has entries in any index."""
        return any(index.held(owner) for index in self.values())

    @contextlib.contextmanager
    def changing(self, batch: Batch) -> Iterator[None]:
        """Apply a batch: add entries before the block, remove entries after.

        A reader in the meantime finds too much taken, never too little. If
        the block fails, nothing is changed.

        :raises TimelineError: if an entry cannot be used
        """
        plans = self._plans(batch)
        with contextlib.ExitStack() as undo:
            self._add(plans, undo)
            yield
            undo.pop_all()
        for name, plan in plans.items():
            self[name].apply(plan.last, force=True)

    @contextlib.contextmanager
    def trying(self, batch: Batch) -> Iterator[None]:
        """Add the entries of a batch, and undo that after the block.

        :raises TimelineError: if an entry cannot be used
        """
        with contextlib.ExitStack() as undo:
            self._add(self._plans(batch), undo)
            yield

    def load(self, batch: Batch) -> set[str]:
        """Fill new indexes with a batch, in pieces.

        :returns: the ids of the entries on a host that is not in the batch,
            which were left out
        :raises TimelineError: if an entry cannot be used
        """
        left_out = {
            change[1] for _, change in batch.others
            if batch.hosts.get(change[3]) is None
        }
        batch.others = [
            each for each in batch.others if each[1][1] not in left_out
        ]
        for name, plan in self._plans(batch).items():
            self[name] = ext.TimelineIndex([name])
            changes = iter(plan.first)
            while chunk := list(itertools.islice(changes, CHUNK)):
                self[name].apply(chunk, force=True)
        return left_out

    def prune(self) -> None:
        """Drop the hosts without inventory or entries from each index."""
        dropped = set()
        for name, uuid in tuple(self._without):
            host = self._hosts.get(uuid)
            gone = host is None or name not in host.inventory
            if gone and self._has(name, uuid):
                try:
                    self[name].apply([('drop', uuid)])
                except ext.HostInUse:
                    continue
                dropped.add(name)
            self._without.discard((name, uuid))
        for name in dropped:
            self._drop_empty(name)

    def _add(
        self, plans: Mapping[str, _Plan], undo: contextlib.ExitStack
    ) -> None:
        """Apply the first changes of plans; `undo` receives their undoing."""
        for name, plan in plans.items():
            if name not in self:
                self[name] = ext.TimelineIndex([name])
                undo.callback(self._drop_empty, name)
            index = self[name]
            index.apply(plan.first, force=True)
            undo.callback(index.apply, plan.undo[::-1], force=True)

    def _plans(self, batch: Batch) -> dict[str, _Plan]:
        plans: dict[str, _Plan] = defaultdict(_Plan)
        known = self._plan_hosts(plans, batch)
        removed = set()
        for id_ in batch.removes:
            for name, index in self.items():
                if id_ in index:
                    plans[name].last.append(('remove', id_))
                    removed.add((name, id_))
        for name, change in batch.others:
            _, id_, owner, host, *rest = change
            plan = plans[name]
            if (name, host) not in known and not self._has(name, host):
                if batch.hosts.get(host, self._hosts.get(host)) is None:
                    raise ext.UnknownHost(host)
                known.add((name, host))
                self._plan_host(plan, name, host, None)
            if (name, id_) in removed:
                twin = _TWIN.format(id_)
                plan.first.append(('add', twin, owner, host, *rest))
                plan.undo.append(('remove', twin))
                plan.last.extend([('remove', twin), change])
            else:
                plan.first.append(change)
                plan.undo.append(('remove', id_))
        return plans

    def _plan_hosts(
        self, plans: Mapping[str, _Plan], batch: Batch
    ) -> set[tuple[str, str]]:
        """Plan the changes of hosts; return their (resource class, uuid)."""
        planned = set()
        for uuid, host in batch.hosts.items():
            now = {} if host is None else inventory.others(host.inventory)
            for name in {**now, **self}:
                if name in now or self._has(name, uuid):
                    planned.add((name, uuid))
                    self._plan_host(plans[name], name, uuid, now.get(name))
        return planned

    def _plan_host(
        self, plan: _Plan, name: str, uuid: str, now: Inventory | None
    ) -> None:
        if now is None:
            self._without.add((name, uuid))
        plan.first.append(('capacity', uuid, (_capacity(now),)))
        if self._has(name, uuid):
            host = self._hosts.get(uuid)
            before = None if host is None else host.inventory.get(name)
            plan.undo.append(('capacity', uuid, (_capacity(before),)))
        else:
            plan.undo.append(('drop', uuid))

    def _has(self, name: str, uuid: str) -> bool:
        return name in self and self[name].rows([uuid])[0] >= 0

    def _drop_empty(self, name: str) -> None:
        if not self[name].hosts:
            del self[name]


def _capacity(held: Inventory | None) -> int:
    return 0 if held is None else held.capacity
