# SPDX-License-Identifier: Apache-2.0
"""The upkeep of the ledger: hosts, servers, and leases that must move."""
