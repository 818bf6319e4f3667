#!/usr/bin/env python3
"""Sends one command to every active device of a company, each at most once.

usage: MUSTER_API_KEY=mk_... reach_all.py https://muster.example.com RUN COMMAND [BODY]

COMMAND is the last part of a command's address, such as sync-policy; BODY is its JSON. RUN is
a name for this run. A run that was interrupted goes on when it is started again with the same
name within 24 hours: what it sent already is answered from what the service stored. A key sends
ten commands a minute, so that 500 devices take 50 minutes; the script waits as it is told.
It prints a line for each device, and exits with 1 if not every device took the command.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request


def call(url, body=None, idempotency_key=None):
    """Returns status, headers and body. None as status: it is not known whether it arrived."""
    request = urllib.request.Request(url, data=body, method="GET" if idempotency_key is None else "POST")
    request.add_header("X-API-Key", os.environ["MUSTER_API_KEY"])
    if body:
        request.add_header("Content-Type", "application/json")
    if idempotency_key:
        request.add_header("Idempotency-Key", idempotency_key)
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as refused:
        text = refused.read()
        return refused.code, refused.headers, json.loads(text) if text.startswith(b"{") else {}
    except (OSError, ValueError) as failure:
        return None, {}, {"detail": str(failure)}


def insist(url, body=None, idempotency_key=None):
    """Calls again while the service says that it may, and after a lost answer: the
    Idempotency-Key makes it the same call."""
    for attempt in range(60):
        status, headers, answer = call(url, body, idempotency_key)
        if status is not None and status != 429 and not answer.get("retryable") and answer.get("code") != "idempotency_in_flight":
            break
        time.sleep(int(headers.get("Retry-After") or min(2**attempt, 60)))
    return status, answer


def devices(base):
    """Reads all pages before anything is sent. By createdAt no device changes its place."""
    found, page = [], 0
    while True:
        status, answer = insist(f"{base}/assets?status=ACTIVE&sort=createdAt,asc&size=100&page={page}")
        if status != 200:
            sys.exit(f"cannot list the devices: {status} {answer.get('detail') or answer.get('message')}")
        found += answer["content"]
        if answer["last"]:
            return found
        page += 1


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    base, run, command = sys.argv[1].rstrip("/") + "/api/v1", sys.argv[2], sys.argv[3]
    body = sys.argv[4].encode() if len(sys.argv) == 5 else b""
    complete = True
    for device in devices(base):
        status, answer = insist(f"{base}/assets/{device['pathName']}/commands/{command}", body, f"{run}-{device['pathName']}")
        took = status in (200, 202)
        complete = complete and took
        said = answer.get("status") if took else answer.get("detail") or answer.get("message")
        print(device["pathName"], device.get("identification"), status, said, sep="\t", flush=True)
    sys.exit(0 if complete else 1)


if __name__ == "__main__":
    main()
