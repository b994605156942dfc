"""A client of the decision service, with retries. It needs no extra."""

from ._client import Answer, Client, ServiceError

__all__ = ["Answer", "Client", "ServiceError"]
