# SPDX-License-Identifier: Apache-2.0
"""Properties of hosts, which requirements can name."""

from typing import Any

from openstack import resource

from blazar_sched_client._base import Resource


class Property(Resource):
    """A capability of hosts that a requirement can name."""

    resource_key = 'resource_property'
    resources_key = 'resource_properties'
    base_path = '/os-hosts/properties'
    allow_commit = True
    allow_list = True
    commit_method = 'PATCH'

    _query_mapping = resource.QueryParameters(
        'detail', 'all', include_pagination_defaults=False
    )

    #: Name of the property.
    name: str = resource.Body('property', alternate_id=True)
    #: Name of the property, in the response to a change.
    property_name: str = resource.Body('property_name')
    #: ``physical:host``, in the response to a change.
    resource_type: str = resource.Body('resource_type')
    #: Whether only an administrator can require the property.
    private: bool = resource.Body('private', type=bool)
    #: Values of the property on hosts.
    property_values: list[str] | None = resource.Body('values', type=list)


class PublicProperties(Resource):
    """The zones and the properties of hosts that a project may use."""

    base_path = '/properties'
    allow_fetch = True

    #: Availability zones of the hosts.
    zones: list[str] = resource.Body('zones', type=list)
    #: Properties that a requirement can name, with their values.
    properties: list[dict[str, Any]] = resource.Body('properties', type=list)
    #: Number of properties that are not shown.
    properties_left_out: int = resource.Body('properties_left_out', type=int)
