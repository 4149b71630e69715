# SPDX-License-Identifier: Apache-2.0
"""Placing: which hosts a lease gets, keeps and gives up.

The modules apply rules to a replica, with no I/O: no host is allocated before
the ledger commits the allocation.
"""
