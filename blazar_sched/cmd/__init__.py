# SPDX-License-Identifier: Apache-2.0
"""One console script, `blazar-sched`, one file a subcommand.

A subcommand is a module with HELP, `add_arguments(parser)` and
`run(args) -> int`, the exit status.
"""
