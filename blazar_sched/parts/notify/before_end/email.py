# SPDX-License-Identifier: Apache-2.0
"""The action that e-mails a lease's creator that the lease ends soon."""

from collections.abc import Iterator

from oslo_config import cfg

from blazar_sched.domain import duration
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import DELETE
from blazar_sched.domain.reservation import KEEP
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import SHELVE
from blazar_sched.parts.notify import mail
from blazar_sched.parts.notify.conf import EMAIL
from blazar_sched.service import faults
from blazar_sched.service.before_end import base

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
        host = conf[EMAIL].smtp_host
        return None if host else '[email] smtp_host'

    def act(
        self, lease: Lease, reservation: Reservation, servers: base.Servers
    ) -> None:
        """Send the message to the creator's address in Keystone.

        :raises Unavailable: if Keystone or the mail server fails
        :raises Impossible: if the creator has no address
        """
        to = mail.address(self._keystone.email(lease.user_id))
        if to is None:
            raise base.Impossible(
                f'user {lease.user_id} has no e-mail address'
            )
        # The same key for every message about the same end.
        mail.send(
            self._conf, to, f'Lease {lease.name} ends at {_end(lease)}',
            _text(lease), f'{lease.id}.{lease.ending}',
        )
        faults.point('email:asked')


def _text(lease: Lease) -> Iterator[str]:
    yield f'The lease {lease.name} ends at {_end(lease)}.'
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
