# SPDX-License-Identifier: Apache-2.0
"""The view of a lease, and its schema."""

from collections.abc import Mapping
import types
from typing import Any

import microversion_parse

from blazar_sched.domain import event
from blazar_sched.domain import state_machine
from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import lease as schemas
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.views import shape
from blazar_sched.service.api.views import time

# The further fields of an instance reservation.
_FOR_BOOTS = {
    'flavor_id': meaning.said('The flavor to boot with, by its id'),
    'aggregate_id': meaning.said(
        "Nova's host aggregate of it, once its window has opened",
        {'type': ['string', 'integer', 'null']},
    ),
    'server_group_id': meaning.said(
        "Nova's server group of it, if it has an affinity and its window has "
        'opened',
        shape.TEXT_OR_NULL,
    ),
}
_FLAVOR_INSTANCE = 'flavor:instance'
_BLAZARS_EVENTS = (
    event.BEFORE_END_LEASE, event.END_LEASE, event.START_LEASE
)
_MADE_SCHEMA = {
    'virtual:instance': _FOR_BOOTS,
    _FLAVOR_INSTANCE: {**_FOR_BOOTS, **schemas.SIZE},
}
_HOSTS_SCHEMA = {
    **shape.many(shape.TEXT),
    'description': 'Their hypervisor hostnames, where one lease is shown',
}
_SLOTS = ('virtual:instance', _FLAVOR_INSTANCE)
_REMAINING_SCHEMA = {
    **shape.INTEGER,
    'description': 'How many more servers it takes, where one lease is shown',
}
# A field of reservations on hosts, from 1.2 on.
_FAILED = 'before_end_failed'
_FAILED_SCHEMA = {
    _FAILED: meaning.said(
        'Why what `before_end` asks for was not done for the end to come, '
        'null if it was done or is still to be',
        shape.TEXT_OR_NULL,
    ),
}
# A lease in the form of the manager; the document has the view of a version.
EXAMPLE: dict[str, Any] = {
    'id': 'b1f5d6c4-0000-4000-8000-000000000000',
    'name': 'night-run',
    'project_id': 'p1',
    'user_id': 'alice',
    'start': 1767229200,
    'end': 1767232800,
    'status': 'PENDING',
    'degraded': False,
    'trust_id': None,
    'reservations': [
        {
            'id': 'b1f5d6c4-0000-4000-8000-000000000001',
            'lease_id': 'b1f5d6c4-0000-4000-8000-000000000000',
            'resource_type': 'physical:host',
            'status': 'pending',
            'parameters': {
                'min': 1,
                'max': 2,
                'hypervisor_properties': '',
                'resource_properties': '',
                'before_end': 'default',
            },
            'missing_resources': False,
            'resources_changed': False,
            'projects': ['p7'],
            'on_end': 'shelve',
            'magnetic': True,
            'made': {},
            'created_at': 1767225600,
            'updated_at': None,
        },
    ],
    'events': [
        {
            'id': 'b1f5d6c4-0000-4000-8000-000000000002',
            'lease_id': 'b1f5d6c4-0000-4000-8000-000000000000',
            'event_type': 'start_lease',
            'time': 1767229200,
            'status': 'UNDONE',
            'created_at': 1767225600,
            'updated_at': None,
        },
    ],
    'created_at': 1767225600,
    'updated_at': 1767225661,
}
_NONE_TOLD: Mapping[str, Mapping[str, Any]] = types.MappingProxyType({})
# The reserved flavor, from 1.1 on: `flavor_id` is the flavor to boot with.
_SOURCE_SCHEMA = {
    'source_flavor_id': meaning.said(meaning.RESERVED_FLAVOR),
}


def lease(
    lease: dict[str, Any],
    version: microversion_parse.Version,
    use: Mapping[str, Mapping[str, Any]] = _NONE_TOLD,
) -> dict[str, Any]:
    """Show a lease with its reservations and events.

    :param use: by reservation id, the `hosts` of the reservation, and the
        number of its servers, `used`
    """
    form = time.form(version)
    return {
        'id': lease['id'],
        'name': lease['name'],
        'user_id': lease['user_id'],
        'project_id': lease['project_id'],
        'start_date': form.date(lease['start']),
        'end_date': form.date(lease['end']),
        'trust_id': lease['trust_id'],
        'status': lease['status'],
        'degraded': lease['degraded'],
        'reservations': [
            _reservation(r, version, use.get(r['id']))
            for r in lease['reservations']
        ],
        'events': [
            _event(e, form)
            for e in lease['events']
            if e['event_type'] in _event_types(version)
        ],
        **_stamps(lease, form),
    }


