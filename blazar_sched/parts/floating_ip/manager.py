# SPDX-License-Identifier: Apache-2.0
"""Registration of floating IPs as reservable by the operator."""

from collections.abc import Callable
import dataclasses
import ipaddress
import uuid

from blazar_sched.domain import ip_address
from blazar_sched.parts.floating_ip import conf
from blazar_sched.parts.floating_ip import floating_ip
from blazar_sched.parts.floating_ip import healing
from blazar_sched.parts.floating_ip import models
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from blazar_sched.parts.floating_ip.neutron import Neutron
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.bus.calls import Values
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager import paging
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running


class FloatingIPs:
    """The operations on reservable floating IPs.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, ledger: Ledger, neutron: Neutron, clock: Callable[[], float]
    ) -> None:
        self._ledger = ledger
        self._neutron = neutron
        self._clock = clock

    def create(self, network_id: str, address: str) -> FloatingIP:
        """Register an address of an external network.

        :raises InvalidInput: if the text is not an address, or if Neutron may
            give the address to others
        :raises NotFound: if Neutron has no such external network, or no subnet
            of the network has the address
        :raises FloatingIPExists: if the address is registered already
        :raises Unavailable: if there is no cloud, or the cloud does not answer
        """
        address = ip_address.parse(address, floating_ip.ADDRESS)
        subnet = floating_ip.find_subnet(
            address, self._neutron.subnets(network_id)
        )
        new = FloatingIP(
            id=str(uuid.uuid4()),
            # The id as Neutron spells it: Neutron may also accept another
            # letter case.
            network_id=subnet.network_id, subnet_id=subnet.id,
            address=address, created_at=int(self._clock()),
        )
        self._ledger.write(lambda tx: tx.run(models.add, new))
        return new

    def list(self, marker: str | None = None) -> Page:
        """Return a page of the floating IPs, by network and address."""
        places = {_place(f): f for f in self._ledger.run(models.list_)}
        return paging.page(
            (
                {**dataclasses.asdict(places[place]), 'place': place}
                for place in sorted(places)
            ),
            'place', after=marker,
        )

    def delete(self, floating_ip_id: str) -> None:
        """Delete the registration of a floating IP.

        :raises FloatingIPNotFound: if there is no floating IP with that id
        :raises CantDeleteFloatingIP: while the floating IP is allocated
        """
        self._ledger.write(lambda tx: tx.run(models.delete, floating_ip_id))


def _place(floating_ip: FloatingIP) -> str:
    """Return the sort key of a floating IP in a list: network, address."""
    address = int(ipaddress.ip_address(floating_ip.address))
    return f'{floating_ip.network_id}/{address:039}'


def start(manager: Manager) -> Running:
    """Answer the calls for floating IPs, and heal the floating IPs."""
    neutron = Neutron(manager.services.adapter(conf.GROUP))
    floating_ips = FloatingIPs(manager.ledger, neutron, manager.clock)

    def create(network_id: str, address: str) -> Values:
        return dataclasses.asdict(floating_ips.create(network_id, address))

    def get(floating_ip_id: str) -> Values:
        return dataclasses.asdict(
            manager.ledger.run(models.get, floating_ip_id)
        )

    return Running(
        {
            'create_floating_ip': create,
            'list_floating_ips': floating_ips.list,
            'get_floating_ip': get,
            'delete_floating_ip': floating_ips.delete,
        },
        (healing.Healer(
            manager.conf, manager.ledger, neutron, manager.healer,
            manager.clock, manager.metrics,
        ),),
    )
