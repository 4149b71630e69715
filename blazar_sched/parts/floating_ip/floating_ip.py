# SPDX-License-Identifier: Apache-2.0
"""Floating IPs that the operator has registered as reservable.

Neutron assigns the addresses of a subnet's allocation pools by itself, so only
addresses outside of the pools can be reserved.
"""

from collections.abc import Iterable
import dataclasses
import ipaddress

from blazar_sched.domain import exception
from blazar_sched.domain.window import Window

ADDRESS = 'floating_ip_address'


@dataclasses.dataclass(frozen=True, slots=True)
class FloatingIP:
    """An address of an external network, outside its allocation pools."""

    id: str
    network_id: str
    subnet_id: str
    address: str
    reservable: bool = True
    created_at: int | None = None
    updated_at: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    """A floating IP, with the windows in which it is allocated, in order."""

    floating_ip: FloatingIP
    windows: tuple[Window, ...] = ()

    def is_free(self, window: Window) -> bool:
        return not any(each.overlaps(window) for each in self.windows)


@dataclasses.dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet of an external network, as Neutron has it now.

    `pools` holds the first and the last address of each allocation pool.
    """

    id: str
    network_id: str
    cidr: str
    gateway: str | None = None
    pools: tuple[tuple[str, str], ...] = ()


def order(floating_ip: FloatingIP) -> tuple[str, int, int]:
    """Return the sort key of a floating IP: network, then numeric address."""
    address = ipaddress.ip_address(floating_ip.address)
    return floating_ip.network_id, address.version, int(address)


def find_subnet(address: str, subnets: Iterable[Subnet]) -> Subnet:
    """Return the subnet in which an address can be reserved.

    :raises NotFound: if the address is in none of the subnets
    :raises InvalidInput: if the address is in a subnet, but it is not certain
        that a floating IP can have the address there
    """
    ip = ipaddress.ip_address(address)
    for subnet in subnets:
        cidr = ipaddress.ip_network(subnet.cidr, strict=False)
        if ip in cidr:
            _check(ip, cidr, subnet)
            return subnet
    raise exception.NotFound(
        f'no subnet of the external network has the address {address}',
        field=ADDRESS,
    )


def can_be_reserved(address: str, subnets: Iterable[Subnet]) -> bool:
    """Tell whether `find_subnet` finds a subnet for an address."""
    try:
        find_subnet(address, subnets)
    except (exception.InvalidInput, exception.NotFound):
        return False
    return True


def _check(
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address,
    cidr: ipaddress.IPv4Network | ipaddress.IPv6Network, subnet: Subnet,
) -> None:
    ends = {cidr.network_address}
    if ip.version == 4:
        ends.add(cidr.broadcast_address)
    if ip in ends:
        raise exception.InvalidInput(
            f'{ip} is the network or broadcast address of the subnet {cidr}',
            field=ADDRESS,
        )
    if subnet.gateway and ip == ipaddress.ip_address(subnet.gateway):
        raise exception.InvalidInput(
            f'{ip} is the gateway of the subnet {cidr}', field=ADDRESS
        )
    for first, last in subnet.pools:
        if int(ipaddress.ip_address(first)) <= int(ip) <= int(
            ipaddress.ip_address(last)
        ):
            raise exception.InvalidInput(
                f'{ip} is in an allocation pool of the subnet {cidr}: '
                'Neutron may give the address to any project',
                field=ADDRESS,
            )
