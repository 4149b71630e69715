# SPDX-License-Identifier: Apache-2.0
"""Descriptions of fields in the schemas of requests and responses.

This module has the descriptions that more than one field uses.
"""

ID = 'Its id'
NAME = 'Its name'
START = 'When it starts'
END = 'When it ends'
REQUIREMENT = 'What its hosts have to be like'
LEASE_ID = 'The lease that it is of'
RESERVATIONS = 'What it reserves'
EVENTS = 'What is done at which time'
RESOURCE_TYPE = 'What kind of reservation it is'
STATUS = 'How it stands'
RESERVABLE = 'Whether it can be had; false while it has failed'
RESERVED_FLAVOR = 'The flavor that is reserved, by its id'
NETWORK = 'The external network, by its id'
ADDRESS = 'The address, IPv4 or IPv6'
HOST_ID = "The host's id"
CAPABILITY = 'A capability, by its name'
HOLD = (
    'Whether ordinary servers may use the host until it is needed '
    '(`shared`), or not at all (`dedicated`)'
)
UNBOUNDED = (
    "The host's own policy for servers that declare no end; the cloud's, if "
    'null'
)
CLEANING_TIME = (
    'How many minutes reservations keep from whatever else the host is known '
    "to be used for; the cloud's, if null"
)
DISABLED = 'Whether the host gets nothing new; it keeps what it has'
PROJECTS = 'Whose reservations the host is for; all, if there are none'
PRIVATE = (
    'Whether it is shown with `all` alone, and only an administrator can '
    'require it'
)
