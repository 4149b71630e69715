# SPDX-License-Identifier: Apache-2.0
"""Messages to people, by the operator's mail server."""

from collections.abc import Iterable
import contextlib
from email import errors
from email import utils
from email.headerregistry import Address
from email.message import EmailMessage
import smtplib
import socket
import ssl
import time

from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.parts.notify.conf import EMAIL
from blazar_sched.service.clients import receiver
from blazar_sched.service.clients import rest


def address(text: str | None) -> Address | None:
    """Return the address that `text` consists of, None if it is invalid."""
    try:
        return Address(addr_spec=text or '')
    except (ValueError, IndexError, errors.MessageError):
        return None


def line(text: str) -> str:
    """Return `text` as one line, without characters that end a line."""
    return ''.join(c if c.isprintable() else ' ' for c in text)


def send(
    conf: cfg.ConfigOpts, to: Address, subject: str, lines: Iterable[str],
    key: str,
) -> None:
    """Send a message.

    :param key: the same for every message about the same thing, so that the
        receiver can recognize a duplicate
    :raises Unavailable: if the mail server does not accept the message
    """
    options = conf[EMAIL]
    message = EmailMessage()
    message['From'] = options.from_address
    message['To'] = to
    # The header would decode an encoded word (RFC 2047) in a name, with any
    # line ends in the word, which would begin another header or the text.
    message['Subject'] = line(subject).replace('=?', '= ?')
    message['Date'] = utils.localtime()
    message['Message-ID'] = f'<{key}@blazar-sched>'
    message['Auto-Submitted'] = 'auto-generated'
    message.set_content('\n'.join(map(line, lines)) + '\n')
    rest.begin_request()
    try:
        _send(options, message)
    except OSError as e:
        # Including the exceptions that smtplib itself raises.
        raise exception.Unavailable(
            f'the mail server did not accept the message: {e}'
        ) from e


class _Connected(smtplib.SMTP):
    """A client on a connection that there is already."""

    def __init__(self, host: str, connection: socket.socket) -> None:
        self._connection = connection
        super().__init__(host)

    def _get_socket(self, *_: object) -> socket.socket:
        return self._connection


def _send(options: cfg.ConfigOpts.GroupAttr, message: EmailMessage) -> None:
    host, until = options.smtp_host, time.monotonic() + options.timeout
    with (
        receiver.connected(host, options.smtp_port, until) as connection,
        contextlib.closing(_Connected(host, connection)) as smtp,
    ):
        if options.starttls:
            smtp.starttls(context=ssl.create_default_context())
        if options.username:
            smtp.login(options.username, options.password)
        smtp.send_message(message)
        # The server has accepted the message, whatever it answers to QUIT.
        with contextlib.suppress(OSError):
            smtp.quit()
