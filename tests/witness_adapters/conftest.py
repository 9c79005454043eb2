"""Which real service can a test of an adapter have?"""

from tests.witness_report.conftest import service

__all__ = ["service"]
