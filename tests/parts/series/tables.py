# SPDX-License-Identifier: Apache-2.0
"""What series add to the tables of the tests: see `tests.tables`."""

from blazar_sched.parts.series import exception
from blazar_sched.parts.series import manager
from blazar_sched.parts.series import models

HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
ROUTES = {
    ('GET', '/v1/series'): (200, None),
    ('POST', '/v1/series'): (201, {
        'name': 'course', 'rrule': 'FREQ=WEEKLY', 'duration': '8h',
        'time_zone': 'Europe/Berlin', 'start': '2030-01-07T09:00',
        'reservations': [HOST],
    }),
    ('GET', '/v1/series/{series_id}'): (200, None),
    ('PUT', '/v1/series/{series_id}'): (200, {'name': 'seminar'}),
    ('DELETE', '/v1/series/{series_id}'): (204, None),
}
DRY_RUNS = {('POST', '/v1/series'), ('PUT', '/v1/series/{series_id}')}
VARIABLES = {'series_id': 's1'}
READ = {'blazar:series:get'}
WRITE = {'blazar:series:post', 'blazar:series:put', 'blazar:series:delete'}
BODY_RULES = {
    (*route, rule)
    for route in DRY_RUNS
    for rule in (
        'blazar:leases:share', 'blazar:leases:extra_specs',
        'blazar:timeline:get_names',
    )
}
SERIES = {
    'id': 'b1f5d6c4-0000-4000-8000-000000000007',
    'name': 'course',
    'project_id': 'p1',
    'user_id': 'alice',
    'rrule': 'FREQ=WEEKLY;COUNT=2',
    'time_zone': 'Europe/Berlin',
    'start': '2030-01-07T09:00',
    'duration': 3600,
    'reservations': [],
    'except_dates': ['2030-02-11'],
    'if_no_room': 'refuse',
    'booked_until': 1893456000,
    'missing': ['2030-01-14T09:00'],
    'created_at': 1767225600,
    'updated_at': None,
    'leases': [
        {
            'occurrence': '2030-01-07T09:00',
            'start': 1893456000,
            'end': 1893459600,
            'lease_id': 'b1f5d6c4-0000-4000-8000-000000000000',
            'status': 'PENDING',
        },
    ],
}
ANSWERS = {
    'list_series': [SERIES],
    'get_series': SERIES,
    'create_series': SERIES,
    'update_series': SERIES,
    'delete_series': None,
}
LIMITS = {
    ('series', 'max_series', 50): ('MaxSeries', {
        'name': 'course', 'rrule': 'FREQ=DAILY;COUNT=1', 'time_zone': 'UTC',
        'start': '2036-01-01T09:00', 'duration': '1h', 'reservations': [HOST],
    }),
}
REFUSALS = {exception.MaxSeries: 400, exception.SeriesNotFound: 404}
PURGED = {'series'}
LOOPS = {'series'}
FAULTY = {
    name: (manager.AllSeries, 'step', work, lambda some, query=query: {
        '_ledger.run': lambda asked: some() if asked is query else [],
        '_ledger.newest': lambda: ('', 0),
    })
    for name, work, query in (
        ('series', '_roll_on', models.list_),
        ('deleted series', '_delete_leases', models.deleted),
    )
}
