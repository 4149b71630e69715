# SPDX-License-Identifier: Apache-2.0
"""The view of a row of the report of usage."""

from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.microversion import V1_2

_HOURS = Type({'type': 'number', 'minimum': 0})


def _hours(name: str, meaning: str, example: float) -> Field:
    return Field(name, meaning, example, _HOURS)


def _group(name: str, meaning: str, example: str | None = None) -> Field:
    return Field(
        name, f'{meaning}; only if the report is grouped by it', example,
        get=lambda row: row.get(name), required=False,
    )


USAGE = Object(
    _group('project_id', 'ID of the project', 'p1'),
    _group('lease_id', 'ID of the lease'),
    _group('reservation_id', 'ID of the reservation'),
    _group('resource_type', meaning.RESOURCE_TYPE),
    _group('flavor', 'ID of the flavor, empty for none'),
    _group('product', 'Name of the product, empty for none'),
    _group('day', 'Day in UTC', '2030-01-01'),
    Field(
        'resource_class',
        'Resource class, or `HOST` for whole hosts, or `FLOATING_IP`', 'VCPU',
    ),
    _hours('reserved', 'Amount x hours that were reserved', 48.0),
    _hours('used', 'Amount x hours that servers used of it', 36.0),
    _hours('idle', 'Amount x hours that servers did not use', 12.0),
    _hours(
        'no_show',
        'Amount x hours of the reservations that had no server in the report',
        0.0,
    ),
    _hours(
        'late', 'Hours for which starts of reservations were due and not done',
        0.0,
    ),
    Field(
        'refused', 'Amount x hours of the leases that were refused', 0.0,
        _HOURS, lambda row: row.get('refused', 0.0), V1_2,
    ),
    name='Usage',
    meaning='What reservations have reserved and used',
)
