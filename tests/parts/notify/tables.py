# SPDX-License-Identifier: Apache-2.0
"""What webhooks add to the tables of the tests: see `tests.tables`."""

from blazar_sched.parts.notify import exception

_BODY = {'url': 'https://example.org/leases', 'events': ['lease.*']}
ROUTES = {
    ('GET', '/v1/webhooks'): (200, None),
    ('POST', '/v1/webhooks'): (201, _BODY),
    ('GET', '/v1/webhooks/{webhook_id}'): (200, None),
    ('DELETE', '/v1/webhooks/{webhook_id}'): (204, None),
}
VARIABLES = {'webhook_id': 'w1'}
WRITE = {
    'blazar:webhooks:get', 'blazar:webhooks:post', 'blazar:webhooks:delete',
}
WEBHOOK = {
    'id': 'b1f5d6c4-0000-4000-8000-00000000000c', 'project_id': 'p1', **_BODY,
    'secret': None, 'due_at': 0, 'failures': 0, 'failing_since': None,
    'error': None, 'disabled': None, 'created_at': 1767225600,
}
ANSWERS = {
    'list_webhooks': [WEBHOOK], 'get_webhook': WEBHOOK,
    'create_webhook': WEBHOOK, 'delete_webhook': None,
}
LIMITS = {('webhooks', 'max_webhooks', 5): ('MaxWebhooks', _BODY)}
LOOPS = {'webhooks'}
REFUSALS = {exception.MaxWebhooks: 400, exception.WebhookNotFound: 404}
BOUNDS = {
    'webhook': 'parts.notify.webhook.MAX_WEBHOOKS of a project',
    'webhook_delivery': 'parts.notify.webhook.MAX_BYTES of a project',
}
