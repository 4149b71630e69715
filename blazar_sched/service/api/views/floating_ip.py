# SPDX-License-Identifier: Apache-2.0
"""The view of a floating IP, by Neutron's names."""

from operator import itemgetter

from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.times import STAMPS

FLOATING_IP = Object(
    Field(
        'id', meaning.FLOATING_IP_ID, 'b1f5d6c4-0000-4000-8000-000000000004'
    ),
    Field(
        'floating_network_id', meaning.NETWORK,
        'b1f5d6c4-0000-4000-8000-000000000005', TEXT, itemgetter('network_id'),
    ),
    Field(
        'subnet_id', 'ID of the subnet', 'b1f5d6c4-0000-4000-8000-000000000006'
    ),
    Field(
        'floating_ip_address', meaning.ADDRESS, '192.0.2.7', TEXT,
        itemgetter('address'),
    ),
    Field('reservable', meaning.RESERVABLE, True, BOOLEAN), *STAMPS,
    name='FloatingIP', meaning='A floating IP registered as reservable',
)
