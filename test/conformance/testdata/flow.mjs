// What a client of either generation does with a service. The scripts v1.mjs
// and v2.mjs hand in their own classes; everything that differs between the
// generations is there.
import assert from "node:assert/strict";

const need = (name) => process.env[name] ?? assert.fail(`${name} is not set`);

export const world = {
  endpoint: need("MCP_URL"),
  key: need("API_KEY"),
  readingKey: need("READING_KEY"),
  browser: need("BROWSER"),
  bridge: need("BRIDGE"),
  policyId: need("POLICY_ID"),
  policyName: need("POLICY_NAME"),
  assetId: need("ASSET_ID"),
};

export const withKey = (key) => ({ requestInit: { headers: { "X-API-Key": key } } });

export async function step(name, work) {
  await work();
  console.log(`ok ${name}`);
}

// problem reads a tool error: one text block with REST's code and message.
export function problem(result) {
  assert.equal(result.isError, true, JSON.stringify(result));
  assert.equal(result.structuredContent, undefined);
  assert.equal(result.content.length, 1);
  const told = JSON.parse(result.content[0].text);
  assert.deepEqual(Object.keys(told).slice(0, 4), ["code", "message", "status", "retryable"]);
  return told;
}

export function answer(result) {
  assert.ok(!result.isError, JSON.stringify(result.content));
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result.structuredContent;
}

export const call = (client, name, args = {}) => client.callTool({ name, arguments: args });

// bridged is how a client starts the bridge to the service.
export const bridged = () => ({ command: world.bridge, args: [], env: { MUSTER_TEST_BRIDGE: world.endpoint, MUSTER_API_KEY: world.key } });

// overStdio is what a client sees over the bridge: the same as over HTTP.
export async function overStdio(client, straight) {
  await step("stdio", async () => {
    assert.equal(client.getInstructions(), straight.getInstructions());
    assert.deepEqual((await client.listTools()).tools, (await straight.listTools()).tools);
    const page = { assetId: world.assetId };
    assert.deepEqual(answer(await call(client, "list_device_commands", page)), answer(await call(straight, "list_device_commands", page)));
    assert.equal(problem(await call(client, "get_asset", { assetId: "none" })).code, "not_found");
  });
  await client.close();
  await straight.close();
}

// reads is list, call, image and error with a key.
export async function reads(connect) {
  const client = await connect(withKey(world.key));
  await step("instructions", async () => {
    assert.match(client.getInstructions(), /apply_policy_proposal/);
    assert.match(client.getInstructions(), /UNCONFIRMED/);
  });
  await step("list", async () => {
    const { tools } = await client.listTools();
    assert.equal(tools.length, 35);
    for (const tool of tools) {
      assert.equal(tool.inputSchema.additionalProperties, false, tool.name);
      assert.ok(tool.title && tool.description && tool.outputSchema, tool.name);
      for (const hint of ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]) {
        assert.equal(typeof tool.annotations[hint], "boolean", `${tool.name} ${hint}`);
      }
    }
  });
  await step("call", async () => {
    const page = answer(await call(client, "list_assets", { status: "ACTIVE", size: 5 }));
    assert.equal(page.content[0].pathName, world.assetId);
    assert.equal(answer(await call(client, "get_asset", { assetId: world.assetId })).pathName, world.assetId);
    assert.equal(answer(await call(client, "lock_device", { assetId: world.assetId })).type, "LOCK");
  });
  await step("image", async () => {
    const result = await call(client, "create_provisioning_qr_code", { policyId: world.policyId });
    const images = result.content.filter((block) => block.type === "image");
    assert.equal(images.length, 1);
    assert.equal(images[0].mimeType, "image/png");
    assert.equal(Buffer.from(images[0].data, "base64").subarray(1, 4).toString(), "PNG");
    assert.equal(answer(result).policyId, world.policyId);
    assert.ok(!result.content[0].text.includes(images[0].data), "the picture is in the text as well");
  });
  await step("error", async () => {
    assert.equal(problem(await call(client, "get_asset", { assetId: "none" })).code, "not_found");
    assert.equal(problem(await call(client, "get_asset", { assetID: "none" })).code, "invalid_arguments");
  });
  await client.close();
  await step("forbidden", async () => {
    const reader = await connect(withKey(world.readingKey));
    const { tools } = await reader.listTools();
    assert.ok(tools.some((tool) => tool.name === "list_assets"));
    assert.ok(!tools.some((tool) => tool.name === "wipe_device"));
    assert.equal(problem(await call(reader, "wipe_device", { assetId: world.assetId })).code, "forbidden");
    await reader.close();
  });
}

