# SPDX-License-Identifier: Apache-2.0
"""The ``/healthcheck`` of oslo.middleware, with a check of the manager.

The check calls the manager. The options of oslo.middleware in [healthcheck]
determine which details a response shows, which clients get a response, and
which further backends are checked, such as a file that takes this API out of
service.
"""

from collections.abc import Iterable
import threading
import time
from typing import Any
from wsgiref import types as wsgi

from oslo_config import cfg
from oslo_middleware import healthcheck
from oslo_middleware.healthcheck import pluginbase
from stevedore import extension

from blazar_sched.domain import exception
from blazar_sched.service.api import caller

PATH = '/healthcheck'
# Seconds for which a result is reused.
LASTS = 1.0


class ManagerHealth(pluginbase.HealthcheckBaseExtension):
    """A check that is healthy if a manager answers and has its database.

    A result is reused for LASTS seconds: clients without a token may ask at
    any rate, and each check is a call over the bus and a query.
    """

    def __init__(self, conf: cfg.ConfigOpts, manager: caller.Manager) -> None:
        super().__init__(conf, {})
        self._manager = manager
        self._lock = threading.Lock()
        self._found: pluginbase.HealthcheckResult | None = None
        self._until = 0.0

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        with self._lock:
            if self._found is None or time.monotonic() >= self._until:
                self._found = self._look()
                self._until = time.monotonic() + LASTS
            return self._found

    def _look(self) -> pluginbase.HealthcheckResult:
        try:
            self._manager.check()
        except exception.BlazarSchedError as e:
            return pluginbase.HealthcheckResult(False, str(e.args[0]))
        return pluginbase.HealthcheckResult(True, 'OK')


class Health:
    """A WSGI layer that answers at PATH, without a token."""

    def __init__(
        self, application: wsgi.WSGIApplication, conf: cfg.ConfigOpts,
        manager: caller.Manager,
    ) -> None:
        self._application = application
        self._health = _Healthcheck(application, conf, manager)

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        at_path = environ['PATH_INFO'] == PATH
        answering = self._health if at_path else self._application
        return answering(environ, start_response)


def _extension(
    name: str, check: pluginbase.HealthcheckBaseExtension
) -> extension.Extension[Any]:
    """Return an extension for a check that no entry point names."""
    make: Any = extension.Extension
    made: extension.Extension[Any] = make(name, None, None, check)
    return made


class _Healthcheck(healthcheck.Healthcheck):
    """A healthcheck that passes other requests on to `application`.

    The other requests are those that its configuration excludes.
    """

    def __init__(
        self, application: wsgi.WSGIApplication, conf: cfg.ConfigOpts,
        manager: caller.Manager,
    ) -> None:
        super().__init__(application, conf)
        # Not named in an entry point, because a check from an entry point
        # is not given a manager to call.
        self._backends.extensions.append(
            _extension('manager', ManagerHealth(conf, manager))
        )
