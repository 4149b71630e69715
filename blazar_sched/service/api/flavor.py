# SPDX-License-Identifier: Apache-2.0
"""Flavors: the route, and the view."""

import functools
from operator import itemgetter

import falcon

from blazar_sched.service.api import listing
from blazar_sched.service.api import microversion
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule

FLAVOR = Object(
    Field('id', 'ID of the flavor in Nova', 'm1.small', TEXT),
    Field('name', 'Name of the flavor', 'small', TEXT),
    Field('vcpus', 'Number of vCPUs', 2, INTEGER),
    Field('memory_mb', 'Memory in MB', 2048, INTEGER),
    Field('disk_gb', 'Size of the root disk in GB', 20, INTEGER),
    Field('ephemeral_gb', 'Size of the ephemeral disk in GB', 0, INTEGER),
    Field('swap_mb', 'Size of the swap disk in MB', 0, INTEGER), name='Flavor',
    meaning='A flavor of Nova that a reservation can name',
)


def list_flavors(req: falcon.Request, caller: Caller) -> list[listing.Item]:
    """List the flavors of Nova that the project may use, by name.

    The list is the copy with which the service places leases. The flavors
    that the service makes of reservations are not in the list.
    """
    found = listing.whole(
        functools.partial(
            caller.manager.list_flavors, project_id=caller.project_id
        )
    )
    return sorted(found, key=itemgetter('name', 'id'))


ROUTES = (
    Route(
        'GET', '/v1/flavors', list_flavors,
        Rule('blazar:flavors:get', PROJECT_READER_OR_ADMIN),
        Answer(FLAVOR, 'flavors', many=True), since=microversion.V1_1,
    ),
)
