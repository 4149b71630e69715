# SPDX-License-Identifier: Apache-2.0
"""The actions that may happen in a world, one subject a file: see README.md.
"""

from tests.simulation.actions import hosts
from tests.simulation.actions import lease_requests
from tests.simulation.actions import leases
from tests.simulation.actions import maintenances
from tests.simulation.actions import managers
from tests.simulation.actions import offers
from tests.simulation.actions import registry
from tests.simulation.actions import relocations
from tests.simulation.actions import series
from tests.simulation.actions import servers
from tests.simulation.actions import spares
from tests.simulation.actions import unseen

__all__ = [
    'choose', 'hosts', 'lease_requests', 'leases', 'maintenances', 'managers',
    'offers', 'relocations', 'series', 'servers', 'spares', 'unseen',
]

choose = registry.choose
