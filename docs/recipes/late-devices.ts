// late-devices.ts RUN HOURS TEXT: sends a message to every managed device that
// was not seen for HOURS. RUN names this run: started again with the same name within
// 24 hours, no device gets the message twice. Exits with 1 if a device did not take it.
import { muster, said } from "./client.ts";

const [run, hours, text] = process.argv.slice(2);
if (!run || !hours || !text) throw new Error("usage: late-devices.ts RUN HOURS TEXT");
const seenBefore = new Date(Date.now() - Number(hours) * 3_600_000).toISOString();

// All pages first: by createdAt no device changes its place while we read.
const late: { pathName: string; identification: string }[] = [];
for (let page = 0, last = false; !last; page++) {
  const { data, error } = await muster.GET("/assets", {
    params: { query: { seenBefore, receivesMessages: true, sort: "createdAt,asc", size: 100, page } },
  });
  if (!data) throw new Error("cannot list the devices: " + said(error));
  late.push(...data.content);
  last = data.last;
}

for (const device of late) {
  const { data, error, response } = await muster.POST("/assets/{assetId}/commands/message", {
    params: { path: { assetId: device.pathName }, header: { "Idempotency-Key": `${run}-${device.pathName}` } },
    body: { title: "Please connect", body: text },
  });
  // 202 is UNCONFIRMED: it may have arrived. Read the history; do not send it again.
  console.log([device.pathName, device.identification, response.status, data?.status ?? said(error)].join("\t"));
  if (!data) process.exitCode = 1;
}
