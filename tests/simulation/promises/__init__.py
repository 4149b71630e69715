# SPDX-License-Identifier: Apache-2.0
"""The promises that must always hold, one subject a file: see README.md."""

from tests.simulation.promises import cleaning
from tests.simulation.promises import filters
from tests.simulation.promises import groups
from tests.simulation.promises import images
from tests.simulation.promises import lease_requests
from tests.simulation.promises import leases
from tests.simulation.promises import maintenances
from tests.simulation.promises import offers
from tests.simulation.promises import paths
from tests.simulation.promises import places
from tests.simulation.promises import refusals
from tests.simulation.promises import registry
from tests.simulation.promises import replicas
from tests.simulation.promises import series
from tests.simulation.promises import servers
from tests.simulation.promises import spares
from tests.simulation.promises import starts
from tests.simulation.promises import told

__all__ = [
    'Broken', 'check', 'cleaning', 'filters', 'groups', 'images',
    'lease_requests', 'leases', 'maintenances', 'offers', 'paths', 'places',
    'refusals', 'replicas', 'series', 'servers', 'spares', 'starts', 'told',
]

Broken = registry.Broken
check = registry.check
