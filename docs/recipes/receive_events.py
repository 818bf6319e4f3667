"""receive_events.py PORT: receives the events of the webhook with the secret
MUSTER_WEBHOOK_SECRET. Put a proxy with TLS in front of it. The ids of the events that were handled
are kept in handled.txt."""

import os
import pathlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from react import react

if len(sys.argv) != 2:
    sys.exit(__doc__)
verifier = Webhook(os.environ["MUSTER_WEBHOOK_SECRET"])
one_at_a_time = threading.Lock()

# Ten thousand ids are enough: what is sent again was sent in the last 24 hours.
kept = pathlib.Path("handled.txt")
handled = dict.fromkeys(kept.read_text().splitlines()[-10_000:] if kept.exists() else [])
kept.write_text("".join(event_id + "\n" for event_id in handled))


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # seconds without a byte from the other side

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        if length > 65_536:
            return self.answer(413)
        try:
            event = verifier.verify(self.rfile.read(length), dict(self.headers))
        except (WebhookVerificationError, ValueError):
            return self.answer(401)  # the sender does not have the secret
        try:
            with one_at_a_time:  # a repetition waits for the first to end
                handle(event)
            self.answer(204)
        except Exception as failure:
            print(event["id"], failure, file=sys.stderr, flush=True)
            self.answer(500)  # Muster sends it again; the later events of this device wait

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def handle(event: dict) -> None:
    """Reacts to an event that is new, and keeps its id once that is done."""
    if event["id"] in handled:
        return
    react(event)
    with kept.open("a") as file:
        file.write(event["id"] + "\n")
    handled[event["id"]] = None
    while len(handled) > 10_000:
        del handled[next(iter(handled))]


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
print("listening on port", sys.argv[1], file=sys.stderr, flush=True)
server.serve_forever()
