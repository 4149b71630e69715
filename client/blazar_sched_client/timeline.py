# SPDX-License-Identifier: Apache-2.0
"""The timeline: what takes the hosts in a window."""

from typing import Any

from openstack import resource

from blazar_sched_client._base import Resource


class Timeline(Resource):
    """What takes the hosts in a window, row by row."""

    resource_key = 'timeline'
    base_path = '/timeline'
    allow_fetch = True

    #: Start of the window.
    start_date: str = resource.Body('start_date')
    #: End of the window.
    end_date: str = resource.Body('end_date')
    #: What a row stands for.
    group_by: str = resource.Body('group_by')
    #: Parts of the window.
    parts: list[dict[str, Any]] = resource.Body('parts', type=list)
    #: Rows, each with its bars.
    rows: list[dict[str, Any]] = resource.Body('rows', type=list)
    #: Marker of the next page; None for the last page.
    marker: str | None = resource.Body('marker')
