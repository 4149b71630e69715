# SPDX-License-Identifier: Apache-2.0
"""Neutron at the level of HTTP: how version 29 answers about floating IPs.

Stands for the keystoneauth adapter. It has one external network.
"""

import ipaddress
from urllib import parse
import uuid

from tests.standins.rest import answer
from tests.standins.rest import Service

NETWORK = 'dd24c2a3-bb0b-4a52-b7d5-bbd2a5b2a3a1'
# Not an external one.
INTERNAL = 'dd24c2a3-bb0b-4a52-b7d5-bbd2a5b2a3a2'
SUBNET = 'e93ab1f5-8b9d-4ec6-8f9e-3d5c0a5f6a01'


def refusal(status, type_):
    error = {'type': type_, 'message': 'no', 'detail': ''}
    return answer(status, {'NeutronError': error})


def _port(address, owner):
    return {'device_owner': owner, 'fixed_ips': [{'ip_address': address}]}


class NeutronApi(Service):
    """`subnets` are Neutron's own dictionaries and can be changed.

    `ports` are others than those of floating IPs. `quota` is each project's
    number of floating IPs, -1 for any, `page` how many are listed at once.
    """

    def __init__(self):
        self.networks = {NETWORK: True, INTERNAL: False}
        self.subnets = [{
            'id': SUBNET,
            'network_id': NETWORK,
            'cidr': '203.0.113.0/24',
            'gateway_ip': '203.0.113.1',
            'allocation_pools': [
                {'start': '203.0.113.10', 'end': '203.0.113.20'},
            ],
        }]
        self.stored = {}
        self.ports = []
        self.forwardings = {}
        self.quota = 50
        self.page = 1
        super().__init__(
            *(
                (method, '/v2.0' + path, do)
                for method, path, do in (
                    ('GET', '/networks', self._list_networks),
                    ('GET', '/subnets', self._list_subnets),
                    ('GET', '/ports', self._list_ports),
                    ('GET', '/quotas/(.+)/details', self._show_quota),
                    ('GET', '/floatingips', self._list),
                    ('POST', '/floatingips', self._create),
                    ('DELETE', '/floatingips/([^/]+)', self._delete),
                    ('PUT', '/floatingips/([^/]+)/tags/(.+)', self._tag),
                    (
                        'GET', '/floatingips/(.+)/port_forwardings',
                        self._list_forwardings,
                    ),
                    (
                        'DELETE', '/floatingips/(.+)/port_forwardings/(.+)',
                        self._delete_forwarding,
                    ),
                )
            )
        )

    def owned(self, project_id):
        """Return the addresses that a project has."""
        return sorted(
            f['floating_ip_address']
            for f in self.stored.values()
            if f['project_id'] == project_id
        )

    def take(self, address, project_id='somebody', **more):
        """Have a project take an address; return the floating IP."""
        said = self._create({'floatingip': {
            'floating_network_id': NETWORK, 'floating_ip_address': address,
            'project_id': project_id, **more,
        }})
        assert said.ok, said.text
        return self.stored[said.json()['floatingip']['id']]

    def use(self, address):
        """Have a router use an address of the network."""
        self.ports.append(_port(address, 'network:router_gateway'))

    def forward(self, id_):
        """Have a port forwarding on a floating IP."""
        self.forwardings.setdefault(id_, set()).add(str(uuid.uuid4()))

    def _list_networks(self, **query):
        assert query.pop('router:external') == 'True'
        found = [
            {'id': id_}
            for id_, external in self.networks.items()
            # An older SDK asks for all networks, and looks for the id itself.
            if external and id_ == query.get('id', id_)
        ]
        return answer(200, {'networks': found})

    def _list_subnets(self, network_id):
        found = [s for s in self.subnets if s['network_id'] == network_id]
        return answer(200, {'subnets': found})

    def _list_ports(self, network_id):
        made = [
            _port(f['floating_ip_address'], 'network:floatingip')
            for f in self.stored.values()
            if f['floating_network_id'] == network_id
        ]
        return answer(200, {'ports': made + self.ports})

    def _show_quota(self, project_id):
        quota = {
            'limit': self.quota, 'used': len(self.owned(project_id)),
            'reserved': 0,
        }
        return answer(200, {'quota': {'floatingip': quota}})

    def _list(self, marker='', **query):
        found = [
            f
            for id_, f in sorted(self.stored.items())
            if id_ > marker
            and all(f[name] == value for name, value in query.items())
        ]
        links = [{'rel': 'previous'}] if marker else []
        if len(found) > self.page:
            last = found[self.page - 1]['id']
            query['marker'] = last
            href = f'http://network/v2.0/floatingips?{parse.urlencode(query)}'
            links.append({'rel': 'next', 'href': href})
        body = {'floatingips': found[: self.page], 'floatingips_links': links}
        return answer(200, body)

    def _create(self, body):
        asked = body['floatingip']
        assert 'tags' not in asked, 'Neutron takes no tags here'
        network, address, project = (
            asked[name]
            for name in (
                'floating_network_id', 'floating_ip_address', 'project_id'
            )
        )
        if network not in self.networks:
            return refusal(404, 'NetworkNotFound')
        if not self.networks[network]:
            return refusal(400, 'BadRequest')
        if 0 <= self.quota <= len(self.owned(project)):
            return refusal(409, 'OverQuota')
        if not any(self._has(s, address) for s in self.subnets):
            return refusal(400, 'InvalidIpForSubnet')
        ports = self._list_ports(network).json()['ports']
        if any(
            fixed['ip_address'] == address
            for port in ports
            for fixed in port['fixed_ips']
        ):
            return refusal(409, 'IpAddressAlreadyAllocated')
        id_ = str(uuid.uuid4())
        self.stored[id_] = {'description': '', **asked, 'id': id_, 'tags': []}
        return answer(201, {'floatingip': self.stored[id_]})

    @staticmethod
    def _has(subnet, address):
        cidr = ipaddress.ip_network(subnet['cidr'])
        ip = ipaddress.ip_address(address)
        return ip in cidr and ip not in (cidr[0], cidr[-1])

    def _delete(self, id_):
        if self.forwardings.get(id_):
            return refusal(409, 'FipInUseByPortForwarding')
        if self.stored.pop(id_, None) is None:
            return refusal(404, 'FloatingIPNotFound')
        return answer(204)

    def _tag(self, id_, tag):
        if id_ not in self.stored:
            return refusal(500, 'HTTPInternalServerError')
        if tag not in self.stored[id_]['tags']:
            self.stored[id_]['tags'].append(tag)
        return answer(201)

    def _list_forwardings(self, id_):
        found = [{'id': f} for f in self.forwardings.get(id_, ())]
        return answer(200, {'port_forwardings': found})

    def _delete_forwarding(self, id_, forwarding):
        self.forwardings[id_].remove(forwarding)
        return answer(204)
