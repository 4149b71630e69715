# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.fault.command *argv``: blazar-sched of any version."""

import sys

from blazar_sched.cmd import main

if __name__ == '__main__':
    sys.exit(main.main(sys.argv[1:]))
