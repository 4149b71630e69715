# SPDX-License-Identifier: Apache-2.0
"""The state of each nova-scheduler process, beside its filters and weighers.

The state consists of a replica that follows the ledger, of the scheduling
requests, and of the decisions made.
"""
