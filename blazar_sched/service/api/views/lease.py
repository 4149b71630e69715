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
_HOST = 'physical:host'
_FLAVOR_INSTANCE = 'flavor:instance'
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
_NONE_TOLD: Mapping[str, list[str]] = types.MappingProxyType({})
# The flavor that was reserved, from 1.1 on: `flavor_id` is that to boot with.
_SOURCE_SCHEMA = {'source_flavor_id': shape.TEXT}


def lease(
    noun: dict[str, Any],
    version: microversion_parse.Version,
    hosts: Mapping[str, list[str]] = _NONE_TOLD,
) -> dict[str, Any]:
    """Show a lease with its reservations and events.

    :param hosts: the hypervisor hostnames of its reservations, by their ids
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
            _reservation(r, version, hosts.get(r['id']))
            for r in noun['reservations']
        ],
        'events': [_event(e, form) for e in noun['events']],
        **_stamps(noun, form),
    }


def _reservation(
    noun: dict[str, Any],
    version: microversion_parse.Version,
    hosts: list[str] | None,
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
    if noun['resource_type'] in schemas.ON_HOSTS:
        shown |= {'projects': noun['projects'], 'on_end': noun['on_end']}
    # Of hosts that others use too an owner is told nothing.
    if noun['resource_type'] == _HOST and hosts is not None:
        shown['hosts'] = hosts
    if noun['resource_type'] == _FLAVOR_INSTANCE:
        shown['source_flavor_id'] = noun['parameters']['flavor_id']
    return shown


def _parameters(noun: dict[str, Any]) -> dict[str, Any]:
    parameters: dict[str, Any] = noun['parameters']
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
                            for type_ in schemas.PARAMETERS
                        ),
                        _foreign_schema(version),
                    ]
                }
            ),
            'events': shape.many(_event_schema(form)),
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
    use = ours and resource_type in schemas.ON_HOSTS
    source = ours and resource_type == _FLAVOR_INSTANCE
    described = shape.whole(
        {
            **_common_schema({'const': resource_type}, version),
            **schemas.PARAMETERS[resource_type],
            **_MADE_SCHEMA.get(resource_type, {}),
            **(schemas.USE if use else {}),
            **(_SOURCE_SCHEMA if source else {}),
        }
    )
    if ours and resource_type == _HOST:
        described['properties']['hosts'] = _HOSTS_SCHEMA
    return described


def _foreign_schema(
    version: microversion_parse.Version,
) -> validation.Schema:
    """Describe a reservation of another package's type."""
    foreign = {**shape.TEXT, 'not': {'enum': list(schemas.PARAMETERS)}}
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


def _event_schema(form: time.Form) -> validation.Schema:
    return shape.whole(
        {
            'id': shape.TEXT,
            'lease_id': shape.TEXT,
            'event_type': {'enum': list(event.ORDER)},
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
