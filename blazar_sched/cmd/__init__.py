# SPDX-License-Identifier: Apache-2.0
"""The console script `blazar-sched`, one file per subcommand.

A subcommand is a module with HELP, `add_arguments(parser)` and
`run(args) -> int`, the exit status.
"""
