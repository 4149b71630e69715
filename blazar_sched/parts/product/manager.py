# SPDX-License-Identifier: Apache-2.0
"""Products: what the operator publishes, with how much of it is free."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import lease
from blazar_sched.domain.reservation import PRODUCT
from blazar_sched.domain.window import Window
from blazar_sched.parts.product import conf
from blazar_sched.parts.product import models
from blazar_sched.parts.product.product import peak
from blazar_sched.parts.product.product import Product
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running


class Products:
    """The products of the configuration."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    def list(
        self, project_id: str, start: int | str = lease.NOW,
        end: int | None = None,
    ) -> Page:
        """Return the products of a project, with what is free in a window.

        :param end: None for a day after the start
        :raises InvalidInput: naming the parameter that is wrong
        """
        now = self._manager.bookings.now()
        window = self._manager.capacity.window(start, end, now)
        items = [
            {
                **dataclasses.asdict(each),
                'free': self._free(each, project_id, window, now),
            }
            for each in conf.products(self._manager.conf).values()
            if each.is_open_to(project_id)
        ]
        return {'items': items, 'next': None}

    def fill_in(
        self, values: Mapping[str, Any], project_id: str
    ) -> Mapping[str, Any]:
        """Return the values of a reservation, with those of its product.

        The values stay as they are if the project has no such product.
        """
        products = conf.products(self._manager.conf)
        product = PRODUCT in values and products.get(values[PRODUCT])
        if not product or not product.is_open_to(project_id):
            return values
        return {
            **{k: v for k, v in values.items() if k != 'amount'},
            'resource_type': product.resource_type,
            **product.asked(values['amount']),
        }

    def _free(
        self, product: Product, project_id: str, window: Window, now: int
    ) -> int:
        """Return how many units are free; none of a flavor that is gone."""
        driver = self._manager.bookings.drivers[product.resource_type]
        try:
            demand = driver.validate(product.asked(1), project_id)
        except exception.InvalidInput:
            return 0
        free = self._manager.capacity.free(project_id, demand, window, now)
        if product.max_units is None:
            return free
        booked = peak(
            (each, count)
            for _, each, count in self._manager.ledger.run(
                models.list_units, product.name, window
            )
        )
        return max(0, min(free, product.max_units - booked))


def start(manager: Manager) -> Running:
    """Answer the call for the products, and fill in what they have."""
    products = Products(manager)
    manager.bookings.drafts.fill_in.append(products.fill_in)
    return Running({'list_products': products.list})
