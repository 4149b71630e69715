# SPDX-License-Identifier: Apache-2.0
"""Maintenances: hosts are closed over a window, and leases leave them."""
