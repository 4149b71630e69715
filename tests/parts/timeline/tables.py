# SPDX-License-Identifier: Apache-2.0
"""What the timeline adds to the tables of the tests: see `tests.tables`."""

from blazar_sched.domain.window import FOREVER

ROUTES = {('GET', '/v1/timeline'): (200, None)}
READ = {'blazar:timeline:get'}
OF_ONE_PROJECT = {'get_timeline'}
BODY_RULES = {('GET', '/v1/timeline', 'blazar:timeline:get_names')}
ANSWERS = {'get_timeline': {
    'tag': '9f0c',
    'timeline': {
        'start': 1767229200,
        'end': 1767232800,
        'group_by': 'host',
        'parts': [{'start': 1767229200, 'end': 1767232800}],
        'rows': [
            {
                'key': '7',
                'name': 'compute-7',
                'zone': 'nova',
                'hosts': 1,
                'available': True,
                'free': [0.5],
                'free_hosts': [0],
                'instances': None,
                'bars': [
                    {
                        'kind': 'server',
                        'start': 1767229200,
                        'end': FOREVER,
                        'share': 0.5,
                        'track': 0,
                        'mine': False,
                        'lease_id': None,
                        'reservation_id': None,
                        'name': None,
                        'status': None,
                        'degraded': None,
                        'project_id': None,
                        'server_id': None,
                    },
                ],
                'bars_left_out': 0,
            },
        ],
        'marker': None,
    },
}}
