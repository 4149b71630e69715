# SPDX-License-Identifier: Apache-2.0
"""The action that e-mails a lease's creator that the lease ends soon."""

from collections.abc import Iterator
import contextlib
from email import errors
from email import headerregistry
from email import utils
from email.message import EmailMessage
import smtplib
import ssl

from oslo_config import cfg

from blazar_sched.conf import email as email_conf
from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import DELETE
from blazar_sched.domain.reservation import KEEP
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import SHELVE
from blazar_sched.service import faults
from blazar_sched.service.before_end import base
from blazar_sched.service.clients import rest

# What happens to the servers, by `on_end`.
_FATES = {
    DELETE: 'its servers are deleted then',
    SHELVE: 'its servers are shelved then',
    KEEP: 'its servers stay',
}


class Email(base.Action):
    """The action ``email``: one message for a lease."""

    once = True

    @staticmethod
    def missing_option(conf: cfg.ConfigOpts) -> str | None:
        host = conf[email_conf.GROUP].smtp_host
        return None if host else '[email] smtp_host'

    def act(
        self,
        lease: Lease,
        reservation: Reservation,
        servers: base.Servers,
    ) -> None:
        """Send the message to the creator's address in Keystone.

        :raises Unavailable: if Keystone or the mail server fails
        :raises Impossible: if the creator has no address
        """
        to = _address(self._keystone.email(lease.user_id))
        if to is None:
            raise base.Impossible(
                f'user {lease.user_id} has no e-mail address'
            )
        rest.begin_request()
        try:
            self._send(_message(lease, self._options.from_address, to))
        except OSError as e:
            # Including the exceptions that smtplib itself raises.
            raise exception.Unavailable(
                f'the mail server did not accept the message: {e}'
            ) from e
        faults.point('email:asked')

    @property
    def _options(self) -> cfg.ConfigOpts.GroupAttr:
        options: cfg.ConfigOpts.GroupAttr = self._conf[email_conf.GROUP]
        return options

    def _send(self, message: EmailMessage) -> None:
        conf = self._options
        with contextlib.closing(
            smtplib.SMTP(
                conf.smtp_host, conf.smtp_port, timeout=conf.timeout
            )
        ) as smtp:
            if conf.starttls:
                smtp.starttls(context=ssl.create_default_context())
            if conf.username:
                smtp.login(conf.username, conf.password)
            smtp.send_message(message)
            # The server has accepted the message, whatever it answers to QUIT.
            with contextlib.suppress(OSError):
                smtp.quit()


def _address(text: str | None) -> headerregistry.Address | None:
    """Return the address that `text` consists of, None if it is invalid."""
    try:
        return headerregistry.Address(addr_spec=text or '')
    except (ValueError, IndexError, errors.MessageError):
        return None


def _message(
    lease: Lease, from_address: str, to: headerregistry.Address
) -> EmailMessage:
    message = EmailMessage()
    message['From'] = from_address
    message['To'] = to
    # The header would decode an encoded word (RFC 2047) in the name, with any
    # line ends in the word, which would begin another header or the text.
    name = _line(lease.name).replace('=?', '= ?')
    message['Subject'] = f'Lease {name} ends at {_end(lease)}'
    message['Date'] = utils.localtime()
    # The same id for every message about the same end, so that the receiver
    # can recognize a duplicate.
    message['Message-ID'] = f'<{lease.id}.{lease.ending}@blazar-sched>'
    message['Auto-Submitted'] = 'auto-generated'
    message.set_content('\n'.join(_text(lease)) + '\n')
    return message


def _text(lease: Lease) -> Iterator[str]:
    yield f'The lease {_line(lease.name)} ends at {_end(lease)}.'
    yield ''
    yield f'Lease:   {lease.id}'
    yield f'Project: {lease.project_id}'
    yield ''
    yield 'Its reservations:'
    yield ''
    for reservation in lease.reservations:
        said = '; '.join(_content(reservation))
        yield f'- {reservation.resource_type} {reservation.id}: {said}'


def _content(reservation: Reservation) -> Iterator[str]:
    """Yield the size of a reservation, and what happens to its servers."""
    demand = reservation.demand
    if demand.whole:
        yield f'{demand.least} to {demand.most} hosts'
    elif demand.least:
        yield f'{demand.least}'
    if demand.is_on_hosts(active=True):
        yield _FATES[reservation.on_end]


def _end(lease: Lease) -> str:
    return duration.format_time(lease.end)


def _line(text: str) -> str:
    """Return `text` as one line, without characters that end a line."""
    return ''.join(c if c.isprintable() else ' ' for c in text)
