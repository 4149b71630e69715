# SPDX-License-Identifier: Apache-2.0
"""Flavors that a reservation can name."""

from blazar_sched_client.osc import verb


class ListFlavor(verb.List):
    """List the flavors of Nova that a reservation of the project can name."""

    plural = 'flavors'
    columns = (
        'id', 'name', 'vcpus', 'memory_mb', 'disk_gb', 'ephemeral_gb',
        'swap_mb',
    )
