// The earlier generation of the TypeScript client: revision 2025-11-25.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Person, answer, bridged, call, change, overStdio, problem, raise, reads, step, withKey, world } from "./flow.mjs";

async function connect(options) {
  const client = new Client({ name: "v1", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(world.endpoint), options));
  return client;
}

async function signedIn(person) {
  const transport = new StreamableHTTPClientTransport(new URL(world.endpoint), { authProvider: person });
  await assert.rejects(new Client({ name: "v1", version: "1" }).connect(transport), UnauthorizedError);
  await transport.finishAuth(person.returned.get("code"));
  return connect({ authProvider: person });
}

await reads(connect);
await step("negotiation", async () => {
  const transport = new StreamableHTTPClientTransport(new URL(world.endpoint), withKey(world.key));
  await new Client({ name: "v1", version: "1" }).connect(transport);
  assert.equal(transport.protocolVersion, "2025-11-25");
  await transport.close();
});

const local = new Client({ name: "v1", version: "1" });
await local.connect(new StdioClientTransport(bridged()));
await overStdio(local, await connect(withKey(world.key)));

// This generation answers a 403 challenge by refreshing, which cannot widen a
// grant. So it is not challenged: the tool's error says where a person raises
// what the connection may do, and the very same token may do more at once.
const person = new Person("mcp:devices:read mcp:policies:read");
const client = await signedIn(person);
await step("sign-in", async () => {
  assert.equal(person.granted, "mcp:devices:read mcp:policies:read");
  assert.equal(answer(await call(client, "count_assets")).count, 1);
});
await step("step-up on the live connection", async () => {
  const changes = [{ setting: "CAMERA", value: "BLOCK" }];
  const told = problem(await call(client, "update_policy_settings", { policyId: world.policyId, changes }));
  assert.equal(told.code, "forbidden");
  assert.match(told.message, /http\S+\/access/);
  await raise("mcp:policies:write");
});
await change(client, "BLOCK", "BLOCK");
await client.close();

// It asks for the scopes of the 401 challenge alone; a person who ticks more on
// the consent page saves the step-up. Here it has no refresh token, either.
await step("step-up by signing in again", async () => {
  const ticks = ["mcp:devices:read", "mcp:policies:read", "mcp:policies:write"];
  const again = new Person(undefined, { keepRefreshToken: false, ticks });
  const wider = await signedIn(again);
  assert.equal(again.granted, ticks.join(" "));
  const changes = [{ setting: "CAMERA", value: "ALLOW" }];
  assert.equal(answer(await call(wider, "update_policy_settings", { policyId: world.policyId, changes })).status, "PENDING");
  await wider.close();
});
