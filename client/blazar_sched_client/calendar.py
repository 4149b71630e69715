# SPDX-License-Identifier: Apache-2.0
"""Calendars: links at which programs read the leases of a project."""

from openstack import resource

from blazar_sched_client._base import Resource


class Calendar(Resource):
    """A link at which programs read the leases of a project."""

    resource_key = 'calendar'
    resources_key = 'calendars'
    base_path = '/calendars'
    allow_create = True
    allow_fetch = True
    allow_delete = True
    allow_list = True

    #: Name of the calendar.
    name: str = resource.Body('name')
    #: ID of the project.
    project_id: str = resource.Body('project_id')
    #: Link at which anyone reads the calendar, only after the creation.
    url: str | None = resource.Body('url')
    #: Time of creation.
    created_at: str = resource.Body('created_at')