// change is a reviewed change of policy: propose, get, apply; then one of high
// impact, which a person must confirm by the policy's name.
export async function change(client, camera, factoryReset) {
  await step("reviewed change", async () => {
    const policyId = world.policyId;
    const proposal = answer(await call(client, "update_policy_settings", { policyId, changes: [{ setting: "CAMERA", value: camera }] }));
    assert.equal(proposal.status, "PENDING");
    assert.equal(proposal.fields[0].label, "Camera");
    const { proposalId } = proposal;
    assert.deepEqual(answer(await call(client, "get_policy_proposal", { proposalId })), proposal);
    const applied = answer(await call(client, "apply_policy_proposal", { proposalId }));
    assert.equal(applied.status, "SUCCEEDED");
    assert.equal(applied.result.policyId, policyId);
    const { settings } = answer(await call(client, "get_policy_settings", { policyId }));
    assert.equal(settings.find((setting) => setting.id === "CAMERA").value, camera);
    assert.equal(problem(await call(client, "apply_policy_proposal", { proposalId })).code, "not_pending");
  });
  await step("confirmed change", async () => {
    const changes = [{ setting: "FACTORY_RESET", value: factoryReset }];
    const { proposalId, impact, requiresConfirmation } = answer(await call(client, "update_policy_settings", { policyId: world.policyId, changes }));
    assert.equal(impact, "HIGH");
    assert.equal(requiresConfirmation, true);
    assert.equal(problem(await call(client, "apply_policy_proposal", { proposalId })).code, "confirmation_required");
    assert.equal(answer(await call(client, "apply_policy_proposal", { proposalId, confirmation: ` ${world.policyName.toUpperCase()} ` })).status, "SUCCEEDED");
  });
}

// Person is an OAuth client's half of a sign-in: it keeps what the SDK hands
// it, and sends the person's browser where the SDK says.
export class Person {
  redirectUrl = "http://127.0.0.1:9/callback"; // no server listens there: the browser tells where it was sent
  asked = [];

  // ticks are the scopes that the person ticks on the consent page, if not those
  // that are ticked already, which are the ones asked for.
  constructor(scope, { keepRefreshToken = true, ticks = [] } = {}) {
    this.keepRefreshToken = keepRefreshToken;
    this.ticks = ticks;
    this.clientMetadata = {
      client_name: "Conformance", redirect_uris: [this.redirectUrl], scope,
      grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], token_endpoint_auth_method: "none",
    };
  }
  state() { return (this.sent = crypto.randomUUID()); }
  clientInformation() { return this.information; }
  saveClientInformation(information) { this.information = information; }
  tokens() { return this.kept; }
  saveTokens(tokens) {
    this.granted = tokens.scope;
    this.kept = this.keepRefreshToken ? tokens : { ...tokens, refresh_token: undefined };
  }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }
  async redirectToAuthorization(url) {
    this.asked.push(url.searchParams.get("scope"));
    const visit = new URLSearchParams([["to", url], ...this.ticks.map((scope) => ["scope", scope])]);
    const response = await fetch(`${world.browser}/visit?${visit}`);
    const text = await response.text();
    assert.ok(response.ok, text);
    const back = new URL(text);
    assert.ok(back.href.startsWith(this.redirectUrl), text);
    assert.equal(back.searchParams.get("state"), this.sent);
    assert.equal(back.searchParams.get("iss"), new URL(world.endpoint).origin);
    assert.ok(back.searchParams.get("code"), text);
    this.returned = back.searchParams;
  }
}

// raise widens the live connection, as an administrator does.
export async function raise(scope) {
  const response = await fetch(`${world.browser}/raise?scope=${encodeURIComponent(scope)}`);
  assert.ok(response.ok, await response.text());
}
