# SPDX-License-Identifier: Apache-2.0
"""What maintenances add to the tables of the tests: see `tests.tables`."""

from blazar_sched.parts.maintenance import exception

NEW = {
    'name': 'rack 7 power', 'hosts': ['compute-1'],
    'start_date': '2030-01-07 09:00', 'end_date': '2030-01-07 17:00',
}
ROUTES = {
    ('GET', '/v1/maintenances'): (200, None),
    ('POST', '/v1/maintenances'): (201, NEW),
    ('GET', '/v1/maintenances/{maintenance_id}'): (200, None),
    ('PUT', '/v1/maintenances/{maintenance_id}'): (200, {'end_date': None}),
    ('DELETE', '/v1/maintenances/{maintenance_id}'): (204, None),
}
DRY_RUNS = {
    ('POST', '/v1/maintenances'), ('PUT', '/v1/maintenances/{maintenance_id}')
}
VARIABLES = {'maintenance_id': 'm1'}
ADMIN = {
    f'blazar:maintenances:{each}' for each in ('get', 'post', 'put', 'delete')
}
BLOCKED = {
    'lease_id': 'b1f5d6c4-0000-4000-8000-000000000000',
    'reservation_id': 'b1f5d6c4-0000-4000-8000-000000000001',
    'hosts': ['compute-1'],
}
MAINTENANCE = {
    'id': 'b1f5d6c4-0000-4000-8000-000000000009',
    'name': 'rack 7 power',
    'reason': 'the power supply is replaced',
    'start': 1893456000,
    'end': 1893459600,
    'hosts': ['compute-1'],
    'status': 'PLANNED',
    'created_at': 1767225600,
    'updated_at': None,
    'moved': [BLOCKED],
    'in_the_way': [{**BLOCKED, 'why': 'no_room'}],
    'servers': 3,
}
ANSWERS = {
    'list_maintenances': [MAINTENANCE],
    'get_maintenance': MAINTENANCE,
    'create_maintenance': MAINTENANCE,
    'update_maintenance': MAINTENANCE,
    'delete_maintenance': None,
}
REFUSALS = {exception.InTheWay: 409, exception.MaintenanceNotFound: 404}
PURGED = {'maintenance'}
LOOPS = {'maintenance'}
