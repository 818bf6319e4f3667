"""The client of the recipes: generated from the OpenAPI document, with patience."""

import os
import time

import httpx

from muster_api.client import AuthenticatedClient  # generated, see README.md


class Patient(httpx.HTTPTransport):
    """Sends a call again after a lost answer, and when the service says so.

    Every call that writes has an Idempotency-Key, so that it takes effect once.
    """

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for attempt in range(61):
            seconds = min(2**attempt, 60)
            try:
                response = super().handle_request(request)
                response.read()
                if attempt == 60 or not may_repeat(response):
                    return response
                seconds = int(response.headers.get("Retry-After", seconds))
            except httpx.TransportError:
                if attempt == 60:
                    raise
            time.sleep(seconds)
        raise AssertionError("the last attempt returns or raises")


def may_repeat(response: httpx.Response) -> bool:
    """Tells if the service says that the same call may be sent again."""
    if response.status_code == 429:
        return True
    if response.is_success or "json" not in response.headers.get("Content-Type", ""):
        return False
    problem = response.json()
    return problem.get("retryable") is True or problem.get("code") == "idempotency_in_flight"


def connect() -> AuthenticatedClient:
    """Returns a client for MUSTER_URL with the key MUSTER_API_KEY."""
    return AuthenticatedClient(
        base_url=os.environ["MUSTER_URL"] + "/api/v1",
        token=os.environ["MUSTER_API_KEY"],
        prefix="",
        auth_header_name="X-API-Key",
        timeout=httpx.Timeout(90),
        httpx_args={"transport": Patient()},
    )


def said(answer: object) -> str:
    """Returns what an error says, for a line of output."""
    return getattr(answer, "detail", None) or getattr(answer, "message", None) or "no answer"
