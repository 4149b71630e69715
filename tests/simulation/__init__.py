# SPDX-License-Identifier: Apache-2.0
"""The whole service in one thread, from a seed, with everything going wrong.

See README.md: what is real, how to play a seed again, how to add to it.
"""
