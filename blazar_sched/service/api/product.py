# SPDX-License-Identifier: Apache-2.0
"""Products: the handler that translates requests into manager calls."""

import functools

import falcon

from blazar_sched.service.api import capacity
from blazar_sched.service.api import listing
from blazar_sched.service.api import microversion
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.public import PUBLIC
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas.capacity import WINDOW
from blazar_sched.service.api.views.product import PRODUCT


def list_products(req: falcon.Request, caller: Caller) -> list[listing.Item]:
    """List the operator's products, with how much is free in a window.

    The products are those that the project may reserve, in the order of the
    operator. Without a token, if the operator permits this, the products are
    those that all projects may reserve.
    """
    window = capacity.window(req)
    ask = functools.partial(
        caller.manager.list_products, project_id=caller.project_id, **window
    )
    public = req.env.get(PUBLIC)
    page = public.get(tuple(window.values()), ask) if public else ask()
    return page['items']


ROUTES = (
    Route(
        'GET', '/v1/products', list_products,
        Rule('blazar:products:get', PROJECT_READER_OR_ADMIN),
        Answer(PRODUCT, 'products', many=True), since=microversion.V1_1,
        query=WINDOW,
    ),
)
