# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's host aggregates."""

from collections.abc import Mapping
import dataclasses

from blazar_sched.domain import exception
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.nova.compute import Compute

# The metadata that gives the hosts of an aggregate their availability zone.
_ZONE = 'availability_zone'


@dataclasses.dataclass(frozen=True, slots=True)
class Aggregate:
    """A host aggregate, whose `hosts` are nova-compute services.

    `uuid` identifies the Placement aggregate of the same hosts.
    """

    id: int
    name: str
    hosts: tuple[str, ...]
    metadata: Mapping[str, str]
    uuid: str = ''


class Aggregates(Compute):
    """The part of the Nova client that handles host aggregates."""

    def aggregates(self) -> list[Aggregate]:
        """Return all host aggregates, because Nova has no filter."""
        return [
            Aggregate(a.id, a.name, tuple(a.hosts), a.metadata, a.uuid)
            for a in self._nova.aggregates.list()
        ]

    def aggregate(self, name: str) -> Aggregate | None:
        """Return the host aggregate with a name, None if there is none."""
        found = (each for each in self.aggregates() if each.name == name)
        return next(found, None)

    def create_aggregate(
        self, name: str, metadata: Mapping[str, str],
        known: Aggregate | None = None,
    ) -> Aggregate:
        """Ensure that a host aggregate with given metadata exists.

        :param known: the aggregate if the caller has just seen it
        :raises Unavailable: also if the aggregate appears and disappears
        """
        made = known
        if made is None:
            made = self._create_aggregate(name)
        if metadata.items() <= made.metadata.items():
            return made
        self.set_aggregate_metadata(made, metadata)
        return dataclasses.replace(
            made, metadata={**made.metadata, **metadata}
        )

    def _create_aggregate(self, name: str) -> Aggregate:
        made: Aggregate | None = None
        with rest.tolerating(409):
            # The answer saves a search in the list of all aggregates, which
            # may be long.
            new = self._nova.aggregates.create(name, None)
            made = Aggregate(new.id, name, (), {}, new.uuid)
        made = made or self.aggregate(name)
        if made is None:
            raise exception.Unavailable(
                f'aggregate {name} was deleted while it was being created'
            )
        return made

    def set_aggregate_metadata(
        self, aggregate: Aggregate, metadata: Mapping[str, str | None]
    ) -> None:
        """Set metadata of an aggregate; a value of None deletes the key."""
        self._nova.aggregates.set_metadata(aggregate.id, dict(metadata))

    def set_aggregate_zone(self, aggregate: Aggregate, zone: str) -> bool:
        """Set the availability zone of an aggregate.

        :returns: whether Nova has the zone: it refuses to change the zone of a
            host with servers
        """
        if aggregate.metadata.get(_ZONE) != zone:
            with rest.tolerating(400, 409) as refused:
                self.set_aggregate_metadata(aggregate, {_ZONE: zone})
            return not refused
        return True

    def add_to_aggregate(self, aggregate: Aggregate, host: str) -> None:
        """Ensure that the host of a nova-compute is in an aggregate."""
        if host not in aggregate.hosts:
            # Nova tells Placement too, which it tries four times.
            with self._turns.of(host), rest.tolerating(409):
                self._nova.aggregates.add_host(aggregate.id, host)

    def remove_from_aggregate(self, aggregate: Aggregate, host: str) -> None:
        """Ensure that the host of a nova-compute is not in an aggregate."""
        if host in aggregate.hosts:
            with self._turns.of(host), rest.tolerating(404):
                self._nova.aggregates.remove_host(aggregate.id, host)

    def delete_aggregate(self, name: str) -> None:
        """Ensure that a host aggregate is deleted, whatever hosts it has."""
        found = self.aggregate(name)
        if found is None:
            return
        for host in found.hosts:
            self.remove_from_aggregate(found, host)
        with rest.tolerating(404):
            self._nova.aggregates.delete(found.id)
