# SPDX-License-Identifier: Apache-2.0
"""How a lease is shown."""

from collections.abc import Mapping
import types
from typing import Any

import microversion_parse

from blazar_sched.domain import event
from blazar_sched.domain import state_machine
from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import lease as schemas
from blazar_sched.service.api.views import shape
from blazar_sched.service.api.views import time

# What else an instance reservation is shown with.
_FOR_BOOTS = {
    'flavor_id': shape.TEXT,
    'aggregate_id': {'type': ['string', 'integer', 'null']},
    'server_group_id': shape.TEXT_OR_NULL,
}
_FLAVOR_INSTANCE = 'flavor:instance'
_BLAZARS_EVENTS = (
    event.BEFORE_END_LEASE, event.END_LEASE, event.START_LEASE
)
_SIZE = ('vcpus', 'memory_mb', 'disk_gb')
_MADE_SCHEMA = {
    'virtual:instance': _FOR_BOOTS,
    _FLAVOR_INSTANCE: {
        **_FOR_BOOTS, **dict.fromkeys(_SIZE, shape.INTEGER)
    },
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
_NONE_TOLD: Mapping[str, Mapping[str, Any]] = types.MappingProxyType({})
# The flavor that was reserved, from 1.1 on: `flavor_id` is that to boot with.
_SOURCE_SCHEMA = {'source_flavor_id': shape.TEXT}


def lease(
    noun: dict[str, Any],
    version: microversion_parse.Version,
    use: Mapping[str, Mapping[str, Any]] = _NONE_TOLD,
) -> dict[str, Any]:
    """Show a lease with its reservations and events.

    :param use: what its reservations have, `hosts`, and how many servers are
        of them, `used`; by their ids
    """
    form = time.form(version)
    return {
        'id': noun['id'],
        'name': noun['name'],
        'user_id': noun['user_id'],
        'project_id': noun['project_id'],
        'start_date': form.date(noun['start']),
        'end_date': form.date(noun['end']),
        'trust_id': noun['trust_id'],
        'status': noun['status'],
        'degraded': noun['degraded'],
        'reservations': [
            _reservation(r, version, use.get(r['id']))
            for r in noun['reservations']
        ],
        'events': [
            _event(e, form)
            for e in noun['events']
            if e['event_type'] in _event_types(version)
        ],
        **_stamps(noun, form),
    }


def _reservation(
    noun: dict[str, Any],
    version: microversion_parse.Version,
    use: Mapping[str, Any] | None,
) -> dict[str, Any]:
    shown = {
        'id': noun['id'],
        'lease_id': noun['lease_id'],
        # Blazar has a row of its own for each resource type; we have one.
        'resource_id': noun['id'],
        'resource_type': noun['resource_type'],
        'status': noun['status'],
        'missing_resources': noun['missing_resources'],
        'resources_changed': noun['resources_changed'],
        **_parameters(noun),
        **_stamps(noun, time.form(version)),
    }
    if noun['resource_type'] in _MADE_SCHEMA:
        shown |= _for_boots(noun)
    if version < microversion.V1_1:
        return shown
    used = schemas.use(noun['resource_type'], version)
    shown |= {name: noun[name] for name in used}
    # Of hosts that others use too an owner is told nothing.
    if noun['resource_type'] == schemas.HOST and use is not None:
        shown['hosts'] = use['hosts']
    if noun['resource_type'] in _SLOTS and use is not None:
        shown['remaining'] = max(0, shown['amount'] - use['used'])
    if noun['resource_type'] == _FLAVOR_INSTANCE:
        shown['source_flavor_id'] = noun['parameters']['flavor_id']
    return shown


def _parameters(noun: dict[str, Any]) -> dict[str, Any]:
    parameters: dict[str, Any] = noun['parameters']
    if noun['resource_type'] == schemas.LIFETIME:
        # The resource is the server, which was there first.
        shown = {n: parameters[n] for n in schemas.SHOWN[schemas.LIFETIME]}
        return {**shown, 'resource_id': parameters['instance_id']}
    if noun['resource_type'] != _FLAVOR_INSTANCE:
        return parameters
    # Not all that is kept of the flavor, nor what its traits ask of hosts.
    return {
        **{name: parameters[name] for name in ('amount', 'affinity', *_SIZE)},
        'resource_properties': parameters['asked_properties'],
    }


def _for_boots(noun: dict[str, Any]) -> dict[str, Any]:
    """Show what its start makes, None until then.

    The flavor that servers of it are booted with has the reservation's id.
    """
    made = {
        name: noun['made'].get(name)
        for name in ('aggregate_id', 'server_group_id')
    }
    return {**made, 'flavor_id': noun['id']}


def _event_types(version: microversion_parse.Version) -> tuple[str, ...]:
    """Return the types of the events that are shown."""
    ours = version >= microversion.V1_1
    return event.ORDER if ours else _BLAZARS_EVENTS


def _event(noun: dict[str, Any], form: time.Form) -> dict[str, Any]:
    return {
        'id': noun['id'],
        'lease_id': noun['lease_id'],
        'event_type': noun['event_type'],
        'time': form.date(noun['time']),
        'status': noun['status'],
        **_stamps(noun, form),
    }


def _stamps(
    noun: dict[str, Any], form: time.Form
) -> dict[str, str | None]:
    return {
        name: form.stamp(noun[name]) for name in ('created_at', 'updated_at')
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe a lease as it is shown."""
    form = time.form(version)
    return shape.whole(
        {
            'id': shape.TEXT,
            'name': shape.TEXT,
            'user_id': shape.TEXT,
            'project_id': shape.TEXT,
            'start_date': form.date_schema,
            'end_date': form.date_schema,
            'trust_id': shape.TEXT_OR_NULL,
            'status': _statuses(state_machine.LEASE),
            'degraded': shape.BOOLEAN,
            'reservations': shape.many(
                {
                    'oneOf': [
                        *(
                            _reservation_schema(type_, version)
                            for type_ in schemas.SHOWN
                        ),
                        _foreign_schema(version),
                    ]
                }
            ),
            'events': shape.many(_event_schema(version)),
            **_stamps_schema(form),
        }
    )


def listed_schema(
    version: microversion_parse.Version,
) -> validation.Schema:
    """Describe a lease in a list, of which less may be asked for."""
    return {**schema(version), 'required': []}


def _reservation_schema(
    resource_type: str, version: microversion_parse.Version
) -> validation.Schema:
    ours = version >= microversion.V1_1
    source = ours and resource_type == _FLAVOR_INSTANCE
    described = shape.whole(
        {
            **_common_schema({'const': resource_type}, version),
            **schemas.SHOWN[resource_type],
            **_MADE_SCHEMA.get(resource_type, {}),
            **schemas.use(resource_type, version),
            **(_SOURCE_SCHEMA if source else {}),
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
    """Describe a reservation of another package's type."""
    foreign = {**shape.TEXT, 'not': {'enum': list(schemas.SHOWN)}}
    described = shape.whole(_common_schema(foreign, version))
    return {**described, 'additionalProperties': True}


def _common_schema(
    resource_type: validation.Schema, version: microversion_parse.Version
) -> dict[str, validation.Schema]:
    return {
        'id': shape.TEXT,
        'lease_id': shape.TEXT,
        'resource_id': shape.TEXT,
        'resource_type': resource_type,
        'status': _statuses(state_machine.RESERVATION),
        'missing_resources': shape.BOOLEAN,
        'resources_changed': shape.BOOLEAN,
        **_stamps_schema(time.form(version)),
    }


def _event_schema(
    version: microversion_parse.Version,
) -> validation.Schema:
    form = time.form(version)
    return shape.whole(
        {
            'id': shape.TEXT,
            'lease_id': shape.TEXT,
            'event_type': {'enum': list(_event_types(version))},
            'time': form.date_schema,
            'status': _statuses(state_machine.EVENT),
            **_stamps_schema(form),
        }
    )


def _stamps_schema(form: time.Form) -> dict[str, validation.Schema]:
    return dict.fromkeys(('created_at', 'updated_at'), form.stamp_schema)


def _statuses(noun: str) -> validation.Schema:
    return {'enum': list(state_machine.MACHINES[noun].states)}


# What a list may be asked for.
FIELDS = list(schema(microversion.V1_0)['properties'])
