# SPDX-License-Identifier: Apache-2.0
"""Limits of a project."""

from blazar_sched_client.osc import verb
from blazar_sched_client.osc.verb import text


class ListLimit(verb.List):
    """List the limits of the project, with what it uses of them."""

    plural = 'limits'
    columns = ('name', 'unit', 'limit', 'used')
    options = (
        text('--project-id', 'ID of another project, for administrators'),
    )
