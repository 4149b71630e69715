# SPDX-License-Identifier: Apache-2.0
"""Keeps the ledger's instance records true to Nova's servers.

Only servers on reservable hosts. While Nova does not answer the records stay
as they are: that only makes the answers of the index stricter.
"""

from collections.abc import Iterable
import dataclasses
import threading
from typing import Any

from blazar_sched.domain import instance as instance_
from blazar_sched.replica import state
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.ledger import ledger as ledger_


class Instances:
    """The instance records."""

    def __init__(self, ledger: ledger_.Ledger, nova: nova_.Nova) -> None:
        self._ledger = ledger
        self._nova = nova
        # Two looks at Nova must not be written in the other order.
        self._lock = threading.Lock()

    def sync(self) -> None:
        """Bring every record up to date, in at most one commit.

        :raises Unavailable: if Nova does not answer
        """
        with self._lock:
            nodes = {
                h.hypervisor_hostname: h.uuid for h in self._ledger.hosts()
            }
            if not nodes:
                return
            servers = list(self._nova.servers())
            self._ledger.commit(lambda tx: _write(tx, nodes, servers))


def _write(
    tx: Any, nodes: dict[str, str], servers: Iterable[nova_.Server]
) -> None:
    """Write what differs, for the hosts that are still there."""
    replica = tx.replica
    seen = set()
    for server in servers:
        host = nodes.get(server.node or '')
        if host not in replica.hosts:
            continue
        seen.add(server.uuid)
        new = record(replica, host, server)
        if new != replica.instances.get(server.uuid):
            tx.put_instance(new)
    looked_at = set(nodes.values())
    for old in list(replica.instances.values()):
        if old.uuid not in seen and old.host in looked_at:
            tx.delete_instance(old.uuid)


def record(
    replica: state.Replica, host: str, server: nova_.Server
) -> instance_.Instance:
    """Return a server's record.

    If its project may use the reservation that it claims, it lives as long
    as that does; otherwise until the end that was declared first, whatever
    it was resized to since. It is bound where the reservation has the host,
    and counts for itself on one that the reservation has left.
    """
    known = replica.instances.get(server.uuid)
    end = server.end
    if known is not None and known.reservation_id is None:
        end = known.end
    new = instance_.Instance(
        uuid=server.uuid,
        host=host,
        project_id=server.project_id,
        amounts=server.amounts,
        end=end,
        preemptible=server.preemptible,
    )
    reservation = replica.reservations.get(server.reservation_id or '')
    if reservation is None or not reservation.is_open_to(server.project_id):
        return new
    bound = host in replica.held(reservation.id) or _has_failed(replica, host)
    return dataclasses.replace(
        new,
        end=reservation.end,
        reservation_id=reservation.id if bound else None,
    )


def _has_failed(replica: state.Replica, host: str) -> bool:
    """Tell whether a host has failed.

    What has lost it may get it back with the servers that are there, which
    must not be in their own way then.
    """
    known = replica.hosts.get(host)
    return known is not None and not known.reservable
