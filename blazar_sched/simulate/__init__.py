# SPDX-License-Identifier: Apache-2.0
"""A trace, played in virtual time by the real filters, weighers and placing.

Only `cloud` and what it imports need Nova.
"""
