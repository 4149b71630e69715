# SPDX-License-Identifier: Apache-2.0
"""The limits of the operator's products."""

import functools

from oslo_config import cfg

from blazar_sched.conf import product as product_conf
from blazar_sched.domain import exception
from blazar_sched.domain.product import peak
from blazar_sched.domain.product import units
from blazar_sched.service.enforcement import base


class ProductFilter(base.Filter):
    """A filter that limits leases of products, and is always enabled."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self._products = functools.partial(product_conf.products, conf)

    def check(self, request: base.LeaseChange, project: base.Project) -> None:
        """Refuse a lease that is too long, or has too many units.

        The units are counted where the lease is placed: a lease request can
        wait until there are fewer.

        :raises MaxLeaseDuration: naming end_date
        :raises MaxUnits: if all projects would have too many units at a time
        """
        lease, current = request.lease, request.current
        wanted = units(lease)
        if current is not None and lease.is_within(current):
            return
        products = self._products() if wanted else {}
        for name in wanted.keys() & products.keys():
            product = products[name]
            base.limit(
                exception.MaxLeaseDuration,
                base.NO_LIMIT if self.passes(request)
                else product.max_duration or base.NO_LIMIT,
                lease.window.duration,
                base.endless(
                    lease,
                    f'a lease of {name} may last at most {{most}} seconds',
                ),
                'end_date',
            )
            if product.max_units and request.placed:
                others = peak(project.booked(name, lease))
                base.limit(
                    exception.MaxUnits, product.max_units,
                    others + wanted[name],
                    f'there are at most {{most}} of {name} at a time, '
                    f'{others} are taken',
                    'reservations',
                )
