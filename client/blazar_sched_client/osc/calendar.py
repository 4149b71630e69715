# SPDX-License-Identifier: Apache-2.0
"""Calendars: links at which programs read the leases of a project."""

from blazar_sched_client.osc import verb


class Calendar(verb.Noun):
    """A command about calendars."""

    noun = 'calendar'
    plural = 'calendars'
    columns = ('id', 'name', 'created_at')


class ListCalendar(Calendar, verb.List):
    """List the calendars of the project."""


class ShowCalendar(Calendar, verb.Show):
    """Show a calendar, without its link."""


class CreateCalendar(Calendar, verb.Create):
    """Create a calendar; its link is shown once."""

    options = (verb.NAME,)


class DeleteCalendar(Calendar, verb.Delete):
    """Delete calendars: their links are not valid any more."""
