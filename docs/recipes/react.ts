// What receive-events.ts and follow-events.ts do with an event. It may be called twice for the
// same event, so it must not matter if it is.
import { muster, said } from "./client.ts";
import type { components } from "./muster-api.ts";

export type Event = { id: string; type: string; data: components["schemas"]["EventData"] };

// react reads a device that fell silent, and prints it. It throws if the device cannot be read.
export async function react(event: Event): Promise<void> {
  if (event.type !== "device.silent" || !event.data.assetId) return; // other types, and ones of later versions
  const { data, error, response } = await muster.GET("/assets/{assetId}", { params: { path: { assetId: event.data.assetId } } });
  if (response.status === 404) return; // it was deleted since
  if (!data) throw new Error("cannot read the device: " + said(error));
  console.log([data.pathName, data.identification, data.status].join("\t"));
}
