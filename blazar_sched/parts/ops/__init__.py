# SPDX-License-Identifier: Apache-2.0
"""What operators ask an installation, by commands of ``blazar-sched``."""
