# SPDX-License-Identifier: Apache-2.0
"""The capacity of hosts over a window."""

from typing import Any

from openstack import resource

from blazar_sched_client._base import Resource


class Capacity(Resource):
    """The capacity of hosts over a window."""

    resource_key = 'capacity'
    base_path = '/capacity'
    allow_fetch = True

    #: Start of the window.
    start_date: str = resource.Body('start_date')
    #: End of the window.
    end_date: str = resource.Body('end_date')
    #: Number of hosts that match the request and that the project may use.
    hosts: int = resource.Body('hosts', type=int)
    #: Consecutive parts of the window, each with its capacity.
    parts: list[dict[str, Any]] = resource.Body('parts', type=list)
