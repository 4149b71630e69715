# SPDX-License-Identifier: Apache-2.0
"""``virtual:floatingip``: addresses of an external network.

The addresses are chosen when the lease is written, from the addresses that the
operator has registered. In the window of the lease the project has the
addresses as floating IPs.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import ip_address
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import Other
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.parts.floating_ip import conf
from blazar_sched.parts.floating_ip import demand as demands
from blazar_sched.parts.floating_ip import exception as refusals
from blazar_sched.parts.floating_ip import models
from blazar_sched.parts.floating_ip import neutron
from blazar_sched.parts.floating_ip import placing
from blazar_sched.parts.floating_ip.demand import Addresses
from blazar_sched.parts.floating_ip.demand import REQUIRED
from blazar_sched.parts.floating_ip.demand import RESOURCE_TYPE
from blazar_sched.parts.floating_ip.floating_ip import find_subnet
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from blazar_sched.parts.floating_ip.floating_ip import Subnet
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.resources import base
from blazar_sched.service.resources.base import Part
from blazar_sched.service.resources.parameters import check_integer
from blazar_sched.service.resources.parameters import check_names

LOG = log.getLogger(__name__)

_DEFAULTS = {'network_id': None, 'amount': None, REQUIRED: ()}
_MAX_ID = 36


class FloatingIPResource(base.Resource):
    """The driver of ``virtual:floatingip``."""

    searched = 'floating IPs'

    def __init__(self, services: base.Services) -> None:
        super().__init__(services)
        self._neutron = neutron.Neutron(services.adapter(conf.GROUP))

    def validate(
        self, parameters: Mapping[str, Any], project_id: str
    ) -> Other:
        """Return the demand of a new reservation.

        :raises InvalidInput: naming the parameter that is wrong
        """
        complete = check_names(parameters, _DEFAULTS)
        network_id = complete['network_id']
        if not isinstance(network_id, str) or not (
            0 < len(network_id) <= _MAX_ID
        ):
            raise exception.InvalidInput(
                "network_id must be an external network's id",
                field='network_id',
            )
        check_integer(complete, 'amount', 1)
        return Addresses(
            network_id, complete['amount'], _required(complete)
        ).demand

    def update(
        self, demand: Demand, changes: Mapping[str, Any], active: bool,
        project_id: str,
    ) -> Other:
        """Return the changed demand.

        :raises CantUpdateParameter: for another network; for required
            addresses, unless they are given up; for a smaller amount in an
            active lease
        :raises InvalidInput: naming the parameter that is wrong
        """
        known = demands.read(demand)
        changed = self.validate({**demand.encode(), **changes}, project_id)
        new = demands.read(changed)
        if new.network_id != known.network_id:
            raise exception.CantUpdateParameter(
                'network_id cannot be changed', field='network_id'
            )
        if new.required and new.required != known.required:
            raise exception.CantUpdateParameter(
                f'{REQUIRED} can only be changed to []', field=REQUIRED
            )
        if active and new.amount < known.amount:
            raise exception.CantUpdateParameter(
                'amount cannot be reduced in an active lease', field='amount'
            )
        return changed

    def book(
        self, tx: PlacingTx, lease: Lease, reservation: Reservation,
        window: Window, settled: bool = False,
    ) -> None:
        """Allocate as many addresses as are reserved.

        An active reservation keeps its addresses; another reservation gets its
        required addresses, and otherwise keeps its addresses as far as
        possible.

        :raises NotEnoughFloatingIPAvailable: if there are too few addresses
        """
        held = tx.run(models.list_, reservation.id)
        if settled:
            chosen = held
        else:
            network = demands.read(reservation.demand).network_id
            free = tx.run(models.free, network, window, reservation.id)
            if not free and not tx.run(models.uses, [network], window.start):
                raise refusals.NotEnoughFloatingIPAvailable(
                    f'no floating IP of network {network} is registered',
                    field='network_id',
                )
            chosen = placing.place(lease, reservation, held, free)
        tx.put_off_hosts(
            RESOURCE_TYPE, reservation.id, [f.id for f in chosen], window
        )

    def free(
        self, source: Reader, lease: Lease, after: int
    ) -> placing.Free | None:
        networks = placing.networks(lease)
        return placing.Free(source.run(models.uses, networks, after), lease)

    def adopt(
        self, project_id: str, demand: Demand,
        resources: Collection[off_hosts.Resource],
    ) -> Mapping[str, Any]:
        held = {each['floating_ip_address'] for each in resources}
        network_id = demands.read(demand).network_id
        return {'floating_ips': sorted(
            made.id
            for made in self._neutron.floating_ips(
                floating_network_id=network_id, project_id=project_id
            )
            if made.address in held
        )}

    def start(self, part: Part, now: int) -> base.Opened:
        """Make the floating IPs in the project of the lease.

        An address that Neutron may by now have given to others, given its
        current subnets, or has given to others, is replaced by a free address.

        :returns: degraded, if there are too few floating IPs, or if a required
            address is missing
        """
        lease, reservation = part.lease, part.reservation
        demand = demands.read(reservation.demand)
        subnets = self._neutron.subnets(demand.network_id)
        found = {f.address: f for f in self._made(lease, reservation)}
        made = [
            found.get(wanted.address)
            or self._make(lease, reservation, wanted, subnets, now)
            for wanted in self._ledger.run(models.list_, reservation.id)
        ]
        opened = [f for f in made if f is not None]
        for floating_ip in opened:
            self._neutron.tag_floating_ip(
                floating_ip, ('blazar', f'reservation:{reservation.id}')
            )
        missing = len(opened) < demand.amount
        return base.Opened(
            degraded=missing or lacks_required(reservation, opened),
            made={'floating_ips': sorted(f.id for f in opened)},
            missing_resources=missing,
        )

    def end(self, part: Part) -> bool:
        """Delete the floating IPs.

        :returns: True: nothing is left
        """
        lease, reservation = part.lease, part.reservation
        for floating_ip in self._made(lease, reservation):
            self._neutron.delete_floating_ip(floating_ip.id)
        return True

    def _made(
        self, lease: Lease, reservation: Reservation
    ) -> list[neutron.FloatingIP]:
        """Return the existing floating IPs made for the reservation."""
        network_id = demands.read(reservation.demand).network_id
        return [
            floating_ip
            for floating_ip in self._neutron.floating_ips(
                project_id=lease.project_id, floating_network_id=network_id
            )
            if is_made_for(reservation, floating_ip)
        ]

    def _make(
        self, lease: Lease, reservation: Reservation, allocated: FloatingIP,
        subnets: Sequence[Subnet], now: int,
    ) -> neutron.FloatingIP | None:
        """Make an allocated floating IP, or a free one in its place."""
        wanted: FloatingIP | None = allocated
        refused: set[str] = set()
        while wanted is not None:
            try:
                find_subnet(wanted.address, subnets)
                made = self._neutron.create_floating_ip(
                    wanted.network_id, wanted.address, lease.project_id,
                    _description(reservation),
                )
            except (
                exception.Conflict, exception.InvalidInput, exception.NotFound
            ) as e:
                LOG.warning(
                    'Could not create a floating IP for reservation %s: %s',
                    reservation.id, e,
                )
                if isinstance(e, exception.Conflict):
                    return None
                made = None
            if made is not None:
                return made
            refused.add(wanted.id)
            wanted = self._replace(lease, reservation, wanted, refused, now)
        return None

    def _replace(
        self, lease: Lease, reservation: Reservation, broken: FloatingIP,
        refused: Collection[str], now: int,
    ) -> FloatingIP | None:
        """Allocate a free floating IP in place of a broken floating IP.

        :returns: None if there is no free floating IP, or if the reservation
            no longer has the broken floating IP
        """
        window = lease.left(now)

        def work(tx: Tx) -> FloatingIP | None:
            kept = {f.id for f in tx.run(models.list_, reservation.id)}
            free = [
                f
                for f in tx.run(
                    models.free, broken.network_id, window, reservation.id
                )
                if f.id not in kept and f.id not in refused
            ]
            if broken.id not in kept or not free:
                return None
            new: FloatingIP = free[0]
            tx.put_off_hosts(
                RESOURCE_TYPE, reservation.id, kept - {broken.id} | {new.id},
                window,
            )
            return new

        return self._ledger.write(work)


def lacks_required(
    reservation: Reservation, held: Iterable[FloatingIP | neutron.FloatingIP]
) -> bool:
    """Tell whether a required address of a reservation is not held."""
    required = demands.read(reservation.demand).required
    return not {f.address for f in held}.issuperset(required)


def is_made_for(
    reservation: Reservation, floating_ip: neutron.FloatingIP
) -> bool:
    """Tell whether a floating IP of the project was made for a reservation.

    A start that crashed has kept no ids, and the project may have changed the
    description: either match is sufficient.
    """
    return (
        floating_ip.id in reservation.made.get('floating_ips', ())
        or floating_ip.description == _description(reservation)
    )


def _description(reservation: Reservation) -> str:
    return f'blazar reservation {reservation.id}'


def _required(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the required addresses, each in its stored form.

    :raises InvalidInput: if an entry is not an address, or there are too many
    """
    asked = parameters[REQUIRED]
    if not isinstance(asked, list | tuple):
        raise exception.InvalidInput(
            f'{REQUIRED} must be a list', field=REQUIRED
        )
    required = tuple(ip_address.parse(text, REQUIRED) for text in asked)
    if len(set(required)) < len(required):
        raise exception.InvalidInput(
            f'{REQUIRED} must be different addresses', field=REQUIRED
        )
    if len(required) > parameters['amount']:
        raise exception.InvalidInput(
            f'{REQUIRED} must not have more addresses than amount',
            field=REQUIRED,
        )
    return required


DRIVERS = {RESOURCE_TYPE: FloatingIPResource}
