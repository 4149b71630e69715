# SPDX-License-Identifier: Apache-2.0
"""Makes an image of each server of a reservation."""

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.before_end import base
from blazar_sched.service.clients import creator as creator_client
from blazar_sched.service.clients.nova import image_mark
from blazar_sched.service.clients.nova import SHELVED
from blazar_sched.service.clients.nova import SOFT_DELETED

# What a server must be for Nova to make an image of it.
_COPIED = ('ACTIVE', 'PAUSED', 'SHUTOFF', 'SUSPENDED')
# What a server stays, unless its owner or an admin does something about it.
_STUCK = (
    *SHELVED, SOFT_DELETED, 'ERROR', 'RESCUE', 'VERIFY_RESIZE'
)


class Snapshot(base.Action):
    """The action ``snapshot``."""

    def act(
        self,
        lease: Lease,
        reservation: Reservation,
        servers: base.Servers,
    ) -> str | None:
        """Make an image of each server that is bound, for this end.

        The image is made as the creator, where there is a trust; else as an
        admin, who gives the image to the server's project.

        :returns: which images are not complete
        :raises Unavailable: if Nova does not make an image of some server;
            all other servers are asked for before
        :raises Impossible: if a server cannot be copied as it is, and does not
            leave that status by itself; the other images are complete then
        """
        creator = creator_client.nova(lease, self._keystone, self._nova)
        mark = image_mark(reservation.id, lease.ending)
        stuck, waiting, failed = [], [], []
        # Each of them, before saying that one has failed.
        for server in servers():
            named = f'{server.uuid}, which is {server.status}'
            if server.status in _STUCK:
                stuck.append(named)
                continue
            own = server.project_id == lease.project_id
            nova = creator if own else self._nova
            try:
                complete = server.status in _COPIED and nova.create_image(
                    server, f'reserved_{server.name}', mark
                )
            except exception.Unavailable as e:
                failed.append(str(e))
                continue
            if not complete:
                waiting.append(named)
        if failed:
            raise exception.Unavailable('; '.join(failed))
        if waiting:
            return f'no complete image yet of server {"; ".join(waiting)}'
        if stuck:
            raise base.Impossible(f'no image of server {"; ".join(stuck)}')
        return None
