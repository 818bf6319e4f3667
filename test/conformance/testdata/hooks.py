"""Receives webhooks with the library from PyPI, and prints what it took, one body a line.
Events of the asset FAILING are answered with 500, and those of HANGING are not answered, until
the file RELEASED exists."""

import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook

verifier = Webhook(os.environ["WEBHOOK_SECRET"])


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            return  # it was cut off
        status = 204
        try:
            event = verifier.verify(body, dict(self.headers))
            if event["id"] != self.headers["webhook-id"]:
                raise ValueError("webhook-id is not the event's id")
            asset, released = event["data"].get("assetId", ""), os.path.exists(os.environ["RELEASED"])
            if asset.endswith(os.environ["FAILING"]) and not released:
                status = 500
            elif asset.endswith(os.environ["HANGING"]) and not released:
                while not os.path.exists(os.environ["RELEASED"]):
                    time.sleep(0.1)
                return
            else:
                print(body.decode() + "\n", end="", flush=True)
        except Exception as failure:
            print("REFUSED", failure, flush=True)
            status = 401
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
