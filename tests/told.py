# SPDX-License-Identifier: Apache-2.0
"""Receivers of announcements: real mail and web servers, and a list."""

import asyncio
from email import message_from_bytes
from email import policy
from http import server
import queue
import ssl
import threading

from aiosmtpd import smtp


def notified(manager, monkeypatch, seen=None):
    """Return the list of the notifications of a manager, which are not sent.

    :param seen: returns what of (event type, payload) is in the list, None for
        nothing
    """
    told = []

    def put(event_type, payload):
        each = (event_type, payload)
        if seen is not None:
            each = seen(*each)
        if each is not None:
            told.append(each)

    monkeypatch.setattr(manager.notifier, 'tell', put)
    return told


class Mail:
    """A mail server; `messages` has the accepted (recipients, message).

    `answers` are the responses to the next messages, else the server accepts.

    :param options: aiosmtpd's
    """

    def __init__(self, **options):
        self.messages = []
        self.answers = []
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(self._loop.create_server(
            lambda: smtp.SMTP(
                self, hostname='mail', loop=self._loop, **options
            ),
            '127.0.0.1', 0
        ))
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    async def handle_DATA(self, server, session, envelope):
        answer = self.answers.pop(0) if self.answers else '250 OK'
        if answer.startswith('250'):
            self.messages.append(
                (
                    envelope.rcpt_tos,
                    message_from_bytes(
                        envelope.content, policy=policy.default
                    ),
                )
            )
        return answer

    def stop(self):
        def stop():
            self._server.close()
            self._loop.stop()

        self._loop.call_soon_threadsafe(stop)
        self._thread.join()
        self._loop.close()


def tls(certificate, key):
    """Return the TLS context of a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


class Hook:
    """A web server; `asked` has the requests: (path, headers, body).

    `answers` are the next statuses, else 204. Each response has `headers`.
    """

    def __init__(self):
        self.asked = queue.SimpleQueue()
        self.answers = []
        self.headers = {}
        self._server = server.ThreadingHTTPServer(
            ('127.0.0.1', 0), type('Handler', (_Handler,), {'hook': self})
        )
        self.url = f'http://127.0.0.1:{self._server.server_port}/soon'
        threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        ).start()

    def requests(self):
        """Return the requests since the last call."""
        return [self.asked.get() for _ in range(self.asked.qsize())]

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


class _Handler(server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers['Content-Length'])
        body = self.rfile.read(length)
        if len(body) < length:
            return  # The sender was killed.
        self.hook.asked.put((self.path, self.headers, body))
        answers = self.hook.answers
        self.send_response(answers.pop(0) if answers else 204)
        self.send_header('Location', self.hook.url)
        for header in self.hook.headers.items():
            self.send_header(*header)
        self.end_headers()

    def log_message(self, *args):
        pass
