# SPDX-License-Identifier: Apache-2.0
"""The refusals about webhooks."""

from blazar_sched.domain import exception


class MaxWebhooks(exception.LimitExceeded):
    """The project would have too many webhooks."""


class WebhookNotFound(exception.NotFound):
    """There is no such webhook, or it belongs to another project."""


EXCEPTIONS = (MaxWebhooks, WebhookNotFound)
