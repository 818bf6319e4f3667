// follow-events.ts: reads the events as they happen, without a webhook. What was read is kept in
// cursor.txt; started again, it goes on from there. At first it begins with what happens from now on.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { muster, said } from "./client.ts";
import { react } from "./react.ts";

// keep replaces cursor.txt as a whole, so that a crash leaves the old one or the new one.
function keep(cursor: string): string {
  writeFileSync("cursor.new", cursor);
  renameSync("cursor.new", "cursor.txt");
  return cursor;
}

let after = existsSync("cursor.txt") ? readFileSync("cursor.txt", "utf8") : "latest";
for (;;) {
  const wait = after === "latest" ? 0 : 30; // seconds; the first answer is there to get a cursor
  const { data, error, response } = await muster.GET("/events", { params: { query: { after, wait, limit: 100 } } });
  if (response.status === 410 && error && "oldest" in error && error.oldest) {
    // Events are missing: the cursor is too old, or the database was restored. Read here what you
    // keep of the devices again. Then go on with the oldest event that there is.
    console.error("some events are gone: " + said(error));
    after = keep(error.oldest);
    continue;
  }
  if (!data) throw new Error("cannot read the events: " + said(error));
  for (const event of data.events) await react(event);
  after = keep(data.next); // after the work: a crash before this line repeats it
}
