# SPDX-License-Identifier: Apache-2.0
"""Configuration, one file per group.

Most groups are those of the service: see `service`. `scheduler` is the group
of nova-scheduler, in nova.conf.
"""
