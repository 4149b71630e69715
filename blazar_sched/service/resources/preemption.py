# SPDX-License-Identifier: Apache-2.0
"""Preemption: which servers yield, in which order, and what is done with them.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

from blazar_sched.domain import flavor
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger.ledger import Ledger

# The mark, in the metadata of a server, that the server is to be brought back
# once there is room.
RESTORE = 'blazar_restore'

# A task state of Nova.
_DELETING = 'deleting'
_AGE = 'age'
_DESCENDING = 'desc'


class Preference(NamedTuple):
    """The operator's preference among preemptible servers.

    :ivar min_age: the age in seconds below which a server goes last
    :ivar order: items as in the option ``preemption_preference``
    """

    min_age: int = 0
    order: tuple[str, ...] = ()

    def rank(self, server: Server, now: int) -> tuple[int, ...]:
        """Return the rank of a server; the least rank goes first.

        Servers that are not preemptible, and are past their end, are first.
        """
        if not server.preemptible:
            return ()
        age = now - server.created
        ranks = [_ranked(item, age, server.amounts) for item in self.order]
        return (age < self.min_age, *ranks) if self.min_age else tuple(ranks)


NO_PREFERENCE = Preference()


def _ranked(item: str, age: int, amounts: Mapping[str, int]) -> int:
    what, _, direction = item.rpartition(':')
    value = age if what == _AGE else amounts.get(what.partition(':')[2], 0)
    return -value if direction == _DESCENDING else value


def preference(options: Any) -> Preference:
    """Return the preference that the options of ``[manager]`` set."""
    return Preference(
        options.preemption_min_age, tuple(options.preemption_preference)
    )


def yields(server: Server, now: int) -> bool:
    """Tell whether a server has to go when a window opens."""
    return (
        server.preemptible or server.end <= now or server.task == _DELETING
    )


def choose(
    servers: Iterable[Server], excess: Mapping[str, int], now: int,
    preferred: Preference = NO_PREFERENCE,
) -> list[Server]:
    """Return the servers that have to go to remove an excess.

    The servers are as few as needed: the last servers in the order may stay if
    the others are enough. Servers that `yields` accepts go first, preemptible
    ones by the preference; then servers without an end, and after them the
    server that ends last; among equals the youngest server, which has done the
    least work. If all servers are not enough, all servers that help are
    returned.

    :param excess: the amounts to free, by resource class
    """
    ordered = sorted(
        servers,
        key=lambda s: (
            not yields(s, now), preferred.rank(s, now), -s.end, -s.created,
            s.uuid,
        ),
    )
    freed: Counter[str] = Counter()
    for server in ordered:
        freed.update(server.amounts)
    need = {c: min(amount, freed[c]) for c, amount in excess.items()}
    going = []
    for server in reversed(ordered):
        amounts = server.amounts
        if all(freed[c] - amounts.get(c, 0) >= n for c, n in need.items()):
            freed.subtract(amounts)
        else:
            going.append(server)
    return going[::-1]


def preempt(ledger: Ledger, nova: Nova, servers: Iterable[Server]) -> None:
    """Shelve or delete servers, as the flavor of each says.

    :raises Unavailable: as `Nova.delete_servers` does
    """
    deleted = []
    for server in servers:
        if server.preempt_policy == flavor.SHELVE:
            shelve(ledger, nova, server)
        else:
            deleted.append(server)
    nova.delete_servers(deleted)


def shelve(ledger: Ledger, nova: Nova, server: Server) -> None:
    """Shelve a server that is to be brought back once there is room."""
    # Owners may write any metadata: the ledger records which servers the
    # service has shelved, and may bring back.
    ledger.write(lambda tx: tx.add_shelved_server(server.uuid))
    # Nova does not accept the mark any more once the server is shelved.
    nova.set_server_metadata(server, {RESTORE: 'true'})
    nova.shelve_servers([server])
