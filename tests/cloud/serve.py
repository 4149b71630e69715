# SPDX-License-Identifier: Apache-2.0
"""Serves a WSGI application on loopback, by gunicorn.

Arguments: MODULE:NAME PORT WORKERS THREADS ACCESS_LOG.

Keystone, Glance and Neutron give the command line of whatever loads them to
oslo.config, which takes no server's options. So there is nothing on it.
"""

import sys

from gunicorn import util
from gunicorn.app import base


class Server(base.BaseApplication):
    def __init__(
        self,
        application: str,
        port: str,
        workers: str,
        threads: str,
        access_log: str,
    ) -> None:
        self._application = application
        self._settings = {
            'bind': f'127.0.0.1:{port}',
            'worker_class': 'gthread',
            'workers': int(workers),
            'threads': int(threads),
            'timeout': 300,
            # Longer than clients pause: a connection that is closed just
            # when the next request comes is an error to them.
            'keepalive': 75,
            'accesslog': access_log,
            'control_socket_disable': True,
        }
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._settings.items():
            # Not every version has all of them.
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> object:
        return util.import_app(self._application)


if __name__ == '__main__':
    arguments = sys.argv[1:]
    del sys.argv[1:]
    Server(*arguments).run()
