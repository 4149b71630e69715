# SPDX-License-Identifier: Apache-2.0
"""The action that makes an image of each server of a reservation."""

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.before_end import base
from blazar_sched.service.clients import creator as creator_client
from blazar_sched.service.clients.nova import image_mark
from blazar_sched.service.clients.nova import SHELVED
from blazar_sched.service.clients.nova import SOFT_DELETED

# The statuses of a server of which Nova can make an image.
_COPIED = ('ACTIVE', 'PAUSED', 'SHUTOFF', 'SUSPENDED')
# The statuses that a server keeps unless its owner or an admin acts.
_STUCK = (*SHELVED, SOFT_DELETED, 'ERROR', 'RESCUE', 'VERIFY_RESIZE')


class Snapshot(base.Action):
    """The action ``snapshot``."""

    def act(
        self, lease: Lease, reservation: Reservation, servers: base.Servers
    ) -> str | None:
        """Make an image of each bound server, for this end of the lease.

        The image is made as the creator of the lease, where there is a trust;
        else as an admin, who gives the image to the project of the server.

        :returns: the servers whose images are not complete
        :raises Unavailable: if Nova does not make an image of some server; the
            images of all other servers are requested first
        :raises Impossible: if a server cannot be copied in its status, and
            does not leave that status by itself; the other images are complete
            then
        """
        creator = creator_client.nova(lease, self._keystone, self._nova)
        mark = image_mark(reservation.id, lease.ending)
        stuck, waiting = [], []
        failed: list[exception.Unavailable] = []
        # Every server is copied before reporting that one server has failed.
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
                failed.append(e)
                continue
            if not complete:
                waiting.append(named)
        if failed:
            raise exception.Unavailable(
                '; '.join(e.args[0] for e in failed),
                detail='; '.join(e.detail for e in failed),
                service=failed[0].service,
                refused=all(e.refused for e in failed),
            )
        if waiting:
            return f'waiting for the image of server {"; ".join(waiting)}'
        if stuck:
            raise base.Impossible(
                f'Nova cannot make an image of server {"; ".join(stuck)}'
            )
        return None
