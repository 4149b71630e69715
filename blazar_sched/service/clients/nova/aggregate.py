# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's host aggregates."""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.service.clients import rest


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


class Aggregates:
    """The part of the Nova client that handles host aggregates."""

    _rest: rest.Rest

    def aggregates(self) -> list[Aggregate]:
        """Return all host aggregates, because Nova has no filter."""
        return [
            Aggregate(
                id=shown['id'],
                name=shown['name'],
                hosts=tuple(shown['hosts']),
                metadata=shown['metadata'],
                uuid=shown['uuid'],
            )
            for shown in self._rest.ask('/os-aggregates')['aggregates']
        ]

    def aggregate(self, name: str) -> Aggregate | None:
        """Return the host aggregate with a name, None if there is none."""
        found = (each for each in self.aggregates() if each.name == name)
        return next(found, None)

    def create_aggregate(
        self, name: str, metadata: Mapping[str, str]
    ) -> Aggregate:
        """Ensure that a host aggregate with given metadata exists.

        :raises Unavailable: also if the aggregate appears and disappears
        """
        answer = self._rest.request(
            'POST',
            '/os-aggregates',
            json={'aggregate': {'name': name}},
            also=(409,),
        )
        if answer.ok:
            # The answer saves a search in the list of all aggregates, which
            # may be long.
            new = rest.document(answer)['aggregate']
            made = Aggregate(new['id'], name, (), {}, new['uuid'])
        else:
            known = self.aggregate(name)
            if known is None:
                raise exception.Unavailable(f'aggregate {name} comes and goes')
            made = known
        if metadata.items() <= made.metadata.items():
            return made
        self.set_aggregate_metadata(made, metadata)
        return dataclasses.replace(
            made, metadata={**made.metadata, **metadata}
        )

    def set_aggregate_metadata(
        self, aggregate: Aggregate, metadata: Mapping[str, str | None]
    ) -> None:
        """Set metadata of an aggregate; a value of None deletes the key."""
        self._act_on(
            aggregate, {'set_metadata': {'metadata': dict(metadata)}}
        )

    def add_to_aggregate(self, aggregate: Aggregate, host: str) -> None:
        """Ensure that the host of a nova-compute is in an aggregate."""
        if host not in aggregate.hosts:
            self._act_on(aggregate, {'add_host': {'host': host}}, (409,))

    def remove_from_aggregate(self, aggregate: Aggregate, host: str) -> None:
        """Ensure that the host of a nova-compute is not in an aggregate."""
        if host in aggregate.hosts:
            self._act_on(aggregate, {'remove_host': {'host': host}}, (404,))

    def delete_aggregate(self, name: str) -> None:
        """Ensure that a host aggregate is deleted, whatever hosts it has."""
        found = self.aggregate(name)
        if found is None:
            return
        for host in found.hosts:
            self.remove_from_aggregate(found, host)
        self._rest.request(
            'DELETE', f'/os-aggregates/{found.id}', also=(404,)
        )

    def _act_on(
        self,
        aggregate: Aggregate,
        action: Mapping[str, Any],
        also: Collection[int] = (),
    ) -> None:
        self._rest.request(
            'POST',
            f'/os-aggregates/{aggregate.id}/action',
            json=dict(action),
            also=also,
        )
