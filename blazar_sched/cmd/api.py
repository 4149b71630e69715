# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched api`: runs the REST API alone."""

import argparse

from blazar_sched.cmd import service

add_arguments = service.add_arguments


def run(args: argparse.Namespace) -> int:
    from blazar_sched.service.api import server

    return service.run(args, server.start)
