# SPDX-License-Identifier: Apache-2.0
"""Webhooks: the routes."""

from typing import Any
from typing import cast

import falcon

from blazar_sched.parts.notify import calls
from blazar_sched.parts.notify import webhook
from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.times import DATE
from blazar_sched.service.api.times import DATE_OR_NULL

_ID = 'ID of the webhook'
_URL = (
    'URL to which the notifications are posted, or `mailto:` and the e-mail '
    'address to which they are sent'
)
_EVENTS = (
    'Types of the notifications, as `lease.degraded`; `lease.*` means all '
    'types that begin with `lease.`'
)

WEBHOOK = Object(
    Field('id', _ID, 'e4a7c2d8-0000-4000-8000-00000000000c'),
    Field('project_id', 'ID of the project', 'p1'),
    Field('url', _URL, 'https://example.org/leases'),
    Field('events', _EVENTS, ['lease.*'], Many(TEXT)),
    Field(
        'secret',
        'Key of the signatures, in the response to the creation only; null '
        'otherwise',
        'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', TEXT_OR_NULL,
    ),
    Field('failures', 'Number of tries that have failed in a row', 0, INTEGER),
    Field(
        'failing_since',
        'Time of the first of these tries; null if there is none', None,
        DATE_OR_NULL,
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
    Field('created_at', 'Time of creation', 1767225600, DATE), name='Webhook',
    meaning='A URL to which the notifications of a project are posted',
    columns=('id', 'url', 'events', 'failing_since', 'error', 'disabled'),
)
_CREATE = validation.by_version(Object(
    Field('url', _URL, type=Type(text.line(webhook.MAX_URL))),
    Field(
        'events', _EVENTS,
        type=Type({
            'type': 'array', 'minItems': 1, 'maxItems': 50,
            'items': text.line(64),
        }),
    ),
).schema)


def create_webhook(req: falcon.Request, caller: Caller) -> dict[str, Any]:
    """Create a webhook, to which notifications of the project are posted."""
    body = req.media
    validation.check_body(_CREATE, caller.version, body)
    return cast(calls.Calls, caller.manager).create_webhook(
        values={**body, 'project_id': caller.project_id}
    )


# A URL is often a secret, in its path or in its query: no reader sees it.
WEBHOOKS = Collection(
    '/v1/webhooks', Field('webhook_id', _ID), 'webhook', 'webhooks',
    'blazar:webhooks', PROJECT_MEMBER_OR_ADMIN, PROJECT_MEMBER_OR_ADMIN,
    WEBHOOK, since=microversion.V1_1, calls=calls.WEBHOOKS,
)
ROUTES = (
    WEBHOOKS.to_list(
        'List the webhooks of the project, or of all projects for an admin.',
    ),
    WEBHOOKS.to_create(create_webhook, _CREATE),
    WEBHOOKS.to_show('Show a webhook, and why it fails.'),
    WEBHOOKS.to_delete(
        'Delete a webhook, with the notifications that wait for it.'
    ),
)
