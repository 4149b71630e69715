# SPDX-License-Identifier: Apache-2.0
"""The limits of the operator's products."""

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import Window
from blazar_sched.parts.product import conf as product_conf
from blazar_sched.parts.product import models
from blazar_sched.parts.product.exception import MaxUnits
from blazar_sched.parts.product.product import peak
from blazar_sched.parts.product.product import units
from blazar_sched.service.enforcement import base


class ProductFilter(base.Filter):
    """A filter that limits leases of products, and is always enabled."""

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
        products = product_conf.products(self._all) if wanted else {}
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
                others = peak(_booked(project, name, lease))
                base.limit(
                    MaxUnits, product.max_units,
                    others + wanted[name],
                    f'there are at most {{most}} of {name} at a time, '
                    f'{others} are taken',
                    'reservations',
                )


def _booked(
    project: base.Project, product: str, lease: Lease
) -> list[tuple[Window, int]]:
    """Return the units of a product in the window of a lease.

    The units of the other leases of all projects are returned.
    """
    booked = project.source.run(models.list_units, product, lease.window)
    booked += [
        (each.id, each.window, units(each)[product])
        for each in project.new.values()
        if each.start < lease.end and lease.start < each.end
    ]
    return [
        (window, count)
        for id_, window, count in booked
        if id_ != lease.id and id_ not in project.leaving
        and window.overlaps(lease.window)
    ]


FILTERS = {'ProductFilter': ProductFilter}
