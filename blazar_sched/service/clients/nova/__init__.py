# SPDX-License-Identifier: Apache-2.0
"""Client of Nova, as far as reservations need it: a module per resource.

All creations and removals in this package are idempotent.
"""

from keystoneauth1 import adapter

from blazar_sched.domain.pci_alias import Aliases
from blazar_sched.domain.pci_alias import NO_ALIASES
from blazar_sched.service.clients.glance import Glance
from blazar_sched.service.clients.nova import aggregate
from blazar_sched.service.clients.nova import flavor
from blazar_sched.service.clients.nova import hypervisor
from blazar_sched.service.clients.nova import server
from blazar_sched.service.clients.nova import server_group

# The names that callers use.
Aggregate = aggregate.Aggregate
ERROR = server.ERROR
Hypervisor = hypervisor.Hypervisor
Server = server.Server
SHELVED = server.SHELVED
SOFT_DELETED = server.SOFT_DELETED
image_mark = server.image_mark


class Nova(
    hypervisor.Hypervisors, server.Servers, flavor.Flavors,
    aggregate.Aggregates, server_group.ServerGroups,
):
    """A client of the compute API.

    :param api: a keystoneauth adapter for the compute service of an admin;
        None where no cloud is configured
    :param glance: gives the images that the admin creates to the projects of
        the servers; None where the user of `api` owns the created images
    :param aliases: the PCI aliases that flavors name
    """

    def __init__(
        self, api: adapter.Adapter | None, glance: Glance | None = None,
        aliases: Aliases = NO_ALIASES,
    ) -> None:
        super().__init__(api)
        self._glance = glance
        self._aliases = aliases
