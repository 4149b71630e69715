# SPDX-License-Identifier: Apache-2.0
"""What leases will meet in a cloud: the servers that Nova has, and had.

For `blazar-sched status upgrade check`, before the first lease. Nova is asked
for the servers that exist, and for those that were deleted in the last days;
at most MOST servers of each list are read.
"""

from collections import Counter
from collections.abc import Iterable
import itertools
import time

from oslo_config import cfg

from blazar_sched.conf import nova as nova_conf
from blazar_sched.domain import duration
from blazar_sched.domain import inventory
from blazar_sched.domain import relocation
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.window import FOREVER
from blazar_sched.service.booking import placing_options
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server

DAYS = 30
MOST = 20_000
# The most hosts that are named.
_NAMED = 10


def report(conf: cfg.ConfigOpts) -> str:
    """Return what Nova's servers mean for leases.

    :raises Unavailable: if Nova does not answer
    """
    nova = Nova(
        rest.load_adapter(conf, nova_conf.GROUP),
        aliases=nova_conf.pci_aliases(conf),
    )
    since = int(time.time()) - DAYS * 86400
    there = list(itertools.islice(nova.servers(), MOST))
    gone = itertools.islice(nova.servers(**{
        'deleted': 'true', 'changes-since': duration.format_time(since),
    }), MOST)
    rules = placing_options.rules(conf)
    return ' '.join((
        *_of_hosts(there, rules),
        _of_requests(
            [s for s in (*there, *gone) if s.created >= since], rules
        ),
    ))


def _of_hosts(servers: Iterable[Server], rules: Rules | None) -> list[str]:
    """Return which servers no lease can move away, and their hosts."""
    kinds, hosts = Counter[str](), set()
    for each in servers:
        kind = _kept_by(each, rules)
        if each.node is not None and kind is not None:
            kinds[kind] += 1
            hosts.add(each.node)
    if not kinds:
        return ['No server without an end is one that cannot be moved.']
    named = ', '.join(sorted(hosts)[:_NAMED])
    return [
        f'{kinds.total()} servers without an end cannot be moved, because of '
        + ', '.join(f'{kind} ({n})' for kind, n in kinds.most_common())
        + f': while they exist, no lease can have their {len(hosts)} hosts '
        f'whole: {named}{", …" if len(hosts) > _NAMED else "."}',
    ]


def _of_requests(servers: list[Server], rules: Rules | None) -> str:
    """Return what each rule would have refused of the servers of DAYS."""
    asked = endless = fixed = 0
    for each in servers:
        vcpus = each.amounts.get(inventory.VCPU, 0)
        asked += vcpus
        if _is_endless(each):
            endless += vcpus
            if _kept_by(each, rules) is not None:
                fixed += vcpus
    if not asked:
        return f'No server was created in the last {DAYS} days.'
    return (
        f'Of the {asked} VCPUs of servers created in the last {DAYS} days, '
        'reservable hosts would have refused, by [manager] unbounded: '
        f'never: {endless / asked:.0%}; forever: {endless / asked:.0%} while '
        'each host has a later lease; relocate, by unbounded_fixed = '
        f'forever: {fixed / asked:.0%} while each host has one, and the other '
        'servers for lack of headroom alone.'
    )


def _is_endless(server: Server) -> bool:
    return (
        server.end == FOREVER and not server.preemptible
        and server.reservation_id is None
    )


def _kept_by(server: Server, rules: Rules | None) -> str | None:
    """Return why a server without an end is never moved, if it is not."""
    if not _is_endless(server) or server.features is None:
        return None
    if rules is None:
        return 'relocate_instances = False'
    return relocation.obstacle(rules, server.features)
