# SPDX-License-Identifier: Apache-2.0
"""Products: what the operator publishes, with how much of it is free."""

from collections.abc import Callable
import dataclasses
from typing import Any

from oslo_config import cfg

from blazar_sched.conf import product as product_conf
from blazar_sched.domain import exception
from blazar_sched.domain import lease
from blazar_sched.domain.product import peak
from blazar_sched.domain.product import Product
from blazar_sched.domain.window import Window
from blazar_sched.service import resources
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager.capacity import Capacity


class Products:
    """The products of the configuration.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, drivers: resources.Drivers,
        capacity: Capacity, clock: Callable[[], float],
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._drivers = drivers
        self._capacity = capacity
        self._clock = clock

    def list(
        self, project_id: str, start: int | str = lease.NOW,
        end: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the products of a project, with what is free in a window.

        :param end: None for a day after the start
        :raises InvalidInput: naming the parameter that is wrong
        """
        now = int(self._clock())
        window = self._capacity.window(start, end, now)
        return [
            {
                **dataclasses.asdict(each),
                'free': self._free(each, project_id, window, now),
            }
            for each in product_conf.products(self._conf).values()
            if each.is_open_to(project_id)
        ]

    def _free(
        self, product: Product, project_id: str, window: Window, now: int
    ) -> int:
        """Return how many units are free; none of a flavor that is gone."""
        try:
            demand = self._drivers[product.resource_type].validate(
                product.asked(1), project_id
            )
        except exception.InvalidInput:
            return 0
        free = self._capacity.free(project_id, demand, window, now)
        if product.max_units is None:
            return free
        booked = peak(
            (each, count)
            for _, each, count in self._ledger.units(product.name, window)
        )
        return max(0, min(free, product.max_units - booked))
