# SPDX-License-Identifier: Apache-2.0
"""The demonstration of the main use, in one process with a real Nova.

The demonstration needs the extra ``blazar-sched[demo]``. The tests with a real
Nova use the same cloud.
"""
