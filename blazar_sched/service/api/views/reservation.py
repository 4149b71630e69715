# SPDX-License-Identifier: Apache-2.0
"""The view of a reservation in a lease, with the fields of its type."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Any

from microversion_parse import Version

from blazar_sched.domain import reservation
from blazar_sched.domain import state_machine
from blazar_sched.domain.reservation import WAITED_FOR
from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Item
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.microversion import V1_1
from blazar_sched.service.api.schemas import reservation as schemas
from blazar_sched.service.api.times import STAMPS
from blazar_sched.service.api.validation import Schema

_ID = 'b1f5d6c4-0000-4000-8000-000000000001'


def statuses(machine: str) -> Type:
    """Return the type of a status of a state machine."""
    return Type({'enum': list(state_machine.MACHINES[machine].states)})


def _parameter(name: str) -> Callable[[Item], Any]:
    """Return a getter of a parameter that Blazar shows otherwise."""
    return lambda reservation: reservation['parameters'][name]


def _remaining(reservation: Item) -> int | None:
    used = reservation.get('used')
    return None if used is None else max(0, reservation['amount'] - used)


def _common(resource_type: Schema) -> tuple[Field, ...]:
    """Return the fields that a reservation of any type has."""
    return (
        Field('id', meaning.RESERVATION_ID, _ID),
        Field(
            'lease_id', meaning.LEASE_ID,
            'b1f5d6c4-0000-4000-8000-000000000000',
        ),
        Field(
            'resource_id',
            'ID of the server of a lifetime, else of the reservation', _ID,
        ),
        Field(
            'resource_type', meaning.RESOURCE_TYPE, schemas.HOST,
            Type(resource_type),
        ),
        Field(
            'status', 'Status of the reservation', 'pending',
            statuses(state_machine.RESERVATION),
        ),
        Field(
            'missing_resources',
            'Whether the reservation has less than requested', False, BOOLEAN,
        ),
        Field(
            'resources_changed',
            'Whether healing has changed the resources of the reservation '
            'while it was active',
            False, BOOLEAN,
        ),
        *STAMPS,
    )


_FAILED = (
    Field(
        'before_end_failed',
        'Why the action of `before_end` was not done for the coming end; null '
        'if the action was done or is still to be done',
        None, TEXT_OR_NULL, lambda r: r['made'].get('before_end_failed'), V1_1,
    ),
    Field(
        'on_start_failed',
        'Why the action of `on_start` was not done; null if the action was '
        'done or is still to be done',
        None, TEXT_OR_NULL, lambda r: r['made'].get('on_start_failed'), V1_1,
    ),
)
_PRODUCT = Field(
    'product', 'Name of the product that was reserved, null for none', None,
    TEXT_OR_NULL, lambda r: r['product'] or None, V1_1,
)
_WAITED_FOR = Field(
    'hosts_waited_for',
    'Number of hosts that preemptible servers have still to leave, or are on '
    'their way to, although these servers may use nothing there',
    0, INTEGER, lambda r: len(r['made'].get(WAITED_FOR, ())), V1_1,
)
# The fields of an instance reservation.
_INSTANCES = (
    Field('flavor_id', 'ID of the flavor to boot servers with'),
    Field(
        'aggregate_id',
        'ID of the host aggregate in Nova, once the window has opened',
        type=Type({'type': ['string', 'integer', 'null']}),
    ),
    Field(
        'server_group_id',
        'ID of the server group in Nova, once the window has opened, if the '
        'reservation has an affinity',
        type=TEXT_OR_NULL,
    ),
)
_REMAINING = Field(
    'remaining',
    'Number of further servers that can use the reservation; only where a '
    'single lease is shown',
    None, INTEGER, _remaining, V1_1, required=False,
)
# The fields of each resource type beside those of any type, its parameters,
# and the fields about its use.
_FURTHER: Mapping[str, tuple[Field, ...]] = {
    schemas.HOST: (
        _PRODUCT,
        *_FAILED,
        _WAITED_FOR,
        # Hosts that other reservations use too are not shown to an owner.
        Field(
            'hosts',
            'Hypervisor hostnames of the hosts; only where a single lease is '
            'shown',
            None, Many(TEXT), lambda r: r.get('hosts'), V1_1, required=False,
        ),
    ),
    schemas.VIRTUAL_INSTANCE: (
        *_INSTANCES, _PRODUCT, *_FAILED, _WAITED_FOR, _REMAINING
    ),
    schemas.FLAVOR_INSTANCE: (
        Field(
            'resource_properties',
            'The reserved flavor, as the JSON that Nova shows',
            '{"id": "42", "name": "m1.small"}',
        ),
        # The stored requirement includes the traits of the flavor.
        dataclasses.replace(
            schemas.RESOURCE_PROPERTIES, get=_parameter('asked_properties'),
            since=V1_1,
        ),
        *_INSTANCES,
        *schemas.SIZE,
        Field(
            'source_flavor_id', meaning.RESERVED_FLAVOR,
            get=_parameter('flavor_id'), since=V1_1,
        ),
        _PRODUCT,
        *_FAILED,
        _WAITED_FOR,
        _REMAINING,
    ),
}


def _of_type(resource_type: str, parameters: Iterable[Field]) -> Object:
    return Object(
        *_common({'const': resource_type}), *parameters,
        *_FURTHER.get(resource_type, ()), *schemas.USE.get(resource_type, ()),
    )


class _Reservation(Type):
    """A reservation, with the fields of its resource type.

    A type that another package has the driver of has any parameters.
    """

    def __init__(self) -> None:
        self._own = {
            type_: _of_type(type_, parameters)
            for type_, parameters in schemas.SHOWN.items()
        }
        other = {'type': 'string', 'not': {'enum': list(schemas.SHOWN)}}
        self._foreign = Object(*_common(other), more=True)

    def schema(self, version: Version) -> Schema:
        types = (*self._own.values(), self._foreign)
        return {'oneOf': [type_.schema(version) for type_ in types]}

    def show(self, value: Item, version: Version) -> dict[str, Any]:
        parameters = value['parameters']
        item = {**value, **parameters, **reservation.as_blazar(value)}
        own = self._own.get(value['resource_type'])
        if own is None:
            return {**self._foreign.show(item, version), **parameters}
        return own.show(item, version)

    def example(self, version: Version, value: Any = None) -> dict[str, Any]:
        return self._own[schemas.HOST].example(version)


RESERVATION = _Reservation()
