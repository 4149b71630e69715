# SPDX-License-Identifier: Apache-2.0
"""``instance:lifetime``: a server that exists from its start to its end.

The server makes the reservation, not the other way round: see
service.manager.lifetime. A server that is to start later is shelved, with an
allocation on a host to return to; once the server is on the host, the server
counts by its own instance record.
"""

from collections.abc import Mapping
from typing import Any

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.demand import decode
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import INSTANCE_LIFETIME
from blazar_sched.domain.demand import Lifetime
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import DELETE
from blazar_sched.domain.reservation import LIFETIME_ON_END
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import SHELVE
from blazar_sched.domain.reservation import SNAPSHOT
from blazar_sched.domain.window import Window
from blazar_sched.replica import state
from blazar_sched.service.clients import nova
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.resources import base
from blazar_sched.service.resources import on_hosts
from blazar_sched.service.resources.base import Part
from blazar_sched.service.resources.servers import end_servers

_ON_END = 'on_end'


class LifetimeResource(on_hosts.OnHostsResource):
    """The driver of ``instance:lifetime``."""

    def validate(
        self, parameters: Mapping[str, Any], project_id: str
    ) -> Demand:
        """Refuse the parameters.

        :raises InvalidInput: always
        """
        raise exception.InvalidInput(
            'instance:lifetime cannot be requested: boot a server that '
            'declares its end',
            field='resource_type',
        )

    def update(
        self, demand: Demand, changes: Mapping[str, Any], active: bool,
        project_id: str,
    ) -> Demand:
        """Return the demand with another `on_end`.

        :raises CantUpdateParameter: for any other change
        :raises InvalidInput: naming the parameter that is wrong
        """
        known = demand.encode()
        for name, value in changes.items():
            if name != _ON_END and known.get(name) != value:
                raise exception.CantUpdateParameter(
                    f'{name} cannot be changed', field=name
                )
        new = {**known, **changes}
        if new[_ON_END] not in LIFETIME_ON_END:
            raise exception.InvalidInput(
                'on_end must be one of '
                f'{", ".join(LIFETIME_ON_END)}',
                field=_ON_END,
            )
        return decode(INSTANCE_LIFETIME, new)

    def book(
        self, tx: PlacingTx, lease: Lease, reservation: Reservation,
        window: Window, settled: bool = False,
    ) -> None:
        """Set the end of the instance's record to the end of the lease.

        The record is written in the same commit as the lease, so that no
        server is admitted because of the old end.

        :raises NotEnoughHostsAvailable: if the host has no room for the
            instance until the new end; the message says until when the host
            has room
        """
        demand = reservation.demand.of_kind(Lifetime)
        known = tx.replica.instances.get(demand.instance_id)
        if (
            known is None
            or known.end == lease.end
            or reservation.status != states.RESERVATION_ACTIVE
        ):
            return
        if known.end < lease.end and not known.preemptible:
            _check_room(tx.replica, known, lease.end, window.start)
        tx.put_instances([known.ending_at(lease.end)])

    def start(self, part: Part, now: int) -> base.Opened | None:
        """Have the server unshelved, and yielding servers in its way deleted.

        :returns: None until the server is on a host
        """
        lease, reservation = part.lease, part.reservation
        opened = base.Opened(missing_resources=False)
        if reservation.status == states.RESERVATION_ACTIVE:
            # A server shelved by a user inside its window is left shelved.
            return opened
        server = self._server(reservation)
        if server is None:
            return opened
        if server.status in nova.SHELVED:
            if server.task is None:
                held = part.held
                self._evict(lease, reservation, held, now)
                self._nova.unshelve_server(server)
            return None
        # The shelving of the server was requested too late: wait until the
        # server is shelved, and unshelve the server then.
        is_leaving = (server.task or '').startswith('shelving')
        return None if is_leaving else opened

    def end(self, part: Part) -> bool:
        """Delete the server, shelve it, or delete it once it has an image.

        A server that cannot be copied is left as it is, because an image was
        requested.

        :returns: True if the action is done
        """
        lease, reservation = part.lease, part.reservation
        server = self._server(reservation)
        if server is None or server.status == nova.SOFT_DELETED:
            return True
        on_end = reservation.demand.of_kind(Lifetime).on_end
        if on_end == SNAPSHOT:
            if server.status in nova.SHELVED:
                # The image of the server was made by the shelving.
                on_end = SHELVE
            elif not self._nova.create_image(
                server, f'lifetime_{server.name}',
                nova.image_mark(reservation.id, lease.ending),
            ):
                return False
            else:
                on_end = DELETE
        return end_servers(self._nova, [server], on_end)

    def _server(self, reservation: Reservation) -> Server | None:
        demand = reservation.demand.of_kind(Lifetime)
        return self._nova.server(demand.instance_id)


def _check_room(
    replica: state.Replica, known: Instance, end: int, now: int
) -> None:
    """Refuse an end until which the instance's host has no room for it.

    :raises NotEnoughHostsAvailable: saying until when the host has room
    """
    furthest = _furthest(replica, known, max(known.end, now))
    if furthest < end:
        raise exception.NotEnoughHostsAvailable(
            'end_date can be at most '
            f'{duration.format_time(furthest)}: from then on another lease '
            'needs the host',
            field='end_date',
        )


def _furthest(replica: state.Replica, known: Instance, at: int) -> int:
    """Return until when an instance can stay on its host, from `at` on."""
    return duration.end_after(at, replica.indexes.horizon(known, at))
