// The current generation of the TypeScript client: revision 2026-07-28.
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Person, answer, bridged, call, change, overStdio, reads, step, withKey, world } from "./flow.mjs";

const modern = { versionNegotiation: { mode: { pin: "2026-07-28" } } };

async function connect(options, era = { pin: "2026-07-28" }) {
  const client = new Client({ name: "v2", version: "1" }, { versionNegotiation: { mode: era } });
  await client.connect(new StreamableHTTPClientTransport(new URL(world.endpoint), options));
  return client;
}

// signedIn connects for a person who has to sign in first.
async function signedIn(person) {
  const transport = new StreamableHTTPClientTransport(new URL(world.endpoint), { authProvider: person });
  const client = new Client({ name: "v2", version: "1" }, modern);
  await assert.rejects(client.connect(transport), UnauthorizedError);
  await transport.finishAuth(person.returned);
  return connect({ authProvider: person });
}

await reads(connect);
await step("negotiation", async () => {
  const client = await connect(withKey(world.key), "auto");
  assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
  await client.close();
});

const local = new Client({ name: "v2", version: "1" }, modern);
await local.connect(new StdioClientTransport(bridged()));
await overStdio(local, await connect(withKey(world.key)));

const person = new Person("mcp:devices:read mcp:policies:read");
const client = await signedIn(person);
await step("sign-in", async () => {
  assert.equal(person.granted, "mcp:devices:read mcp:policies:read");
  assert.equal(answer(await call(client, "count_assets")).count, 1);
});
await step("step-up", async () => {
  const changes = [{ setting: "CAMERA", value: "ALLOW" }];
  const propose = () => call(client, "update_policy_settings", { policyId: world.policyId, changes });
  await assert.rejects(propose(), UnauthorizedError);
  assert.equal(person.asked.at(-1), "mcp:devices:read mcp:policies:read mcp:policies:write");
  await client.transport.finishAuth(person.returned);
  assert.equal(person.granted, "mcp:devices:read mcp:policies:read mcp:policies:write");
});
await change(client, "ALLOW", "ALLOW");
await client.close();
