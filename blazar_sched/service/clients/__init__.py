# SPDX-License-Identifier: Apache-2.0
"""Clients of the services that a lease is made real in."""
