# SPDX-License-Identifier: Apache-2.0
"""Imports of the programs' modules, in the process that is forked.

The help of a command imports the modules of the command, and fills the caches
of entry points.
"""

import contextlib
import io
import os
import sys

from blazar_sched.cmd import main

# The SDK looks for clouds.yaml in the home that it is imported with.
os.environ['HOME'] = os.devnull

import blazarclient.shell  # noqa: E402
import openstackclient.shell  # noqa: E402

_HELPS = (
    (main, ['db', 'check', '--help']),
    (blazarclient.shell, ['lease-list', '--help']),
    (openstackclient.shell, ['reservation', 'lease', 'list', '--help']),
    (openstackclient.shell, ['reservation', 'offer', 'list', '--help']),
    (openstackclient.shell, ['server', 'list', '--help']),
)

for shell, command in _HELPS:
    with (
        contextlib.suppress(SystemExit),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        shell.main(command)
# What the commands of the service import as they run, which `main` prepares.
import blazar_sched.service.assembly  # noqa: E402, F401

# The defaults of these two modules are the arguments of this process: each
# fork imports the modules again.
del sys.modules['blazarclient.shell'], sys.modules['openstackclient.shell']
