# SPDX-License-Identifier: Apache-2.0
"""Descriptions of fields in the schemas of requests and responses.

This module has the descriptions that more than one field uses.
"""

LEASE_ID = 'ID of the lease'
LEASE_NAME = 'Name of the lease'
APPROVED_BY = (
    'ID of the user who has approved the offer, by which the limits in '
    '`needs_approval` are lifted'
)
SERIES_ID = 'ID of the series'
OCCURRENCE = 'Local start of the occurrence of a series'
SPARE = (
    'Whether the host is kept for leases that lose a host: no other lease '
    'gets it'
)
AVAILABLE_FROM = (
    'Time before which nothing may be on the host, such as a host that is '
    'still to be delivered; null if the host is there'
)
AVAILABLE_UNTIL = (
    'Time from which on nothing may be on the host, such as a host that will '
    'be taken away; null if it is not known'
)
START = 'Start of the window'
END = 'End of the window'
RESERVATIONS = 'Reservations of the lease'
EVENTS = 'Events of the lease'
RESERVATION_ID = 'ID of the reservation'
RESOURCE_TYPE = 'Resource type of the reservation'
REQUIREMENT = 'Requirement that the hosts must meet'
RESERVED_FLAVOR = 'ID of the reserved flavor'
RESERVABLE = (
    'Whether the resource can be reserved; false while the resource has failed'
)
HOST_ID = 'ID of the host'
CAPABILITY = 'Value of the capability of this name'
HOLD = (
    'Whether ordinary servers may use the host until a reservation needs it '
    '(`shared`), or not at all (`dedicated`)'
)
UNBOUNDED = (
    'Policy of the host for servers that declare no end; null means the '
    'policy of the cloud'
)
CLEANING_TIME = (
    'Minutes that reservations keep between themselves and any other known '
    'use of the host; null means the cleaning time of the cloud'
)
DISABLED = (
    'Whether the host gets no new allocations; the host keeps the allocations '
    'that it has'
)
PROJECTS = (
    'IDs of the projects whose reservations can use the host; an empty list '
    'means all projects'
)
PROPERTY_NAME = 'Name of the property'
PRIVATE = (
    'Whether the property is listed with `all` only, and only an '
    'administrator can require it'
)
