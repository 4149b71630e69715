# SPDX-License-Identifier: Apache-2.0
"""The schema of a request for a calendar."""

from blazar_sched.domain.calendar import MAX_NAME
from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import text

_CREATE = Object(
    Field('name', meaning.CALENDAR_NAME, type=Type(text.line(MAX_NAME)))
)
CREATE = validation.by_version(_CREATE.schema)
