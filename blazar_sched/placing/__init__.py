# SPDX-License-Identifier: Apache-2.0
"""Placing: which hosts a lease gets, keeps and gives up.

Rules over a replica, with no I/O: nothing is allocated before the ledger
commits it.
"""
