# SPDX-License-Identifier: Apache-2.0
"""Webhooks: handlers that translate requests into calls to the manager."""

from typing import Any

import falcon

from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.schemas import webhook as schemas
from blazar_sched.service.api.views.webhook import WEBHOOK


def create_webhook(req: falcon.Request, caller: Caller) -> dict[str, Any]:
    """Create a webhook, to which notifications of the project are posted."""
    body = req.media
    validation.check_body(schemas.CREATE, caller.version, body)
    return caller.manager.create_webhook(
        values={**body, 'project_id': caller.project_id}
    )


# A URL is often a secret, in its path or in its query: no reader sees it.
WEBHOOKS = Collection(
    '/v1/webhooks', Field('webhook_id', meaning.WEBHOOK_ID), 'webhook',
    'webhooks', 'blazar:webhooks', PROJECT_MEMBER_OR_ADMIN,
    PROJECT_MEMBER_OR_ADMIN, WEBHOOK, since=microversion.V1_1, owned=True,
)
ROUTES = (
    WEBHOOKS.to_list(
        'List the webhooks of the project, or of all projects for an admin.',
        lambda manager: manager.list_webhooks,
    ),
    WEBHOOKS.to_create(create_webhook, schemas.CREATE),
    WEBHOOKS.to_show(
        'Show a webhook, and why it fails.',
        lambda manager: manager.get_webhook,
    ),
    WEBHOOKS.to_delete(
        'Delete a webhook, with the notifications that wait for it.',
        lambda manager: manager.delete_webhook,
    ),
)
