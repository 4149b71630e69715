# SPDX-License-Identifier: Apache-2.0
"""The REST API for a WSGI server: ``blazar_sched.wsgi:application``.

The application is the API that ``blazar-sched api`` serves, for gunicorn,
uWSGI, mod_wsgi and similar servers. The import of this module reads the
configuration, so an invalid configuration stops the server with an error in
its log. The command line belongs to the server: as for Nova, environment
variables may name the configuration.

- ``OS_BLAZAR_SCHED_CONFIG_DIR``: the folder of the configuration files, by
  default ``/etc/blazar-sched``
- ``OS_BLAZAR_SCHED_CONFIG_FILES``: the names of the files, separated by ``;``,
  by default ``blazar-sched.conf``
"""

from collections.abc import Mapping
import os
import threading
from typing import Any
from wsgiref import types as wsgi

from oslo_config import cfg
import oslo_messaging

from blazar_sched.conf import service as service_conf
from blazar_sched.service import logs
from blazar_sched.service import metrics as service_metrics
from blazar_sched.service.api import deploy
from blazar_sched.service.api import server
from blazar_sched.service.bus import rpc

CONFIG_DIR = '/etc/blazar-sched'
CONFIG_FILES = 'blazar-sched.conf'


class _Manager:
    """A client of the manager that connects at the first call.

    A server may import this module first and fork its workers afterwards.
    Threads and connections do not survive a fork, so each worker has its own.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, metrics: service_metrics.Metrics
    ) -> None:
        self._conf = conf
        self._metrics = metrics
        self._client: rpc.Client | None = None
        self._lock = threading.Lock()

    def call(
        self, ctxt: dict[str, Any], method: str, **kwargs: object
    ) -> object:
        return self._connected().call(ctxt, method, **kwargs)

    def check(self) -> None:
        self._connected().check()

    def _connected(self) -> rpc.Client:
        with self._lock:
            if self._client is None:
                client = rpc.Client(
                    rpc.transport(self._conf, 'api'), metrics=self._metrics
                )
                service_metrics.serve_workers(self._conf)
                client.connect()
                self._client = client
        return self._client


def config_files(environment: Mapping[str, str]) -> list[str]:
    """Return the paths of the configuration that the environment names."""
    folder = environment.get('OS_BLAZAR_SCHED_CONFIG_DIR', '').strip()
    names = environment.get('OS_BLAZAR_SCHED_CONFIG_FILES', '').strip()
    return [
        os.path.join(folder or CONFIG_DIR, name)
        for name in (names or CONFIG_FILES).split(';')
    ]


def build(files: list[str]) -> wsgi.WSGIApplication:
    """Return the API as `files` configure it.

    :raises oslo_config.cfg.Error: if a file or a value cannot be read
    :raises oslo_messaging.InvalidTransportURL: if the transport_url is invalid
    :raises UnsafeAddress: if the auth_strategy is ``noauth``, because a WSGI
        server does not tell which machines can reach the server
    """
    conf = service_conf.load(files=files)
    logs.setup(conf)
    oslo_messaging.TransportURL.parse(conf)
    if conf.api.auth_strategy == 'noauth':
        raise server.UnsafeAddress(
            '[api] auth_strategy is noauth, which only `blazar-sched api` and '
            '`blazar-sched serve` serve, on a loopback address'
        )
    metrics = service_metrics.new()
    return deploy.deploy(conf, _Manager(conf, metrics), metrics)


application = build(config_files(os.environ))
