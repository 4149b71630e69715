# SPDX-License-Identifier: Apache-2.0
"""Nova and Placement on a socket, for managers that are other processes.

For tests in which processes are killed, stopped or disconnected: the stand-in
notes each effect, which is a request that changed something. A request that
comes twice changes nothing the second time.
"""

from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
import contextlib
from http import server
import json
import re
import threading
from typing import Any
from urllib import parse

import requests

from tests.standins import rest
from tests.standins.cloud import CloudApi

Body = dict[str, Any]

# The documents of versions, by the path of the endpoint.
_VERSIONS = {
    '/compute': rest.compute_versions('compute'),
    '/placement': rest.placement_versions('placement'),
}
_UUID = re.compile('[0-9A-Fa-f]{8}([-_][0-9A-Fa-f]{4}){3}[-_][0-9A-Fa-f]{12}')


class ServedCloud(CloudApi):
    """A running cloud; below `url` are both services' endpoints.

    :param hosts: the hostnames of its hypervisors
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        self.hosts = {name: rest.uuid_of(name) for name in hosts}
        super().__init__(*self.hosts)
        # What was changed, in order.
        self.effects: list[str] = []
        # After which request to which service something was changed.
        self.changed_at: list[tuple[str, int]] = []
        self._counts: Counter[str] = Counter()
        # Called with the method and the path of a request before it is done.
        self.before: Callable[[str, str], object] = lambda method, path: None
        self._lock = threading.Lock()
        self._server = server.ThreadingHTTPServer(
            ('127.0.0.1', 0), _handler(self)
        )
        self._server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self._server.server_port}'
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    def __enter__(self) -> 'ServedCloud':
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def forget(self) -> None:
        """Count requests and effects anew."""
        with self._lock:
            self.effects.clear()
            self.changed_at.clear()
            self._counts.clear()

    def boot(self, host: str, project_id: str, reservation_id: str) -> None:
        """Have a server there that draws on a reservation."""
        id_ = self.add_server(host, project_id, reservation=[reservation_id])
        self.servers[id_] |= {
            'created': '2030-01-01T00:00:00Z', 'image': {'id': 'image'},
        }

    def serve(
        self, service: str, method: str, path: str, query: str,
        body: Body | None,
    ) -> requests.Response:
        """Answer a request to a service, and note its effect."""
        self.before(method, path)
        with self._lock:
            self._counts[service] += 1
            target = self._with_names(path)
            answer = self.request(f'{path}?{query}', method, body)
            if _has_effect(method, path, answer):
                what = _what(path, body or {}, answer)
                self.effects.append(f'{method} {target} {what}')
                self.changed_at.append((service, self._counts[service]))
        return answer

    def _with_names(self, path: str) -> str:
        """Return the path with names for ids that differ each time."""
        for id_, provider in self.providers.items():
            path = path.replace(id_, provider['name'])
        for id_, found in self.servers.items():
            path = path.replace(
                id_, found['OS-EXT-SRV-ATTR:hypervisor_hostname']
            )
        return _UUID.sub('UUID', path)


def _has_effect(method: str, path: str, answer: requests.Response) -> bool:
    if method == 'GET' or not answer.ok:
        return False
    # Extra specs are set to the same once more.
    return not path.endswith('/os-extra_specs')


def _what(path: str, body: Body, answer: requests.Response) -> str:
    """Return what tells effects on one path from each other."""
    if path.endswith('/action'):
        [(action, values)] = body.items()
        return f'{action} {values.get("host", "")}'
    if path.endswith('/inventories'):
        return str([held['total'] for held in body['inventories'].values()])
    if path == '/resource_providers':
        return body['name']
    if path == '/os-aggregates':
        return str(answer.json()['aggregate']['id'])
    return ''


def _handler(cloud: ServedCloud) -> type[server.BaseHTTPRequestHandler]:
    class Handler(server.BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def handle(self) -> None:
            # Whoever asked may be killed before the answer.
            with contextlib.suppress(ConnectionError):
                super().handle()

        def _answer(self) -> None:
            url = parse.urlsplit(self.path)
            length = int(self.headers.get('Content-Length') or 0)
            sent = json.loads(self.rfile.read(length)) if length else None
            endpoint = re.match('/[^/]+', url.path)[0]
            path = url.path.removeprefix(endpoint).rstrip('/')
            if path:
                answer = cloud.serve(
                    endpoint.strip('/'), self.command, path, url.query, sent
                )
                status, data = answer.status_code, answer.content
            else:
                versions = {'version': _VERSIONS[endpoint]}
                status, data = 200, json.dumps(versions).encode()
            self.send_response(status)
            self.send_header('Content-Type', 'application/json')
            if status != 204:
                self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, *args: object) -> None:
            pass

    return Handler
