# SPDX-License-Identifier: Apache-2.0
"""The schema of a new reservation of a product."""

from microversion_parse import Version

from blazar_sched.domain.reservation import PRODUCT
from blazar_sched.service.api.field import COUNT
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import properties
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import reservation
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.validation import Schema

_REQUIRED = (
    Field(
        PRODUCT,
        'Name of a product that the operator publishes, in place of the '
        'resource type and its size',
        'a100', Type(text.line(255)),
    ),
    Field('amount', 'Number of hosts or instances', 2, COUNT),
)


def _new(version: Version) -> Schema:
    # The module `reservation` imports this module before it has all fields.
    fields = (*_REQUIRED, *reservation.BESIDE_SIZE)
    return {
        'type': 'object',
        'required': [field.name for field in _REQUIRED],
        'properties': properties(fields, version),
        'additionalProperties': False,
    }


RESERVATIONS = {PRODUCT: _new}
