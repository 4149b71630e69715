# SPDX-License-Identifier: Apache-2.0
"""Products that the operator publishes for reservations."""

from blazar_sched_client.osc import capacity
from blazar_sched_client.osc import verb


class ListProduct(verb.List):
    """List the operator's products, with how much is free in a window."""

    plural = 'products'
    columns = (
        'name', 'description', 'resource_type', 'max_duration', 'max_units',
        'free',
    )
    options = capacity.WINDOW
