# SPDX-License-Identifier: Apache-2.0
"""Webhooks: URLs to which the notifications of a project are posted."""

from blazar_sched_client.osc import verb
from blazar_sched_client.osc.verb import text


class Webhook(verb.Noun):
    """A command about webhooks."""

    noun = 'webhook'
    plural = 'webhooks'
    columns = ('id', 'url', 'events', 'failing_since', 'error', 'disabled')


class ListWebhook(Webhook, verb.List):
    """List the webhooks of the project."""


class ShowWebhook(Webhook, verb.Show):
    """Show a webhook, and why it fails."""


class CreateWebhook(Webhook, verb.Create):
    """Create a webhook; its secret is shown once."""

    options = (
        ('url', {
            'metavar': '<url>',
            'help': 'URL of the receiver, or mailto:<address>',
        }),
        text(
            '--event', 'Type of the notifications, as lease.degraded or '
            'lease.* (may be repeated)', action='append', dest='events',
            required=True,
        ),
    )


class DeleteWebhook(Webhook, verb.Delete):
    """Delete webhooks, with the notifications that wait for them."""
