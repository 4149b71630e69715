# SPDX-License-Identifier: Apache-2.0
"""The actions of ``blazar-sched db`` that read or write Blazar's tables."""

from blazar_sched.cmd.db import Action
from blazar_sched.parts.blazar.exporting import commands as exporting
from blazar_sched.parts.blazar.importing import commands as importing

DB = {
    'import-blazar': Action(
        'import the leases, hosts and floating IPs of Blazar 18',
        importing.run, importing.add_arguments,
    ),
    'tidy-blazar': Action(
        'remove the resources that Blazar has created in other services for '
        'pending leases; after that Blazar cannot take over the leases again',
        importing.tidy,
    ),
    'export-blazar': Action(
        'write the leases, hosts and floating IPs back to the database of '
        'Blazar 18, which then continues with these',
        exporting.run, exporting.add_arguments,
    ),
    'compare-blazar': Action(
        'compare the leases, hosts and floating IPs with the database of '
        'Blazar 18, and print each difference',
        exporting.compare, importing.add_database,
    ),
}
