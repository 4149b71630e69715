# SPDX-License-Identifier: Apache-2.0
"""Products that the operator publishes for reservations."""

from openstack import resource

from blazar_sched_client._base import Resource


class Product(Resource):
    """A product that the project may reserve, by its name."""

    resources_key = 'products'
    base_path = '/products'
    allow_list = True

    _query_mapping = resource.QueryParameters(
        'start_date', 'end_date', include_pagination_defaults=False
    )

    #: Line of the operator for users.
    description: str = resource.Body('description')
    #: Resource type of its reservations, such as ``physical:host``.
    resource_type: str = resource.Body('resource_type')
    #: VCPUs of each instance.
    vcpus: int | None = resource.Body('vcpus')
    #: Memory of each instance in MB.
    memory_mb: int | None = resource.Body('memory_mb')
    #: Disk of each instance in GB.
    disk_gb: int | None = resource.Body('disk_gb')
    #: ID of the flavor of each instance.
    flavor_id: str | None = resource.Body('flavor_id')
    #: Longest lease in seconds, None for any.
    max_duration: int | None = resource.Body('max_duration')
    #: Largest number of units that all projects may have at a time.
    max_units: int | None = resource.Body('max_units')
    #: Number of units that are free throughout the window.
    free: int = resource.Body('free', type=int)
