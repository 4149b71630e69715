# SPDX-License-Identifier: Apache-2.0
"""Hosts: handlers that translate requests into calls to the manager."""

from typing import Any

import falcon

from blazar_sched.service.api import listing
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.schemas import host as schemas
from blazar_sched.service.api.views.host import HOST

Body = dict[str, Any]


def list_hosts(req: falcon.Request, caller: Caller) -> Body:
    """List the reservable hosts."""
    hosts = listing.whole(caller.manager.list_hosts)
    return {'hosts': [HOST.show(h, caller.version) for h in hosts]}


def show_host(
    req: falcon.Request, caller: Caller, host_id: str
) -> Body:
    """Show a host."""
    host = caller.manager.get_host(host_id=host_id)
    return {'host': HOST.show(host, caller.version)}


def create_host(req: falcon.Request, caller: Caller) -> Body:
    """Register the compute host with the given name as reservable."""
    body = schemas.named(req.media)
    validation.check_body(schemas.CREATE, caller.version, body)
    values = _texts(body)
    name = values.pop('name')
    host = caller.manager.create_host(name=name, values=values)
    return {'host': HOST.show(host, caller.version)}


def update_host(
    req: falcon.Request, caller: Caller, host_id: str
) -> Body:
    """Change a host's capabilities and settings; null deletes one."""
    validation.check_body(schemas.UPDATE, caller.version, req.media)
    host = caller.manager.update_host(
        host_id=host_id, values=_texts(req.media)
    )
    return {'host': HOST.show(host, caller.version)}


def delete_host(
    req: falcon.Request, caller: Caller, host_id: str
) -> None:
    """Make a host no longer reservable."""
    caller.manager.delete_host(host_id=host_id)


def _texts(body: Body) -> Body:
    """Return numbers and, but for settings, booleans as Blazar's text."""
    return {
        name: str(value)
        if type(value) in (int, float)
        or (type(value) is bool and name not in schemas.SETTINGS)
        else value
        for name, value in body.items()
    }
