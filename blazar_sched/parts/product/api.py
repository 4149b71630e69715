# SPDX-License-Identifier: Apache-2.0
"""Products: the route, its view, and the requests without a token."""

from collections.abc import Callable
from collections.abc import Mapping
import functools
import threading
import time
from typing import Any
from typing import cast

import cachetools
import falcon
from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.parts.product.calls import Calls
from blazar_sched.service.api import capacity
from blazar_sched.service.api import listing
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api.auth import PUBLIC
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.capacity import WINDOW_QUERY
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Item
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas.reservation import HOST
from blazar_sched.service.bus.calls import Page

_PATH = '/v1/products'
# Seconds for which an answer is kept, seconds between two new answers, and the
# most answers that are kept.
_KEPT = 5
_APART = 1
_MAX_ANSWERS = 64


def _parameter(name: str) -> Callable[[Item], Any]:
    return lambda product: product['parameters'].get(name)


def _size(name: str, meaning: str) -> Field:
    return Field(name, meaning, None, INTEGER_OR_NULL, _parameter(name))


PRODUCT = Object(
    Field('name', 'Name of the product', 'a100'),
    Field('description', 'Description', 'A host with 8 A100'),
    Field('resource_type', meaning.RESOURCE_TYPE, HOST),
    _size('vcpus', 'VCPUs of each instance, null for another size'),
    _size('memory_mb', 'Memory of each instance in MB, likewise'),
    _size('disk_gb', 'Disk of each instance in GB, likewise'),
    Field(
        'flavor_id', 'ID of the flavor of each instance, null for none', None,
        TEXT_OR_NULL, _parameter('flavor_id'),
    ),
    Field(
        'max_duration', 'Longest lease in seconds, null for any', 604800,
        INTEGER_OR_NULL,
    ),
    Field(
        'max_units',
        'Largest number of hosts or instances that all projects may have at '
        'the same time, null for any',
        4, INTEGER_OR_NULL,
    ),
    Field(
        'free',
        'Number of hosts or instances that are free throughout the window', 3,
        INTEGER,
    ),
    name='Product', meaning='What the operator publishes for reservations',
    columns=(
        'name', 'description', 'resource_type', 'max_duration', 'max_units',
        'free',
    ),
)


class Public:
    """The last answers of a process: one request at a time gets a new one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = threading.Semaphore()
        self._due = 0.0
        self._answers: cachetools.TTLCache[object, Page]
        self._answers = cachetools.TTLCache(_MAX_ANSWERS, _KEPT)

    def get(self, key: object, ask: Callable[[], Page]) -> Page:
        """Return the answer to a question.

        :param key: the question
        :param ask: asks the manager
        :raises TooManyRequests: if a new answer was made a moment ago
        """
        with self._lock:
            found = self._answers.get(key)
        if found is not None:
            return found
        busy = exception.TooManyRequests(
            'too many requests without a token; try again in a moment'
        )
        if not self._free.acquire(blocking=False):
            raise busy
        try:
            if time.monotonic() < self._due:
                raise busy
            try:
                answer = ask()
            finally:
                self._due = time.monotonic() + _APART
            with self._lock:
                self._answers[key] = answer
            return answer
        finally:
            self._free.release()


def list_products(req: falcon.Request, caller: Caller) -> list[listing.Item]:
    """List the operator's products, with how much is free in a window.

    The products are those that the project may reserve, in the order of the
    operator. Without a token, if the operator permits this, the products are
    those that all projects may reserve.
    """
    window = capacity.window(req)
    ask = functools.partial(
        cast(Calls, caller.manager).list_products,
        project_id=caller.project_id, **window,
    )
    public: Public | None = req.env.get(PUBLIC)
    page = public.get(tuple(window.values()), ask) if public else ask()
    return page['items']


def opened(conf: cfg.ConfigOpts) -> Mapping[str, Public]:
    """Return the path that is answered without a token, if it is permitted."""
    return {_PATH: Public()} if conf.api.public_products else {}


ROUTES = (
    Route(
        'GET', _PATH, list_products,
        Rule('blazar:products:get', PROJECT_READER_OR_ADMIN),
        Answer(PRODUCT, 'products', many=True), since=microversion.V1_1,
        query=WINDOW_QUERY,
    ),
)
