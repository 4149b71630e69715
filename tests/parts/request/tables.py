# SPDX-License-Identifier: Apache-2.0
"""What lease requests add to the tables of the tests: see `tests.tables`."""

import dataclasses

from blazar_sched.parts.request import exception
from blazar_sched.parts.request import manager

HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
ROUTES = {
    ('GET', '/v1/requests'): (200, None),
    ('POST', '/v1/requests'): (201, {
        'name': 'night-run', 'duration': '6h',
        'latest_start_date': '2030-01-07 09:00', 'reservations': [HOST],
    }),
    ('GET', '/v1/requests/{request_id}'): (200, None),
    ('DELETE', '/v1/requests/{request_id}'): (204, None),
}
VARIABLES = {'request_id': 'r1'}
READ = {'blazar:requests:get'}
WRITE = {'blazar:requests:post', 'blazar:requests:delete'}
ADMIN = {'blazar:requests:prioritize'}
BODY_RULES = {
    ('POST', '/v1/requests', rule)
    for rule in (
        *ADMIN, 'blazar:leases:share', 'blazar:leases:extra_specs',
        'blazar:timeline:get_names',
    )
}
LEASE_REQUEST = {
    'id': 'b1f5d6c4-0000-4000-8000-00000000000b', 'name': 'night-run',
    'project_id': 'p1', 'user_id': 'alice', 'reservations': [],
    'start': 1893456000, 'latest_start': 1893459600, 'duration': 3600,
    'wait_until': 1893459600, 'priority': 1, 'digest': '', 'flexible': False,
    'number': 7, 'status': 'WAITING', 'lease_id': None, 'position': 3,
    'estimate': 1893463200, 'created_at': 1767225600, 'updated_at': None,
}
ANSWERS = {
    'list_lease_requests': [LEASE_REQUEST], 'get_lease_request': LEASE_REQUEST,
    'create_lease_request': LEASE_REQUEST, 'cancel_lease_request': None,
}
RESERVING = {'requests': {
    'name': 'n', 'duration': '1h', 'start_date': '2030-01-01 00:00',
    'latest_start_date': '2030-01-02 00:00',
}}
LIMITS = {
    ('requests', 'max_waiting_requests', 5): ('MaxWaitingRequests', {
        'name': 'later', 'duration': '1h', 'reservations': [HOST],
        'start_date': '2030-01-01 00:00',
        'latest_start_date': '2030-01-01 00:30',
    }),
}
REFUSALS = {
    exception.MaxWaitingRequests: 400, exception.LeaseRequestNotFound: 404,
}
PURGED = {'lease_request'}
LOOPS = {'lease requests'}
FAULTY = {
    'lease requests': (manager.LeaseRequests, 'step', '_book', lambda some: {
        '_ledger.run': some,
        '_requests.requested_leases': lambda each, _: each,
        '_requests.kept': lambda each: [],
    }),
    'lapsed requests': (manager.LeaseRequests, 'step', '_lapse', lambda some: {
        '_ledger.run': lambda *_: [
            dataclasses.replace(each, wait_until=0) for each in some()
        ],
    }),
}
