# SPDX-License-Identifier: Apache-2.0
"""The schema of a request for a webhook."""

from blazar_sched.domain.webhook import MAX_URL
from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import text

_CREATE = Object(
    Field('url', meaning.WEBHOOK_URL, type=Type(text.line(MAX_URL))),
    Field(
        'events', meaning.WEBHOOK_EVENTS,
        type=Type({
            'type': 'array', 'minItems': 1, 'maxItems': 50,
            'items': text.line(64),
        }),
    ),
)
CREATE = validation.by_version(_CREATE.schema)
