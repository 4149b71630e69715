# SPDX-License-Identifier: Apache-2.0
"""Book, list and delete a lease with what openapi-python-client has made."""

import json
import sys

from reservations_client import Client
from reservations_client.api.leases import create_lease
from reservations_client.api.leases import delete_lease
from reservations_client.api.leases import list_leases
from reservations_client.models.create_lease_body import CreateLeaseBody

client = Client(base_url=sys.argv[1], headers={'X-Auth-Token': 'alice:p1'})
asked = {'client': client, 'open_stack_api_version': 'reservation 1.2'}


def create(hosts):
    reservation = {
        'resource_type': 'physical:host', 'min': hosts, 'max': hosts
    }
    body = CreateLeaseBody.from_dict({
        'name': 'run', 'start_date': '2030-01-01T00:00:00Z', 'duration': '1h',
        'reservations': [reservation],
    })
    return create_lease.sync(body=body, **asked)


lease = create(1).lease
names = [each.name for each in list_leases.sync(**asked).leases]
delete_lease.sync_detailed(lease.id, **asked)
left = list_leases.sync(**asked).leases
print(json.dumps([lease.status, names, len(left), create(9).error_name]))
