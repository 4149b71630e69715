# SPDX-License-Identifier: Apache-2.0
"""What calendars add to the tables of the tests: see `tests.tables`."""

from blazar_sched.parts.calendar import exception

ROUTES = {
    ('GET', '/v1/calendars'): (200, None),
    ('POST', '/v1/calendars'): (201, {'name': 'team'}),
    ('GET', '/v1/calendars/{calendar_id}'): (200, None),
    ('DELETE', '/v1/calendars/{calendar_id}'): (204, None),
}
VARIABLES = {'calendar_id': 'c1'}
READ = {'blazar:calendars:get'}
WRITE = {'blazar:calendars:post', 'blazar:calendars:delete'}
CALENDAR = {
    'id': 'b1f5d6c4-0000-4000-8000-00000000000d', 'project_id': 'p1',
    'name': 'team', 'digest': '0' * 64, 'created_at': 1767225600,
}
ANSWERS = {
    'list_calendars': [CALENDAR], 'get_calendar': CALENDAR,
    'create_calendar': CALENDAR, 'delete_calendar': None,
}
LIMITS = {
    ('calendars', 'max_calendars', 10): ('MaxCalendars', {'name': 'team'}),
}
REFUSALS = {exception.MaxCalendars: 400, exception.CalendarNotFound: 404}
BOUNDS = {'calendar': 'parts.calendar.models.MAX_CALENDARS of a project'}
