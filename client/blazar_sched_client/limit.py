# SPDX-License-Identifier: Apache-2.0
"""Limits of a project."""

from openstack import resource

from blazar_sched_client._base import Resource


class Limit(Resource):
    """A limit of a project, with what the project uses of it."""

    resources_key = 'limits'
    base_path = '/limits'
    allow_list = True

    _query_mapping = resource.QueryParameters(
        'project_id', include_pagination_defaults=False
    )

    #: What is counted, such as ``leases``, or a resource class.
    unit: str = resource.Body('unit')
    #: Largest number that is allowed, -1 for any.
    limit: int = resource.Body('limit', type=int)
    #: Number in use, None if the limit is for each lease.
    used: float | None = resource.Body('used')
