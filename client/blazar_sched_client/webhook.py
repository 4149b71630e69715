# SPDX-License-Identifier: Apache-2.0
"""Webhooks: URLs to which the notifications of a project are posted."""

from openstack import resource

from blazar_sched_client._base import Resource


class Webhook(Resource):
    """A URL to which the notifications of a project are posted."""

    resource_key = 'webhook'
    resources_key = 'webhooks'
    base_path = '/webhooks'
    allow_create = True
    allow_fetch = True
    allow_delete = True
    allow_list = True

    #: ID of the project.
    project_id: str = resource.Body('project_id')
    #: URL to which the notifications are posted.
    url: str = resource.Body('url')
    #: Types of the notifications.
    events: list[str] = resource.Body('events', type=list)
    #: Key of the signatures, only after the creation.
    secret: str | None = resource.Body('secret')
    #: Number of tries that have failed in a row.
    failures: int = resource.Body('failures', type=int)
    #: Time of the first of these tries; None if there is none.
    failing_since: str | None = resource.Body('failing_since')
    #: Why the last try has failed; None if it has not.
    error: str | None = resource.Body('error')
    #: ``gone``, ``failing`` or ``full`` if the webhook is disabled.
    disabled: str | None = resource.Body('disabled')
    #: Time of creation.
    created_at: str = resource.Body('created_at')
