# SPDX-License-Identifier: Apache-2.0
"""Series: leases that recur."""

from blazar_sched_client.osc import verb
from blazar_sched_client.osc.reservation import RESERVATIONS
from blazar_sched_client.osc.verb import length
from blazar_sched_client.osc.verb import text

_RULE = (
    RESERVATIONS,
    text(
        '--rrule',
        'Rule of RFC 5545, as FREQ=WEEKLY;BYDAY=MO,WE;COUNT=24, in local time',
    ),
    text('--time-zone', 'Time zone of the rule, as Europe/Berlin'),
    text('--start', 'First start, in local time, as 2030-01-07T09:00'),
    length('--duration', 'Length of each lease'),
    text(
        '--except',
        'Date, or local start, of an occurrence to leave out (may be '
        'repeated)',
        action='append',
    ),
    text(
        '--if-no-room',
        'What is done if an occurrence has no room, refuse by default',
        choices=('refuse', 'skip'),
    ),
    verb.DRY_RUN,
)


class Series(verb.Noun):
    """A command about series."""

    noun = 'series'
    plural = 'series'
    columns = ('id', 'name', 'rrule', 'start', 'time_zone', 'booked_until')
    hidden = ('change_from', 'reservations')


class ListSeries(Series, verb.List):
    """List the series of the project."""


class ShowSeries(Series, verb.Show):
    """Show a series, with its occurrences."""


class CreateSeries(Series, verb.Create):
    """Create a series, and book its occurrences of the next time."""

    options = (verb.NAME, *_RULE, verb.KEY)


class SetSeries(Series, verb.Set):
    """Change a series from an occurrence on."""

    options = (
        text('--name', 'New name of the series'),
        *_RULE,
        text(
            '--from',
            'Local date or time of the first occurrence that changes; the '
            'next occurrence by default',
        ),
    )


class DeleteSeries(Series, verb.Delete):
    """Delete series with their leases that have not started."""
