# SPDX-License-Identifier: Apache-2.0
"""Records: the ledger's messages to its replicas, of one entity each.

A record is ``[kind, key, data]``: `data` is the whole state of the entity, or
None once the entity is gone. Records are therefore idempotent: the last record
of a key is valid.
"""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import sys
from typing import Any

from blazar_sched.domain import fields
from blazar_sched.domain import inventory
from blazar_sched.domain import provider
from blazar_sched.domain import reservation
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.inventory import Inventory

HOST = 'host'
RESERVATION = 'reservation'
ALLOCATION = 'allocation'
INSTANCE = 'instance'
KINDS = (HOST, RESERVATION, ALLOCATION, INSTANCE)
# The labels of most of the many reservations, in one object.
_NO_LABELS: dict[str, str] = {}
# The fields of a reservation that are left out where they are empty, as with
# most reservations.
_SELDOM = ('waits', 'leavable', 'labels')

Record = tuple[str, str, dict[str, Any] | None]
# The kind and key of a record.
Key = tuple[str, str]


class Removal(tuple[str, str, None]):
    """The record of an allocation that is gone.

    A replica finds an allocation by its reservation, whose id is here only as
    long as the record is in the process that made the record.
    """

    reservation_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation that is not over, with the fields that a replica needs.

    `slot` holds the amounts of one instance of a reservation of instances,
    None for other reservations. The projects in `projects` may use the
    reservation beside its own project; the projects in `former_projects` could
    do so before. `aggregate` is the uuid of the host aggregate that the
    reservation has in its window. `on_end` says what becomes of the
    reservation's servers. `cleared` holds the uuids of the hosts that the
    start of the reservation has cleared, and `in_the_way` the uuids of the
    servers that stayed on these hosts. `waits` tells whether preemptible
    servers have still to leave any of these hosts. `leavable` holds the uuids
    of the hosts that the reservation can leave: see placing.leavable. `labels`
    are as in domain.label.
    """

    id: str
    lease_id: str
    project_id: str
    resource_type: str
    start: int
    end: int
    slot: dict[str, int] | None = None
    projects: tuple[str, ...] = ()
    magnetic: bool = False
    aggregate: str | None = None
    former_projects: tuple[str, ...] = ()
    on_end: str = reservation.DELETE
    cleared: tuple[str, ...] = ()
    in_the_way: tuple[str, ...] = ()
    waits: bool = False
    leavable: tuple[str, ...] = ()
    labels: dict[str, str] = dataclasses.field(
        default_factory=lambda: _NO_LABELS
    )

    @property
    def keeps(self) -> bool:
        """Whether the servers of the reservation stay when it ends."""
        return self.on_end == reservation.KEEP

    def is_open_to(self, project_id: str | None) -> bool:
        return project_id == self.project_id or project_id in self.projects

    def was_open_to(self, project_id: str) -> bool:
        """Tell whether servers of a project may draw on the reservation."""
        return self.is_open_to(project_id) or (
            project_id in self.former_projects
        )


Entity = Host | Reservation | Allocation | Instance


def _host(data: dict[str, Any]) -> Host:
    held = {
        resource_class: fields.build(Inventory, figures)
        for resource_class, figures in data['inventory'].items()
    }
    return fields.build(
        Host, {
            **data,
            'inventory': held,
            'projects': tuple(data['projects']),
            'traits': tuple(data['traits']),
            'maintenances': tuple(
                fields.build(ClosedWindow, each)
                for each in data.get('maintenances', ())
            ),
            'providers': provider.decode(data.get('providers', ())),
        }
    )


def _reservation(data: dict[str, Any]) -> Reservation:
    # There are very many reservations, of few projects.
    return fields.build(
        Reservation, {
            **data,
            'project_id': sys.intern(data['project_id']),
            'resource_type': sys.intern(data['resource_type']),
            'projects': tuple(data['projects']),
            'former_projects': tuple(data.get('former_projects', ())),
            'cleared': tuple(data.get('cleared', ())),
            'in_the_way': tuple(data.get('in_the_way', ())),
            'leavable': tuple(data.get('leavable', ())),
        }
    )


def _instance(data: dict[str, Any]) -> Instance:
    path = tuple(Stay(*stay) for stay in data.get('path', ()))
    return fields.build(Instance, {**data, 'path': path})


_DECODE: dict[str, Callable[[dict[str, Any]], Entity]] = {
    HOST: _host,
    RESERVATION: _reservation,
    ALLOCATION: lambda data: fields.build(Allocation, data),
    INSTANCE: _instance,
}
_KIND = {
    Host: HOST,
    Reservation: RESERVATION,
    Allocation: ALLOCATION,
    Instance: INSTANCE,
}


def key_of(entity: Entity) -> str:
    if isinstance(entity, Host | Instance):
        return entity.uuid
    return entity.id


def encode(entity: Entity) -> Record:
    """Return the record of an entity; both may share mutable values."""
    data = _fields(entity)
    if isinstance(entity, Host):
        data['inventory'] = {
            resource_class: inventory.encode(held)
            for resource_class, held in entity.inventory.items()
        }
        data['maintenances'] = list(map(_fields, entity.maintenances))
        data['providers'] = list(map(dataclasses.asdict, entity.providers))
    elif isinstance(entity, Instance):
        data['path'] = [
            [stay.host, stay.start, stay.end] for stay in entity.path
        ]
    elif isinstance(entity, Reservation):
        data = {
            name: value for name, value in data.items()
            if value or name not in _SELDOM
        }
    return _KIND[type(entity)], key_of(entity), data


def removal(allocation: Allocation) -> Removal:
    """Return the record of an allocation that is gone."""
    removed = Removal((ALLOCATION, allocation.id, None))
    removed.reservation_id = allocation.reservation_id
    return removed


def reservation_of(each: Record | Removal) -> str:
    """Return the id of the reservation of an allocation's record."""
    if isinstance(each, Removal):
        return each.reservation_id
    data: dict[str, Any] = each[2] or {}
    reservation_id: str = data['reservation_id']
    return reservation_id


def _fields(entity: Any) -> dict[str, Any]:
    return {name: getattr(entity, name) for name in entity.__slots__}


def decode(kind: str, data: dict[str, Any]) -> Entity:
    """Build the entity that `data` describes; unknown fields are ignored.

    :raises ValueError: if the kind is unknown, or fields are missing or wrong
    """
    try:
        entity = _DECODE[kind](data)
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise ValueError(f'not a record of kind {kind!r}: {e}') from e
    return entity


def merge(
    image: dict[tuple[str, str], dict[str, Any]], records: Iterable[Record]
) -> None:
    """Bring `image`, the state by (kind, key), forward by `records`."""
    for kind, key, data in records:
        if data is None:
            image.pop((kind, key), None)
        else:
            image[kind, key] = data
