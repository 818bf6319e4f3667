// receive-events.ts PORT: receives the events of the webhook with the secret
// MUSTER_WEBHOOK_SECRET. Put a proxy with TLS in front of it. The ids of the events that were handled
// are kept in handled.txt.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { Webhook } from "standardwebhooks";
import { setting } from "./client.ts";
import { type Event, react } from "./react.ts";

const [port] = process.argv.slice(2);
if (!port) throw new Error("usage: receive-events.ts PORT");
const verifier = new Webhook(setting("MUSTER_WEBHOOK_SECRET"));

// Ten thousand ids are enough: what is sent again was sent in the last 24 hours.
const kept = existsSync("handled.txt") ? readFileSync("handled.txt", "utf8").split("\n").slice(-10_000) : [];
writeFileSync("handled.txt", kept.join("\n"));
// By id: done, or being done. A repetition that comes before the end waits for it.
const handled = new Map<string, Promise<void>>(kept.map((id) => [id, Promise.resolve()]));

// body is the text of a request as it came. It throws if there is too much of it.
async function body(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    if ((size += part.length) > 65_536) throw new Error("the request is too long");
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

// handle reacts to an event, and keeps its id once that is done.
async function handle(event: Event): Promise<void> {
  await react(event);
  appendFileSync("handled.txt", event.id + "\n");
  for (const oldest of handled.keys()) {
    if (handled.size <= 10_000) break;
    handled.delete(oldest);
  }
}

createServer(async (request, response) => {
  const answer = (status: number) => response.writeHead(status).end();
  let event: Event;
  try {
    event = verifier.verify(await body(request), request.headers as Record<string, string>) as Event;
  } catch {
    return answer(401); // the sender does not have the secret
  }
  try {
    const work = handled.get(event.id) ?? handle(event);
    handled.set(event.id, work);
    await work;
    answer(204);
  } catch (failure) {
    handled.delete(event.id);
    console.error(event.id, failure);
    answer(500); // Muster sends it again; the later events of this device wait
  }
}).listen(Number(port), "127.0.0.1", () => console.error(`listening on port ${port}`));
