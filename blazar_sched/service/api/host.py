# SPDX-License-Identifier: Apache-2.0
"""Hosts: what each request asks of the manager."""

from typing import Any

import falcon

from blazar_sched.service.api import caller as caller_
from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import host as schemas
from blazar_sched.service.api.views import host as views

Body = dict[str, Any]


def list_hosts(req: falcon.Request, caller: caller_.Caller) -> Body:
    return {'hosts': [views.host(h) for h in caller.call('list_hosts')]}


def show_host(
    req: falcon.Request, caller: caller_.Caller, host_id: str
) -> Body:
    return {'host': views.host(caller.call('get_host', host_id=host_id))}


def create_host(req: falcon.Request, caller: caller_.Caller) -> Body:
    """Register the compute host of that name as reservable."""
    body = schemas.named(req.media)
    validation.check(schemas.CREATE, body)
    values = _texts(body)
    name = values.pop('name')
    host = caller.call('create_host', name=name, values=values)
    return {'host': views.host(host)}


def update_host(
    req: falcon.Request, caller: caller_.Caller, host_id: str
) -> Body:
    validation.check(schemas.UPDATE, req.media)
    host = caller.call(
        'update_host', host_id=host_id, values=_texts(req.media)
    )
    return {'host': views.host(host)}


def delete_host(
    req: falcon.Request, caller: caller_.Caller, host_id: str
) -> None:
    caller.call('delete_host', host_id=host_id)


def _texts(body: Body) -> dict[str, str | None]:
    """Capabilities are text, also where a client sends a number."""
    return {k: None if v is None else str(v) for k, v in body.items()}
