# SPDX-License-Identifier: Apache-2.0
"""Serve a WSGI application on loopback with gunicorn.

Arguments: MODULE:NAME PORT WORKERS THREADS ACCESS_LOG.

Keystone, Glance and Neutron pass the command line of the loading process to
oslo.config, which accepts no options of a server. Therefore gunicorn gets its
options from this module.
"""

import sys

from gunicorn import util
from gunicorn.app import base


class Server(base.BaseApplication):
    def __init__(
        self, application: str, port: str, workers: str, threads: str,
        access_log: str,
    ) -> None:
        self._application = application
        self._settings = {
            'bind': f'127.0.0.1:{port}',
            'worker_class': 'gthread',
            'workers': int(workers),
            'threads': int(threads),
            'timeout': 300,
            # This is longer than clients pause: a connection that is closed
            # just when the next request comes is an error to clients.
            'keepalive': 75,
            'accesslog': access_log,
            'control_socket_disable': True,
        }
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._settings.items():
            # Some versions lack some of these.
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> object:
        return util.import_app(self._application)


if __name__ == '__main__':
    arguments = sys.argv[1:]
    del sys.argv[1:]
    Server(*arguments).run()
