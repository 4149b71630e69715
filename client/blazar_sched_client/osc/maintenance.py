# SPDX-License-Identifier: Apache-2.0
"""Maintenances: windows in which nothing may be on some hosts."""

from blazar_sched_client.osc import verb
from blazar_sched_client.osc.verb import moment
from blazar_sched_client.osc.verb import text

_WINDOW = (
    text('--reason', 'Reason, which the owners of leases are told'),
    moment('--start-date', 'Start of the maintenance, now by default'),
    moment('--end-date', 'End of the maintenance; none if it is not known'),
    ('--force', {
        'action': 'store_true',
        'help': 'Go on although reservations cannot leave the hosts',
    }),
    verb.DRY_RUN,
)


class Maintenance(verb.Noun):
    """A command about maintenances."""

    noun = 'maintenance'
    plural = 'maintenances'
    columns = ('id', 'name', 'status', 'start_date', 'end_date', 'hosts')
    hidden = ('force', 'resource_properties')


class ListMaintenance(Maintenance, verb.List):
    """List the maintenances."""


class ShowMaintenance(Maintenance, verb.Show):
    """Show a maintenance, with the reservations that are in its way."""


class CreateMaintenance(Maintenance, verb.Create):
    """Close hosts over a window, and move reservations off the hosts."""

    options = (
        verb.NAME,
        text(
            '--host', 'Hypervisor hostname of a host (may be repeated)',
            action='append', dest='hosts',
        ),
        text(
            '--resource-properties',
            'Requirement that the hosts meet, in place of their names, as '
            '\'["==", "$rack", "7"]\'',
        ),
        *_WINDOW,
    )


class SetMaintenance(Maintenance, verb.Set):
    """Change the name, the reason or the window of a maintenance."""

    options = (text('--name', 'New name of the maintenance'), *_WINDOW)


class DeleteMaintenance(Maintenance, verb.Delete):
    """End or cancel maintenances: their hosts are open again."""
