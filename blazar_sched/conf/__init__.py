# SPDX-License-Identifier: Apache-2.0
"""Configuration, one file a group.

Most groups are the service's: see `service`. `scheduler` is nova-scheduler's,
in nova.conf.
"""
