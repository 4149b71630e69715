# SPDX-License-Identifier: Apache-2.0
"""Registration of floating IPs as reservable by the operator."""

from collections.abc import Callable
import uuid

from blazar_sched.domain import floating_ip
from blazar_sched.domain.floating_ip import FloatingIP
from blazar_sched.service.clients.neutron import Neutron
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import Tx


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
        address = floating_ip.parse(address)
        subnet = floating_ip.find_subnet(
            address, self._neutron.subnets(network_id)
        )
        new = FloatingIP(
            id=str(uuid.uuid4()),
            # The id as Neutron spells it: Neutron may also accept another
            # letter case.
            network_id=subnet.network_id,
            subnet_id=subnet.id,
            address=address,
            created_at=int(self._clock()),
        )

        def work(tx: Tx) -> None:
            tx.add_floating_ip(new)

        self._ledger.write(work)
        return new

    def delete(self, floating_ip_id: str) -> None:
        """Delete the registration of a floating IP.

        :raises FloatingIPNotFound: if there is no floating IP with that id
        :raises CantDeleteFloatingIP: while the floating IP is allocated
        """

        def work(tx: Tx) -> None:
            tx.delete_floating_ip(floating_ip_id)

        self._ledger.write(work)
