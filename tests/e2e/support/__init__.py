"""Helpers of the tests of the whole system."""
