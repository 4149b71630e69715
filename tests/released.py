# SPDX-License-Identifier: Apache-2.0
"""The last release, beside which this version works.

``python -m tests.released`` writes released.json for a new release, in the
commit after the release: see CONTRIBUTING.
"""

from collections.abc import Mapping
import dataclasses
import importlib.metadata
import inspect
import json
import pathlib
import subprocess
from typing import Any

from alembic import script

from blazar_sched.domain.event import Event
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service import parts
from blazar_sched.service.bus import calls as bus_calls
from blazar_sched.service.bus import rpc
from blazar_sched.service.ledger import migrations
from tests import tables

FILE = pathlib.Path(__file__).with_suffix('.json')
RELEASE: dict[str, Any] = json.loads(FILE.read_text())


def calls() -> dict[str, Mapping[str, inspect.Parameter]]:
    """Return the parameters of the calls of the API, by call and name."""
    # The modules of the parts declare their calls.
    assert list(parts.each('calls', 'Calls'))
    return bus_calls._PARAMETERS


def answers() -> dict[str, list[str]]:
    """Return the names of the fields of answers, by class."""
    return {
        each.__name__: [field.name for field in dataclasses.fields(each)]
        for each in (
            Lease, Reservation, Event, Host, *tables.names('ANSWERED')
        )
    }


def main() -> None:
    commit = subprocess.run(
        ['git', 'rev-parse', 'HEAD'], check=True, capture_output=True,
        text=True, cwd=FILE.parent,
    ).stdout.strip()
    scripts = script.ScriptDirectory.from_config(migrations._settings())
    FILE.write_text(json.dumps({
        'version': importlib.metadata.version('blazar-sched'),
        'commit': commit,
        'rpc': rpc.VERSION,
        'migration': scripts.get_current_head(),
        'calls': {k: list(v) for k, v in calls().items()},
        'answers': answers(),
    }, indent=1) + '\n')


if __name__ == '__main__':
    main()
