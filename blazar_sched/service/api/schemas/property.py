# SPDX-License-Identifier: Apache-2.0
"""Schemas of a host property's request body, and of the query of a list."""

from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object

QUERY = (
    Field(
        'detail', 'Whether to show the values of each property', type=BOOLEAN
    ),
    Field(
        'all',
        'Whether to list private properties too, for administrators only',
        type=BOOLEAN,
    ),
)
UPDATE = validation.by_version(
    Object(Field('private', meaning.PRIVATE, type=BOOLEAN)).schema
)
