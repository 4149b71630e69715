# SPDX-License-Identifier: Apache-2.0
"""The view of a webhook."""

from blazar_sched.domain import webhook
from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.times import DATE

WEBHOOK = Object(
    Field('id', meaning.WEBHOOK_ID, 'e4a7c2d8-0000-4000-8000-00000000000c'),
    Field('project_id', 'ID of the project', 'p1'),
    Field('url', meaning.WEBHOOK_URL, 'https://example.org/leases'),
    Field('events', meaning.WEBHOOK_EVENTS, ['lease.*'], Many(TEXT)),
    Field(
        'secret',
        'Key of the signatures, in the response to the creation only; null '
        'otherwise',
        'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', TEXT_OR_NULL,
    ),
    Field('failures', 'Number of tries that have failed in a row', 0, INTEGER),
    Field(
        'failing_since',
        'Time of the first of these tries; null if there is none',
        None, DATE,
    ),
    Field(
        'error', 'Why the last try has failed; null if it has not', None,
        TEXT_OR_NULL,
    ),
    Field(
        'disabled',
        'Why nothing is sent any more: `gone` if the receiver has answered '
        '410, `failing` if it has failed for a day, `full` if too many '
        'notifications wait; null if the webhook is not disabled',
        None, Type({'enum': [None, *webhook.DISABLED]}),
    ),
    Field('created_at', 'Time of creation', 1767225600, DATE),
    name='Webhook',
    meaning='A URL to which the notifications of a project are posted',
)
