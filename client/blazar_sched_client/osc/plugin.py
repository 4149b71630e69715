# SPDX-License-Identifier: Apache-2.0
"""What openstackclient reads of a plugin."""

from __future__ import annotations

import argparse
from typing import cast
from typing import TYPE_CHECKING

from blazar_sched_client import load
from blazar_sched_client._proxy import Proxy

if TYPE_CHECKING:
    # This module imports all plugins.
    from openstackclient.common.clientmanager import ClientManager

# The plugin of python-blazarclient has the name of the service type.
API_NAME = 'blazar_sched'
API_VERSION_OPTION = 'os_blazar_sched_api_version'
API_VERSIONS = ('1',)
DEFAULT_API_VERSION = '1'


def make_client(instance: ClientManager) -> Proxy:
    """Return the client of the commands."""
    conn = instance.sdk_connection
    load(conn)
    return cast(Proxy, conn.reservation)


def build_option_parser(
    parser: argparse.ArgumentParser
) -> argparse.ArgumentParser:
    """Add no global option."""
    return parser
