# SPDX-License-Identifier: Apache-2.0
"""Makes an image of each server of a reservation."""

from oslo_log import log

from blazar_sched.domain import flavor as flavor_
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import reservation as reservation_
from blazar_sched.service.before_end import base
from blazar_sched.service.clients import creator as creator_

LOG = log.getLogger(__name__)

# What a server must be for Nova to make an image of it.
_COPIED = ('ACTIVE', 'PAUSED', 'SHUTOFF', 'SUSPENDED')


class Snapshot(base.Action):
    """The action ``snapshot``."""

    def act(
        self,
        lease: lease_.Lease,
        reservation: reservation_.Reservation,
        servers: base.Servers,
    ) -> None:
        """Make an image of each server that is bound.

        It is the creator's own, where there is a trust; else it is made as
        an admin, and Nova shares it with the server's project.
        """
        creator = creator_.nova(lease, self._keystone, self._nova)
        for server in servers():
            if server.status not in _COPIED:
                LOG.warning(
                    'No image of server %s, which is %s',
                    server.uuid, server.status,
                )
                continue
            own = server.project_id == lease.project_id
            nova = creator if own else self._nova
            nova.create_image(
                server,
                f'reserved_{server.name}',
                {flavor_.RESERVATION: reservation.id},
            )
