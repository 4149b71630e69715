# SPDX-License-Identifier: Apache-2.0
"""Metrics of requests: their number and their duration, by route."""

from collections.abc import Callable
from collections.abc import Iterable
import time
import types
from typing import Any
from wsgiref import types as wsgi

from falcon import routing

from blazar_sched.service.api import health
from blazar_sched.service.api.path import without_end
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.metrics import REQUEST_SECONDS
from blazar_sched.service.metrics import REQUESTS

# The label of unknown paths and methods, whose number is unlimited.
OTHER = 'other'

_METHODS = frozenset(('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'))


class RequestMetrics:
    """A WSGI layer that counts every response of the layers below it.

    :param paths: the paths that have a label of their own
    """

    def __init__(
        self, application: wsgi.WSGIApplication, metrics: Metrics,
        paths: Iterable[str],
    ) -> None:
        self._application = application
        self._metrics = metrics
        # A router of its own, because a request that an outer layer refuses
        # never reaches Falcon's router.
        self._router = routing.CompiledRouter()
        for path in {*paths, health.PATH}:
            self._router.add_route(path, types.SimpleNamespace())

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        began = time.monotonic()
        method = environ['REQUEST_METHOD']
        labels = (
            self._route(environ['PATH_INFO']),
            method if method in _METHODS else OTHER,
        )

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Callable[[bytes], object]:
            seconds = time.monotonic() - began
            self._metrics.of(REQUESTS, *labels, status.split(' ', 1)[0]).inc()
            self._metrics.of(REQUEST_SECONDS, *labels).observe(seconds)
            return start_response(status, headers, exc_info)

        return self._application(environ, start)

    def _route(self, path: str) -> str:
        found = (
            self._router.find(path)
            or self._router.find(without_end(path))
        )
        return OTHER if found is None else found[3] or OTHER
