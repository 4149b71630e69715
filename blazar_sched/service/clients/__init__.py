# SPDX-License-Identifier: Apache-2.0
"""Clients of the OpenStack services in which leases are realized."""
