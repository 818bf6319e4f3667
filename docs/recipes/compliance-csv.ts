// compliance-csv.ts: writes a line for each managed device as CSV, with its policy,
// whether it follows it, its patch level and when it was last seen.
import { muster, said } from "./client.ts";

// cell quotes a value. Devices choose their names: a value that a spreadsheet
// would take for a formula gets an apostrophe.
function cell(value: unknown): string {
  const text = String(value ?? "");
  return '"' + (/^[=+\-@\t\r]/.test(text) ? "'" : "") + text.replaceAll('"', '""') + '"';
}

const current = new Map<string, number>(); // version of each policy
for (let page = 0, last = false; !last; page++) {
  const { data, error } = await muster.GET("/policies", { params: { query: { size: 100, page } } });
  if (!data) throw new Error("cannot list the policies: " + said(error));
  for (const policy of data.content) current.set(policy.pathName, policy.version);
  last = data.last;
}

console.log("asset,name,serialNumber,user,policy,compliant,policyUpToDate,securityPatchLevel,lastSeenAt");
for (let page = 0, last = false; !last; page++) {
  const { data, error } = await muster.GET("/assets", { params: { query: { sort: "createdAt,asc", size: 100, page } } });
  if (!data) throw new Error("cannot list the devices: " + said(error));
  for (const { managedDevice: device, ...asset } of data.content) {
    if (!device) continue; // not enrolled
    const facts = asset.specifications ?? {};
    const report = (device.statusReport ?? {}) as { policyCompliant?: boolean };
    const upToDate = device.policyVersionApplied === current.get(device.policyId ?? "");
    console.log([asset.pathName, asset.identification, facts["serialNumber"], asset.customData?.["user"], device.policyName, report.policyCompliant,
      upToDate, facts["securityPatchLevel"], device.lastSeenAt].map(cell).join(","));
  }
  last = data.last;
}