def _reservation(
    reservation: dict[str, Any],
    version: microversion_parse.Version,
    use: Mapping[str, Any] | None,
) -> dict[str, Any]:
    shown = {
        'id': reservation['id'],
        'lease_id': reservation['lease_id'],
        # Blazar has a further row for each resource type; here a reservation
        # has only its own row.
        'resource_id': reservation['id'],
        'resource_type': reservation['resource_type'],
        'status': reservation['status'],
        'missing_resources': reservation['missing_resources'],
        'resources_changed': reservation['resources_changed'],
        **_parameters(reservation, version),
        **_stamps(reservation, time.form(version)),
    }
    if reservation['resource_type'] in _MADE_SCHEMA:
        shown |= _for_boots(reservation)
    if version < microversion.V1_1:
        return shown
    used = schemas.use(reservation['resource_type'], version)
    shown |= {name: reservation[name] for name in used}
    # Hosts that other reservations use too are not shown to an owner.
    if reservation['resource_type'] == schemas.HOST and use is not None:
        shown['hosts'] = use['hosts']
    if reservation['resource_type'] in _SLOTS and use is not None:
        shown['remaining'] = max(0, shown['amount'] - use['used'])
    if reservation['resource_type'] == _FLAVOR_INSTANCE:
        shown['source_flavor_id'] = reservation['parameters']['flavor_id']
    if _shows_failures(reservation['resource_type'], version):
        shown[_FAILED] = reservation['made'].get(_FAILED)
    return shown


def _shows_failures(
    resource_type: str, version: microversion_parse.Version
) -> bool:
    return (
        version >= microversion.V1_2 and resource_type in schemas.ON_HOSTS
    )


def before_end(
    reservation: dict[str, Any], version: microversion_parse.Version
) -> str | None:
    """Return the before_end that is shown for a reservation, None if nothing.

    The reservation is one on hosts. An action that a version does not know is
    shown as `default`.
    """
    described = schemas.parameters(reservation['resource_type'], version).get(
        schemas.BEFORE_END
    )
    if described is None:
        return None
    asked: str = reservation['parameters'].get(
        schemas.BEFORE_END, described['default']
    )
    known = asked in described.get('enum', (asked,))
    return asked if known else described['default']


def _parameters(
    reservation: dict[str, Any], version: microversion_parse.Version
) -> dict[str, Any]:
    if reservation['resource_type'] not in schemas.ON_HOSTS:
        return _asked(reservation)
    shown = {
        **_asked(reservation),
        schemas.BEFORE_END: before_end(reservation, version),
    }
    if shown[schemas.BEFORE_END] is None:
        del shown[schemas.BEFORE_END]
    return shown


def _asked(reservation: dict[str, Any]) -> dict[str, Any]:
    parameters: dict[str, Any] = reservation['parameters']
    if reservation['resource_type'] == schemas.LIFETIME:
        # The resource is the server, which existed before its reservation.
        shown = {n: parameters[n] for n in schemas.SHOWN[schemas.LIFETIME]}
        return {**shown, 'resource_id': parameters['instance_id']}
    if reservation['resource_type'] != _FLAVOR_INSTANCE:
        return parameters
    # Omits other stored fields of the flavor, and the requirements that
    # follow from its traits.
    same = ('amount', 'affinity', *schemas.SIZE)
    return {
        **{name: parameters[name] for name in same},
        'resource_properties': parameters['asked_properties'],
    }


def _for_boots(reservation: dict[str, Any]) -> dict[str, Any]:
    """Show what the start of a reservation creates, None until then.

    The flavor with which its servers are booted has the reservation's id.
    """
    made = {
        name: reservation['made'].get(name)
        for name in ('aggregate_id', 'server_group_id')
    }
    return {**made, 'flavor_id': reservation['id']}


def _event_types(version: microversion_parse.Version) -> tuple[str, ...]:
    """Return the types of the events that are shown."""
    ours = version >= microversion.V1_1
    return event.ORDER if ours else _BLAZARS_EVENTS


def _event(event: dict[str, Any], form: time.Form) -> dict[str, Any]:
    return {
        'id': event['id'],
        'lease_id': event['lease_id'],
        'event_type': event['event_type'],
        'time': form.date(event['time']),
        'status': event['status'],
        **_stamps(event, form),
    }


