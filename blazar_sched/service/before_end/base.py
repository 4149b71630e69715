# SPDX-License-Identifier: Apache-2.0
"""The base class of the actions that are done for a lease.

Most are done before the end of the lease, some once it has started.
"""

from collections.abc import Callable
from collections.abc import Iterable

from oslo_config import cfg

from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.clients.keystone import Keystone
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server

# A function that queries Nova for the servers that draw on a reservation.
Servers = Callable[[], Iterable[Server]]


class Impossible(Exception):
    """An action cannot be done any more: another try would be in vain."""


class Action:
    """The base class of actions, which does nothing.

    An action is found by its entry point, and reservations request the action
    by the name of the entry point.

    :param conf: the configuration of the service
    :param nova: a Nova client that acts as an admin
    """

    # Whether the action is done once for a lease, however many reservations of
    # the lease request the action. Then the action need not find out by itself
    # whether it was done.
    once = False
    # Whether `start` does the action once a lease has started.
    at_start = False

    def __init__(
        self, conf: cfg.ConfigOpts, nova: Nova, keystone: Keystone
    ) -> None:
        self._conf = conf
        self._nova = nova
        self._keystone = keystone

    @staticmethod
    def missing_option(conf: cfg.ConfigOpts) -> str | None:
        """Return the required option that is not set, None if none is missing.

        Such as ``[email] smtp_host``.
        """
        return None

    def act(
        self, lease: Lease, reservation: Reservation, servers: Servers
    ) -> str | None:
        """Do the action.

        The method is called again if the action failed, or if it is not known
        whether the action failed, and as long as the action waits for
        something.

        :returns: what the action still waits for, None if it waits for nothing
        :raises Unavailable: if the action is to be tried again
        :raises Impossible: if the action cannot be done any more, saying what
            cannot be done
        """
        return None

    def start(self, lease: Lease) -> str | None:
        """Do the action once a lease has started, otherwise as `act`."""
        return None
