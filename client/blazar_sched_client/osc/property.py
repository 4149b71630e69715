# SPDX-License-Identifier: Apache-2.0
"""Properties of hosts, which requirements can name."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from osc_lib.command import command

from blazar_sched_client.osc import verb


class ListProperty(verb.Command, command.Lister):
    """List the properties that a requirement can name, with their values."""

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        found = self.client.get_public_properties()
        names = ('property', 'values', 'values_left_out')
        return verb.rows(names, found.properties, parsed_args)
