# SPDX-License-Identifier: Apache-2.0
"""What an action is that is done before the end of a lease."""

from collections.abc import Callable
from collections.abc import Iterable

from oslo_config import cfg

from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.clients.keystone import Keystone
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server

# Asks Nova for the servers that draw on a reservation.
Servers = Callable[[], Iterable[Server]]


class Impossible(Exception):
    """An action cannot be done any more: to try it again is in vain."""


class Action:
    """An action: does nothing, which all else extends.

    It is found by its entry point, and by that name reservations ask for it.

    :param conf: the service's configuration
    :param nova: acts as an admin
    """

    # Whether it is done once for a lease, however many of its reservations
    # ask for it. Then it need not find out by itself whether it was done.
    once = False

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        nova: Nova,
        keystone: Keystone,
    ) -> None:
        self._conf = conf
        self._nova = nova
        self._keystone = keystone

    @staticmethod
    def lacks(conf: cfg.ConfigOpts) -> str | None:
        """Return the option that it cannot do without, None if it has all.

        Such as ``[email] smtp_host``.
        """
        return None

    def act(
        self,
        lease: Lease,
        reservation: Reservation,
        servers: Servers,
    ) -> str | None:
        """Do it.

        It is called again if it failed, or if nobody knows whether it did,
        and as long as something is to be waited for.

        :returns: what is still to be waited for, None if nothing is
        :raises Unavailable: if it is to be tried again
        :raises Impossible: if it cannot be done any more, saying what
        """
        return None
