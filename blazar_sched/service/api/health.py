# SPDX-License-Identifier: Apache-2.0
"""``/healthcheck``, for load balancers: oslo.middleware's, asking the manager.

Its options are those of oslo.middleware, in [healthcheck]: what is shown, to
whom, and further backends, such as a file that takes this API out of service.
"""

from oslo_config import cfg
from oslo_middleware import healthcheck
from oslo_middleware.healthcheck import pluginbase
from stevedore import extension

from blazar_sched.domain import exception
from blazar_sched.service.api import caller

PATH = '/healthcheck'


class ManagerHealth(pluginbase.HealthcheckBaseExtension):
    """Healthy if a manager answers and has its database."""

    def __init__(self, conf: cfg.ConfigOpts, manager: caller.Manager) -> None:
        super().__init__(conf, {})
        self._manager = manager

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        try:
            self._manager.check()
        except exception.BlazarSchedError as e:
            return pluginbase.HealthcheckResult(False, str(e.args[0]))
        return pluginbase.HealthcheckResult(True, 'OK')


class Health:
    """WSGI layer: answers at PATH, without a token."""

    def __init__(
        self, application, conf: cfg.ConfigOpts, manager: caller.Manager
    ) -> None:
        self._application = application
        self._health = _Healthcheck(application, conf, manager)

    def __call__(self, environ, start_response):
        at_path = environ['PATH_INFO'] == PATH
        answering = self._health if at_path else self._application
        return answering(environ, start_response)


class _Healthcheck(healthcheck.Healthcheck):
    """Hands on to `application` whom it is not configured to answer."""

    def __init__(
        self, application, conf: cfg.ConfigOpts, manager: caller.Manager
    ) -> None:
        super().__init__(application, conf)
        # Named in no entry point: those are given nothing to call with.
        self._backends.extensions.append(
            extension.Extension(
                'manager', None, None, ManagerHealth(conf, manager)
            )
        )
