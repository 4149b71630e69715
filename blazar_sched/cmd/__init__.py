# SPDX-License-Identifier: Apache-2.0
"""The console script `blazar-sched`, one file per subcommand.

A subcommand is a module with `add_arguments(parser)` and `run(args) -> int`,
which returns the exit status. `main.COMMANDS` has the help text of each
subcommand; the subcommands of parts are in the parts.
"""
