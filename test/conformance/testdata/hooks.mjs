// Receives webhooks with the library from npm, and prints what it took, one body a line.
// Events of the asset FAILING are answered with 500, and those of HANGING are not answered, until
// the file RELEASED exists.
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const verifier = new Webhook(process.env.WEBHOOK_SECRET);

const server = createServer(async (request, response) => {
  let body = "";
  try {
    for await (const part of request) body += part;
  } catch {
    return; // it was cut off
  }
  try {
    const event = verifier.verify(body, request.headers);
    if (event.id !== request.headers["webhook-id"]) throw new Error("webhook-id is not the event's id");
    if (!existsSync(process.env.RELEASED)) {
      if (event.data.assetId?.endsWith(process.env.FAILING)) return response.writeHead(500).end();
      if (event.data.assetId?.endsWith(process.env.HANGING)) return;
    }
  } catch (failure) {
    console.log("REFUSED " + failure);
    return response.writeHead(401).end();
  }
  console.log(body);
  response.writeHead(204).end();
});
server.listen(0, "127.0.0.1", () => console.log("http://127.0.0.1:" + server.address().port));