def _stamps(
    shown: dict[str, Any], form: time.Form
) -> dict[str, str | None]:
    return {
        name: form.stamp(shown[name]) for name in ('created_at', 'updated_at')
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe the view of a lease."""
    form = time.form(version)
    reservation = {
        'oneOf': [
            *(_reservation_schema(type_, version) for type_ in schemas.SHOWN),
            _foreign_schema(version),
        ]
    }
    return shape.described(
        "A project's contract over one window",
        {
            'id': meaning.said(meaning.ID),
            'name': meaning.said(meaning.NAME),
            'user_id': meaning.said('Who has made it'),
            'project_id': meaning.said('The project that has it'),
            'start_date': meaning.said(meaning.START, form.date_schema),
            'end_date': meaning.said(meaning.END, form.date_schema),
            'trust_id': meaning.said(
                "Keystone's trust by which it acts for its creator",
                shape.TEXT_OR_NULL,
            ),
            'status': _statuses(state_machine.LEASE),
            'degraded': meaning.said(
                'Whether it lacks something, or something is in its way',
                shape.BOOLEAN,
            ),
            'reservations': meaning.said(
                meaning.RESERVATIONS, shape.many(reservation)
            ),
            'events': meaning.said(
                meaning.EVENTS, shape.many(_event_schema(version))
            ),
            **form.stamps_schema,
        },
        lease(EXAMPLE, version),
    )


def listed_schema(
    version: microversion_parse.Version,
) -> validation.Schema:
    """Describe a lease in a list, which may be limited to some fields."""
    return {
        **schema(version),
        'required': [],
        'description': 'A lease, or the fields of it that are asked for',
    }


def _reservation_schema(
    resource_type: str, version: microversion_parse.Version
) -> validation.Schema:
    ours = version >= microversion.V1_1
    source = ours and resource_type == _FLAVOR_INSTANCE
    failures = _shows_failures(resource_type, version)
    described = shape.whole(
        {
            **_common_schema({'const': resource_type}, version),
            **schemas.parameters(resource_type, version),
            **_MADE_SCHEMA.get(resource_type, {}),
            **schemas.use(resource_type, version),
            **(_SOURCE_SCHEMA if source else {}),
            **(_FAILED_SCHEMA if failures else {}),
        }
    )
    if ours and resource_type == schemas.HOST:
        described['properties']['hosts'] = _HOSTS_SCHEMA
    if ours and resource_type in _SLOTS:
        described['properties']['remaining'] = _REMAINING_SCHEMA
    return described


def _foreign_schema(
    version: microversion_parse.Version,
) -> validation.Schema:
    """Describe a reservation of a type from another package."""
    foreign = {**shape.TEXT, 'not': {'enum': list(schemas.SHOWN)}}
    described = shape.whole(_common_schema(foreign, version))
    return {**described, 'additionalProperties': True}


def _common_schema(
    resource_type: validation.Schema, version: microversion_parse.Version
) -> dict[str, validation.Schema]:
    return {
        'id': meaning.said(meaning.ID),
        'lease_id': meaning.said(meaning.LEASE_ID),
        'resource_id': meaning.said('What it is about, by its id'),
        'resource_type': meaning.said(meaning.RESOURCE_TYPE, resource_type),
        'status': _statuses(state_machine.RESERVATION),
        'missing_resources': meaning.said(
            'Whether it holds less than it asked for', shape.BOOLEAN
        ),
        'resources_changed': meaning.said(
            'Whether healing has changed what it holds while it was active',
            shape.BOOLEAN,
        ),
        **time.form(version).stamps_schema,
    }


def _event_schema(
    version: microversion_parse.Version,
) -> validation.Schema:
    form = time.form(version)
    return shape.whole(
        {
            'id': meaning.said(meaning.ID),
            'lease_id': meaning.said(meaning.LEASE_ID),
            'event_type': meaning.said(
                'What is done then', {'enum': list(_event_types(version))}
            ),
            'time': meaning.said('When it is due', form.date_schema),
            'status': _statuses(state_machine.EVENT),
            **form.stamps_schema,
        }
    )


def _statuses(machine: str) -> validation.Schema:
    return meaning.said(
        meaning.STATUS, {'enum': list(state_machine.MACHINES[machine].states)}
    )


# The fields that a request for a list may select.
FIELDS = list(schema(microversion.V1_0)['properties'])
