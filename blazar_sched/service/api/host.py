# SPDX-License-Identifier: Apache-2.0
"""Hosts: handlers that translate requests into calls to the manager."""

from typing import Any

import falcon

from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.schemas import host as schemas
from blazar_sched.service.api.views.host import HOST
from blazar_sched.service.bus import calls

Body = dict[str, Any]


def create_host(req: falcon.Request, caller: Caller) -> Body:
    """Register the compute host with the given name as reservable."""
    body = schemas.named(req.media)
    validation.check_body(schemas.CREATE, caller.version, body)
    values = _texts(body)
    name = values.pop('name')
    return caller.manager.create_host(name=name, values=values)


def update_host(req: falcon.Request, caller: Caller, host_id: str) -> Body:
    """Change a host's capabilities and settings; null deletes one."""
    validation.check_body(schemas.UPDATE, caller.version, req.media)
    return caller.manager.update_host(
        host_id=host_id, values=_texts(req.media)
    )


def _texts(body: Body) -> Body:
    """Return numbers and, but for settings, booleans as Blazar's text."""
    return {
        name: str(value)
        if type(value) in (int, float)
        or (type(value) is bool and name not in schemas.SETTINGS)
        else value
        for name, value in body.items()
    }


HOSTS = Collection(
    '/v1/os-hosts', Field('host_id', meaning.HOST_ID), 'host', 'hosts',
    'blazar:oshosts', ADMIN, ADMIN, HOST, calls=calls.HOSTS,
)
ROUTES = (
    HOSTS.to_list('List the reservable hosts.'),
    HOSTS.to_create(create_host, schemas.CREATE),
    HOSTS.to_show('Show a host.'),
    HOSTS.to_update(update_host, schemas.UPDATE),
    HOSTS.to_delete('Make a host no longer reservable.'),
)
