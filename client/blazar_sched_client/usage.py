# SPDX-License-Identifier: Apache-2.0
"""The report of what reservations have reserved and used."""

from openstack import resource

from blazar_sched_client._base import Resource


class Usage(Resource):
    """A row of the report of usage, in amounts x hours."""

    resources_key = 'usage'
    base_path = '/reports/usage'
    allow_list = True

    _query_mapping = resource.QueryParameters(
        'start_date', 'end_date', 'group_by', 'project_id',
        include_pagination_defaults=False,
    )

    #: ID of the project, if the report is grouped by it; so are the next.
    project_id: str | None = resource.Body('project_id')
    #: ID of the lease.
    lease_id: str | None = resource.Body('lease_id')
    #: ID of the reservation.
    reservation_id: str | None = resource.Body('reservation_id')
    #: Resource type, such as ``physical:host``.
    resource_type: str | None = resource.Body('resource_type')
    #: ID of the flavor, empty for none.
    flavor: str | None = resource.Body('flavor')
    #: Name of the product, empty for none.
    product: str | None = resource.Body('product')
    #: Day in UTC, such as ``2030-01-01``.
    day: str | None = resource.Body('day')
    #: Resource class, or ``HOST`` or ``FLOATING_IP``.
    resource_class: str = resource.Body('resource_class')
    #: Amount x hours that were reserved.
    reserved: float = resource.Body('reserved', type=float)
    #: Amount x hours that servers used of it.
    used: float = resource.Body('used', type=float)
    #: Amount x hours that servers did not use.
    idle: float = resource.Body('idle', type=float)
    #: Amount x hours of the reservations without a server in the report.
    no_show: float = resource.Body('no_show', type=float)
    #: Hours for which starts of reservations were due and not done.
    late: float = resource.Body('late', type=float)
    #: Amount x hours of the leases that were refused.
    refused: float = resource.Body('refused', type=float)
