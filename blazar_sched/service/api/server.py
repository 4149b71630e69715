# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of the API, in threads of this process."""

import contextlib
import ipaddress
import json
import resource
import socket
import threading
from wsgiref import types as wsgi

from oslo_config import cfg
from oslo_log import log as logging
import waitress
from waitress import channel
from waitress import task
from waitress import wasyncore

from blazar_sched.service.api import caller
from blazar_sched.service.api import deploy
from blazar_sched.service.api import errors
from blazar_sched.service.bus import rpc
from blazar_sched.service.metrics import Metrics

LOG = logging.getLogger(__name__)

# Seconds after which an idle connection is closed, or one on which a request
# has begun but is not complete.
CONNECTION_TIMEOUT = 20
# Open files of the process that are not connections of API clients.
_OTHER_FILES = 256


class UnsafeAddress(ValueError):
    """Raised if ``noauth`` would be served to other machines.

    ``noauth`` trusts every caller.
    """


class _ErrorTask(task.ErrorTask):
    """A task that puts the errors of waitress into the envelope, too."""

    def execute(self) -> None:
        refused = self.request.error
        message = f'{refused.reason}: {refused.body}'
        body = json.dumps(errors.envelope(refused.code, message)).encode()
        self.status = f'{refused.code} {refused.reason}'
        self.response_headers.append(('Content-Type', 'application/json'))
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Channel(channel.HTTPChannel):
    error_task_class = _ErrorTask
    last_activity: float

    def handle_read(self) -> None:
        # A client that sends a byte now and then must not keep a connection:
        # a request that has begun must be complete before the connection
        # times out.
        begun, since = self.request, self.last_activity
        super().handle_read()
        if begun is not None and self.request is begun:
            self.last_activity = since


class Server:
    """A running API.

    :param application: WSGI
    :param listener: a bound socket; the server closes the socket
    """

    def __init__(
        self, conf: cfg.ConfigOpts, application: wsgi.WSGIApplication,
        listener: socket.socket,
    ) -> None:
        self.host, self.port = listener.getsockname()[:2]
        self._sockets: dict[int, wasyncore.dispatcher] = {}
        self._server = waitress.create_server(
            application,
            map=self._sockets,
            sockets=[listener],
            threads=conf.api.threads,
            max_request_body_size=conf.api.max_request_body_size,
            connection_limit=_connections(conf.api.max_connections),
            channel_timeout=CONNECTION_TIMEOUT,
            cleanup_interval=CONNECTION_TIMEOUT // 4,
            # select() supports no file descriptor above 1023.
            asyncore_use_poll=True,
            # oslo.middleware decides whether proxy headers are trusted.
            clear_untrusted_proxy_headers=False,
            ident=None,
        )
        self._server.channel_class = _Channel
        self._thread = threading.Thread(
            target=self._server.run, name='api', daemon=True
        )
        self._thread.start()

    @property
    def hangs(self) -> bool:
        """Whether no thread accepts requests any more."""
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Finish the requests in progress, then close every connection."""
        self._server.task_dispatcher.shutdown()
        # The sockets belong to the thread that polls them; the thread ends
        # when no socket is left. If the thread is awake already, it may have
        # closed the trigger before the trigger is pulled.
        with contextlib.suppress(OSError):
            self._server.trigger.pull_trigger(
                lambda: wasyncore.close_all(self._sockets)
            )
        self._thread.join()


def serve(
    conf: cfg.ConfigOpts, manager: caller.Manager,
    metrics: Metrics | None = None,
) -> Server:
    """Start to serve the API on [api] host and port, 0 for a free port.

    :raises UnsafeAddress: if ``noauth`` would be served to other machines
    :raises OSError: if the address cannot be bound
    """
    listener = _bind(conf.api.host, conf.api.port)
    address = listener.getsockname()[0]
    if (
        conf.api.auth_strategy == 'noauth'
        and not ipaddress.ip_address(address).is_loopback
    ):
        listener.close()
        raise UnsafeAddress(
            f'[api] auth_strategy is noauth, but [api] host {conf.api.host} '
            'is not a loopback address'
        )
    if conf.api.auth_strategy == 'noauth':
        LOG.warning(
            '[api] auth_strategy is noauth: every user of this machine can '
            'act as an administrator'
        )
    server = Server(conf, deploy.deploy(conf, manager, metrics), listener)
    LOG.info('The API listens on %s port %d', server.host, server.port)
    return server


def start(conf: cfg.ConfigOpts, metrics: Metrics | None = None) -> Server:
    """Start to serve the API on its own, calling managers over the bus.

    The API answers 503 until it has found a manager.

    :raises: what `serve` raises
    """
    client = rpc.Client(rpc.transport(conf, 'api'), metrics=metrics)
    server = serve(conf, client, metrics)
    client.connect()
    return server


def _connections(most: int) -> int:
    """Return the possible number of connections, at most `most`.

    The limit of open files of the process is raised as far as needed and
    allowed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return most
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        allowed = wanted
    else:
        allowed = hard
        LOG.warning(
            '[api] max_connections is %d, but the process may have %d files '
            'open: %d connections are left',
            most, hard, max(1, hard - _OTHER_FILES),
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(1, allowed - _OTHER_FILES)


def _bind(host: str, port: int) -> socket.socket:
    [(family, kind, _, _, address), *_] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listener = socket.socket(family, kind)
    try:
        # A restart must not wait until old connections leave TIME_WAIT.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as e:
        listener.close()
        raise OSError(
            e.errno, f'{e.strerror}: [api] host {host}, port {port}'
        ) from e
    return listener
