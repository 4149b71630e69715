# SPDX-License-Identifier: Apache-2.0
"""The main job end to end, in one process: the service and a real Nova.

Needs the extra ``blazar-sched[demo]``. The tests against Nova stand on the
same cloud.
"""
