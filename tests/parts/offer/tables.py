# SPDX-License-Identifier: Apache-2.0
"""What offers add to the tables of the tests: see `tests.tables`."""

from blazar_sched.parts.offer import exception

HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
ROUTES = {
    ('GET', '/v1/offers'): (200, None),
    ('POST', '/v1/offers'): (200, {'duration': '6h', 'reservations': [HOST]}),
    ('GET', '/v1/offers/{offer_id}'): (200, None),
    ('PUT', '/v1/offers/{offer_id}'): (200, {'approved': True}),
    ('DELETE', '/v1/offers/{offer_id}'): (204, None),
}
VARIABLES = {'offer_id': 'o1'}
READ = {'blazar:offers:get'}
WRITE = {'blazar:offers:post', 'blazar:offers:delete'}
ADMIN = {'blazar:offers:approve'}
BODY_RULES = {
    ('POST', '/v1/offers', rule)
    for rule in (
        'blazar:leases:share', 'blazar:leases:extra_specs',
        'blazar:timeline:get_names',
    )
}
OFFER = {
    'id': 'b1f5d6c4-0000-4000-8000-000000000009',
    'start': 1893456000,
    'end': 1893459600,
    'held_until': 1767229200,
    'project_id': 'p1',
    'needs_approval': None,
    'approved_by': None,
    'reservations': [{'resource_type': 'physical:host', 'available': 1}],
}
ANSWERS = {
    'list_offers': [OFFER], 'get_offer': OFFER, 'update_offer': OFFER,
    'delete_offer': None,
    'search_offers': {
        'offers': [{**OFFER, 'alternative': 0, 'limited_by': None}],
        'searched_until': None, 'nearest': None,
    },
}
RESERVING = {'offers': {
    'duration': '1h', 'start_date': '2030-01-01 00:00',
    'latest_start_date': '2030-01-01 01:00',
}}
LIMITS = {
    ('offers', 'max_held_offers', 5): ('MaxHeldOffers', {
        'reservations': [HOST], 'duration': '1h', 'hold': '5m',
    }),
}
REFUSALS = {
    exception.MaxHeldOffers: 400, exception.OfferNotFound: 404,
    exception.OfferLapsed: 409,
}
