# SPDX-License-Identifier: Apache-2.0
"""A whole manager that relocates servers, with Nova and time in memory.

What is promised is added up second by second from the ledger's rows.
"""

from blazar_sched.domain.relocation import Features
from blazar_sched.domain.relocation import Rules
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import ManagerInMemory

NAMES = ('a', 'b', 'c', 'd')
VCPUS = 4
LEAD, NOTICE = 60, 300
RULES = Rules(lead=LEAD, shortest_stay=60, notice=NOTICE)
# The longest time that passes between two looks.
LOOK = 20
FEATURES = Features({}, {}, None, 512, local_disk=False, devices=False)


class RelocatingManager(ManagerInMemory):
    """A manager that relocates servers, on hosts of VCPUS each."""

    def __init__(self, conf):
        for name, value in {
            'relocate_instances': True, 'relocation_lead': RULES.lead,
            'relocation_shortest_stay': RULES.shortest_stay,
            'relocation_notice': RULES.notice,
        }.items():
            conf.set_override(name, value, 'manager')
        super().__init__(conf)
        for name in NAMES:
            self.add_host(name, VCPUS)

    def look(self, seconds=0):
        """Let time pass; then look at Nova, and do what is due."""
        self.clock.now += seconds
        self.manager.instances.sync()
        self.manager.relocations.step()
        self.run()

    def boot(self, node, vcpus=VCPUS, features=FEATURES, **values):
        """Have a server on a node, and look at the server."""
        server = self.add_server(
            node, vcpus=vcpus, features=features, created=self.now, **values
        )
        self.look()
        return server

    def reserve(self, *names, start=NOTICE, end=2 * NOTICE):
        """Reserve whole hosts; times are seconds from now."""
        named = ', '.join(f'"{name}"' for name in names)
        return self.create(
            hosts(len(names), len(names), resource_properties=(
                f'["in", "$hypervisor_hostname", {named}]'
            )),
            start=start, end=end,
        )

    def node(self, server):
        return self.nova.server(server.uuid).node

    def path(self, server):
        """Return the hosts of a server's path, by name."""
        names = self.names()
        path = self.ledger.instance(server.uuid).path
        return [names[stay.host] for stay in path]

    def check_promises(self):
        """Check that no room is promised twice, and no lease is disturbed."""
        now = self.now
        allocations = [a for a, _ in self.ledger.allocations()]
        taken = [
            (a.host, a.start, a.end, VCPUS if a.whole else a.amounts['VCPU'])
            for a in allocations
        ]
        for each in self.ledger.instances():
            stays = [
                (stay.host, stay.start, stay.end) for stay in each.path
            ] or [(each.host, 0, each.end)]
            assert stays[0][0] == each.host
            assert stays[-1][2] == each.end
            taken += [(*stay, each.amounts['VCPU']) for stay in stays]
            for one, following in zip(stays, stays[1:], strict=False):
                assert following[1] == one[2] - LEAD
        for host in {host for host, *_ in taken}:
            mine = [each[1:] for each in taken if each[0] == host]
            for at in {now, *(start for start, *_ in mine if start > now)}:
                used = sum(n for start, end, n in mine if start <= at < end)
                assert used <= VCPUS, (host, at - now, mine)
        # Nobody but the lease is on its hosts.
        nodes = {s.node for s in self.nova.stored.values()}
        names = self.names()
        for a in allocations:
            if a.whole and a.start <= now < a.end:
                assert names[a.host] not in nodes
